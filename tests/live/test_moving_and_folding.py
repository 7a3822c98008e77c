"""The picture that its reader arranges: hosts folded into one node, and nodes dragged to other places."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_browser import PATIENCE_MS, expect, launched, needs_a_browser, opened
from made_recordings import LINE_BPS, recorded
from twinnet.drawing.positions import read_positions
from twinnet.network import templates

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = needs_a_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


def visible(page: Page, name: str) -> Locator:
    return page.locator(f"{name}:not([display])")


def test_hosts_fold_into_one_node_by_click_and_by_key_and_their_links_add_up(browser: Browser, tmp_path: Path) -> None:
    net = templates.single(4)
    # The hosts send 1, 2, 3 and 4 Mbit/s to the switch.
    rates = [rate for number in range(1, 5) for rate in (number * 1_000_000, 0)]
    faults: list[str] = []
    page = opened(browser, recorded(net, rates, tmp_path / "run.html"), faults)
    assert visible(page, ".node").count() == 5
    handle = page.get_by_role("button", name="4 hosts of s1: fold", exact=True)
    assert handle.get_attribute("aria-expanded") == "true"
    handle.click()
    expect(visible(page, ".node")).to_have_count(2)
    assert visible(page, ".link").count() == 1
    assert sorted(visible(page, ".node").locator("text:first-of-type").all_text_contents()) == ["4 hosts", "s1"]
    # Rates and queues are summed; the colour is that of the busiest line, of which 40 % are used.
    shown = visible(page, ".told").all_text_contents()
    assert [text for text in shown if text] == ["12", "10 Mbit/s"]
    assert page.locator(".link:not([display]) .way.some").count() == 1
    # Who looks for a host is led to the fold.
    page.fill("#find", "h3")
    expect(page.locator(".node.hosts")).to_have_class(re.compile("found"))
    page.get_by_role("button", name="4 hosts of s1: unfold").last.focus()
    page.keyboard.press("Enter")
    expect(visible(page, ".node")).to_have_count(5)
    page.get_by_role("button", name="4 hosts of s1: fold", exact=True).focus()
    page.keyboard.press(" ")
    expect(visible(page, ".node")).to_have_count(2)
    page.context.close()
    assert faults == []


def test_all_hosts_of_a_large_network_fold_at_once(browser: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    page = opened(browser, recorded(templates.tree(2, 23), [LINE_BPS], tmp_path / "large.html"), faults)
    assert page.locator("#lines").count() == 1
    page.click("#fold")
    # A root, 23 switches, and a fold at each of these.
    expect(visible(page, ".node")).to_have_count(47)
    assert page.inner_text("#fold") == "Unfold hosts"
    with page.expect_download() as saving:
        page.click("#save-picture")
    saved = saving.value.path().read_text()
    assert saved.count(">23 hosts</text>") == 23 and page.locator("#picture .way").count() == 0
    page.click("#fold")
    expect(visible(page, ".node")).to_have_count(553)
    page.context.close()
    assert faults == []


def test_all_below_a_switch_folds_into_one_node_and_what_was_folded_in_it_stays_so(
    browser: Browser, tmp_path: Path
) -> None:
    # Below the root s1 three switches, and three hosts below each of them.
    net = templates.tree(2, 3)
    link = {(one.a.node, one.b.node): number for number, one in enumerate(net.links)}
    rates = [0] * (2 * len(net.links))
    below = [other for one, other in link if one == "s1"]
    for number, switch in enumerate(below, 1):
        rates[2 * link["s1", switch]] = number * 1_000_000
    faults: list[str] = []
    page = opened(browser, recorded(net, rates, tmp_path / "tree.html"), faults)
    assert visible(page, ".node").count() == 13
    page.get_by_role("button", name=f"3 hosts of {below[0]}: fold", exact=True).click()
    expect(visible(page, ".node")).to_have_count(11)
    page.get_by_role("button", name="9 hosts, 3 switches of s1: fold", exact=True).click()
    expect(visible(page, ".node")).to_have_count(2)
    names = visible(page, ".node").locator("text:first-of-type").all_text_contents()
    assert sorted(names) == ["12 nodes", "s1"]
    # The links of the root are one: 1, 2 and 3 Mbit/s.
    assert [text for text in visible(page, ".told").all_text_contents() if text] == ["9", "6 Mbit/s"]
    assert visible(page, ".link").count() == 1 and visible(page, ".fold").count() == 1
    page.fill("#find", "h9")
    expect(page.locator(".node.hosts.found")).to_have_count(1)
    page.get_by_role("button", name="9 hosts, 3 switches of s1: unfold").last.focus()
    page.keyboard.press("Enter")
    expect(visible(page, ".node")).to_have_count(11)
    assert visible(page, ".node.hosts").locator("text").all_text_contents() == ["3 hosts"]
    page.click("#fold")
    expect(visible(page, ".node")).to_have_count(7)
    page.click("#fold")
    expect(visible(page, ".node")).to_have_count(13)
    page.context.close()
    assert faults == []


def dragged(page: Page, name: str, right: int, down: int) -> None:
    """Drag the node `name` by so many pixels."""
    box = node(page, name).bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + right, y + down, steps=4)
    page.mouse.up()


def ends_of_links(page: Page) -> list[float]:
    """Where they are in the picture, wherever that is on the page: the verdict above it takes one line or two."""
    lines = page.locator(".link .hit").all()
    return [float(line.get_attribute(name) or "nan") for line in lines for name in ("x1", "y1", "x2", "y2")]


def node(page: Page, name: str) -> Locator:
    return page.locator(".node", has=page.locator("title", has_text=re.compile(rf"\b{name}$"))).locator("rect")


def test_a_dragged_node_takes_its_link_along_and_is_not_clicked(browser: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    page = opened(browser, recorded(templates.single(2), [LINE_BPS], tmp_path / "run.html"), faults)
    line = page.locator(".link .hit").first
    before = [line.get_attribute(name) for name in ("x1", "y1", "x2", "y2")]
    dragged(page, "h1", 60, -30)
    after = [line.get_attribute(name) for name in ("x1", "y1", "x2", "y2")]
    assert before[:2] != after[:2] and before[2:] == after[2:]
    page.context.close()
    assert faults == []


@needs_a_lab
def test_places_are_kept_where_the_page_may_change_its_lab(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "net.positions.json"
    faults: list[str] = []
    with tn.templates.single(2, rate="10 Mbit").emulate() as lab:
        with lab.live(positions=file) as live:
            page = opened(browser, live.address, faults)
            dragged(page, "h2", 90, -60)
            page.context.close()
        assert not file.exists()
        with lab.live(control=True, positions=file) as live:
            page = opened(browser, live.address, faults)
            dragged(page, "h2", 90, -60)
            deadline = time.monotonic() + PATIENCE_MS / 1000
            while not file.exists():
                assert time.monotonic() < deadline
                page.wait_for_timeout(50)
            moved = ends_of_links(page)
            # Another browser, and another page with this file, have it there.
            assert list(read_positions(file)) == ["h2"]
            page.reload()
            page.wait_for_selector(".node")
            assert ends_of_links(page) == pytest.approx(moved, abs=1)
            page.context.close()
    assert faults == []
