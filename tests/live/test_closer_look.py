"""A large network in the browser: drawn whole from afar, and looked at closer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from live_browser import expect, launched, needs_a_browser, opened
from twinnet.drawing import picture_of
from twinnet.drawing.picture import MOST_LIVE_NODES
from twinnet.live.recording import Recording
from twinnet.live.watch import record_of_network
from twinnet.network import templates

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = needs_a_browser
# The colour of a full line, in the light scheme.
FULL = """() => {
  const canvas = document.getElementById("lines");
  const read = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  read.drawImage(canvas, 0, 0);
  const { data } = read.getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < data.length; at += 4) {
    if (data[at] === 0xc8 && data[at + 1] === 0x4b && data[at + 2] === 0 && data[at + 3] === 255) return true;
  }
  return false;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture
def large(tmp_path: Path) -> str:
    """The address of a recording of 553 nodes, whose first link is full."""
    net = templates.tree(2, 23)
    ends = [(link.a.node, link.b.node, link.a.name, link.b.name) for link in net.links]
    network = record_of_network("large", picture_of(net, MOST_LIVE_NODES), ends) | {"control": False}
    recording = Recording(network, tmp_path / "large.html")
    full, idle = [10**9, 1.0, 12, 0, True, 10**9], [0, 0.0, 0, 0, True, 10**9]
    verdict = {"state": "valid", "reasons": [], "covers_s": 1.0, "at_s": 1.0, "late_s": 0}
    ways = [full, *[idle] * (2 * len(ends) - 1)]
    recording.add({"now_s": 1.0, "elapsed_s": 0.25, "ways": ways, "verdict": verdict})
    recording.write()
    return (tmp_path / "large.html").as_uri()


def test_a_large_network_is_seen_whole_and_closer(browser: Browser, large: str) -> None:
    faults: list[str] = []
    page = opened(browser, large, faults)
    picture = page.locator("#picture")
    assert page.locator(".node").count() == 553
    # From afar there are no texts, and the full line is thick enough to be seen.
    expect(picture).to_have_class("far")
    whole = picture.get_attribute("viewBox") or ""
    expect(page.locator(".node text").first).to_be_hidden()
    assert page.locator(".way").count() == 0, "lines of a large network are on the canvas"
    page.wait_for_function(FULL)
    page.locator(".link").first.focus()
    for _ in range(8):
        page.keyboard.press("+")
    expect(picture).not_to_have_class("far")
    close = picture.get_attribute("viewBox")
    assert float((close or "").split()[2]) < float(whole.split()[2]) / 10
    page.keyboard.press("ArrowRight")
    expect(picture).not_to_have_attribute("viewBox", close or "")
    # The pointer takes the picture along, and the link below it is not chosen by that.
    before = picture.get_attribute("viewBox") or ""
    box = picture.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 600, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 200, steps=3)
    page.mouse.up()
    expect(picture).not_to_have_attribute("viewBox", before)
    expect(page.locator("#curves")).to_be_hidden()
    page.keyboard.press("0")
    expect(picture).to_have_attribute("viewBox", whole)
    page.get_by_role("button", name="Closer").click()
    expect(picture).not_to_have_attribute("viewBox", whole)
    page.get_by_role("button", name="Whole").click()
    expect(picture).to_have_attribute("viewBox", whole)
    page.context.close()
    assert faults == []


def test_the_saved_picture_of_a_large_network_has_its_lines(browser: Browser, large: str, tmp_path: Path) -> None:
    faults: list[str] = []
    page = opened(browser, large, faults)
    page.wait_for_function(FULL)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Picture as SVG").click()
    waiting.value.save_as(tmp_path / "large.svg")
    saved = ElementTree.fromstring((tmp_path / "large.svg").read_text())
    kinds = [line.get("class") for line in saved.iter("{http://www.w3.org/2000/svg}line")]
    assert kinds.count("way full") == 1 and kinds.count("way idle") == 2 * 552 - 1
    assert page.locator(".way").count() == 0
    page.context.close()
    assert faults == []
