"""The bar of a queue with classes, divided by class: in a small network, and on the canvas of a large one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from live_browser import launched, needs_a_browser, opened
from twinnet.drawing import picture_of
from twinnet.drawing.picture import MOST_LIVE_NODES
from twinnet.live.recording import Recording
from twinnet.live.watch import record_of_network
from twinnet.network import templates
from twinnet.network.network import Network

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = needs_a_browser
# Pixels on the canvas of the colours of the classes 0 and 2, in the light scheme.
PIXELS = """() => {
  const canvas = document.getElementById("lines");
  const read = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  read.drawImage(canvas, 0, 0);
  const { data } = read.getImageData(0, 0, canvas.width, canvas.height);
  const counts = [0, 0];
  for (let at = 0; at < data.length; at += 4) {
    const ink = data.subarray(at, at + 4).join();
    counts[0] += Number(ink === "138,63,252,255");
    counts[1] += Number(ink === "0,80,143,255");
  }
  return counts;
}"""


@pytest.fixture
def browser() -> Iterator[Browser]:
    yield from launched()


def recorded(net: Network, file: Path) -> str:
    """The address of a recording of `net`: at its first port 300 frames wait in the class 0, and 100 in the class 2."""
    ends = [(link.a.node, link.b.node, link.a.name, link.b.name) for link in net.links]
    network = record_of_network("classes", picture_of(net, MOST_LIVE_NODES), ends) | {"control": False}
    recording = Recording(network, file)
    ways: list[list[Any]] = [[0, 0.0, 400, 0, True, 10_000_000, {"classes": [300, 0, 100]}]]
    ways += [[0, 0.0, 0, 0, True, 10_000_000]] * (2 * len(ends) - 1)
    verdict = {"state": "valid", "reasons": [], "covers_s": 1.0, "at_s": 1.0, "late_s": 0}
    recording.add({"now_s": 1.0, "elapsed_s": 0.25, "ways": ways, "verdict": verdict})
    recording.write()
    return file.as_uri()


def test_a_bar_is_divided_by_class(browser: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    page = opened(browser, recorded(templates.single(2), tmp_path / "small.html"), faults)
    parts = page.locator("#picture .part")
    assert parts.locator("title").all_text_contents() == ["class 0", "class 2"]
    low, high = ({key: float(one.get_attribute(key) or 0) for key in ("y", "height")} for one in parts.all())
    assert low["height"] == pytest.approx(3 * high["height"], abs=0.3)
    # The second stands on the first.
    assert high["y"] + high["height"] == pytest.approx(low["y"], abs=0.15)
    assert page.locator(".part.class-0").count() == page.locator(".part.class-2").count() == 1
    page.context.close()
    assert faults == []


def test_a_bar_on_the_canvas_is_divided_by_class(browser: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    page = opened(browser, recorded(templates.single(41), tmp_path / "large.html"), faults)
    page.wait_for_function(f"() => ({PIXELS})()[1] > 0")
    first, third = page.evaluate(PIXELS)
    assert first > third > 0
    page.context.close()
    assert faults == []
