"""Published figures without a rival: rows of a table beside the study, and what a difference says."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scipy.stats import ttest_ind_from_stats
from study_networks import TWO_RATES
from twinnet.stats import Interval, t_interval
from twinnet.study.published_results import PublishedResult, published_result, share_above
from twinnet.study.resolution import load_study
from twinnet.study.specification import Published
from twinnet.yaml_source import SourceError

STUDY = """\
study: small
title: A line
question: How long is a way?
NETWORK
traffic:
  - {name: pings, app: ping, from: [h1], to: h2, count: 5, interval: 100 ms}
measurements:
  way: {of: rtt}
published:
  - text: "by line {line}"
    source: Somebody
    table: Table 1
    rows: figures.csv
    where: {kind: rtt}
    value: "{mean} ms"
    deviation: "{std} ms"
    n: 12
    measured: "mean(way, line=l{line})"
""".replace("NETWORK\n", TWO_RATES)
TABLE = "# Notes.\nkind,line,mean,std\nrtt,1,1.5,0.25\nloss,1,3,1\nrtt,2,0.7,0.125\n"


def write(folder: Path, study: str = STUDY, table: str = TABLE) -> Path:
    (folder / "study.yaml").write_text(study, encoding="utf-8")
    (folder / "figures.csv").write_text(table, encoding="utf-8")
    return folder


def test_an_entry_stands_for_each_row_that_it_chooses(tmp_path):
    study = load_study(write(tmp_path))
    assert [(one.text, one.value, one.table, one.n) for one in study.published()] == [
        ("by line 1", "1.5 ms", "Table 1", 12),
        ("by line 2", "0.7 ms", "Table 1", 12),
    ]
    values = [
        (sum(term.factor for term in one.value), sum(term.factor for term in one.deviation))
        for one in study.published_sides()
    ]
    assert values == [(pytest.approx(1.5e-3), pytest.approx(0.25e-3)), (pytest.approx(0.7e-3), pytest.approx(0.125e-3))]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("rows: figures.csv", "rows: other.csv", "cannot be read"),
        ("{kind: rtt}", "{sort: rtt}", "figures.csv has no column 'sort'"),
        ("{kind: rtt}", "{kind: rate}", "figures.csv has no row with kind rate"),
        ('"{mean} ms"', '"{median} ms"', "no column 'median'"),
        ('"{mean} ms"', '"{mean} Mbit"', "1.5 Mbit"),
        ('"{std} ms"', '"{std} %"', "0.25 %"),
        ("line=l{line}", "line=m{line}", "m1"),
        ("rows: figures.csv\n    ", "", "name its file with 'rows'"),
        ("n: 12", "n: 1", "must be at least 2; given: 1"),
    ],
)
def test_what_is_wrong_with_such_an_entry_is_told_with_its_place(tmp_path, before, after, says):
    assert before in STUDY
    with pytest.raises(SourceError) as error:
        load_study(write(tmp_path, STUDY.replace(before, after)))
    assert says in str(error.value)
    assert "published" in str(error.value)


def result(
    measured: Interval | None, deviation: float = math.nan, n: int | None = None, runs: int = 1
) -> PublishedResult:
    return PublishedResult(
        Published(text="a", source="b", value="1", measured="c", n=n), 10.0, deviation, measured, runs, "1"
    )


def exactly(value: float) -> Interval:
    return Interval(value, math.nan, math.nan, 0.95, "t")


@pytest.mark.parametrize(
    ("value", "deviation", "n", "word"),
    [
        (10.5, math.nan, None, "as published"),
        (10.6, math.nan, None, "differs"),
        (9.4, 0.7, None, "within the published deviation"),
        (9.2, 0.7, None, "differs"),
        (9.2, 0.7, 2, "comparable"),
        (9.2, 0.7, 30, "differs"),
    ],
)
def test_the_word_for_a_difference(value, deviation, n, word):
    assert result(exactly(value), deviation, n).word.startswith(word)


OVER = """\
  - text: lines
    source: Somebody
    value: -23.5 %
    measured: mean(way, line=l1)
    over: mean(way, line=l2)
"""


def test_a_quantity_over_another_is_the_share_by_which_it_is_above(tmp_path):
    study = load_study(write(tmp_path, STUDY + OVER))
    one, sides = study.published()[-1], study.published_sides()[-1]
    ways = {"l1": (0.7, 0.8), "l2": (1.0, 1.0)}
    runs: list[Any] = [
        SimpleNamespace(
            run=SimpleNamespace(levels={"line": level}, record={"clock": "wall", "machine": {"name": "m"}}),
            value=lambda aggregate, way=way: way,
            fingerprint=(way,),
        )
        for level, values in ways.items()
        for way in values
    ]
    found = published_result(one, sides, "1", runs, 0.95)
    assert found.measured is not None
    assert (found.value, found.measured.estimate) == (pytest.approx(-0.235), pytest.approx(-0.25))
    # 0.75 and 0.765 are 2 % apart; their shares are 6 % apart, which says nothing.
    assert found.difference == pytest.approx(0.75 / 0.765 - 1)
    assert found.word == "as published"
    assert published_result(one, sides, "1", runs[:2], 0.95).why == "no usable run with line=l2"


def test_the_interval_of_a_share_is_that_of_both():
    found = share_above(Interval(6.0, 5.0, 7.0, 0.95, "t"), Interval(3.0, 2.7, 3.3, 0.95, "t"))
    half = 2.0 * math.hypot(1.0 / 6.0, 0.3 / 3.0)
    assert (found.estimate, found.low, found.high) == pytest.approx((1.0, 1.0 - half, 1.0 + half))
    with pytest.raises(LookupError, match="is zero"):
        share_above(exactly(1.0), exactly(0.0))


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [("-23.5 %", "-2 ms", "a time"), ("over: mean(way, line=l2)", "over: mean(lost, line=l2)", "is a share")],
)
def test_a_share_is_compared_with_shares_and_is_of_one_kind(tmp_path, before, after, says):
    with pytest.raises(SourceError, match=says):
        changed = STUDY.replace("  way: {of: rtt}\n", "  way: {of: rtt}\n  lost: {of: loss}\n")
        load_study(write(tmp_path, changed + OVER.replace(before, after)))


def test_what_was_not_measured_has_no_word():
    assert result(None).word == ""
    assert math.isnan(result(None).difference)


def test_the_test_is_that_of_scipy_on_means_and_deviations():
    ours = [8.1, 9.6, 9.0, 8.4]
    found = result(t_interval(ours), 1.2, 9, len(ours)).test
    mean = sum(ours) / len(ours)
    spread = math.sqrt(sum((one - mean) ** 2 for one in ours) / (len(ours) - 1))
    right = ttest_ind_from_stats(mean, spread, len(ours), 10.0, 1.2, 9, equal_var=False)
    assert found is not None
    assert found.p_value == pytest.approx(right.pvalue)


def test_the_published_means_of_the_class_profiles_are_all_there():
    study = load_study("qos-class-profiles")
    assert len([one for one in study.published() if not one.over]) == 56
    (basic,) = [one for one in study.published() if one.measured == "mean(bandwidth_in, profile=basic-leaf)"]
    assert basic.text == "basic, at the leaf"
    values = [sum(term.factor for term in one.value) for one in study.published_sides()]
    assert values[0] == pytest.approx(6.858e9, rel=1e-3)
