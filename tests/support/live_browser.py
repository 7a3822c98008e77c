"""A real browser for tests of the live page: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, LocatorAssertions, Page

CHROMIUM = shutil.which("chromium")
PATIENCE_MS = 30_000

needs_a_browser = pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="Chromium and Playwright are not installed",
)


def launched() -> Iterator[Browser]:
    """The browser, until the next step."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Its sandbox refuses root; the pages are our own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def expect(locator: Locator) -> LocatorAssertions:
    """What must become true of `locator`; the policy of the page lets no test evaluate text in it."""
    from playwright.sync_api import expect as expected

    expected.set_options(timeout=PATIENCE_MS)
    return expected(locator)


def opened(browser: Browser, address: str, faults: list[str], wait_for: str = ".node") -> Page:
    """The page at `address` when it has `wait_for`, its network; `faults` gets what its console complains of."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda told: faults.append(told.text) if told.type in ("error", "warning") else None)
    page.goto(address, wait_until="commit")
    page.wait_for_selector(wait_for)
    return page
