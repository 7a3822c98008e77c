"""The page on paper: what its style sheet for print shows, and that the browser makes a PDF of it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_browser import expect, launched, needs_a_browser, opened
from made_recordings import LINE_BPS, recorded
from twinnet.network import templates

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = needs_a_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@needs_a_lab
def test_what_is_printed_has_the_picture_and_no_buttons(browser: Browser) -> None:
    faults: list[str] = []
    with tn.templates.single(2, rate="10 Mbit").emulate() as lab, lab.live(control=True) as live:
        lab.start(tn.apps.udp("h1", "h2", rate="100 kbit", duration="600 s"))
        page = opened(browser, live.address, faults)
        page.get_by_role("button", name="h1-eth0").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#ports tr")
        page.emulate_media(media="print", color_scheme="dark")
        # A table of ports is left out at a moment at which none of them carries anything, as on a busy machine.
        for shown in ("#picture", "#rate", "#verdict", "#ports"):
            expect(page.locator(shown)).to_be_visible()
        for hidden in ("#print", "#save-data", "#times", "#find", "#follow", "#change", "#acts", "#traffic"):
            assert page.is_hidden(hidden), hidden
        expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
        assert page.pdf()[:5] == b"%PDF-"
        page.context.close()
    assert faults == []


def test_the_lines_of_a_large_network_are_vectors_on_paper(browser: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    net = templates.tree(2, 7)
    page = opened(browser, recorded(net, [LINE_BPS] * 20, tmp_path / "large.html"), faults)
    assert page.locator("#lines").count() == 1, "on the screen they are on a canvas"
    paper = page.pdf(print_background=True)
    assert b"/Subtype /Image" not in paper
    # A path of two points is a straight line; each of the 56 links has one for each direction.
    lines = re.findall(rb"[-\d.]+ [-\d.]+ m\n[-\d.]+ [-\d.]+ l\n(?:S\n)?", content_of(paper))
    assert len(lines) >= 2 * len(net.links)
    # Afterwards the canvas has them again.
    expect(page.locator("#picture .way")).to_have_count(0)
    page.context.close()
    assert faults == []


def content_of(paper: bytes) -> bytes:
    """What a PDF draws."""
    found = b""
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", paper, re.DOTALL):
        try:
            found += zlib.decompress(stream)
        except zlib.error:
            continue
    return found
