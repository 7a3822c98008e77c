"""Published values beside measured ones: how they are worded, counted and drawn, and what the queues' own run says."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from twinnet.cli import run as command_line
from twinnet.report.drawn import matplotlib_figure
from twinnet.report.published_section import count_words, published_figures, published_rows, published_sentence
from twinnet.report.wording import common_scale
from twinnet.stats import Interval
from twinnet.study.analysis import Analysis, analyse
from twinnet.study.measured_quantity import ABOVE_ZERO, SHARE_LESS_ONE
from twinnet.study.published_results import PublishedResult
from twinnet.study.specification import Published
from twinnet.study.store import ResultStore


def beside(
    value: float,
    measured: Interval | None,
    unit: str = "bit/s",
    sense: Literal["exact", "about", "below", "above"] = "exact",
    ends: tuple[float, float] = ABOVE_ZERO,
    top: float = math.nan,
    deviation: float = math.nan,
    spread: float = math.nan,
) -> PublishedResult:
    entry = Published(text="one", table="A table", source="b", value="1", measured="c", sense=sense)
    return PublishedResult(entry, value, deviation, measured, 3, unit, "no run", top, ends, spread)


def about(value: float, half: float) -> Interval:
    return Interval(value, value - half, value + half, 0.95, "t")


def analysis_of(*results: PublishedResult) -> Any:
    return SimpleNamespace(published=list(results))


@pytest.mark.parametrize(
    ("result", "row"),
    [
        (
            beside(500e6, about(622e6, 1181e6)),
            ("one", "500 Mbit/s", "622 [0, 1803] Mbit/s", "+24.4 %", "cannot be told"),
        ),
        (
            beside(10e6, about(1.82e6, 0.2e6), sense="below"),
            ("one", "below 10.0 Mbit/s", "1.82 [1.62, 2.02] Mbit/s", "", "bound kept"),
        ),
        (
            beside(130e6, about(1.03e9, 0.01e9), sense="about"),
            ("one", "about 0.130 Gbit/s", "1.03 [1.02, 1.04] Gbit/s", "+692 %", "differs"),
        ),
        (
            beside(122e6, about(130e6, 1e6), top=138e6),
            ("one", "122.0 to 138.0 Mbit/s", "130.0 [129.0, 131.0] Mbit/s", "", "within the published range"),
        ),
        # Of both units one would have no digits of the other.
        (
            beside(30e-6, about(110e-3, 1e-3), "s"),
            ("one", "30.0 µs", "110.0 [109.0, 111.0] ms", "+366567 %", "differs"),
        ),
        # Deviations stand beside each other, in the units of their means.
        (
            beside(7e6, about(7.1e6, 0.1e6), deviation=0.46e6, spread=0.03e6),
            ("one", "7.00 Mbit/s ± 0.460 Mbit/s", "7.10 [7.00, 7.20] Mbit/s ± 0.030 Mbit/s", "+1.43 %", "as published"),
        ),
        (beside(1e6, None), ("one", "1.00 Mbit/s", "not measured: no run", "", "")),
    ],
)
def test_a_published_value_is_worded_as_it_was_meant(result: PublishedResult, row: tuple[str, ...]) -> None:
    assert published_rows([result]) == [row]


def test_all_that_is_said_is_counted() -> None:
    found = [
        beside(1.0, about(1.0, 0.01)),
        beside(1.0, about(9.0, 0.1)),
        beside(1.0, about(9.0, 9.0)),
        beside(1.0, None),
    ]
    assert count_words(found) == {"as published": 1, "differs": 1, "cannot be told": 1, "not measured": 1}
    assert published_sentence(analysis_of(*found)) == (
        "Of 4 published figures: 1 as published, 1 differ, 1 cannot be told, 1 not measured."
    )


def test_what_is_below_zero_is_drawn() -> None:
    shares = [beside(-0.6, about(-0.01, 0.05), "1", ends=SHARE_LESS_ONE), beside(3.25, about(0.36, 0.1), "1")]
    (figure,) = published_figures(analysis_of(*shares))
    low, high = matplotlib_figure(figure).axes[0].get_xlim()
    values = [value for line in figure.panels[0].lines for value in line.mean]
    assert (min(values), max(values)) == pytest.approx((-60, 325))
    assert low < min(values) and max(values) < high


def test_shares_above_another_that_are_far_apart_are_drawn_as_ratios() -> None:
    entry = Published(text="one", table="A table", source="b", value="1", measured="c", over="d")
    pairs = ((-0.235, about(61.39, 10.8)), (-0.17, about(-0.834, 0.001)))
    results = [PublishedResult(entry, value, math.nan, m, 3, "1", "", math.nan, SHARE_LESS_ONE) for value, m in pairs]
    (figure,) = published_figures(analysis_of(*results))
    published, here = figure.panels[0].lines
    assert (figure.y_title, figure.log) == ("ratio", True)
    assert list(published.mean) == pytest.approx([0.765, 0.83])
    assert list(here.mean) == pytest.approx([62.39, 0.166])
    assert figure.y_low < 0.166 and figure.y_top > 73.2


def test_a_bound_is_drawn_with_all_that_it_permits_and_a_range_with_its_ends() -> None:
    mixed = [beside(10e6, about(2e6, 1e6), sense="below"), beside(12e6, about(13e6, 1e6), top=14e6)]
    (figure,) = published_figures(analysis_of(*mixed))
    published, _ = figure.panels[0].lines
    assert figure.cases == ("one (below)", "one")
    assert [tuple(values) for values in (published.mean, published.low, published.high)] == [
        (10, 13),
        (0, 12),
        (10, 14),
    ]


@pytest.mark.parametrize(
    ("values", "unit", "named"),
    [
        ([1e9, 2e6], "bit/s", "Mbit/s"),
        ([2e9, 5e8], "bit/s", "Gbit/s"),
        ([1.5, 5e-3], "s", "ms"),
        # No unit has digits of both: that of the largest stays.
        ([2e9, 3.0], "bit/s", "Gbit/s"),
        ([5e6, 0.0], "bit/s", "Mbit/s"),
    ],
)
def test_a_unit_is_one_in_which_the_least_value_has_digits(values: list[float], unit: str, named: str) -> None:
    assert common_scale(values, unit)[1] == named


def run_of_queues(folder: Path, *settings: str) -> Analysis:
    changes = [word for setting in settings for word in ("--set", setting)]
    options = ["--clock", "virtual", "--no-report", "--yes", "--out", str(folder)]
    assert command_line(["run", "tcp-udp-queues", *options, *changes]) == 0
    return analyse(ResultStore(folder / "tcp-udp-queues"))


def word_of(analysis: Analysis, table: str, text: str) -> str:
    (one,) = [one for one in analysis.published if (one.published.table, one.published.text) == (table, text)]
    return one.word


def test_queue_0_has_the_whole_line_so_that_http_does_not_starve(tmp_path: Path) -> None:
    rates = ("link_rate=100 Mbit", "queue_rate=51.2 Mbit", "udp_rate=51.2 Mbit")
    times = ("tcp_duration=3 s", "udp_duration=2 s", "interval=250 ms", "http_bytes=500 kB", "repetitions=2")
    found = run_of_queues(tmp_path, *rates, *times)
    (time,) = [one for one in found.published if one.published.text == "In the separate queues"]
    assert time.measured is not None
    # 500 kB are 40 ms of 100 Mbit/s; with 12 kbit/s guaranteed, as without its least rate, it was 2.28 s.
    assert 0.04 < time.measured.estimate < 0.06


@pytest.mark.long
def test_at_a_gigabit_the_published_bounds_are_kept(tmp_path: Path) -> None:
    times = ("tcp_duration=15 s", "udp_duration=10 s", "interval=500 ms", "http_bytes=50 MB", "repetitions=2")
    found = run_of_queues(tmp_path, *times)
    shared = "Throughput in the shared queue"
    assert word_of(found, shared, "UDP, while it is sent") == "bound kept"
    assert word_of(found, shared, "TCP, while UDP is sent") == "bound kept"
    starves = next(one for one in found.statements if one.statement.id == "tcp-starves-in-the-shared-queue")
    assert starves.verdict == "supported" and "0.01 * link_rate" in starves.statement.check
