"""A recording in a real browser. No other lab runs beside it: one with full lines leaves few looks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_browser import expect, launched, needs_a_browser, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [needs_a_lab, needs_a_browser]


@pytest.fixture
def browser() -> Iterator[Browser]:
    yield from launched()


def test_a_recorded_lab_is_one_file_that_opens_without_a_server(browser: Browser, tmp_path: Path) -> None:
    out = tmp_path / "run.html"
    # A machine with much to do holds looks up, and those show nothing: then it is watched for longer.
    for seconds in (3, 6, 12):
        with tn.templates.single(2, rate="10 Mbit").emulate() as lab:
            page = lab.live(out=out)
            lab.wait([lab.start(tn.apps.udp("h1", "h2", rate="20 Mbit", duration=f"{seconds} s"))])
        assert not page.running
        if (ticks := out.read_text().count('"elapsed_s":')) >= 10:
            break
    assert ticks >= 10
    faults: list[str] = []
    opened_file = opened(browser, out.as_uri(), faults)
    shown = opened_file.locator("#time")
    expect(shown).to_have_text(re.compile(r"\d s$"))
    last = float(shown.inner_text().removesuffix(" s"))
    assert opened_file.inner_text("#play") == "Go on" and opened_file.is_hidden("#news")
    # The curves of a short recording have the whole width.
    opened_file.get_by_role("button", name="h1-eth0").focus()
    opened_file.keyboard.press("Enter")
    begins = float((opened_file.locator("#rate text", has_text="s before").text_content() or "").split()[0])
    moment = opened_file.locator("#moment")
    first, end = (float(moment.get_attribute(name) or "nan") for name in ("min", "max"))
    assert begins == pytest.approx(min(60, end - first), rel=0.05)
    assert float((opened_file.locator("#rate .there").get_attribute("d") or "M9")[1:].split()[0]) == 0
    opened_file.locator("#moment").focus()
    for _ in range(60):
        opened_file.keyboard.press("ArrowLeft")
    # So slowly that a busy machine sees the middle of it.
    opened_file.select_option("#speed", "0.25")
    opened_file.click("#play")
    opened_file.wait_for_selector(".way.full", state="attached")
    middle = float(shown.inner_text().removesuffix(" s"))
    assert middle < last
    opened_file.select_option("#speed", "8")
    expect(shown).to_have_text(f"{last:.1f} s")
    opened_file.context.close()
    assert faults == []
