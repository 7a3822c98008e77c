"""The page in a real browser, beside a lab that runs: what a person sees."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_browser import expect, launched, needs_a_browser, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from twinnet.lab.lab import Lab

pytestmark = [needs_a_lab, needs_a_browser]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with tn.templates.single(3, rate="10 Mbit", delay="1 ms").emulate() as lab:
        # Two senders fill the line to h3: there a queue stands, and frames are dropped.
        for sender in ("h1", "h2"):
            lab.start(tn.apps.udp(sender, "h3", rate="8 Mbit", duration="600 s"))
        yield lab


@pytest.mark.quiet
def test_the_full_line_the_queue_and_the_verdict_are_seen(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live() as live:
        page = opened(browser, live.address, faults)
        assert "token" not in page.url
        assert sorted(page.locator(".node title").all_text_contents()) == ["host h1", "host h2", "host h3", "switch s1"]
        page.wait_for_selector(".way.full")
        expect(page.locator("#verdict")).to_have_class(re.compile("valid|doubtful|invalid"))
        assert page.inner_text("#state") in ("valid", "doubtful", "invalid") and len(page.inner_text("#worst")) > 10
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


@pytest.mark.quiet
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


@pytest.mark.quiet
def test_traffic_and_controllers_are_listed_while_they_are_open(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live() as live:
        page = opened(browser, live.address, faults)
        rows = page.locator("#traffic tbody tr")
        assert rows.count() == 0, "nothing is asked for what nobody sees"
        page.get_by_text("Traffic", exact=True).click()
        # Two flows, each at both of its ends; two looks give rates.
        expect(rows).to_have_count(4)
        received = rows.filter(has_text="udp sink").first.locator("td")
        expect(received.nth(4)).to_have_text(re.compile(r"^[0-9.]+ [kM]bit/s$"))
        assert received.nth(0).inner_text() == "h3" and int(received.nth(5).inner_text()) > 0
        page.get_by_text("Controllers", exact=True).click()
        expect(page.locator("#controllers [role=status]")).to_have_text("None.")
        page.context.close()
    assert faults == []


@pytest.mark.quiet
def test_all_ports_are_seen_at_once_and_the_full_one_stands_out(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live() as live:
        page = opened(browser, live.address, faults)
        page.wait_for_selector(".way.full")
        page.get_by_text("All ports over time").click()
        page.locator("#heat-order").select_option("busiest")
        page.wait_for_timeout(1500)
        canvas = page.locator("#heat-map")
        # The last column of each row; there are six ports, and that to h3 is full.
        colours = canvas.evaluate(
            "(canvas) => { const { data } = canvas.getContext('2d')"
            ".getImageData(canvas.width - 2, 0, 1, canvas.height);"
            "const at = (row) => 4 * Math.floor(((row + 0.5) * canvas.height) / 6);"
            "return [0, 1, 2, 3, 4, 5].map((row) => [...data.slice(at(row), at(row) + 4)]); }"
        )
        assert colours[0][0] > 200 and colours[0][1] > 200, "yellow: full"
        assert colours[5] == [68, 1, 84, 255], "dark: idle"
        box = canvas.bounding_box()
        assert box is not None
        canvas.hover(position={"x": box["width"] - 2, "y": 4})
        expect(page.locator("#heat-told")).to_have_text(
            re.compile(r"s1-eth3 at [0-9.]+ s: .*bit/s, .* % busy, queue \d+")
        )
        canvas.click(position={"x": box["width"] - 2, "y": 4})
        assert "s1-eth3" in page.inner_text("#chosen")
        page.context.close()
    assert faults == []


def test_nodes_are_found_by_name_and_address_and_the_picture_fills_the_screen(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live() as live:
        page = opened(browser, live.address, faults)
        for words, names in (("H2", ["h2"]), ("10.0.0", ["h1", "h2", "h3"]), ("none", []), ("", [])):
            page.fill("#find", words)
            found = page.locator(".node.found title").all_text_contents()
            assert sorted(title.split()[1] for title in found) == names
        assert page.inner_text("#found") == ""
        page.click("#full")
        expect(page.locator("html:fullscreen")).to_have_count(1)
        box = page.locator("#picture").bounding_box()
        assert box is not None and box["height"] > 600
        expect(page.locator("#verdict")).to_be_in_viewport()
        # What a click opens is seen there, too, and the verdict stays.
        page.get_by_role("button", name="s1-eth3").press("Enter")
        page.locator("#rate").scroll_into_view_if_needed()
        expect(page.locator("#rate")).to_be_in_viewport()
        expect(page.locator("#verdict")).to_be_in_viewport()
        page.get_by_role("button", name="Leave full screen").click()
        expect(page.locator("html:fullscreen")).to_have_count(0)
        page.context.close()
    assert faults == []


@pytest.mark.quiet
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


@pytest.mark.quiet
def test_what_is_shown_is_saved_as_pictures_and_what_was_kept_as_data(
    browser: Browser, lab: Lab, tmp_path: Path
) -> None:
    faults: list[str] = []
    with lab.live() as live:
        page = opened(browser, live.address, faults)
        page.wait_for_selector(".way.full")
        page.get_by_role("button", name="s1-eth3").focus()
        page.keyboard.press("Enter")
        page.wait_for_timeout(1000)
        for name in ("Picture as SVG", "Curves as SVG", "Data as CSV"):
            with page.expect_download() as waiting:
                page.get_by_role("button", name=name).click()
            waiting.value.save_as(tmp_path / name.partition(" ")[0])
        page.context.close()
    assert faults == []
    space = "{http://www.w3.org/2000/svg}"
    for name, least in (("Picture", 4), ("Curves", 3)):
        text = (tmp_path / name).read_text()
        assert "var(" not in text and "href" not in text
        drawn = ElementTree.fromstring(text)
        assert drawn.tag == f"{space}svg" and len(list(drawn.iter(f"{space}g"))) >= least
        assert float(drawn.attrib["width"]) > 300 and float(drawn.attrib["height"]) > 200
    assert "s1-eth3" in (tmp_path / "Curves").read_text()
    rows = list(csv.DictReader((tmp_path / "Data").read_text().splitlines()))
    assert {row["port"] for row in rows} == {name for at in (1, 2, 3) for name in (f"s1-eth{at}", f"h{at}-eth0")}
    full = [float(row["load"]) for row in rows if row["port"] == "s1-eth3"]
    assert 0.75 < median(full) < 1.05 and all(float(row["queue_frames"]) >= 0 for row in rows)


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
            f"{home.scheme}://{home.netloc}/acts",
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


def test_a_packet_is_followed_in_the_picture_with_the_reason_for_its_end(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live() as live:
        page = opened(browser, live.address, faults)
        form = page.locator("#follow-what")
        form.locator("[name=from]").fill("h1")
        form.locator("[name=to]").fill("h2")
        form.get_by_role("button", name="Follow").click()
        expect(page.locator("#follow-end")).to_have_text("It arrives at 10.0.0.2.")
        expect(page.locator("#follow-hops li").first).to_contain_text("h1")
        expect(page.locator("#follow-hops .arrived")).to_have_count(1)
        expect(page.locator(".way.followed")).not_to_have_count(0)
        form.locator("[name=to]").fill("10.77.0.1")
        form.get_by_role("button", name="Follow").click()
        expect(page.locator("#follow-hops .drop").last).to_contain_text("dropped:")
        form.locator("[name=to]").fill("h77")
        form.get_by_role("button", name="Follow").click()
        expect(page.locator("#follow-end")).to_contain_text("no host 'h77'")
        page.locator("#follow").get_by_role("button", name="Clear").click()
        expect(page.locator(".way.followed")).to_have_count(0)
        page.context.close()
    assert [one for one in faults if "400" not in one] == []
