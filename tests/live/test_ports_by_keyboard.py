"""Ports read without a pointer: rows of the busiest ones, and the map of all of them over time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live_browser import expect, launched, needs_a_browser, opened
from made_recordings import LINE_BPS, recorded
from twinnet.network import templates

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = needs_a_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


def put_moment(page: Page, now_s: int) -> None:
    """Show another moment, and leave the focus where it is."""
    page.locator("#moment").evaluate(
        "(input, now) => { input.value = now; input.dispatchEvent(new Event('input')); }", now_s
    )


def focused(page: Page) -> str:
    return page.evaluate("document.activeElement.textContent")


def test_a_row_of_the_busiest_ports_keeps_the_focus_when_its_place_changes(browser: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    # The port of h1 is first, then fourth, then idle; those of h2, h3 and h4 carry the same all the time.
    moments = [[rate, 0, 3_000_000, 0, 2_000_000, 0, 1_000_000] for rate in (4_000_000, 500_000, 0)]
    page = opened(browser, recorded(templates.single(4), moments[0], tmp_path / "run.html", *moments[1:]), faults)
    put_moment(page, 1)
    names = page.locator("#ports a")
    assert names.all_inner_texts() == ["h1-eth0", "h2-eth0", "h3-eth0", "h4-eth0"]
    names.first.focus()
    put_moment(page, 2)
    assert names.all_inner_texts() == ["h2-eth0", "h3-eth0", "h4-eth0", "h1-eth0"]
    assert focused(page) == "h1-eth0"
    assert page.locator("#ports tr").last.locator("td").nth(2).inner_text() == "500 kbit/s"
    page.keyboard.press("Enter")
    assert "h1-eth0 → s1" in page.inner_text("#chosen")
    page.keyboard.press("Shift+Tab")
    assert focused(page) == "h4-eth0"
    put_moment(page, 3)
    assert names.all_inner_texts() == ["h2-eth0", "h3-eth0", "h4-eth0"] and focused(page) == "h4-eth0"
    page.context.close()
    assert faults == []


def test_the_map_of_300_ports_is_read_with_the_keyboard_and_with_the_pointer(browser: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    net = templates.single(150)
    # Of the hosts h1 to h150 only three send, the first of them least.
    sending = {20: LINE_BPS // 4, 70: LINE_BPS, 119: LINE_BPS // 2}
    rates = [rate for host in range(1, 151) for rate in (sending.get(host, 0), 0)]
    page = opened(browser, recorded(net, rates, tmp_path / "large.html", rates, rates), faults)
    page.get_by_text("All ports over time").click()
    page.locator("#heat-order").select_option("busiest")
    canvas, told = page.locator("#heat-map"), page.locator("#heat-told")
    assert canvas.get_attribute("height") == "900" and named_rows(page) == [], "three units for each row, without names"
    canvas.focus()
    page.keyboard.press("ArrowDown")
    expect(told).to_have_text("h70-eth0 at 3.0 s: 10 Mbit/s, 100 % busy, queue 3")
    page.keyboard.press("ArrowDown")
    expect(told).to_have_text("h119-eth0 at 3.0 s: 5 Mbit/s, 50 % busy, queue 3")
    assert [row // 10 for row in named_rows(page)] == [0], "the name of the row that is read, in its first ten units"
    # Half of the two seconds before.
    for _ in range(130):
        page.keyboard.press("ArrowLeft")
    expect(told).to_have_text("h119-eth0 at 2.0 s: 5 Mbit/s, 50 % busy, queue 3")
    page.keyboard.press("Home")
    expect(told).to_have_text("h119-eth0 at 2.0 s: 5 Mbit/s, 50 % busy, queue 3")
    page.keyboard.press("PageDown")
    expect(told).to_contain_text("0 bit/s, 0 % busy, queue 0")
    page.keyboard.press("PageUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert "h70-eth0 → s1" in page.inner_text("#chosen")
    page.click("#close")
    box = canvas.bounding_box()
    assert box is not None
    third = {"x": box["width"] - 3, "y": box["height"] * 2.5 / 300}
    canvas.hover(position=third)
    expect(told).to_have_text("h20-eth0 at 3.0 s: 2.5 Mbit/s, 25 % busy, queue 3")
    assert named_rows(page) != []
    canvas.click(position=third)
    assert "h20-eth0 → s1" in page.inner_text("#chosen")
    page.mouse.move(5, 5)
    assert named_rows(page) == []
    page.context.close()
    assert faults == []


def named_rows(page: Page) -> list[int]:
    """The middle unit of what stands beside the map, where there is something."""
    return page.locator("#heat-map").evaluate(
        "(canvas) => { const read = new OffscreenCanvas(100, canvas.height).getContext('2d');"
        "read.drawImage(canvas, 0, 0); const { data } = read.getImageData(0, 0, 100, canvas.height);"
        "const rows = [...Array(canvas.height).keys()].filter((row) =>"
        "[...Array(100).keys()].some((at) => data[4 * (100 * row + at) + 3] > 0));"
        "return rows.length > 0 ? [rows[Math.floor(rows.length / 2)]] : []; }"
    )
