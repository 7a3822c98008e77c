"""Curves of a running lab from what its ports are sampled, in intervals of 20 ms."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import twinnet as tn
from live_browser import expect, launched, needs_a_browser, opened
from twinnet.errors import BadValue, TwinnetError
from twinnet.live import fine
from twinnet.live.acts import Acts
from twinnet.live.fine import MOST_LINKS, FineCurves

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from twinnet.lab.lab import Lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Two hosts send more than the line to h2 carries, whose link is the second."""
    net = tn.templates.single(9, rate="10 Mbit")
    with net.simulate(name=f"sampled-{os.getpid()}") as lab:
        for sender in ("h1", "h3"):
            lab.start(tn.apps.udp(sender, "h2", rate="8 Mbit", duration="60 s"))
        yield lab


def sent_bytes(lab: Lab, port: str) -> int:
    return next(row["counters"]["link_bytes"] for row in lab.ports() if row["port"] == port)


def test_each_interval_is_told_once_and_all_that_was_sent_is_in_them(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    # Samplers take over from each other every 20 intervals.
    monkeypatch.setattr(fine, "_MOST_IN_SAMPLER", 20)
    curves = FineCurves(lab)
    rows = curves.since(1, 0.0)
    assert rows == [], "no interval has passed"
    for step in range(1, 41):
        lab.run_until(f"{step * 60} ms")
        rows += curves.since(1, rows[-1][0] if rows else 0.0)
    ends = [end for end, _, _ in rows]
    assert ends == pytest.approx([0.02 * number for number in range(1, 121)])
    # The second way of the link of h2 is that of the switch: its line is full, and its queue overflows.
    told = max(sum(row[way][0] for row in rows) * 0.02 / 8 for way in (1, 2))
    assert told == pytest.approx(sent_bytes(lab, "s1-eth2"), abs=1)
    assert sum(way[3] for row in rows for way in row[1:]) > 0
    assert any(way[6]["drops"].get("overlimit") for row in rows for way in row[1:] if len(way) > 6)
    curves.end()
    for number in range(8):
        with pytest.raises(TwinnetError):
            lab.connection.samples_read(sampler=number)


def test_samplers_take_over_without_a_gap_at_any_moment(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fine, "_MOST_IN_SAMPLER", 10)
    curves = FineCurves(lab)
    rows = curves.since(1, 0.0)
    for step in range(1, 60):
        lab.run_until(f"{step * 37} ms")
        rows += curves.since(1, rows[-1][0] if rows else 0.0)
    apart = [after[0] - before[0] for before, after in pairwise(rows)]
    assert min(apart) > 0 and max(apart) < 0.0201 and rows[-1][0] > 2.1
    curves.end()


def test_so_many_links_are_sampled_and_what_nobody_asks_for_no_more(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    curves = FineCurves(lab)
    for link in range(MOST_LINKS):
        curves.since(link, 0.0)
    with pytest.raises(BadValue, match="8 links are sampled already"):
        curves.since(MOST_LINKS, 0.0)
    curves.rest()
    lab.run_until("100 ms")
    assert len(curves.since(0, 0.0)) == 5, "asked for lately, they go on"
    monkeypatch.setattr(fine, "_FORGET_S", -1.0)
    curves.rest()
    assert curves.since(MOST_LINKS, 0.0) == []
    with pytest.raises(BadValue, match="there is no link 9"):
        curves.since(9, 0.0)
    curves.end()


def test_samples_are_no_events_to_go_on_to(lab: Lab) -> None:
    acts = Acts(lab)
    lab.run_until("5 ms")
    acts.fine.since(0, 0.0)
    for _ in range(200):
        acts.do({"act": "next event"})
        assert lab.now_ps() != 25 * 10**9
        assert acts.fine.since(0, 0.0) == []
    assert lab.now_ps() > 25 * 10**9
    acts.do({"act": "go on", "duration": "1 s", "speed": 1})
    acts.fine.since(0, 0.0)
    lab.run_until("200 ms")
    assert len(acts.fine.since(0, 0.0)) > 1
    acts.fine.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@needs_a_browser
def test_the_curves_of_a_running_lab_have_a_point_each_20_ms(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live() as live:
        page = opened(browser, live.address, faults)
        expect(page.locator("#stands")).to_be_visible()
        with page.expect_response(re.compile("samples/1")):
            page.get_by_role("button", name="h2-eth0").press("Enter")
        lab.run_until("2 s")
        queue = page.locator("#queue .back")
        expect(queue).to_have_attribute("d", re.compile("^M([^L]*L){99}[^L]*$"))
        # Another link has its own.
        with page.expect_response(re.compile("samples/0")):
            page.get_by_role("button", name="h1-eth0").press("Enter")
        lab.run_until("3 s")
        expect(page.locator("#rate .there")).to_have_attribute("d", re.compile("^M([^L]*L){50}"))
        page.click("#close")
        page.context.close()
    assert faults == []
