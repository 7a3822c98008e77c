"""The lines of a large network: a thread beside the page paints them, and the page itself where there can be none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from labs_here import needs_a_lab
from live_browser import PATIENCE_MS, launched, needs_a_browser
from twinnet.network import templates

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [needs_a_browser, needs_a_lab]
# How many pixels of the canvas have a colour.
PAINTED = """() => {
  const canvas = document.getElementById("lines");
  const read = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  read.drawImage(canvas, 0, 0);
  return read.getImageData(0, 0, canvas.width, canvas.height).data.filter((value, at) => at % 4 === 3 && value).length;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with templates.single(41).emulate() as lab, lab.live() as live:
        yield live.address


@pytest.mark.parametrize("way", ["beside the page", "its script does not come", "a browser without such canvases"])
def test_lines_are_painted(browser: Browser, address: str, way: str) -> None:
    faults: list[str] = []
    page = browser.new_context().new_page()
    page.on("pageerror", lambda error: faults.append(str(error)))
    if way == "its script does not come":
        page.route("**/painting.js", lambda route: route.abort())
    elif way == "a browser without such canvases":
        page.add_init_script("delete HTMLCanvasElement.prototype.transferControlToOffscreen")
    page.goto(address)
    page.wait_for_selector("#lines[data-painted]", state="attached", timeout=PATIENCE_MS)
    assert len(page.workers) == (way == "beside the page")
    page.wait_for_function(f"() => ({PAINTED})() > 1000", timeout=PATIENCE_MS)
    # The next picture has another size.
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_function(
        f"() => document.getElementById('lines').width < 700 && ({PAINTED})() > 1000", timeout=PATIENCE_MS
    )
    page.context.close()
    assert faults == []
