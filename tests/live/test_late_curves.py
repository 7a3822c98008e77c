"""Curves are hatched where the lab was late: in recordings, in finished runs and in means of them."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import polars as pl
import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_browser import expect, launched, needs_a_browser, opened
from twinnet.drawing import picture_of
from twinnet.live.finished import _Judgement
from twinnet.live.recording import Recording
from twinnet.live.repetitions import means_of
from twinnet.live.watch import record_of_network
from twinnet.network import templates
from twinnet.results.tables import FIDELITY
from twinnet.study.store import StoredRun

if TYPE_CHECKING:
    from playwright.sync_api import Browser

VERDICT = {"state": "valid", "reasons": [], "covers_s": 10.0}


@pytest.fixture
def browser() -> Iterator[Browser]:
    yield from launched()


def judged(looks: list[dict[str, Any]]) -> _Judgement:
    """The judgement of a run whose lateness was looked at once a second."""
    quiet = {"lateness_max_ms": 0.1, "slips": 0, "lost_frames": 0, "length_s": 1.0}
    rows = [dict.fromkeys(FIDELITY) | quiet | {"start_s": float(at)} | look for at, look in enumerate(looks)]
    run = SimpleNamespace(
        table=lambda _: pl.DataFrame(rows, schema=FIDELITY),
        record={"fidelity": {"reasons": []}, "elapsed_s": 10.0},
        verdict="valid",
    )
    return _Judgement(cast(StoredRun, run))


@pytest.mark.parametrize(
    ("look", "was_late"),
    [
        ({}, False),
        ({"slips": 2}, True),
        ({"lost_frames": 1}, True),
        ({"lateness_max_ms": 1.5}, True),
        ({"lateness_max_ms": None}, False),
    ],
)
def test_a_look_at_a_run_was_late_by_slips_lost_frames_or_a_late_frame(look: dict[str, Any], was_late: bool) -> None:
    told = judged([look]).at(1.0)
    assert (told["at_s"], told["late_s"]) == (1.0, 1.0 if was_late else 0)


def test_of_several_looks_in_one_interval_none_that_was_late_is_left_out() -> None:
    late = {"slips": 1}
    judgement = judged([{}, late, {}, late, {}, {}])
    told = [(one["at_s"], one["late_s"]) for one in (judgement.at(now) for now in (0.5, 1.0, 5.0, 5.5, 6.0))]
    # Nothing was looked at before 1 s, and nothing more between 5 and 5.5 s.
    assert told == [(0, 0), (1.0, 0), (4.0, 3.0), (4.0, 3.0), (6.0, 0)]


def test_a_mean_is_late_when_one_of_its_runs_was() -> None:
    def of(state: str, at_s: float, late_s: float) -> list[dict[str, Any]]:
        verdict = VERDICT | {"state": state, "at_s": at_s, "late_s": late_s}
        return [{"now_s": 1.0, "elapsed_s": 1.0, "ways": [None], "verdict": verdict}]

    (mean,) = means_of([of("doubtful", 1.0, 0), of("valid", 0.9, 0.5)], ["a", "b"])
    assert mean["verdict"] == VERDICT | {"state": "doubtful", "at_s": 0.9, "late_s": 0.5}


@needs_a_browser
def test_the_curves_of_a_recording_are_hatched_where_the_lab_was_late(browser: Browser, tmp_path: Path) -> None:
    net = templates.single(2, rate="10 Mbit")
    ends = [(link.a.node, link.b.node, link.a.name, link.b.name) for link in net.links]
    kept = Recording(record_of_network("late", picture_of(net), ends) | {"control": False}, tmp_path / "late.html")
    for number in range(11):
        late_s = 1 if number in (4, 5) else 0
        verdict = VERDICT | {"at_s": float(number), "late_s": late_s}
        ways = [[8_000_000, 0.8, 1, 0, True, 10_000_000]] * 4
        kept.add({"now_s": float(number), "elapsed_s": 1.0, "ways": ways, "verdict": verdict})
    kept.write()
    faults: list[str] = []
    page = opened(browser, (tmp_path / "late.html").as_uri(), faults)
    page.get_by_role("button", name="link of h1-eth0").focus()
    page.keyboard.press("Enter")
    for name in ("rate", "queue", "drops"):
        hatched = page.locator(f"#{name} .late")
        assert hatched.locator("title").all_text_contents() == ["the lab was late"] * 2
        # Ten seconds are 600 units wide: the third to the fifth of them.
        across = [
            [float(x) for x in re.findall(r"[ML]([0-9.]+) ", one.get_attribute("d") or "")] for one in hatched.all()
        ]
        assert [(min(some), max(some)) for some in across] == [(180, 240), (240, 300)]
    page.context.close()
    assert faults == []


@needs_a_lab
@needs_a_browser
def test_the_curves_of_a_running_lab_are_hatched_when_it_was_held_up(browser: Browser) -> None:
    faults: list[str] = []
    with tn.templates.single(2, rate="10 Mbit").emulate() as lab, lab.live() as live:
        lab.start(tn.apps.udp("h1", "h2", rate="1 Mbit", duration="600 s"))
        page = opened(browser, live.address, faults)
        page.get_by_role("button", name="link of h1-eth0").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#rate .there")).to_have_attribute("d", re.compile("M(.*L){3}"))
        os.kill(lab.pid, signal.SIGSTOP)
        try:
            time.sleep(0.3)
        finally:
            os.kill(lab.pid, signal.SIGCONT)
        for name in ("rate", "queue", "drops"):
            expect(page.locator(f"#{name} .late").first).to_be_attached()
        page.context.close()
    assert faults == []
