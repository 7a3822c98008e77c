"""What was said between a switch and its controllers, by type and message by message."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_browser import expect, launched, needs_a_browser, opened
from twinnet.control import LearningSwitch

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NEWEST = 32


def controlled(version: str) -> tn.Network:
    net = tn.templates.single(2, rate="10 Mbit", delay="1 ms")
    net.switches["s1"].protocols = [version]
    net.without_ip6()
    net.controller(LearningSwitch)
    return net


def pinged(lab: tn.Lab, count: int = 3) -> dict[str, Any]:
    flow = lab.start(tn.apps.ping("h1", "h2", count=count, interval="10 ms"))
    assert lab.wait([flow], until=tn.units.Picoseconds(lab.now_ps() + 10 * 10**12))
    (row,) = lab.switch("s1").controller_messages()
    return row


@needs_a_lab
@pytest.mark.parametrize("clock", ["virtual", "wall"])
@pytest.mark.parametrize(("version", "asked"), [("OpenFlow10", "STATS"), ("OpenFlow13", "MULTIPART")])
def test_messages_are_counted_by_their_types_in_each_version(version: str, asked: str, clock: str) -> None:
    net = controlled(version)
    with net.simulate() if clock == "virtual" else net.emulate() as lab:
        lab.wait_for_controllers()
        row = pinged(lab)
        (state,) = lab.switch("s1").controller_state
        assert (row["target"], row["peer"]) == (state["target"], "controller")
        assert row["sent"]["HELLO"] == row["received"]["HELLO"] == 1
        assert row["sent"]["FEATURES_REPLY"] == row["received"]["FEATURES_REQUEST"] == 1
        assert row["sent"]["PACKET_IN"] == state["packet_ins"] > 0
        assert sum(row["received"].values()) == state["messages"]
        assert row["received"]["FLOW_MOD"] >= 2 and row["received"]["PACKET_OUT"] >= 1
        other = {"STATS": "MULTIPART", "MULTIPART": "STATS"}[asked]
        assert not any(name.startswith(other) for name in [*row["sent"], *row["received"]])
        newest = row["newest"]
        assert 0 < len(newest) <= NEWEST
        assert all(one["at_ps"] <= other["at_ps"] for one, other in pairwise(newest))
        assert all(one["bytes"] >= 8 and 0 <= one["at_ps"] <= lab.now_ps() for one in newest)


def test_the_newest_are_the_last_and_the_counts_are_of_all() -> None:
    net = controlled("OpenFlow13")
    with net.simulate() as lab:
        lab.wait_for_controllers()
        first = pinged(lab)
        for _ in range(20):
            # Those that were learnt go, and are learnt again.
            assert lab.switch("s1").delete_flows("cookie=0x6c656172/-1") == 2
            last = pinged(lab, 1)
        assert len(last["newest"]) == NEWEST
        whole = sum(last["sent"].values()) + sum(last["received"].values())
        assert whole > sum(first["sent"].values()) + sum(first["received"].values())
        newest = Counter((one["sent"], one["type"]) for one in last["newest"])
        assert newest[True, "PACKET_IN"] <= last["sent"]["PACKET_IN"] and newest[True, "PACKET_IN"] > 0
        assert "HELLO" not in {one["type"] for one in last["newest"]}
        learnt = [one for one in last["newest"] if one["type"] == "FLOW_MOD"]
        assert learnt and not any(one["sent"] for one in learnt)


def test_nothing_is_told_of_messages_that_nobody_asked_for() -> None:
    with controlled("OpenFlow13").simulate() as lab:
        lab.wait_for_controllers()
        assert not any("said" in row for row in lab.connection.controllers())
    with tn.templates.single(2).simulate() as lab:
        assert lab.switch("s1").controller_messages() == []


@pytest.fixture
def browser() -> Iterator[Browser]:
    yield from launched()


@needs_a_lab
@needs_a_browser
def test_the_page_shows_messages_as_they_pass(browser: Browser) -> None:
    faults: list[str] = []
    net = tn.templates.linear(2)
    net.without_ip6()
    net.controller(LearningSwitch)
    with net.emulate(name=f"messages-{os.getpid()}") as lab:
        lab.wait_for_controllers()
        with lab.live() as live:
            page = opened(browser, live.address, faults)
            page.get_by_text("Messages of controllers").click()
            rows = page.locator("#messages tbody tr")
            total = rows.filter(has_text="all").filter(has_text="HELLO")
            expect(total).to_have_count(2)
            page.select_option("#messages-of", "s2")
            expect(total).to_have_count(2)
            assert lab.wait([lab.start(tn.apps.ping("h1", "h2", count=1))])
            packets = rows.filter(has_text="PACKET_IN").filter(has_not_text="all")
            expect(packets.first).to_contain_text("to it")
            expect(rows.filter(has_text="FLOW_MOD").filter(has_not_text="all").first).to_contain_text("from it")
            page.context.close()
    assert faults == []
