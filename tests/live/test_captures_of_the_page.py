"""Captures from the page: bounded, analysed by twinnet's own analysis, saved as pcapng."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_browser import expect, launched, needs_a_browser, opened
from twinnet.lab.lab import Lab
from twinnet.live import captures
from twinnet.live.acts import Acts
from twinnet.live.captures import MOST_CAPTURES, Captures, followed_like, host_addresses
from twinnet.results.captures import analyze_capture

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = needs_a_lab


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with tn.templates.single(MOST_CAPTURES + 1, rate="10 Mbit").emulate() as lab:
        yield lab


@pytest.fixture
def started(lab: Lab) -> Iterator[Captures]:
    started = Captures(lab)
    yield started
    started.close()


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def ping(lab: Lab, times: int) -> None:
    lab["h1"].run(f"ping -c {times} -i 0.01 {lab.layout.address('h2')}").check()


@needs_a_browser
def test_a_capture_is_started_stopped_analysed_and_saved_from_the_page(
    browser: Browser, lab: Lab, tmp_path: Path
) -> None:
    faults: list[str] = []
    with lab.live(control=True) as live:
        page = opened(browser, live.address, faults)
        page.get_by_role("button", name="h1-eth0").focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Capture at s1-eth1").click()
        row = page.locator("#capture-rows tr")
        expect(row).to_contain_text("runs for")
        ping(lab, 3)
        page.get_by_role("button", name="Stop capture 1").click()
        page.get_by_role("button", name="Analyse capture 1").click()
        tables = page.locator("#analysis-tables")
        conversation = tables.locator("tr", has_text="icmp").first.locator("td")
        expect(conversation.nth(1)).to_have_text(lab.layout.address("h1"))
        assert [conversation.nth(place).inner_text() for place in (3, 5)] == ["3", "3"]
        expect(tables).to_contain_text("Echo (ping) request")
        # A packet like one that was captured is followed as it would go now.
        tables.locator("tr", has_text="Echo (ping) request").last.get_by_role("button", name="Follow packet").click()
        expect(page.locator("#follow-end")).to_have_text(f"It arrives at {lab.layout.address('h2')}.")
        asked = page.locator("#follow-what")
        assert asked.locator("[name=from]").input_value() == "h1"
        assert asked.locator("[name=protocol]").input_value() == "icmp"
        expect(page.locator(".way.followed")).not_to_have_count(0)
        # What no host has sent, or is no such packet, cannot be followed.
        expect(tables.locator("tr", has_text="ARP").get_by_role("button")).to_have_count(0)
        with page.expect_download() as waiting:
            row.get_by_text("Download").click()
        assert waiting.value.suggested_filename == f"{lab.name}-s1-eth1.pcapng"
        waiting.value.save_as(tmp_path / "saved.pcapng")
        found = analyze_capture(tmp_path / "saved.pcapng").conversations
        assert found.filter(found["protocol"] == "icmp")["packets_a_to_b"].to_list() == [3]
        page.get_by_role("button", name="Discard capture 1").click()
        expect(row).to_have_count(0)
        expect(page.locator("#acts-done .python").last).to_contain_text('lab.capture("s1-eth1", "s1-eth1.pcapng"')
        page.context.close()
    assert faults == []


@pytest.mark.parametrize(
    ("packet", "asked"),
    [
        ({"protocol": "TCP"}, {"from": "h1", "to": "10.0.0.2", "protocol": "tcp", "port": 80, "source_port": 4000}),
        ({"protocol": "SCTP"}, None),
        ({"protocol": "UDP", "source": "192.0.2.1"}, None),
        (
            {"protocol": "ICMPv6", "source": "fd00::1", "source_port": None, "destination_port": None},
            {"from": "h1", "to": "10.0.0.2", "protocol": "icmp"},
        ),
    ],
)
def test_a_packet_that_a_host_has_sent_can_be_followed(
    packet: dict[str, object], asked: dict[str, object] | None
) -> None:
    ports = [{"addresses": ["10.0.0.1/8", "fd00::1/64"]}, {}]
    hosts = host_addresses({"h1": {"kind": "host", "ports": ports}, "s1": {"kind": "switch", "ports": [{}]}})
    row = {"source": "10.0.0.1", "destination": "10.0.0.2", "source_port": 4000, "destination_port": 80}
    assert followed_like(row | packet, hosts) == asked


def test_a_capture_ends_at_its_limit(lab: Lab, started: Captures, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "LIMIT", "8 kB")
    number = started.start("s1-eth1")
    ping(lab, 100)
    started.stop(number)
    [row] = started.rows()
    assert row["bytes"] < 10_000 and row["dropped"] > 0 and row["frames"] < 100


def test_a_capture_ends_when_its_time_is_over(lab: Lab, started: Captures, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "LONGEST_S", 0.2)
    number = started.start("s1-eth1")
    # The timer's end is the state that is waited for.
    started._all[number].ends.join(15)
    assert [row["running"] for row in started.rows()] == [False]
    assert started.content(number)[1][:4] == bytes.fromhex("0a0d0d0a")


def test_what_cannot_be_captured_is_said(lab: Lab, started: Captures) -> None:
    ports = [f"s1-eth{number}" for number in range(1, MOST_CAPTURES + 2)]
    first = started.start(ports[0])
    with pytest.raises(tn.errors.BadValue, match="captured already"):
        started.start(ports[0])
    for port in ports[1:MOST_CAPTURES]:
        started.start(port)
    with pytest.raises(tn.errors.BadValue, match="discard one"):
        started.start(ports[MOST_CAPTURES])
    with pytest.raises(tn.errors.BadValue, match="stop it first"):
        started.content(first)
    for unknown in (0, 99):
        with pytest.raises(tn.errors.BadValue, match="there is no capture"):
            started.tables(unknown)
    started.discard(first)
    with pytest.raises(tn.errors.TwinnetError, match="s9-eth9"):
        started.start("s9-eth9")


def test_captures_are_acts_and_nothing_of_them_is_left(lab: Lab) -> None:
    acts = Acts(lab)
    before = open_files()
    acts.do({"act": "capture", "port": "h1-eth0"})
    acts.do({"act": "stop capture", "capture": 1})
    acts.do({"act": "discard capture", "capture": 1})
    assert [act["commands"] for act in acts.record()] == [
        [f"twinnet do {lab.name} 'capture h1-eth0 h1-eth0.pcapng'"],
        [],
        [],
    ]
    assert acts.captures.rows() == []
    assert open_files() == before


@needs_a_browser
def test_the_end_of_the_page_ends_its_captures(browser: Browser, lab: Lab) -> None:
    with lab.live(control=True) as live:
        page = opened(browser, live.address, [])
        page.get_by_role("button", name="h1-eth0").focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Capture at h1-eth0").click()
        expect(page.locator("#capture-rows tr")).to_contain_text("runs for")
        page.context.close()
    with lab.capture("h1-eth0", "/dev/null") as ours:
        pass
    # Ours was the one behind the page's, which is known no longer.
    with pytest.raises(tn.errors.LabError, match=str(ours.number - 1)):
        lab.connection.capture_stop(capture=ours.number - 1)


def test_a_lab_on_the_virtual_clock_is_captured_too() -> None:
    with tn.templates.single(2).simulate(name="captured-live") as owner, tn.lab.attach(owner.name) as lab:
        started = Captures(lab)
        number = started.start("s1-eth1")
        owner.start(tn.apps.udp("h1", "h2", rate="1 Mbit", duration="100 ms"))
        owner.run_until("1 s")
        started.stop(number)
        tables = started.tables(number)["tables"]
        assert tables[0]["title"] == "Conversations" and "udp" in {row[0] for row in tables[0]["rows"]}
        assert tables[-1]["title"] == "Packets" and len(tables[-1]["follow"]) == len(tables[-1]["rows"])
        asked = [one for one in tables[-1]["follow"] if one is not None]
        # All are of one flow, and a packet like them has its ports.
        assert asked and asked == [asked[0]] * len(asked)
        assert {name: asked[0][name] for name in ("from", "to", "protocol")} == {
            "from": "h1",
            "to": owner.layout.address("h2"),
            "protocol": "udp",
        }
        ports = {name: int(asked[0][name]) for name in ("port", "source_port")}
        assert owner.follow("h1", "h2", "udp", **ports).arrives
        started.close()
