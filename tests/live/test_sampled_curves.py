"""Curves of a running lab from what its ports are sampled, in intervals of 20 ms."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import twinnet as tn
from live_browser import expect, launched, needs_a_browser, opened
from twinnet.errors import BadValue, TwinnetError
from twinnet.live import fine
from twinnet.live.acts import Acts
from twinnet.live.fine import FineCurves

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from twinnet.lab.lab import Lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Two hosts send more than the line to h2 carries, whose link is the second."""
    net = tn.templates.single(9, rate="10 Mbit")
    with net.simulate(name=f"sampled-{os.getpid()}") as lab:
        for sender in ("h1", "h3"):
            lab.start(tn.apps.udp(sender, "h2", rate="8 Mbit", duration="60 s"))
        yield lab


def sent_bytes(lab: Lab, port: str) -> int:
    return next(row["counters"]["link_bytes"] for row in lab.ports() if row["port"] == port)


def since(curves: FineCurves, link: int, since_s: float = 0.0) -> list[fine.Row]:
    return curves.since({link: since_s})[link]


def test_each_interval_is_told_once_and_all_that_was_sent_is_in_them(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    # Samplers take over from each other every 20 intervals.
    monkeypatch.setattr(fine, "_MOST_IN_SAMPLER", 20)
    curves = FineCurves(lab)
    rows = since(curves, 1)
    assert rows == [], "no interval has passed"
    for step in range(1, 41):
        lab.run_until(f"{step * 60} ms")
        rows += since(curves, 1, rows[-1][0] if rows else 0.0)
    ends = [end for end, _, _ in rows]
    assert ends == pytest.approx([0.02 * number for number in range(1, 121)])
    # The second way of the link of h2 is that of the switch: its line is full, and its queue overflows.
    told = max(sum(row[way][0] for row in rows) * 0.02 / 8 for way in (1, 2))
    assert told == pytest.approx(sent_bytes(lab, "s1-eth2"), abs=1)
    assert sum(way[3] for row in rows for way in row[1:]) > 0
    assert any(way[6]["drops"].get("overlimit") for row in rows for way in row[1:] if len(way) > 6)
    curves.end()
    for number in range(8):
        with pytest.raises(TwinnetError):
            lab.connection.samples_read(sampler=number)


def test_samplers_take_over_without_a_gap_at_any_moment(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fine, "_MOST_IN_SAMPLER", 10)
    curves = FineCurves(lab)
    rows = since(curves, 1)
    for step in range(1, 60):
        lab.run_until(f"{step * 37} ms")
        rows += since(curves, 1, rows[-1][0] if rows else 0.0)
    apart = [after[0] - before[0] for before, after in pairwise(rows)]
    assert min(apart) > 0 and max(apart) < 0.0201 and rows[-1][0] > 2.1
    curves.end()


def test_so_many_links_are_sampled_and_what_nobody_asks_for_no_more(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fine, "MOST_LINKS", 8)
    curves = FineCurves(lab)
    assert curves.since(dict.fromkeys(range(9), 0.0)) == {link: [] for link in range(8)}, "the ninth is left out"
    curves.rest()
    lab.run_until("100 ms")
    assert len(since(curves, 0)) == 5, "asked for lately, they go on"
    monkeypatch.setattr(fine, "_FORGET_S", -1.0)
    curves.rest()
    assert since(curves, 8) == []
    with pytest.raises(BadValue, match="there is no link 9"):
        since(curves, 9)
    curves.end()


def test_samples_are_no_events_to_go_on_to(lab: Lab) -> None:
    acts = Acts(lab)
    lab.run_until("5 ms")
    since(acts.fine, 0)
    for _ in range(200):
        acts.do({"act": "next event"})
        assert lab.now_ps() != 25 * 10**9
        assert since(acts.fine, 0) == []
    assert lab.now_ps() > 25 * 10**9
    acts.do({"act": "go on", "duration": "1 s", "speed": 1})
    since(acts.fine, 0)
    lab.run_until("200 ms")
    assert len(since(acts.fine, 0)) > 1
    acts.fine.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@needs_a_browser
def test_the_curves_of_a_running_lab_have_a_point_each_20_ms(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live() as live:
        page = opened(browser, live.address, faults)
        expect(page.locator("#stands")).to_be_visible()
        with page.expect_response(re.compile(r"samples\?1=")):
            page.get_by_role("button", name="h2-eth0").press("Enter")
        lab.run_until("2 s")
        queue = page.locator("#queue .back")
        expect(queue).to_have_attribute("d", re.compile("^M([^L]*L){99}[^L]*$"))
        # Another link has its own.
        with page.expect_response(re.compile(r"samples\?0=")):
            page.get_by_role("button", name="h1-eth0").press("Enter")
        lab.run_until("3 s")
        expect(page.locator("#rate .there")).to_have_attribute("d", re.compile("^M([^L]*L){50}"))
        page.click("#close")
        page.context.close()
    assert faults == []


@needs_a_browser
def test_the_curves_of_many_links_stay_open_together(browser: Browser, lab: Lab) -> None:
    faults: list[str] = []
    with lab.live() as live:
        page = opened(browser, live.address, faults)
        expect(page.locator("#stands")).to_be_visible()
        links = [f"link of h{number}-eth0" for number in range(1, 10)]
        page.get_by_role("button", name=links[0]).press("Enter")
        for link in links[1:-1]:
            page.get_by_role("button", name=link).press("Shift+Enter")
        page.get_by_role("button", name="Keep open").click()
        page.get_by_role("button", name=links[-1]).press("Enter")
        expect(page.locator(".link.chosen")).to_have_count(9)
        open_now = page.locator(".curves:visible")
        expect(open_now).to_have_count(9)
        with page.expect_response(re.compile(r"samples\?(\d=[0-9.]+&?){9}$")):
            pass
        lab.run_until("1 s")
        # All are exact, also the ninth; the line to h2 is full, and to h4 nothing goes.
        for part in open_now.all():
            back = part.locator("[data-of=rate] .back")
            expect(back).to_have_attribute("d", re.compile("^M([^L]*L){49}[^L]*$"))
        for name, is_full in (("h2", True), ("h4", False)):
            back = open_now.filter(has_text=f"{name} (dashed)").locator("[data-of=rate] .back")
            height = float((back.get_attribute("d") or "").split()[-1])
            assert height < 100 if is_full else height == 172
        with page.expect_download() as saved:
            page.get_by_role("button", name="Curves as SVG").click()
        text = saved.value.path().read_text()
        assert all(f"h{number}-eth0" in text for number in range(1, 10))
        open_now.nth(1).get_by_role("button", name="Close").click()
        page.click("#close")
        expect(open_now).to_have_count(7)
        expect(page.locator(".link.chosen")).to_have_count(7)
        page.context.close()
    assert faults == []
