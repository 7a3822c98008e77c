"""The verdict takes one line of the page, whatever its reasons, and shows them all when asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live_browser import expect, launched, needs_a_browser, opened
from twinnet.drawing import picture_of
from twinnet.drawing.picture import MOST_LIVE_NODES
from twinnet.live.recording import Recording
from twinnet.live.watch import record_of_network
from twinnet.network import templates
from twinnet.results.fidelity import FidelityRecord

if TYPE_CHECKING:
    from playwright.sync_api import Browser

REASONS = tuple(
    f"reason {number}: " + "frames left later than their lines would have had them leave, " * 3 for number in range(12)
)


@pytest.fixture
def browser() -> Iterator[Browser]:
    yield from launched()


@needs_a_browser
def test_twelve_long_reasons_leave_the_picture_in_view_and_are_read_by_a_click(
    browser: Browser, tmp_path: Path
) -> None:
    net = templates.single(2)
    ends = [(link.a.node, link.b.node, link.a.name, link.b.name) for link in net.links]
    about = record_of_network("late", picture_of(net, MOST_LIVE_NODES), ends) | {"control": False}
    recording = Recording(about, tmp_path / "run.html")
    verdict = {"state": "invalid", "reasons": REASONS, "covers_s": 1.0, "at_s": 1.0, "late_s": 0}
    recording.add({"now_s": 1.0, "elapsed_s": 0.5, "ways": [None] * 2 * len(ends), "verdict": verdict})
    recording.write()
    faults: list[str] = []
    page = opened(browser, (tmp_path / "run.html").as_uri(), faults)
    page.set_viewport_size({"width": 1280, "height": 720})
    assert page.inner_text("#state") == "invalid"
    assert page.inner_text("#worst").startswith("reason 0: frames left later")
    box = page.locator("#verdict").bounding_box()
    line = page.locator("#state").bounding_box()
    assert box is not None and line is not None and box["height"] < 2 * line["height"]
    assert page.locator("#other-reasons").is_hidden()
    button = page.get_by_role("button", name="and 11 more")
    button.click()
    expect(page.locator("#other-reasons li")).to_have_count(11)
    assert page.locator("#other-reasons").is_visible() and button.get_attribute("aria-expanded") == "true"
    button.click()
    page.emulate_media(media="print")
    assert page.locator("#other-reasons").is_visible()
    page.context.close()
    assert faults == []


def test_what_makes_a_run_invalid_comes_before_what_makes_it_doubtful() -> None:
    raw = {"clock": "wall", "elapsed_ps": 10**12, "impossible_states": 1, "first_impossible_state": "none"}
    verdict = FidelityRecord.from_spec(raw).verdict()
    assert verdict.state == "invalid" and len(verdict.reasons) > 1
    assert verdict.reasons[0].startswith("twinnet met 1 states that cannot be")
