"""Curves of short intervals: each sample of a run is seen where the reader looks close enough."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live_browser import expect, launched, needs_a_browser, opened
from twinnet.drawing import picture_of
from twinnet.live.recording import Recording
from twinnet.live.watch import record_of_network
from twinnet.network import templates

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = needs_a_browser
TICKS = 500


@pytest.fixture
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """The address of a recording of five seconds, a look each 10 ms; the queue of h1 is a saw of 10 frames."""
    net = templates.single(2, rate="10 Mbit")
    ends = [(link.a.node, link.b.node, link.a.name, link.b.name) for link in net.links]
    network = record_of_network("fine", picture_of(net), ends) | {"control": False}
    made = Recording(network, tmp_path / "fine.html")
    verdict = {"state": "valid", "reasons": [], "covers_s": 1.0, "at_s": 1.0, "late_s": 0}
    for number in range(1, TICKS + 1):
        ways = [[8_000_000, 0.8, number % 10, 0, True, 10_000_000], *[[0, 0.0, 0, 0, True, 10_000_000]] * 3]
        made.add({"now_s": number / 100, "elapsed_s": 0.01, "ways": ways, "verdict": verdict})
    made.write()
    return (tmp_path / "fine.html").as_uri()


def test_a_shorter_time_shows_each_sample(browser: Browser, recording: str) -> None:
    faults: list[str] = []
    page = opened(browser, recording, faults)
    page.get_by_role("button", name="link of h1-eth0").focus()
    page.keyboard.press("Enter")
    queue = page.locator("#queue .there")
    expect(queue).to_have_attribute("d", re.compile(rf"^M([^L]*L){{{TICKS - 1}}}[^L]*$"))
    page.select_option("#span", "0.3")
    # 31 looks, of which the first lies at the left edge and the last at the right one, three saws between.
    expect(queue).to_have_attribute("d", re.compile(r"^M0\.0 ([^L]*L){30}600\.0 [^L]*$"))
    heights = [float(point.split()[1]) for point in (queue.get_attribute("d") or "")[1:].split("L")]
    assert len(set(heights)) == 10 and heights[:10] == heights[10:20] == heights[20:30]
    assert page.locator("#queue text").all_text_contents()[-2:] == ["0.3 s before", "5.000 s"]
    page.context.close()
    assert faults == []
