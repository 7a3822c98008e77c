"""The campaign that shows whether verdicts can be trusted: its arithmetic, and a small form of it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from labs_here import can_run_labs

from bench.disturbances import DISTURBANCES, OF_APPS, OF_PROGRAMS, SEEN_BY
from bench.verdict import BLOCK, DATAGRAMS, RECORD, campaign, clopper_pearson, figures_of, one_run, plan
from bench.verdict_page import campaign_in_words, newest
from bench.verdict_programs import SHAPES, program_case
from bench.verdict_programs import differences as program_differences
from bench.verdict_record import Run, add, begin, read, thresholds_in_force
from bench.verdict_run import DOUBTFUL, Measured, case, differences, run_on

GOOD = Measured([5e6, 5e6], 0.0, 2e-3, 2.5e-3, 3e-3, 6e-3, 1.0)


@pytest.mark.parametrize(
    ("found", "of", "low", "high"),
    # The ends where nothing or all was found are 1 - 0.025 ** (1 / n); the middle is from Clopper and Pearson's table.
    [(0, 300, 0.0, 0.012221), (300, 300, 0.987779, 1.0), (1, 10, 0.002529, 0.445016), (0, 0, 0.0, 1.0)],
)
def test_shares_have_exact_intervals(found: int, of: int, low: float, high: float) -> None:
    assert clopper_pearson(found, of) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, None),
        ({"rates_bps": [5e6, 4.7e6]}, "rate in second 2"),
        ({"rates_bps": [5.2e6, 4.8e6]}, None),
        ({"loss": 0.006}, "loss: 0.60 for 0.00 %"),
        ({"delay_mean_s": 3.2e-3}, "mean delay"),
        ({"delay_p99_s": 3.4e-3}, None),
        ({"delay_p99_s": 4e-3}, "99 % of delays"),
        ({"round_trip_max_s": 30e-3}, "greatest round trip"),
        ({"answered": 0.9}, "pings answered"),
    ],
)
def test_what_is_beyond_tolerance_is_named(changed: dict[str, object], said: str | None) -> None:
    wrong = differences(replace(GOOD, **changed), GOOD, full=False)
    assert bool(wrong) == (said is not None)
    assert said is None or said in wrong[0]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        # A second that lost what the next one made up for, and delays of a pause that is not invalid.
        ({"rates_bps": [4.5e6, 5.4e6], "loss": 0.04, "delay_p99_s": 90e-3, "round_trip_max_s": 150e-3}, None),
        ({"rates_bps": [4.5e6, 4.9e6]}, "rate over the run: 4.700 for 5.000 Mbit/s"),
        ({"loss": 0.06}, "loss: 6.00 for 0.00 %"),
        ({"delay_mean_s": 110e-3}, "mean delay"),
        ({"answered": 0.9}, "pings answered"),
        ({"answered": 0.96}, None),
    ],
)
def test_what_is_beyond_what_a_doubtful_run_promises_is_named(changed: dict[str, object], said: str | None) -> None:
    beyond = differences(replace(GOOD, **changed), GOOD, full=False, limits=DOUBTFUL)
    assert [one[: len(said or "")] for one in beyond] == ([said] if said else [])


def test_pings_on_a_full_line_are_not_compared() -> None:
    assert differences(replace(GOOD, answered=0.5, round_trip_max_s=1.0), GOOD, full=True) == []


def test_in_short_runs_a_frame_more_or_less_is_no_wrong_rate() -> None:
    short = replace(GOOD, rates_bps=[5e6])
    assert differences(replace(short, rates_bps=[5.3e6]), short, full=False)
    assert not differences(replace(short, rates_bps=[5.3e6]), short, full=False, seconds=0.05)


def test_of_600_runs_a_third_is_of_tcp_and_programs_and_most_are_disturbed() -> None:
    runs = list(islice(plan("a seed"), 600))
    programs = [run for run in runs if run[0] != DATAGRAMS]
    assert len(programs) == 200
    assert {shape for shape, _, _ in programs} == set(SHAPES)
    assert sum(bool(disturbance) for _, disturbance, _ in runs) >= 400
    assert sum(not disturbance for _, disturbance, _ in programs) == 60
    assert {name for _, name, _ in runs if name} == {*DISTURBANCES, "a slow receiver"} == set(SEEN_BY)
    assert not [run for run in runs if run[0] == DATAGRAMS and run[1] in OF_PROGRAMS]
    assert not [run for run in programs if run[1] in OF_APPS or (run[0] == "tcp" and run[1] in OF_PROGRAMS)]
    # Any part of a campaign is one of all kinds.
    assert {name for _, name, _ in runs[: 4 * BLOCK]} >= set(DISTURBANCES)


def test_two_sessions_have_no_network_in_common() -> None:
    cases = [case(f"{seed}/{number}") for seed in ("one", "two") for number in range(300)]
    assert len({(one.rate_bps, one.delay_ms, one.payload) for one in cases}) == 600
    assert {one.seconds for one in cases} >= {0.1, 0.2, 2.0}
    assert program_case("one/3", "echo") == program_case("one/3", "echo") != program_case("two/3", "echo")
    assert max(program_case(f"{number}", "echo").load for number in range(300)) <= 0.601


def test_what_programs_gave_is_compared_by_its_kind() -> None:
    right = {"loss": 0.0, "mean round trip": 4e-3, "99 % of round trips": 5e-3, "rate": 1e7}
    assert program_differences(right | {"loss": 0.004, "mean round trip": 4.9e-3, "rate": 9.6e6}, right) == []
    assert program_differences(right | {"loss": 0.4}, right) == ["loss: 0.4 for 0"]
    assert program_differences(right | {"rate": 9.4e6}, right) == ["rate: 9.4e+06 for 1e+07"]
    assert len(program_differences(right | {"mean round trip": 6e-3, "99 % of round trips": 11e-3}, right)) == 2


def test_of_programs_a_doubtful_run_may_be_5_percent_or_100_ms_of_each_delay_off() -> None:
    right = {"loss": 0.0, "mean round trip": 4e-3, "rate": 1e7}
    assert program_differences({"loss": 0.04, "mean round trip": 0.19, "rate": 9.6e6}, right, doubtful=True) == []
    beyond = program_differences({"loss": 0.06, "mean round trip": 0.21, "rate": 9.4e6}, right, doubtful=True)
    assert beyond == ["loss: 0.06 for 0", "mean round trip: 0.21 for 0.004", "rate: 9.4e+06 for 1e+07"]


def run(verdict: str, *wrong: str, disturbance: str = "") -> Run:
    return Run("", "1", DATAGRAMS, "", disturbance, 1, verdict, (), wrong, seen=float(bool(disturbance)))


def test_wrong_runs_called_valid_and_good_runs_called_invalid_are_counted() -> None:
    runs = [run("valid"), run("valid", "loss", disturbance="a quota"), run("invalid"), run("invalid", "loss")]
    called_valid, of_disturbed, called_invalid, _, *rows = figures_of([*runs, run("doubtful")])
    assert (called_valid.value, called_valid.met) == (pytest.approx(20), False)
    assert (of_disturbed.value, of_disturbed.met) == (pytest.approx(100), False)
    assert called_invalid.value == pytest.approx(100 / 3)
    assert "1 of 3" in called_invalid.note
    (quota,) = [row for row in rows if "quota" in row.name]
    assert "1 valid (1 wrong)" in quota.note
    assert "seen by its counter in 1" in quota.note


def test_the_goal_is_that_no_wrong_run_is_called_valid() -> None:
    """One of a thousand is 0.1 %, and misses it."""
    first, *_ = figures_of([run("valid")] * 999 + [run("valid", "loss")])
    assert first.met is False
    first, *_ = figures_of([run("valid")] * 1000)
    assert first.met is True
    assert "0.00 to 0.37 %" in first.note


def test_what_is_beyond_a_doubtful_runs_promise_is_counted_of_the_runs_that_know_it() -> None:
    beyond = replace(run("doubtful", "rate"), beyond=("rate",))
    known = [beyond, replace(run("doubtful", "delay"), beyond=()), replace(run("invalid", "rate"), beyond=("rate",))]
    (figure,) = [one for one in figures_of([*known, run("doubtful", "loss")]) if "beyond what" in one.name]
    assert (figure.value, figure.met) == (pytest.approx(100 / 3), False)
    assert "1 of 3" in figure.note
    words = campaign_in_words(begin("one"), known)
    assert "Beyond what a doubtful run promises and called doubtful (goal: none): 1 of 3" in words


def test_a_page_has_the_runs_of_the_last_commit_and_thresholds_by_what_was_done_to_them(tmp_path: Path) -> None:
    path = tmp_path / "verdict.jsonl"
    old, *last = begin("one"), begin("two"), begin("three")
    add(path, old := replace(old, commit="0ld"))
    add(path, run("valid", "loss").of(old))
    for session in last:
        add(path, session)
        add(path, run("valid").of(session))
        add(path, run("valid", "loss", disturbance="a quota").of(session))
        add(path, run("invalid").of(session))
    told = newest(path)
    assert told.splitlines()[1].startswith(f"6 runs, begun {last[-1].begin} UTC at commit {last[-1].commit}")
    assert "| datagrams, left alone | 4 |  | 2 | 0 | 2 | 0 to 84 % |" in told
    assert "| datagrams, a quota | 2 | 2 | 2 (2 wrong) | 0 | 0 | 16 to 100 % |" in told
    assert "- Wrong, of disturbed runs that were called valid: 2 of 2 (15.8 to 100.0 %, Clopper-Pearson)." in told
    assert "- Good and called invalid (goal: under 5 %): 2 of 4 (" in told
    assert campaign_in_words(last[0], []).count("0 of 0") == 5
    again = begin("four", ["counted", "ffmpeg"])
    add(path, again)
    add(path, replace(run("valid", disturbance="a quota"), shape="ffmpeg").of(again))
    assert newest(path).startswith(told)
    assert f"*Again, counted and ffmpeg only:* 1 runs, begun {again.begin}" in newest(path)
    assert "| TCP and programs, a quota | 1 | 1 | 1 | 0 | 0 | 0 to 98 % |" in newest(path)


def test_sessions_are_added_to_a_record_and_a_line_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "verdict.jsonl"
    for seed in ("one", "two"):
        session = begin(seed)
        add(path, session)
        add(path, run("valid").of(session))
    with path.open("a") as file:
        file.write(json.dumps({"run": {}})[:5])
    sessions = read(path)
    assert [session.seed for session in sessions] == ["one", "two"]
    assert [len(runs) for runs in sessions.values()] == [1, 1]
    for session in sessions:
        assert session.thresholds == thresholds_in_force()
        assert session.commit
        assert "lateness_p999_ns" in session.machine["thresholds"]


def test_the_record_does_not_tell_where_this_machine_keeps_its_python(tmp_path: Path) -> None:
    path = tmp_path / "verdict.jsonl"
    session = begin("one")
    add(path, session)
    add(path, replace(run("valid"), reasons=[f"a signal stopped a host's program ({sys.executable})"]).of(session))
    [[told]] = read(path).values()
    assert told.reasons == [f"a signal stopped a host's program ({Path(sys.executable).name})"]
    assert str(Path(sys.executable).parent) not in RECORD.read_text()


def test_each_session_draws_its_seed(tmp_path: Path) -> None:
    path = tmp_path / "verdict.jsonl"
    for _ in range(2):
        assert campaign(0, 1, path) == []
    assert len({session.seed for session in read(path)}) == 2


def test_the_twin_of_a_case_is_the_same_each_time() -> None:
    wanted = case(7, seconds=1)
    assert run_on(wanted, "virtual") == run_on(wanted, "virtual")


@pytest.mark.quiet
@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
@pytest.mark.parametrize(
    ("shape", "disturbance", "strength"),
    [
        (DATAGRAMS, "", 0),
        (DATAGRAMS, "the lab is stopped", 9),
        ("echo", "a stopped program", 7),
        ("counted", "a slow receiver", 8),
        ("tcp", "the lab is stopped", 9),
    ],
)
def test_a_run_that_is_wrong_is_not_called_valid(shape: str, disturbance: str, strength: int) -> None:
    run = one_run("7", (shape, disturbance, strength), seconds=2)
    if run is None:
        assert shape != DATAGRAMS, "there is always the other clock to compare with"
        return
    assert not (run.wrong and run.verdict == "valid"), run
    assert not (run.beyond and run.verdict == "doubtful"), run
    if disturbance:
        assert run.verdict != "valid", run
        assert run.seen > 0, run
