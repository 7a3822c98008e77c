"""Links that lose frames are dashed, and what becomes of the frames is seen by reason: drops, and marks instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from labs_here import needs_a_lab
from live_browser import expect, launched, needs_a_browser, opened
from twinnet.drawing import picture_of
from twinnet.drawing.picture import MOST_LIVE_NODES
from twinnet.live.acts import Acts
from twinnet.live.recording import Recording
from twinnet.live.watch import LabWatch, record_of_network
from twinnet.network import templates
from twinnet.network.network import Network

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LINE_BPS = 10_000_000
FULL = [LINE_BPS, 1.0, 0, 0, True, LINE_BPS]
LOSING = [LINE_BPS, 1.0, 0, 5, True, LINE_BPS, {"drops": {"overlimit": 4, "loss": 1}}]
# Pixels on the canvas in the colour of a full line, in the light scheme.
PIXELS = """() => {
  const canvas = document.getElementById("lines");
  const read = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  read.drawImage(canvas, 0, 0);
  const { data } = read.getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 0; at < data.length; at += 4) count += Number(data.subarray(at, at + 4).join() === "200,75,0,255");
  return count;
}"""


@pytest.fixture
def browser() -> Iterator[Browser]:
    yield from launched()


def recorded(net: Network, file: Path, first: Sequence[Any]) -> str:
    """The address of a recording of `net` of three moments, whose first way is `first` and whose others do nothing."""
    ends = [(link.a.node, link.b.node, link.a.name, link.b.name) for link in net.links]
    recording = Recording(
        record_of_network("losing", picture_of(net, MOST_LIVE_NODES), ends) | {"control": False}, file
    )
    ways = [first, *[[0, 0.0, 0, 0, True, LINE_BPS]] * (2 * len(ends) - 1)]
    verdict = {"state": "valid", "reasons": [], "covers_s": 1.0, "at_s": 1.0, "late_s": 0}
    for number in range(3):
        recording.add({"now_s": 1.0 + number, "elapsed_s": 0.5, "ways": ways, "verdict": verdict})
    recording.write()
    return file.as_uri()


@needs_a_browser
@pytest.mark.parametrize(
    ("first", "count"),
    [
        (FULL, 0),
        (LOSING, 1),
        ([0, 0.0, 0, 0, True, LINE_BPS, {"lossy": True}], 1),
        ([0, 0.0, 0, 5, False, LINE_BPS, {"drops": {"down": 5}}], 0),
    ],
)
def test_a_way_that_loses_frames_is_dashed(browser: Browser, tmp_path: Path, first: Sequence[Any], count: int) -> None:
    faults: list[str] = []
    page = opened(browser, recorded(templates.single(2), tmp_path / "small.html", first), faults)
    assert page.locator("#legend").get_by_text("loses frames").is_visible()
    dashed = page.locator(".way.losing")
    assert dashed.count() == count
    if count:
        assert dashed.evaluate("(way) => getComputedStyle(way).strokeDasharray") == "14px, 7px"
    page.context.close()
    assert faults == []


@needs_a_browser
def test_on_the_canvas_of_a_large_network_a_third_of_a_dashed_line_is_gaps(browser: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    counts: list[int] = []
    for name, first in (("full", FULL), ("losing", LOSING)):
        page = opened(browser, recorded(templates.single(41), tmp_path / f"{name}.html", first), faults)
        page.wait_for_function(f"() => ({PIXELS})() > 0")
        counts.append(page.evaluate(PIXELS))
        page.context.close()
    assert 0.5 * counts[0] < counts[1] < 0.85 * counts[0]
    assert faults == []


@needs_a_browser
def test_drops_are_drawn_by_reason_and_marks_where_there_are_any(browser: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    marked = [*LOSING[:6], {**LOSING[6], "marks": 3}]
    page = opened(browser, recorded(templates.single(2), tmp_path / "marked.html", marked), faults)
    page.get_by_role("button", name="link of h1-eth0").focus()
    page.keyboard.press("Enter")
    texts = page.locator("#reasons text")
    # The greatest is 8 frames/s, of a scale of 10.
    assert texts.all_text_contents()[:2] == ["queue full", "lost on the line"] and "10" in texts.all_text_contents()
    assert page.locator("#reasons path").count() == 4
    for kind, height in (("reason-0", 172 - 146 * 0.8), ("reason-6", 172 - 146 * 0.2)):
        drawn = page.locator(f"#reasons .there.{kind}").get_attribute("d") or ""
        assert [float(y) for y in re.findall(r" ([0-9.]+)", drawn)] == pytest.approx([height] * 3, abs=0.1)
    assert page.is_visible("#marks") and page.is_hidden("#marks-difference")
    # Three in half a second, of a scale of 7.5.
    marks = page.locator("#marks .there").get_attribute("d") or ""
    assert float(marks.split()[1].split("L")[0]) == pytest.approx(172 - 146 * 6 / 7.5, abs=0.1)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Curves as SVG").click()
    waiting.value.save_as(tmp_path / "curves.svg")
    assert "queue full" in (tmp_path / "curves.svg").read_text()
    # Of the other link there are neither.
    page.get_by_role("button", name="link of h2-eth0").focus()
    page.keyboard.press("Enter")
    assert page.is_hidden("#reasons") and page.is_hidden("#marks") and page.is_visible("#drops")
    page.context.close()
    assert faults == []


def lossy_network() -> Network:
    net = Network()
    switch = net.switch("s1")
    net.link(net.host("h1"), switch, rate="10 Mbit", loss="1 %")
    net.link(net.host("h2"), switch, rate="10 Mbit")
    return net


@needs_a_lab
@needs_a_browser
def test_a_link_with_loss_is_dashed_both_ways_before_anything_is_lost(browser: Browser) -> None:
    faults: list[str] = []
    with lossy_network().emulate() as lab, lab.live() as live:
        page = opened(browser, live.address, faults)
        expect(page.locator(".way.losing")).to_have_count(2)
        lab.link("h1", "s1").set(loss=None)
        expect(page.locator(".way.losing")).to_have_count(0)
        page.context.close()
    assert faults == []


def test_the_loss_of_links_is_not_told_while_something_broken_is_to_be_found() -> None:
    with lossy_network().simulate() as lab:
        acts, watch = Acts(lab), LabWatch(lab)
        told: list[Any] = []
        for sealed in (False, True):
            if sealed:
                acts.do({"act": "seal", "seed": 1})
            watch.rest()
            for _ in range(2):
                lab.run_until(f"{lab.now_ps() + 10**12} ps")
                seen = acts.seal.hide(watch.look())
            assert seen is not None
            told.append(["lossy" in (*way[6:], {})[0] for way in seen["ways"]])
        acts.do({"act": "answer"})
        assert not acts.seal.is_on
    assert told == [[True, True, False, False], [False] * 4]
