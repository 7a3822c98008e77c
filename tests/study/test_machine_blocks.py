"""The machine as a blocking factor: estimates held against paired tests and simulation, warnings against placements."""

import json

import numpy as np
import pytest
from fluid_lab import FluidLab
from scipy import stats as scipy_stats
from twinnet.report.progress import SilentObserver
from twinnet.report.summary import machine_sentences, summary_record
from twinnet.report.write import write_report
from twinnet.stats import welch_interval
from twinnet.study.analysis import Analysis
from twinnet.study.blocked_contrast import blocked_contrast
from twinnet.study.comparison import compare_results
from twinnet.study.machine import describe_place, machine_of, processor_ranges
from twinnet.study.machine_blocks import apart, confounded_levels, difference_in_blocks
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study
from twinnet.study.runner import run_plan
from twinnet.study.store import ResultStore


def test_one_run_of_each_level_on_each_machine_is_the_paired_t_test():
    draw = np.random.default_rng(1)
    first, second = draw.normal(5, 1, 9), draw.normal(4, 1, 9)
    machines = [f"m{number}" for number in range(9)]
    found = blocked_contrast([first, -second], [machines, machines], [1, -1])
    paired = scipy_stats.ttest_rel(first, second)
    bounds = paired.confidence_interval(0.95)
    assert found is not None
    interval, test = found.interval(), found.test
    assert (test.statistic, test.p_value, test.degrees_of_freedom) == pytest.approx(
        (paired.statistic, paired.pvalue, 8)
    )
    assert (interval.low, interval.high) == pytest.approx((bounds.low, bounds.high))


def test_with_one_machine_it_is_welchs_test() -> None:
    draw = np.random.default_rng(3)
    first, second = draw.normal(5, 1, 9), draw.normal(4, 3, 5)
    found = blocked_contrast([first, -second], [["m"] * 9, ["m"] * 5], [1, -1])
    welch = scipy_stats.ttest_ind(first, second, equal_var=False)
    assert found is not None
    assert (found.test.statistic, found.test.p_value) == pytest.approx((welch.statistic, welch.pvalue))
    assert found.degrees_of_freedom == pytest.approx(welch.df)


def test_standard_error_and_degrees_of_freedom_are_hc2_and_bell_mccaffrey_in_whole_matrices() -> None:
    draw = np.random.default_rng(4)
    first, second = draw.normal(5, 1, 9), -4 * draw.normal(4, 1, 5)
    machines = (["a"] * 3 + ["b"] * 4 + ["c"] * 2, ["a"] * 2 + ["b"] * 2 + ["c"])
    found = blocked_contrast([first, second], machines, [1, -4])
    values, names = np.concatenate([first, second]), np.array([*machines[0], *machines[1]])
    of_group = np.repeat([0, 1], [9, 5])
    inside = (names[:, None] == np.array(["a", "b", "c"])).astype(float)
    scaled = np.array([1.0, -4.0])[of_group, None] * (inside - inside.mean(axis=0))
    design = np.hstack([np.eye(2)[of_group], scaled])
    weights = np.array([1, 1, 0, 0, 0]) @ np.linalg.pinv(design)
    left = np.eye(14) - design @ np.linalg.pinv(design)
    squares, free = (left @ values) ** 2, np.diag(left)
    spreads = np.array([squares[of_group == g].sum() / free[of_group == g].sum() for g in (0, 1)])[of_group]
    form = left @ np.diag(weights**2 / free) @ left @ np.diag(spreads)
    assert found is not None
    assert sum(found.variances) == pytest.approx(float((weights**2 * squares / free).sum()))
    assert found.degrees_of_freedom == pytest.approx(float(np.trace(form) ** 2 / np.trace(form @ form)))


def test_within_machines_a_skewed_side_reaches_further_and_its_p_value_is_of_that() -> None:
    machines = ["m1"] * 4 + ["m2"] * 4
    first = [20.0, 21.0, 19.5, 60.0, 30.0, 31.0, 30.5, 29.0]
    second = [50.0, 50.4, 49.8, 50.1, 60.1, 60.0, 59.7, 60.2]
    interval, test = difference_in_blocks(first, machines, second, machines, 0.95)
    found = blocked_contrast([first, [-one for one in second]], [machines, machines], [1, -1])
    assert found is not None and test is not None
    assert interval.method == "blocks, skewed" and interval.high > found.interval().high
    assert test.p_value > found.test.p_value


def test_a_contrast_with_unequal_scales_removes_a_blocks_effect_from_each_group():
    # b = 1, a = 5 without noise; machine effects -2 and 2 enter `a` once and `-2 b` twice.
    effects = {"m1": -2.0, "m2": 2.0}
    machines = ["m1", "m2", "m2", "m1", "m2"]
    a = [5 + effects[name] for name in machines]
    b = [-2 * (1 + effects[name]) for name in machines]
    found = blocked_contrast([a, b], [machines, machines], [1, -2])
    assert found is not None
    # The mean effect of the machines as they were used is 0.4, and stays in with the weight 1 - 2.
    assert found.estimate == pytest.approx(5 - 2 - 0.4)
    assert found.variances == pytest.approx((0, 0), abs=1e-9)


def test_intervals_within_machines_hold_the_truth_as_often_as_they_say_and_are_narrower():
    draw = np.random.default_rng(2)
    first_on, second_on = ["m1"] * 5 + ["m2"] * 2, ["m1"] * 2 + ["m2"] * 5
    held, widths = [], []
    for _ in range(2000):
        effect = {"m1": draw.normal(0, 5), "m2": draw.normal(0, 5)}
        first = [33 + effect[name] + draw.normal() for name in first_on]
        second = [31 + effect[name] + draw.normal() for name in second_on]
        interval, _ = difference_in_blocks(first, first_on, second, second_on, 0.95)
        held.append(interval.low <= 2 <= interval.high)
        welch = welch_interval(first, second)
        widths.append((interval.high - interval.low) / (welch.high - welch.low))
    # The standard error of a share of 0.95 in 2000 trials is 0.005.
    assert np.mean(held) == pytest.approx(0.95, abs=0.02)
    assert np.median(widths) < 0.7


def test_where_no_machine_had_both_levels_the_comparison_is_welchs():
    first, second = [9.0, 10.0, 11.0], [12.0, 13.0, 15.0]
    assert blocked_contrast([first, [-x for x in second]], [["m1"] * 3, ["m2"] * 3], [1, -1]) is None
    interval, test = difference_in_blocks(first, ["m1"] * 3, second, ["m2"] * 3, 0.95)
    assert (interval.method, test.name) == ("Welch", "Welch's t")


def test_values_that_are_all_alike_have_an_interval_without_width():
    found = blocked_contrast([[3e9, 3e9], [-1e9, -1e9]], [["m1", "m2"]] * 2, [1, -1])
    assert found is not None
    assert (found.interval().low, found.interval().high) == pytest.approx((2e9, 2e9))
    assert found.test.p_value == 0


def test_confounded_levels_are_named_with_their_machines():
    runs = [({"queues": "shared"}, "lab1"), ({"queues": "separate"}, "lab2")]
    (told,) = confounded_levels(runs)
    assert "queues=shared ran only on lab1, queues=separate only on lab2" in told
    assert confounded_levels([*runs, ({"queues": "separate"}, "lab1")]) == []


def test_combinations_without_a_common_machine_are_named_although_each_level_ran_everywhere():
    placed = {("1", "x"): "lab1", ("1", "y"): "lab2", ("2", "x"): "lab2", ("2", "y"): "lab1"}
    (told,) = confounded_levels([({"a": a, "b": b}, machine) for (a, b), machine in placed.items()])
    assert "a=1, b=x ran only on lab1, a=1, b=y only on lab2" in told
    assert "and 1 more pairs" in told


def test_processors_are_written_as_linux_writes_them():
    assert [processor_ranges(one) for one in (set(), {3}, {0, 1, 2, 8}, {1, 3})] == ["", "3", "0-2,8", "1,3"]


def test_results_of_different_machines_are_told_apart():
    assert "the first was made on lab1, the second on lab2, lab3" in apart(["lab1"], ["lab3", "lab2"])
    assert apart(["lab1"], ["lab1", "lab2"]) == apart([], ["lab1"]) == ""


def study(**settings):
    return load_study("tcp-udp-queues", {"repetitions": "4", "clock": "wall", **settings}, preset="tiny")


def made(folder, machine_for, **settings):
    """Results in `folder` whose runs were placed by `machine_for`."""
    loaded = study(**settings)
    store = ResultStore(folder)
    store.write_study(loaded)
    run_plan(plan_study(loaded), store, FluidLab(), SilentObserver())
    for run in store.all_runs():
        record = json.loads((run.folder / "run.json").read_text())
        record["machine"]["name"] = machine_for(run)
        (run.folder / "run.json").write_text(json.dumps(record))
    return Analysis(loaded, store)


def by_repetition(run):
    return f"lab{1 + run.repetition % 2}"


def by_level(run):
    return {"shared": "lab1", "separate": "lab2"}[run.levels["queues"]]


def test_a_run_records_its_machine_its_slot_and_its_processors(tmp_path):
    store = ResultStore(tmp_path)
    run_plan(plan_study(study()), store, FluidLab(), SilentObserver(), jobs=3)
    records = [run.record["machine"] for run in store.all_runs()]
    here = describe_place(1)
    assert {(one["name"], one["processors"]) for one in records} == {(here["name"], here["processors"])}
    assert {one["slot"] for one in records} <= {1, 2, 3}


def test_a_run_of_before_machines_were_recorded_is_read_as_such():
    assert machine_of({"machine": {"before": {}}}) == "not recorded"


def test_a_study_on_two_machines_is_compared_within_them_and_not_warned_about(tmp_path):
    analysis = made(tmp_path, by_repetition)
    assert analysis.machines == {"lab1": 4, "lab2": 4}
    assert {one.interval.method for one in analysis.differences} == {"blocks"}
    assert machine_sentences(analysis) == [
        "Made on 2 machines: lab1 (4 runs), lab2 (4 runs). Levels are compared within machines."
    ]
    page = write_report(analysis, tmp_path / "report").read_text()
    assert "p (within machines, Holm)" in page
    assert "additive model of levels and machines" in page


def test_a_study_whose_levels_ran_on_different_machines_is_warned_about(tmp_path):
    analysis = made(tmp_path, by_level)
    assert {one.interval.method for one in analysis.differences} == {"Welch"}
    told = " ".join(machine_sentences(analysis))
    assert "machines and levels are confounded: queues=shared ran only on lab1, queues=separate only on lab2" in told
    assert summary_record(analysis)["confounded"] == analysis.confounded != []


def test_on_the_virtual_clock_the_machine_has_no_effect(tmp_path):
    analysis = made(tmp_path, by_level, clock="virtual")
    assert (analysis.machines, analysis.confounded, machine_sentences(analysis)) == ({}, [], [])
    assert {one.interval.method for one in analysis.differences} == {"Welch"}


def test_results_made_on_other_machines_are_compared_with_a_warning(tmp_path):
    first, second = made(tmp_path / "a", lambda run: "lab1"), made(tmp_path / "b", lambda run: "lab2")
    assert "the first was made on lab1, the second on lab2" in compare_results(first, second).warning
    assert compare_results(first, first).warning == ""
