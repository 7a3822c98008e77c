"""Flows that are followed by choosing them: in the table of traffic of a running lab, and in its recording."""

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


def test_a_flow_is_followed_from_its_row_and_in_the_recording(browser: Browser, tmp_path: Path) -> None:
    out, faults = tmp_path / "run.html", list[str]()
    with tn.templates.single(2, rate="10 Mbit", delay="5 ms").emulate() as lab:
        live = lab.live(out=out)
        flow = lab.start(tn.apps.tcp_bulk("h1", "h2", duration="600 s", port=7001))
        page = opened(browser, live.address, faults)
        page.locator("#traffic summary").click()
        button = page.get_by_role("button", name="Follow tcp source of h1")
        button.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#follow-end")).to_have_text("It arrives at 10.0.0.2.")
        values = [
            page.locator(f"#follow-what [name={name}]").input_value() for name in ("from", "to", "protocol", "port")
        ]
        assert values == ["h1", "10.0.0.2", "tcp", "7001"]
        assert page.locator("#follow-what [name=source_port]").input_value().isdecimal()
        assert page.locator(".way.followed").count() == 2
        # Rows are made anew at each look, and the button keeps the focus.
        page.evaluate("() => { document.querySelector('#traffic tbody tr').id = 'old'; }")
        expect(page.locator("#old")).to_have_count(0)
        expect(button).to_be_focused()
        # This page changes nothing.
        assert page.get_by_role("button", name="Stop").count() == 0
        page.get_by_role("button", name="Follow tcp sink of h2").click()
        expect(page.locator("#follow-end")).to_have_text("It arrives at 10.0.0.1.")
        page.context.close()
        flow.stop()
    recorded = opened(browser, out.as_uri(), faults)
    way = recorded.locator("#follow-which option", has_text=re.compile("^tcp: h1 to h2, port 7001, at .* s$"))
    recorded.get_by_label("Flow").select_option(way.get_attribute("value"))
    expect(recorded.locator("#follow-end")).to_have_text("It arrives at 10.0.0.2.")
    recorded.locator("#traffic summary").click()
    row = recorded.locator("#traffic tbody tr", has_text="tcp source")
    expect(row).to_contain_text(re.compile(r"h1tcp source.* to .* s.* Mbit/s"))
    assert recorded.locator("#traffic button").count() == 0
    recorded.context.close()
    assert faults == []
