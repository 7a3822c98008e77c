"""The page of a lab on the virtual clock: time stands, and goes on when the page asks for it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import twinnet as tn
from live_browser import expect, launched, needs_a_browser, opened
from twinnet.lab import attach
from twinnet.live.acts import Acts
from twinnet.live.watch import LabWatch

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from twinnet.lab.lab import Lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    net = tn.templates.single(2, rate="10 Mbit")
    with net.simulate(name=f"page-{os.getpid()}") as lab:
        lab.start(tn.apps.udp("h1", "h2", rate="20 Mbit", duration="60 s"))
        yield lab


def test_looks_are_exact_and_tell_that_the_clock_stands(lab: Lab) -> None:
    with attach(lab.name) as seen:
        watch = LabWatch(seen)
        assert watch.look() is None and not watch.stands
        assert watch.look() is None and watch.stands
        lab.run_until("1 s")
        told = watch.look()
        assert told is not None and not watch.stands
        assert (told["now_s"], told["elapsed_s"], told["verdict"]["state"]) == (1.0, 1.0, "valid")


def test_time_goes_on_by_what_was_asked_for_and_no_further(lab: Lab) -> None:
    with attach(lab.name) as seen:
        acts = Acts(seen)
        acts.go_on(1.0)
        assert lab.now() == 0
        act = acts.do({"act": "go on", "duration": "1 s", "speed": 0.5})
        assert (act.lines, act.python) == (["sleep 1 s"], ['lab.run_until("1 s")'])
        times: list[float] = []
        for _ in range(4):
            acts.go_on(0.8)
            times.append(lab.now())
        assert times == [0.4, 0.8, 1.0, 1.0]
        acts.do({"act": "go on", "duration": "1 s", "speed": 1})
        acts.do({"act": "stand still"})
        acts.go_on(1.0)
        assert lab.now() == 1.0
        for speed in (0, -1, 1000):
            with pytest.raises(tn.errors.BadValue, match="the speed is"):
                acts.do({"act": "go on", "duration": "1 s", "speed": speed})
        with pytest.raises(tn.errors.TwinnetError, match="unit"):
            acts.do({"act": "go on", "duration": "1", "speed": 1})


def test_time_goes_on_to_the_moment_of_the_next_event(lab: Lab) -> None:
    with attach(lab.name) as seen:
        acts = Acts(seen)
        acts.do({"act": "go on", "duration": "1 s", "speed": 1})
        times: list[int] = []
        for _ in range(20):
            due_ps = seen.connection.events_next()["next_ps"]
            act = acts.do({"act": "next event"})
            assert due_ps is not None and lab.now_ps() == due_ps
            assert act.lines == [] and act.python[0].startswith("lab.run_until(")
            times.append(due_ps)
        # All that happens at a moment is done: the next is later.
        assert times == sorted(set(times))
        # Who goes on by events no longer goes on by an interval.
        acts.go_on(1.0)
        assert lab.now_ps() == times[-1]


def test_without_anything_to_happen_time_stands_and_that_is_said() -> None:
    with tn.templates.single(2).simulate() as lab:
        lab.run_until("10 s")
        assert Acts(lab).do({"act": "next event"}).note == "nothing will happen by itself: start traffic"
        assert lab.now() == 10.0


def test_after_a_short_step_rates_are_those_of_a_millisecond_and_more(lab: Lab) -> None:
    with attach(lab.name) as seen:
        watch = LabWatch(seen)
        watch.look()
        lab.run_until("1 s")
        watch.look()
        told: list[float] = []
        for step_us in range(1, 6):
            lab.run_until(f"{1_000_000 + 100 * step_us} us")
            step = watch.look()
            assert step is not None
            told.append(step["elapsed_s"])
            # The line is full all the time, and no frame of a short step makes it look fuller.
            assert max(way[1] for way in step["ways"]) == pytest.approx(1.0, abs=0.01)
        assert told == pytest.approx([1.0 + 0.0001 * step for step in range(1, 6)])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@needs_a_browser
def test_the_page_goes_on_by_one_event(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live(control=True) as live:
        page = opened(browser, live.address, faults)
        expect(page.locator("#stands")).to_be_visible()
        for number in range(1, 6):
            page.get_by_role("button", name="By one event").click()
            expect(page.locator("#acts-done li")).to_have_count(number)
        # So short a time is told with all its digits.
        shown = f"{lab.now():.9f}".rstrip("0")
        assert 0 < lab.now() < 0.01
        expect(page.locator("#time")).to_have_text(f"{shown} s")
        page.context.close()
    assert faults == []


@needs_a_browser
def test_the_page_lets_virtual_time_go_on(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live(control=True) as live:
        page = opened(browser, live.address, faults)
        expect(page.locator("#stands")).to_be_visible()
        assert lab.now() == 0
        page.locator("#go-on [name=duration]").fill("2 s")
        page.locator("#go-on [name=speed]").fill("4")
        page.locator("#go-on button").first.click()
        expect(page.locator("#time")).to_have_text("2.0 s")
        expect(page.locator("#stands")).to_be_visible()
        assert lab.now() == 2.0
        expect(page.locator(".way.full")).to_have_count(2)
        expect(page.locator("#acts-done code").first).to_have_text(f"twinnet do {lab.name} 'sleep 2 s'")
        page.context.close()
    assert faults == []


@needs_a_browser
def test_the_clock_goes_at_half_speed_until_it_is_stopped_and_pause_holds_what_is_seen(
    browser: Browser, lab: Lab
) -> None:
    faults: list[str] = []
    with lab.live(control=True) as live:
        page = opened(browser, live.address, faults)
        expect(page.locator("#stands")).to_be_visible()
        page.locator("#go-on [name=duration]").fill("600 s")
        page.locator("#go-on [name=speed]").fill("0.5")
        begin_s = time.monotonic()
        page.locator("#go-on button").first.click()
        expect(page.locator("#time")).to_have_text(re.compile(r"^[0-9.]*[1-9]"))
        page.click("#play")
        assert page.inner_text("#play") == "Go on"
        shown, now = page.inner_text("#time"), lab.now()
        while lab.now() < now + 0.5:
            page.wait_for_timeout(100)
        assert page.inner_text("#time") == shown, "the page stands, and the lab goes on"
        page.get_by_role("button", name="Stand still").click()
        expect(page.locator("#stands")).to_be_visible()
        # However slow this machine is, the clock is not faster than half of real time.
        assert now + 0.5 <= lab.now() <= 0.5 * (time.monotonic() - begin_s)
        stood = lab.now()
        page.wait_for_timeout(1000)
        assert lab.now() == stood
        page.click("#play")
        expect(page.locator("#time")).to_have_text(f"{stood:.9f}".rstrip("0") + " s")
        page.context.close()
    assert faults == []


@needs_a_browser
def test_what_was_is_seen_again_at_half_speed(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live(control=True) as live:
        page = opened(browser, live.address, faults)
        expect(page.locator("#stands")).to_be_visible()
        page.locator("#go-on [name=duration]").fill("20 s")
        page.locator("#go-on [name=speed]").fill("8")
        page.locator("#go-on button").first.click()
        expect(page.locator("#time")).to_have_text("20.0 s")
        page.locator("#speed").select_option("0.5")
        moment = page.locator("#moment")
        moment.focus()
        page.keyboard.press("Home")
        first = float(moment.input_value())
        begin_s = time.monotonic()
        page.click("#play")
        while (seen := float(moment.input_value())) < first + 1:
            page.wait_for_timeout(100)
        # Its steps are a tenth of a second.
        assert seen - first <= 0.5 * (time.monotonic() - begin_s) + 0.1
        assert lab.now() == 20.0
        page.context.close()
    assert faults == []
