"""The page that changes its lab, in a real browser: forms, undo, the saved file, and flow tables that count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_browser import expect, launched, needs_a_browser, opened
from twinnet.live.faults import chosen_fault
from twinnet.network.topology_file import load_network

if TYPE_CHECKING:
    from playwright.sync_api import APIResponse, Browser, Page, Route
    from twinnet.lab.lab import Lab

pytestmark = [needs_a_lab, needs_a_browser]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture
def lab() -> Iterator[Lab]:
    net = tn.templates.single(2, rate="10 Mbit", delay="1 ms")
    net.switches["s1"].fail_mode = "secure"
    net.switches["s1"].flows = ["priority=1,actions=flood"]
    with net.emulate() as lab:
        yield lab


def choose(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).focus()
    page.keyboard.press("Enter")


def test_a_link_is_changed_from_the_picture_and_set_back(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live(control=True) as live:
        page = opened(browser, live.address, faults)
        choose(page, "h1-eth0")
        rate = page.locator("#change-link [name=rate]")
        expect(rate).to_have_value("10 Mbit/s")
        rate.fill("2 Mbit")
        page.locator("#change-link [name=loss]").fill("1 %")
        page.locator("#change-link").get_by_role("button", name="Change").click()
        expect(page.locator("#by-hand")).to_have_text("changed by hand once")
        assert page.get_attribute("#by-hand", "title").endswith("by the live page: link h1 s1 rate 2 Mbit loss 1 %")
        assert lab.fidelity().by_hand.changes == 1
        act = page.locator("#acts-done li")
        expect(act.locator("code").first).to_have_text(f"twinnet do {lab.name} 'link h1 s1 rate 2 Mbit loss 1 %'")
        expect(act.locator(".python")).to_have_text('lab.link("h1", "s1").set(rate="2 Mbit", loss="1 %")')
        assert [lab.links()[0][way]["config"]["rate_bps"] for way in ("ab", "ba")] == [2_000_000] * 2
        expect(page.locator("#rate .act")).to_have_count(1)
        page.get_by_role("button", name="Take down").click()
        page.wait_for_selector(".way.down", state="attached")
        page.get_by_role("button", name="Bring up").click()
        expect(page.locator(".way.down")).to_have_count(0)
        page.get_by_role("button", name="Undo change 1").click()
        expect(page.locator("#change-link [name=rate]")).to_have_value("10 Mbit/s")
        assert lab.links()[0]["ab"]["config"]["rate_bps"] == 10_000_000
        page.locator("#change-queues input").fill("codel,target=7ms")
        page.locator("#change-queues").get_by_role("button", name="Change").click()
        expect(page.locator("#acts-done li").first).to_contain_text('tn.qos.Codel(target="7ms")')
        page.context.close()
    assert faults == []


def test_settings_that_come_late_take_no_place_of_newer_ones(browser: Browser, lab: Lab) -> None:
    held: list[tuple[Route, APIResponse]] = []
    with lab.live(control=True) as live:
        page = opened(browser, live.address, [])
        choose(page, "h1-eth0")
        rate = page.locator("#change-link [name=rate]")
        expect(rate).to_have_value("10 Mbit/s")
        page.route("**/settings/0", lambda route: held.append((route, route.fetch())), times=1)
        rate.fill("2 Mbit")
        page.locator("#change-link").get_by_role("button", name="Change").click()
        page.get_by_role("button", name="Undo change 1").click()
        expect(page.locator("#acts-done li")).to_have_count(2)
        expect(rate).to_have_value("10 Mbit/s")
        ((route, response),) = held
        assert "2 Mbit" in response.text()
        with page.expect_request_finished(lambda request: "settings/0" in request.url):
            route.fulfill(response=response)
        # What comes after it is asked for and read after it.
        page.evaluate("() => fetch('settings/1').then((answer) => answer.json())")
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert rate.input_value() == "10 Mbit/s"
        page.context.close()


def test_what_is_refused_is_said_and_not_done(browser: Browser, lab: Lab) -> None:
    with lab.live(control=True) as live:
        page = opened(browser, live.address, [])
        choose(page, "h1-eth0")
        page.locator("#change-link [name=rate]").fill("fast")
        page.locator("#change-link").get_by_role("button", name="Change").click()
        expect(page.locator("#refused")).to_contain_text("fast")
        expect(page.locator("#acts-done li")).to_have_count(0)
        page.context.close()


def test_the_network_is_saved_as_a_file_that_opens_again(browser: Browser, lab: Lab, tmp_path: Path) -> None:
    lab.link("h2", "s1").set(delay="9 ms")
    with lab.live(control=True) as live:
        page = opened(browser, live.address, [])
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Save the network").click()
        waiting.value.save_as(tmp_path / "saved.yaml")
        page.context.close()
    saved = load_network(tmp_path / "saved.yaml").to_spec()
    assert [link["ab"]["delay_ps"] for link in saved["links"]] == [10**9, 9 * 10**9]


@pytest.mark.quiet
def test_entries_that_are_new_and_that_count_light_up(browser: Browser, lab: Lab) -> None:
    with lab.live(control=True) as live:
        page = opened(browser, live.address, [])
        choose(page, "flows of s1")
        rows = page.locator("#flow-rows tr")
        expect(rows).to_have_count(1)
        expect(rows.first.locator("td").nth(3)).to_have_text("FLOOD")
        flow = lab.start(tn.apps.udp("h1", "h2", rate="1 Mbit", duration="60 s"))
        page.wait_for_selector("#flow-rows .counts")
        page.locator("#add-flow input").fill("priority=9,ip,nw_dst=10.0.0.2,actions=output:2")
        page.locator("#add-flow button").click()
        expect(page.get_by_role("button", name="Undo change 1")).to_be_visible()
        page.wait_for_selector("#flow-rows .new")
        expect(rows).to_have_count(2)
        expect(rows.first).to_contain_text("nw_dst=10.0.0.2")
        page.get_by_role("button", name="Undo change 1").click()
        expect(rows).to_have_count(1)
        page.locator("#delete-flows button").click()
        expect(rows).to_have_count(0)
        page.get_by_role("button", name="Undo change 3").click()
        expect(rows).to_have_count(1)
        flow.stop()
        page.context.close()


@pytest.mark.quiet
def test_traffic_is_started_with_a_click_on_a_host(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live(control=True) as live:
        page = opened(browser, live.address, faults)
        choose(page, "send from h1")
        page.locator("#send-what [name=rate]").fill("20 Mbit")
        page.locator("#send-what [name=duration]").fill("60 s")
        page.locator("#send-what button").click()
        page.wait_for_selector(".way.full", state="attached")
        expect(page.locator("#acts-done .python")).to_contain_text('tn.apps.udp("h1", "h2", rate="20 Mbit"')
        page.get_by_role("button", name="Undo change 1").click()
        expect(page.locator(".way.full")).to_have_count(0)
        page.context.close()
    assert faults == []


def test_what_the_lab_has_started_is_stopped_from_the_table(browser: Browser, lab: Lab) -> None:
    flow = lab.start(tn.apps.udp("h1", "h2", rate="1 Mbit", duration="600 s"))
    program = lab["h1"].popen(["sleep", "600"])
    faults: list[str] = []
    with lab.live(control=True) as live:
        page = opened(browser, live.address, faults)
        page.locator("#traffic summary").click()
        page.get_by_role("button", name="Stop udp source of h1").click()
        expect(page.locator("#acts-done li").first).to_contain_text(f"lab.connection.app_stop(app={flow.app})")
        expect(page.get_by_role("button", name="Stop udp source of h1")).to_have_count(0)
        page.get_by_role("button", name="Stop program of h1: sleep 600").click()
        expect(page.locator("#acts-done li").first).to_contain_text("sleep 600 in h1 is asked to end")
        expect(page.get_by_role("button", name="Stop program")).to_have_count(0)
        page.context.close()
    assert program.wait().returncode == -15
    assert [one.is_traffic for one in lab.fidelity().by_hand.first] == [True, True]
    assert faults == []


def test_a_class_finds_what_broke(browser: Browser, lab: Lab) -> None:
    with lab.live(control=True) as live:
        page = opened(browser, live.address, [])
        page.locator("#puzzle [name=seed]").fill("12")
        page.get_by_role("button", name="Break something").click()
        expect(page.locator("#acts-done li")).to_contain_text("seed 12: something is broken now")
        expect(page.locator("#acts-done code")).to_have_count(0)
        page.get_by_role("button", name="Show the answer").click()
        expect(page.locator("#acts-done li").first).to_contain_text("this was broken")
        page.get_by_role("button", name="Undo change 2").click()
        expect(page.locator("#acts-done li")).to_have_count(3)
        page.context.close()


def test_a_class_finds_the_rule_that_is_missing(browser: Browser, lab: Lab) -> None:
    seed = next(seed for seed in range(100) if chosen_fault(lab, seed)["act"] == "delete flows")
    rule = lab.switch("s1").dump_flows()[0].partition("priority=")[2]
    with lab.live(control=True) as live:
        page = opened(browser, live.address, [])
        choose(page, "flows of s1")
        expect(page.locator("#flow-rows tr")).to_have_count(1)
        page.locator("#puzzle [name=seed]").fill(str(seed))
        page.get_by_role("button", name="Break something").click()
        expect(page.locator("#flow-rows tr")).to_have_count(0)
        assert "delete" not in page.locator("#acts-done").inner_text()
        page.get_by_role("button", name="Show the answer").click()
        expect(page.locator("#acts-done li").first).to_contain_text("flow s1 del table=0")
        page.get_by_role("button", name="Undo change 2").click()
        expect(page.locator("#flow-rows tr")).to_have_count(1)
        page.context.close()
    assert lab.switch("s1").dump_flows()[0].partition("priority=")[2] == rule


def test_a_page_without_control_has_nothing_to_change_with(browser: Browser, lab: Lab) -> None:
    with lab.live() as live:
        page = opened(browser, live.address, [])
        choose(page, "flows of s1")
        expect(page.locator("#flow-rows tr")).to_have_count(1)
        choose(page, "h1-eth0")
        assert page.is_visible("#rate")
        for hidden in ("#change", "#acts", "#add-flow", "#delete-flows"):
            assert page.is_hidden(hidden)
        status = page.evaluate(
            "fetch('act', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{}'})"
            ".then((one) => one.status)"
        )
        assert status == 405
        page.context.close()


def test_changes_are_in_the_recording(browser: Browser, lab: Lab, tmp_path: Path) -> None:
    out = tmp_path / "run.html"
    with lab.live(out=out, control=True) as live:
        page = opened(browser, live.address, [])
        choose(page, "h1-eth0")
        page.get_by_role("button", name="Take down").click()
        page.wait_for_selector(".way.down", state="attached")
        page.context.close()
    faults: list[str] = []
    recorded = opened(browser, out.as_uri(), faults)
    expect(recorded.locator("#acts-done li")).to_contain_text(re.compile(r"\.set\(up=False\)"))
    assert recorded.get_by_role("button", name="Undo").count() == 0 and recorded.is_hidden("#save")
    recorded.context.close()
    assert faults == []
