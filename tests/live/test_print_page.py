"""The page on paper: what its style sheet for print shows, and that the browser makes a PDF of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_browser import expect, launched, needs_a_browser, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [needs_a_lab, needs_a_browser]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


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
