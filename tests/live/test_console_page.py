"""Consoles in hosts on the page, in a real browser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_browser import PATIENCE_MS, expect, launched, needs_a_browser, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from twinnet.lab.lab import Lab

pytestmark = [needs_a_lab, needs_a_browser]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv("SHELL", "/bin/sh")
    with tn.templates.single(2).emulate() as lab:
        yield lab


def await_none_running(lab: Lab) -> None:
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while any(job["state"] == "running" for job in lab.jobs()):
        assert time.monotonic() < deadline, lab.jobs()
        time.sleep(0.02)


def test_a_double_click_on_a_host_opens_a_console_in_it(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live(control=True) as live:
        page = opened(browser, live.address, faults)
        host = page.locator(".node", has_text="h1")
        place = "[scrollY, document.getElementById('picture').clientHeight]"
        before = page.evaluate(place)
        host.dblclick()
        rows = page.locator("#consoles .xterm-rows")
        # The shell's prompt: what is typed before it is there would be echoed in the middle of it.
        expect(rows).to_contain_text("#")
        assert page.evaluate(place) == before, "the picture keeps its place"
        assert page.is_hidden("#send"), "a double click is no click"
        # Colours of a program's own are the case that the page's policy would forbid.
        page.keyboard.type("printf '\\033[38;2;200;0;0m%s\\033[0m\\n' $(cat /proc/sys/kernel/hostname)-$((6 * 7))\n")
        coloured = rows.locator("span", has_text="h1-42")
        expect(coloured).to_have_css("color", "rgb(200, 0, 0)")
        expect(page.locator("#acts-done li")).to_contain_text("a console was opened in h1")
        page.keyboard.type("exit 3\n")
        expect(page.locator("#consoles [role=status]")).to_have_text("ended with status 3")
        page.get_by_role("button", name="Close the console in h1").click()
        assert page.is_hidden("#consoles")
        page.context.close()
    assert faults == []


def test_the_rows_and_columns_are_those_of_the_window(browser: Browser, lab: Lab) -> None:
    with lab.live(control=True) as live:
        page = opened(browser, live.address, [])
        page.get_by_role("button", name="send from h1").focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Console", exact=True).click()
        rows = page.locator("#consoles .xterm-rows")
        expect(rows).to_contain_text("#")
        count = rows.locator("> div").count()
        page.keyboard.type("stty size\n")
        expect(rows).to_contain_text(f"{count} ")
        page.set_viewport_size({"width": 900, "height": 600})
        expect(rows.locator("> div")).not_to_have_count(count)
        page.context.close()


def test_the_end_of_the_page_ends_the_shell(browser: Browser, lab: Lab) -> None:
    with lab.live(control=True) as live:
        page = opened(browser, live.address, [])
        for name in ("h1", "h2"):
            page.locator(".node", has_text=name).dblclick()
        expect(page.locator("#consoles .xterm-rows")).to_have_count(2)
        expect(page.locator("#consoles .xterm-rows").nth(1)).to_contain_text("#")
        page.keyboard.type("sleep 1000\n")
        page.context.close()
        await_none_running(lab)


def test_a_page_without_control_opens_no_console(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live() as live:
        page = opened(browser, live.address, faults)
        page.locator(".node", has_text="h1").dblclick()
        assert page.is_hidden("#consoles") and page.locator("#consoles > *").count() == 0
        page.context.close()
    assert faults == [] and lab.jobs() == []
