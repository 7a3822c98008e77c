"""Published figures without a rival: rows of a table beside the study, and what a difference says."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from scipy.stats import ttest_ind_from_stats
from study_networks import TWO_RATES
from twinnet.stats import Interval, t_interval
from twinnet.study.natural_range import clipped, range_of_side
from twinnet.study.predicate import parse_side
from twinnet.study.published_results import WORDS, PublishedResult, published_result, share_above
from twinnet.study.quantities import QUANTITIES
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
        ("n: 12", "sense: near", "sense"),
        ("n: 12", "sense: below", "'deviation' has no meaning for a value that is below a number"),
        ("n: 12", "to: 3 Mbit", "3 Mbit"),
    ],
)
def test_what_is_wrong_with_such_an_entry_is_told_with_its_place(tmp_path, before, after, says):
    assert before in STUDY
    with pytest.raises(SourceError) as error:
        load_study(write(tmp_path, STUDY.replace(before, after)))
    assert says in str(error.value)
    assert "published" in str(error.value)


def result(
    measured: Interval | None,
    deviation: float = math.nan,
    n: int | None = None,
    runs: int = 1,
    sense: Literal["exact", "about", "below", "above"] = "exact",
    top: float = math.nan,
) -> PublishedResult:
    entry = Published(text="a", source="b", value="1", measured="c", n=n, sense=sense)
    return PublishedResult(entry, 10.0, deviation, measured, runs, "1", "", top, (0.0, math.inf))


def exactly(value: float) -> Interval:
    """What one run gives: no interval."""
    return Interval(value, math.nan, math.nan, 0.95, "t")


def about(value: float, half: float) -> Interval:
    return Interval(value, value - half, value + half, 0.95, "t")


@pytest.mark.parametrize(
    ("measured", "deviation", "n", "word"),
    [
        (about(10.4, 0.1), math.nan, None, "as published"),
        (about(10.6, 0.1), math.nan, None, "differs"),
        (about(10.6, 0.0), math.nan, None, "differs"),
        # 62.2 [-55.9, 180.2] beside 50: the interval holds the published value, and 5 % of it is a small part.
        (about(10.6, 25.0), math.nan, None, "cannot be told"),
        (about(10.1, 25.0), math.nan, None, "cannot be told"),
        # It excludes the value, and what is within 5 % of it only in part.
        (about(10.4, 0.3), math.nan, None, "cannot be told"),
        (about(9.4, 0.05), 0.7, None, "within the published deviation"),
        (about(9.4, 0.2), 0.7, None, "cannot be told"),
        (about(9.2, 0.1), 0.7, None, "differs"),
        (about(9.2, 0.1), 0.7, 2, "comparable"),
        (about(9.2, 0.1), 0.7, 30, "differs"),
        # One run shows that a figure can be as published, and no more.
        (exactly(10.5), math.nan, None, "as published"),
        (exactly(10.6), math.nan, None, "cannot be told"),
        (exactly(9.4), 0.7, None, "within the published deviation"),
    ],
)
def test_the_word_for_a_difference_rests_on_the_interval(
    measured: Interval, deviation: float, n: int | None, word: str
) -> None:
    found = result(measured, deviation, n, 4).word
    assert found.partition(" (p")[0] == word
    assert found.partition(" (p")[0] in WORDS


@pytest.mark.parametrize(
    ("sense", "measured", "word"),
    [
        ("below", about(1.82, 0.5), "bound kept"),
        ("below", exactly(1.82), "bound kept"),
        ("below", about(12.0, 1.0), "bound broken"),
        ("below", about(9.5, 1.0), "cannot be told"),
        ("below", exactly(12.0), "cannot be told"),
        ("above", about(12.0, 1.0), "bound kept"),
        ("above", about(1.82, 0.5), "bound broken"),
        ("above", about(10.5, 1.0), "cannot be told"),
        ("about", about(10.8, 0.1), "as published"),
        ("about", about(11.2, 0.1), "differs"),
    ],
)
def test_a_bound_is_no_value(sense: Literal["exact", "about", "below", "above"], measured: Interval, word: str) -> None:
    found = result(measured, sense=sense, runs=4)
    assert found.word == word
    assert math.isnan(found.difference) == (sense in ("below", "above"))


@pytest.mark.parametrize(
    ("measured", "word"),
    [
        (about(11.0, 0.5), "within the published range"),
        (about(12.0, 0.5), "cannot be told"),
        (about(13.0, 0.5), "differs"),
        (about(9.0, 0.5), "differs"),
    ],
)
def test_a_range_holds_what_was_measured_or_not(measured: Interval, word: str) -> None:
    found = result(measured, top=12.0, runs=4)
    assert found.word == word
    assert math.isnan(found.difference)


def test_no_interval_of_a_rate_goes_below_zero_and_the_verdict_rests_on_the_whole_of_it() -> None:
    wide = result(about(622.0, 1181.0), runs=3)
    assert wide.shown == Interval(622.0, 0.0, 1803.0, 0.95, "t")
    assert wide.measured == about(622.0, 1181.0)
    loss = load_study("tcp-udp-queues").specification.measurements["lost"]
    assert clipped(about(0.99, 0.05), loss.quantity.ends).high == 1.0
    assert math.isnan(clipped(exactly(0.99), loss.quantity.ends).high)


def test_the_range_of_a_sum_is_that_of_its_terms() -> None:
    study = load_study("tcp-udp-queues")
    names, measured = study.names(), study.specification.measurements
    ends = {
        "mean(throughput)": (0.0, math.inf),
        "mean(lost)": (0.0, 1.0),
        "1 - mean(lost)": (0.0, 1.0),
        "mean(throughput) - mean(egress)": (-math.inf, math.inf),
        "share(http_time < 3 s)": (0.0, 1.0),
        "2 * mean(lost) + 1": (1.0, 3.0),
    }
    assert {text: range_of_side(parse_side(text, names), measured) for text in ends} == ends


def test_every_share_knows_its_ends_and_what_has_a_sign_has_no_lower_one() -> None:
    below_zero = {name for name, one in QUANTITIES.items() if one.ends[0] < 0}
    assert below_zero == {
        "delay_variation", "ssim", "available_bandwidth_error", "probe_rate_error", "probe_delay", "probe_loss",
        "rate_error",
    }  # fmt: skip
    unbounded = {name for name, one in QUANTITIES.items() if one.unit == "1" and math.isinf(one.ends[1])}
    # Ratios, counts for each train, and processors, of which there can be more than one.
    assert unbounded == {
        "available_bandwidth_error", "probe_rate_error", "rate_error", "probe_disturbances", "processor_time",
    }  # fmt: skip


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
    ways = {"l1": (0.749, 0.751), "l2": (1.0, 1.0)}
    runs: list[Any] = [
        SimpleNamespace(
            run=SimpleNamespace(levels={"line": level}, record={"clock": "wall", "machine": {"name": "m"}}),
            measurements=study.specification.measurements,
            value=lambda aggregate, way=way: way,
            grain=lambda aggregate: None,
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


def test_the_published_means_of_the_class_profiles_are_all_there_in_bytes_of_1024() -> None:
    study = load_study("qos-class-profiles")
    entries = list(zip(study.published(), study.published_sides(), strict=True))
    assert len([one for one, _ in entries if not one.over]) == 56
    of_basic_leaf = {
        (one.table, one.measured): sum(term.factor for term in sides.value)
        for one, sides in entries
        if "profile=basic-leaf)" in one.measured and not one.over
    }
    # 857,241 KB/s of ifstat, and 15,913 of ApacheBench for each of 70 clients, on lines of 10 Gbit/s.
    assert of_basic_leaf == {
        ("Table 4: from the servers into the core", "mean(bandwidth_in, profile=basic-leaf)"): pytest.approx(
            857241.0 * 8192
        ),
        ("Table 4: from the core to the servers", "mean(bandwidth_out, profile=basic-leaf)"): pytest.approx(
            2913.0 * 8192
        ),
        ("Table 5: what each client gets by HTTP", "mean(client_rate, profile=basic-leaf)"): pytest.approx(
            15913.38 * 8192
        ),
        ("Table 5: all that each client got by HTTP, over the five minutes", "mean(client_rate, profile=basic-leaf)"): (
            pytest.approx(4927743.37 * 8000 / 300, rel=1e-5)
        ),
        ("Table 6: the video that each client sees", "mean(video_rate, profile=basic-leaf)"): pytest.approx(
            737060, rel=1e-5
        ),
        (
            "Table 6: all that each client read of its video, over the five minutes",
            "mean(video_read_rate, profile=basic-leaf)",
        ): pytest.approx(25569.0 * 8192 / 300, rel=1e-5),
        ("Table 7: round trips", "mean(round_trip, profile=basic-leaf)"): pytest.approx(30.5e-6),
    }
    # By ApacheBench's own arithmetic the run took 302 s: its totals are of bytes, cut to thousands.
    assert pytest.approx(302.4, abs=0.1) == 4927743.37 * 1000 / (15913.38 * 1024)


def test_the_deviation_here_is_that_of_the_values_within_a_run(tmp_path):
    study = load_study(write(tmp_path))
    one, sides = study.published()[0], study.published_sides()[0]
    given = {"mean": (1.4e-3, 1.6e-3), "std": (0.2e-3, 0.4e-3)}
    runs: list[Any] = [
        SimpleNamespace(
            run=SimpleNamespace(levels={"line": "l1"}, record={"clock": "wall", "machine": {"name": "m"}}),
            measurements=study.specification.measurements,
            value=lambda aggregate, place=place: given[aggregate.function][place],
            grain=lambda aggregate: None,
            fingerprint=(place,),
        )
        for place in range(2)
    ]
    assert published_result(one, sides, "s", runs, 0.95).spread == pytest.approx(0.3e-3)
    # None was published: none stands beside it.
    bare = replace(sides, deviation=())
    assert math.isnan(published_result(one, bare, "s", runs, 0.95).spread)
