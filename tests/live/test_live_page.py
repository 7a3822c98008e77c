"""The page in a real browser, beside a lab that runs: what a person sees."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import twinnet as tn
from labs_here import needs_a_lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, LocatorAssertions, Page
    from twinnet.lab.lab import Lab

CHROMIUM = shutil.which("chromium")
PATIENCE_MS = 15_000

pytestmark = [
    needs_a_lab,
    pytest.mark.skipif(
        CHROMIUM is None or importlib.util.find_spec("playwright") is None,
        reason="Chromium and Playwright are not installed",
    ),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Its sandbox refuses root; the pages are our own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def expect(locator: Locator) -> LocatorAssertions:
    """What must become true of `locator`; the policy of the page lets no test evaluate text in it."""
    from playwright.sync_api import expect as expected

    return expected(locator)


def opened(browser: Browser, address: str, faults: list[str]) -> Page:
    """The page at `address` with its network drawn; `faults` gets what its console complains of."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda told: faults.append(told.text) if told.type in ("error", "warning") else None)
    page.goto(address)
    page.wait_for_selector(".node")
    return page


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with tn.templates.single(3, rate="10 Mbit", delay="1 ms").emulate() as lab:
        # Two senders fill the line to h3: there a queue stands, and frames are dropped.
        for sender in ("h1", "h2"):
            lab.start(tn.apps.udp(sender, "h3", rate="8 Mbit", duration="120 s"))
        yield lab


def test_the_full_line_the_queue_and_the_verdict_are_seen(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live() as live:
        page = opened(browser, live.address, faults)
        assert "token" not in page.url
        assert sorted(page.locator(".node title").all_text_contents()) == ["host h1", "host h2", "host h3", "switch s1"]
        page.wait_for_selector(".way.full")
        expect(page.locator("#verdict")).to_have_class(re.compile("valid|doubtful|invalid"))
        state = page.inner_text("#verdict").partition(":")
        assert state[0] in ("valid", "doubtful", "invalid") and len(state[2]) > 10
        first = page.locator("#ports tr", has_text="s1-eth3").locator("td").all_inner_texts()
        assert first[:2] == ["s1-eth3", "h3"] and first[2].endswith("Mbit/s")
        # One tick may hold what the machine was late with in the tick before; the line's rate is that of many.
        loads: list[float] = []
        for _ in range(15):
            loads.append(float(page.locator("#ports tr", has_text="s1-eth3").locator("td").nth(3).inner_text()[:-2]))
            page.wait_for_timeout(130)
        assert 75 < median(loads) < 105, loads
        # The bar of one frame has 8 units; that of a thousand, where bars stand still, 46.
        expect(page.locator(".bar[height^='4']").first).to_be_attached()
        page.context.close()
    assert faults == []


def test_a_click_on_a_link_opens_its_curves(browser: Browser, lab: Lab) -> None:
    with lab.live() as live:
        page = opened(browser, live.address, [])
        page.wait_for_selector(".way.full")
        link = page.get_by_role("button", name="s1-eth3")
        link.focus()
        page.keyboard.press("Enter")
        assert "s1-eth3 → h3" in page.inner_text("#chosen")
        for name in ("rate", "queue", "drops"):
            # At least four ticks: a move and three lines.
            expect(page.locator(f"#{name} .there")).to_have_attribute("d", re.compile("M(.*L){3}"))
        page.click("#close")
        assert page.is_hidden("#curves")
        page.locator("#ports tr", has_text="s1-eth3").click()
        assert page.is_visible("#curves")
        page.context.close()


def test_time_stands_goes_back_and_follows_again(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live() as live:
        page = opened(browser, live.address, faults)
        shown = page.locator("#time")
        expect(shown).to_have_text(re.compile(r"\d s$"))
        page.wait_for_timeout(1500)
        page.click("#play")
        stands = shown.inner_text()
        page.wait_for_timeout(1000)
        assert (shown.inner_text(), page.inner_text("#play")) == (stands, "Go on")
        page.locator("#moment").focus()
        page.keyboard.press("Home")
        earlier = float(shown.inner_text().removesuffix(" s"))
        assert earlier < float(stands.removesuffix(" s"))
        page.keyboard.press("End")
        page.click("#play")
        page.wait_for_timeout(1000)
        assert float(shown.inner_text().removesuffix(" s")) > float(stands.removesuffix(" s"))
        page.context.close()
    assert faults == []


def test_a_recorded_lab_is_one_file_that_opens_without_a_server(browser: Browser, tmp_path: Path) -> None:
    out = tmp_path / "run.html"
    with tn.templates.single(2, rate="10 Mbit").emulate() as lab:
        page = lab.live(out=out)
        lab.wait([lab.start(tn.apps.udp("h1", "h2", rate="20 Mbit", duration="3 s"))])
    assert not page.running
    faults: list[str] = []
    opened_file = opened(browser, out.as_uri(), faults)
    shown = opened_file.locator("#time")
    expect(shown).to_have_text(re.compile(r"\d s$"))
    last = float(shown.inner_text().removesuffix(" s"))
    assert opened_file.inner_text("#play") == "Go on" and opened_file.is_hidden("#news")
    opened_file.locator("#moment").focus()
    for _ in range(60):
        opened_file.keyboard.press("ArrowLeft")
    opened_file.click("#play")
    opened_file.wait_for_selector(".way.full", state="attached")
    middle = float(shown.inner_text().removesuffix(" s"))
    assert middle < last
    opened_file.select_option("#speed", "8")
    expect(shown).to_have_text(f"{last:.1f} s")
    opened_file.context.close()
    assert faults == []


def test_a_link_that_is_down_is_dashed(browser: Browser, lab: Lab) -> None:
    with lab.live() as live:
        page = opened(browser, live.address, [])
        lab.link("h1", "s1").set(up=False)
        try:
            page.wait_for_selector(".way.down", state="attached")
            assert page.locator(".way.down").count() == 2
        finally:
            lab.link("h1", "s1").set(up=True)
        expect(page.locator(".way.down")).to_have_count(0)
        page.context.close()


def test_a_page_of_another_site_reads_nothing_and_shows_nothing(browser: Browser, lab: Lab) -> None:
    with lab.live() as live, lab.live() as other:
        home = urlsplit(live.address)
        page = opened(browser, live.address, [])
        # Another port of this machine: the same site, so that only the origin tells the two apart.
        stranger = page.context.new_page()
        stranger.goto(other.address)
        stranger.wait_for_selector(".node")
        read = stranger.evaluate(
            "(url) => fetch(url, {credentials: 'include'}).then((one) => one.status, (error) => String(error))",
            f"{home.scheme}://{home.netloc}/network",
        )
        assert "Failed to fetch" in str(read)
        page.context.close()


def test_it_says_when_its_server_and_when_the_lab_has_ended(browser: Browser) -> None:
    with tn.templates.single(2).emulate() as lab:
        stopped, lasting = lab.live(), lab.live()
        one, two = (opened(browser, live.address, []) for live in (stopped, lasting))
        expect(two.locator("#time")).to_have_text(re.compile("s$"))
        stopped.stop()
        one.wait_for_selector("#news:visible")
        assert "No news from the page's server" in one.inner_text("#news")
        assert two.is_hidden("#news")
    two.wait_for_selector("#news:visible")
    one.context.close()
    two.context.close()
