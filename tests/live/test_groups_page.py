"""Groups and meters that a controller has made: what a lab tells of them, and what the page shows."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_browser import PATIENCE_MS, expect, launched, needs_a_browser, opened

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

pytestmark = needs_a_lab
NONE = 0xFFFF_FFFF


def message(kind: int, body: bytes) -> bytes:
    """A message of OpenFlow 1.3."""
    return struct.pack("!BBHI", 4, kind, 8 + len(body), 1) + body


def bucket(port: int, watched: int) -> bytes:
    """A bucket that sends to `port` while the port `watched` is up."""
    output = struct.pack("!HHIH6x", 0, 16, port, 0xFFFF)
    return struct.pack("!HHII4x", 16 + len(output), 0, watched, NONE) + output


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    net = tn.templates.single(3, rate="10 Mbit")
    switch = net.switches["s1"]
    switch.fail_mode, switch.listen = "secure", f"punix:{tmp_path / 's1'}"
    with net.emulate() as lab, socket.socket(socket.AF_UNIX) as tool:
        tool.connect(str(tmp_path / "s1"))
        # A fast failover by ports 2 and 3, and a meter that drops above 1 frame/s after one frame.
        group = struct.pack("!HBxI", 0, 3, 7) + bucket(2, 2) + bucket(3, 3)
        meter = struct.pack("!HHI", 0, 0b110, 1) + struct.pack("!HHII4x", 1, 16, 1, 1)
        tool.sendall(message(0, b"") + message(15, group) + message(29, meter))
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while not (lab.switch("s1").groups() and lab.switch("s1").meters()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        for flow in ("priority=9,in_port=1,actions=meter:1,group:7", "priority=1,actions=output:1"):
            lab.switch("s1").add_flow(flow)
        yield lab


def test_a_lab_tells_groups_and_meters_with_what_they_have_counted(lab: Lab) -> None:
    lab.link("h2", "s1").set(up=False)
    # A host's kernel may have announced itself by the first bucket, with all that the meter lets pass in that second.
    before = [one["frames"] for one in lab.switch("s1").groups()[0]["buckets"]]
    lab.wait([lab.start(tn.apps.udp("h1", "h3", rate="100 kbit", duration="2500 ms"))])
    [group] = lab.switch("s1").groups()
    [meter] = lab.switch("s1").meters()
    assert (group["group"], group["kind"]) == (7, "fast_failover")
    assert [(one["actions"], one["live"]) for one in group["buckets"]] == [("output:2", False), ("output:3", True)]
    first, second = (one["frames"] for one in group["buckets"])
    assert first == before[0] and second > before[1]
    assert group["frames"] == first + second and group["age_ps"] > 0
    [band] = meter["bands"]
    assert (meter["meter"], meter["unit"], band["rate"], band.get("raises")) == (1, "pktps", 1, None)
    assert meter["frames"] > band["frames"] > 0 and meter["bytes"] > band["bytes"] > 0


@needs_a_browser
def test_the_page_shows_them_below_the_flows_and_they_count(lab: Lab) -> None:
    faults: list[str] = []
    with lab.live() as live:
        for browser in launched():
            page = opened(browser, live.address, faults)
            assert page.is_hidden("#groups")
            page.get_by_role("button", name="flows of s1").focus()
            page.keyboard.press("Enter")
            rows = page.locator("#group-rows tr")
            expect(rows).to_have_count(5)
            expect(rows.nth(0)).to_contain_text("fast failover")
            expect(rows.nth(1)).to_contain_text("port 2 up")
            expect(rows.nth(4)).to_contain_text("above 1 frames/s")
            lab.start(tn.apps.udp("h1", "h2", rate="100 kbit", duration="600 s"))
            # Both the group and its first bucket count with every look from now on.
            page.wait_for_selector("#group-rows tr.counts")
            lab.link("h2", "s1").set(up=False)
            expect(rows.nth(1)).to_contain_text("port 2 down")
            page.context.close()
    assert faults == []
