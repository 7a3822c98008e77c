"""Repetitions as mean and band: what is written, and what a browser draws of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from live_browser import expect, launched, needs_a_browser, opened
from made_studies import made_study
from study_networks import one_switch
from twinnet.cli import run
from twinnet.errors import BadValue
from twinnet.live.repetitions import means_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

STUDY = """\
study: noise
title: A queue
question: How long is the queue?
NETWORK
factors:
  queue:
    levels:
      low: {queues: {s1 to h2: {kind: fifo, limit_frames: 3}}}
      high: {queues: {s1 to h2: {kind: fifo, limit_frames: 60}}}
traffic:
  - name: load
    app: udp
    from: [h1]
    to: h2
    port: 5003
    gap: {distribution: exponential, mean: 1 ms}
    payload: 1 kB
    duration: 3 s
measurements:
  waiting: {of: queue_length, interval: 100 ms, ports: [s1 to h2]}
repetitions: 3
clock: virtual
time_limit: 10 s
""".replace("NETWORK\n", one_switch("rate: 100 Mbit", "rate: 10 Mbit"))
VALID = {"state": "valid", "reasons": [], "at_s": 0, "late_s": 0, "covers_s": 1.0}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_study(STUDY, tmp_path_factory.mktemp("repetitions"), "--no-report")


def tick(now_s: float, *ways: list[Any] | None, **verdict: Any) -> dict[str, Any]:
    return {"now_s": now_s, "elapsed_s": 1.0, "ways": list(ways), "verdict": VALID | verdict}


def test_a_mean_has_the_interval_of_students_t_and_the_worst_verdict() -> None:
    runs = [
        [tick(1.0, [rate, rate / 10, queue, 0, True, 10], None)] for rate, queue in ((2.0, 10), (4.0, 20), (6.0, 30))
    ]
    runs[1][0]["verdict"] = VALID | {"state": "doubtful"}
    (mean,) = means_of(runs, ["a", "b", "c"])
    assert mean["ways"] == [[4, 0.4, 20.0, 0.0, True, 10], None]
    # Three values with standard deviation 2: the mean +- 4.303 x 2 / sqrt(3); below zero there is nothing.
    assert mean["bands"][0] == pytest.approx([0.0, 8.968, 0.0, 44.841, 0.0, 0.0], abs=0.001)
    assert mean["bands"][1] is None and mean["verdict"]["state"] == "doubtful"


def test_a_mean_has_the_drops_by_reason_and_the_marks_of_all_runs() -> None:
    behind: list[dict[str, Any]] = [{"drops": {"early": 6, "loss": 1}, "lossy": True}, {"marks": 4}, {}]
    runs = [[tick(1.0, [1, None, 0, 0, True, None, *([more] if more else [])])] for more in behind]
    (mean,) = means_of(runs, ["a", "b", "c"])
    assert mean["ways"][0][6] == {"drops": {"early": 2.0, "loss": 0.333}, "marks": 1.333, "lossy": True}


def test_runs_of_other_intervals_have_no_mean() -> None:
    runs = [[tick(at, [1.0, None, 0, 0, True, None])] for at in (1.0, 1.5)]
    with pytest.raises(BadValue, match="a and others of these runs have different intervals"):
        means_of(runs, ["a", "b"])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@needs_a_browser
def test_the_mean_of_a_level_is_drawn_with_its_band_beside_another(
    browser: Browser, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "both.html"
    assert run(["live", str(results), "--run", "high", "--run", "low", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": str(out)}
    faults: list[str] = []
    page = opened(browser, out.as_uri(), faults)
    assert re.fullmatch(r"noise: high-01-\w+, mean of 3 runs", page.inner_text("#lab"))
    page.get_by_role("button", name="s1-eth2").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#beside")).to_have_text(
        re.compile(r"Mean of 3 runs; .* 95 % confidence .*Thin lines: low-01-\w+-mean-of-3")
    )
    expect(page.locator("#queue .band.there")).to_have_attribute("d", re.compile("M(.*L){20}.*Z"))
    # Of the way back nothing was sampled.
    expect(page.locator("#queue .band.back")).to_have_count(0)
    # Flows are of one run, and not of a mean.
    assert page.is_hidden("#traffic")
    expect(page.locator("#queue .there.beside")).to_have_attribute("d", re.compile("M(.*L){20}"))
    page.context.close()
    assert faults == []
