"""What failed in some runs is counted and told: the rest of a sample is not the sample."""

from __future__ import annotations

import csv
import json
import math
import shutil
from pathlib import Path

import pytest
from made_studies import made_study
from twinnet import studies
from twinnet.report.design import Choice
from twinnet.report.level_figures import level_figure
from twinnet.report.summary import statement_numbers
from twinnet.report.tables import means_latex
from twinnet.study.analysis import Analysis, analyse
from twinnet.study.distributions import described
from twinnet.study.store import ResultStore

TRANSFERS = """\
study: files
title: Two files over a line that loses
question: How long do transfers take?
parameters:
  rate: {default: 10 Mbit}
network:
  hosts: {h1: , h2: , h3: }
  switches: {s1: }
  links:
    - {between: [h1, s1], rate: 100 Mbit}
    - {between: [h3, s1], rate: 100 Mbit}
    - {between: [s1, h2], rate: "${rate}", delay: 20 ms, loss: 3 %}
factors:
  line:
    levels:
      slow: {set: {rate: 2 Mbit}}
      fast: {set: {rate: 10 Mbit}}
traffic:
  - {name: file, app: tcp, from: [h1, h3], to: h2, port: 5002, bytes: 300 kB}
measurements:
  done: {of: completion_time}
  took: {of: transfer_time}
settle: 10 ms
drain: 10 ms
time_limit: 3 s
clock: virtual
repetitions: 6
statements:
  - {id: mean, text: The mean., check: "mean(done, line=slow) < 3 s"}
  - {id: taken, text: The mean of what was taken., check: "mean(took, line=slow) < 3 s"}
  - {id: all, text: All of what was taken., check: "max(took, line=slow) < 3200 ms"}
  - {id: every, text: All., check: "max(done, line=slow) < 3200 ms"}
  - {id: order, text: The fast line is faster., check: "mean(done, line=fast) < mean(done, line=slow)"}
"""

STARVED = """\
study: starved
title: A flow of which nothing arrives
question: What is measured of it?
parameters:
  lost: {default: 0}
network:
  hosts: {h1: , h2: , h3: }
  switches: {s1: }
  links:
    - {between: [h1, s1], rate: 10 Mbit, loss: "${lost} %"}
    - {between: [h3, s1], rate: 10 Mbit}
    - {between: [s1, h2], rate: 10 Mbit}
factors:
  line:
    levels:
      good: {set: {lost: 0}}
      bad: {set: {lost: 100}}
traffic:
  - {name: a, app: udp, from: [h1], to: h2, port: 5002, rate: 1 Mbit, payload: 500 B, duration: 200 ms}
  - {name: b, app: udp, from: [h3], to: h2, port: 5003, rate: 1 Mbit, payload: 500 B, duration: 200 ms}
measurements:
  late: {of: delay, per: flow, describe: true}
  jain: {of: fairness}
repetitions: 2
clock: virtual
statements:
  - {id: fair, text: Both get the same., check: "mean(jain, line=bad) > 90 %"}
"""


@pytest.fixture(scope="module")
def transfers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_study(TRANSFERS, tmp_path_factory.mktemp("transfers"))


def analysed(folder: Path) -> Analysis:
    return analyse(ResultStore(folder))


def test_the_mean_of_transfers_of_which_one_had_not_ended_is_infinite(transfers: Path) -> None:
    means = {(one.measurement, one.levels["line"]): one for one in analysed(transfers).means}
    assert set(means) == {(name, line) for name in ("done", "took") for line in ("slow", "fast")}
    assert sum(map(math.isinf, means["done", "slow"].samples)) == 1
    assert means["done", "slow"].interval.estimate == means["took", "slow"].interval.estimate == math.inf
    assert 0.5 < means["done", "fast"].interval.estimate < 3


def test_no_statement_is_supported_by_what_was_cut_off(transfers: Path) -> None:
    found = {one.statement.id: one for one in analysed(transfers).statements}
    verdicts = {name: one.verdict for name, one in found.items()}
    assert verdicts["all"] == verdicts["every"] == "not supported"
    assert verdicts["mean"] == verdicts["taken"] == "undecided"
    # The mean of the slow line is no less than that of the five runs that ended, and that alone is more.
    assert verdicts["order"] == "supported"
    said = " ".join(statement_numbers(analysed(transfers), found["order"]))
    assert "infinite, at least" in said and "no more than that of the others" in said


def test_answer_page_tables_and_figures_tell_of_how_many_runs(transfers: Path) -> None:
    results = studies.load(transfers)
    assert "Of done, took the value in 1 of 12 runs is infinite" in results.answer
    assert "infinite in 1 of 6 runs" in str(results)
    page = results.report()
    text = page.read_text()
    assert "infinite in 1 of 6 runs</td>" in text and "infinite</td>" not in text
    with (page.parent / "means.csv").open(newline="") as file:
        rows = {(row["measurement"], row["factor_line"]): row for row in csv.DictReader(file)}
    assert rows["done", "slow"]["mean"] == "inf"
    assert rows["done", "slow"]["values"].split().count("inf") == 1
    analysis = analysed(transfers)
    assert "infinite in 1 of 6 runs" in means_latex(analysis, "done")
    figure = level_figure(analysis, "done", Choice())
    assert figure is not None
    assert "infinite in 1 of 6 runs" in figure.panels[0].numbers.values()


def test_a_comparison_of_results_tests_no_rest_of_a_sample(transfers: Path) -> None:
    results = studies.load(transfers)
    rows = [row for row in results.compare(results).table.to_dicts() if row["factor_line"] == "slow"]
    assert {row["measurement"] for row in rows} == {"done", "took"}
    assert all(row["first"] == math.inf and row["adjusted_p"] is None for row in rows)
    assert "infinite in 1 of 6 runs" in str(results.compare(results))


def test_a_flow_of_which_nothing_arrived_is_starved_and_told(tmp_path: Path) -> None:
    folder = made_study(STARVED, tmp_path)
    analysis = analysed(folder)
    means = {(one.measurement, one.label, one.levels["line"]): one for one in analysis.means}
    assert means["jain", "udp", "bad"].interval.estimate == pytest.approx(0.5)
    assert analysis.statements[0].verdict == "not supported"
    nothing = means["late", "a", "bad"]
    assert nothing.samples == () and math.isnan(nothing.interval.estimate)
    assert set(nothing.missing.values()) == {"no delay was measured"}
    assert analysis.incomplete == ["Of late (a) there is no value in 2 of 4 runs: no delay was measured."]
    with (folder / "report" / "means.csv").open(newline="") as file:
        row = next(row for row in csv.DictReader(file) if (row["label"], row["factor_line"]) == ("a", "bad"))
    assert (row["mean"], row["missing"], row["why_missing"]) == ("", "2", "no delay was measured")
    # Under levels with no value there is nothing to describe, and under the others there is.
    assert [(one.label, one.levels["line"], one.missing) for one in described(analysis)] == [
        ("a", "good", 0), ("b", "good", 0), ("b", "bad", 0),
    ]  # fmt: skip


def test_a_mean_of_some_runs_is_shown_with_their_number_and_compared_with_nothing(transfers: Path) -> None:
    analysis = analysed(transfers)
    run = next(run for run in analysis.used if run.run.levels["line"] == "fast")
    whole = run.value

    def failing(aggregate: object) -> float:
        raise LookupError("the estimator gave up")

    run.value = failing  # type: ignore[method-assign]
    try:
        one = next(one for one in analysis.means if (one.measurement, one.levels["line"]) == ("done", "fast"))
        assert len(one.samples) == 5 and one.missing == {run.run.id: "the estimator gave up"}
        assert all(pair.first is not one and pair.second is not one for pair in analysis.differences)
        assert "(of 5 of 6 runs)" in means_latex(analysis, "done")
        assert "Of done, took there is no value in 1 of 12 runs: the estimator gave up." in analysis.silent
    finally:
        run.value = whole  # type: ignore[method-assign]


def test_runs_that_failed_are_in_no_number_and_told_with_the_verdicts(transfers: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(transfers, tmp_path / "files")
    record = folder / next(iter(analysed(transfers).stored)) / "run.json"
    stored = json.loads(record.read_text())
    record.write_text(json.dumps({**stored, "status": "failed", "error": {"name": "LabError", "message": "no [/b]"}}))
    assert "1 of 12 runs failed, and is in no number." in studies.load(folder).answer
