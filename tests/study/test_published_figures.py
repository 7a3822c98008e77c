"""Published figures: how their table is read, what is refused, and when a measured figure is closer."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
from study_networks import TWO_RATES
from twinnet.stats import Interval
from twinnet.study.closeness import ComparedFigure, _changes, how_close
from twinnet.study.published_figures import Figure, PrintedValue, read_figures
from twinnet.study.resolution import Study, load_study
from twinnet.yaml_source import SourceError

STUDY = """\
study: small
title: A line
question: How far apart are packets?
NETWORK
traffic:
  - {name: video, app: rtp, from: [h1], to: h2, port: 5004, duration: 1 s}
measurements:
  distance: {of: gap}
reference:
  file: figures.csv
  source: Somebody, somewhere
  truth: real
  rival: other
  select: {line: "l{mbit}"}
  baseline: {line: l1}
  metrics:
    delta: {measurement: distance, unit: ms, physics: {min: One serialisation.}}
""".replace("NETWORK\n", TWO_RATES)
TABLE = """\
# A table of figures.
mbit,metric,network,mean,min,variance
1,delta,real,9.5,1.10,4
1,delta,other,9.1,<0.5,5
2,delta,real,9.0,0.55,
2,delta,other,9.0,0.80,6
"""


def small(folder: Path, study: str = STUDY, table: str | None = TABLE) -> Study:
    (folder / "study.yaml").write_text(study, encoding="utf-8")
    if table is not None:
        (folder / "figures.csv").write_text(table, encoding="utf-8")
    return load_study(folder)


def figures(study: Study) -> list[Figure]:
    reference = study.specification.reference
    assert reference is not None
    return read_figures(reference, study.beside[reference.file], study.specification)


def test_figures_are_in_the_unit_of_the_measurement_and_a_variance_in_its_square(tmp_path: Path) -> None:
    found = {(one.levels["line"], one.statistic): one for one in figures(small(tmp_path))}
    assert found["l1", "mean"].truth == PrintedValue("9.5", 0.0095)
    assert found["l1", "variance"].rival.value == pytest.approx(5e-6)
    below = found["l1", "min"].rival
    assert (below.text, below.value, below.below) == ("<0.5", None, pytest.approx(0.0005))
    assert found["l2", "variance"].truth == PrintedValue("", None)


def test_a_bare_zero_is_as_fine_as_what_was_printed_beside_it(tmp_path: Path) -> None:
    table = TABLE.replace("0.55,", "0,").replace("9.0,0.80,6", "9.05,0,6")
    zero = next(one for one in figures(small(tmp_path, table=table)) if one.truth.text == "0")
    assert (zero.truth.decimals, zero.rival.decimals) == (1, 2)
    # Of 0.0 and 0.00, 0.34 ms is farther; of two whole zeros it would not be told apart.
    assert how_close(zero, 0.34e-3) == "farther"
    assert how_close(zero, 0.004e-3) == "not told apart"


@pytest.mark.parametrize(
    ("study", "table", "told"),
    [
        (STUDY, None, "figures.csv cannot be read"),
        (STUDY, TABLE.replace("metric,", "measure,"), "no column 'metric'"),
        (STUDY, TABLE.replace("2,delta,real", "3,delta,real"), "figures.csv:5: line has no level 'l3'"),
        (STUDY, TABLE.replace("2,delta,real", "2,delay,real"), "figures.csv:5: the metric 'delay'"),
        (STUDY, TABLE + "2,delta,other,1,1\n", "figures.csv:7: 5 columns; the head has 6"),
        (STUDY, TABLE + "2,delta,other,1,1,1\n", "figures.csv:7: a second row of delta for the network other"),
        (STUDY.replace("l{mbit}", "l{rate}"), TABLE, "no column 'rate' that names the case"),
        (STUDY.replace("measurement: distance", "measurement: distances"), TABLE, "did you mean 'distance'"),
        (STUDY.replace("select: {line:", "select: {lines:"), TABLE, "there is no factor 'lines'"),
        (STUDY.replace("baseline: {line: l1}", "baseline: {line: l9}"), TABLE, "baseline.line: there is no level 'l9'"),
        (STUDY.replace("file: figures.csv", "file: ../figures.csv"), TABLE, "reference.file"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(
    tmp_path: Path, study: str, table: str | None, told: str
) -> None:
    with pytest.raises(SourceError, match=r"study\.yaml") as refused:
        small(tmp_path, study, table)
    assert told in str(refused.value)


def figure(truth: str, rival: str, scale: float = 1.0) -> Figure:
    def printed(text: str) -> PrintedValue:
        below = float(text[1:]) * scale if text[:1] == "<" else None
        return PrintedValue(text, float(text) * scale if text[:1].isdigit() else None, below)

    return Figure("delta", "min", {"line": "l2"}, scale, printed(truth), printed(rival))


@pytest.mark.parametrize(
    ("truth", "rival", "measured", "judged"),
    [
        ("1.11", "1.6", 1.1152, "closer"),
        # The rival may have been 1.345, and the truth 1.195.
        ("1.20", "1.34", 1.363, "farther"),
        # Both are 0.14 from it as they were printed, and what was measured is rounded by nobody.
        ("1.20", "1.34", 1.3401, "not told apart"),
        ("1.20", "1.34", 1.06, "not told apart"),
        ("1.20", "1.34", 1.334, "closer"),
        ("1.20", "1.34", 1.346, "farther"),
        # Zeros were less than half of their digit, as is 0.3 of a whole one.
        ("0", "0", 0.3, "not told apart"),
        ("0.00", "0.00", 0.339, "farther"),
        ("0.00", "0.00", 0.004, "not told apart"),
        # A worse figure that comes to the same when it is rounded.
        ("0.00", "0.01", 0.0149, "not told apart"),
        ("9.9", "10", 10.4, "not told apart"),
        ("9.9", "10.0", 10.04, "not told apart"),
        ("9.9", "10.0", 10.06, "farther"),
        # Less than 0.004 is at least 0.0395 from the truth.
        ("0.044", "<0.004", 0.02, "closer"),
        ("0.044", "<0.004", 0.3, "farther"),
        # The rival was between 0.0395 and 0.0445 from it: which, is not known.
        ("0.044", "<0.004", 0.002, "not told apart"),
        ("<0.01", "0.05", 0.02, "closer"),
        ("<0.01", "<0.01", 5.0, "farther"),
        ("<0.01", "<0.01", 0.0, "not told apart"),
        # At both its ends the rival is farther than we are, but it may have met the truth.
        ("0.005", "<0.010", 0.004, "not told apart"),
        ("<0.01", "many", 0.0, "not comparable"),
        ("", "2", 1.0, "not comparable"),
    ],
)
def test_closeness_is_judged_as_finely_as_the_figures_were_printed(
    truth: str, rival: str, measured: float, judged: str
) -> None:
    assert how_close(figure(truth, rival), measured) == judged
    assert how_close(figure(truth, rival, 1e-3), measured * 1e-3) == judged


def test_changes_take_the_source_out(tmp_path: Path) -> None:
    reference = small(tmp_path).specification.reference
    assert reference is not None

    def compared(level: str, truth: str, rival: str, measured: float) -> ComparedFigure:
        here: dict[str, Any] = {"virtual": Interval(measured, measured, measured, 0.95, "t")}
        levels = {"line": level}
        return ComparedFigure(dataclasses.replace(figure(truth, rival), levels=levels), here, {"virtual": "farther"})

    # Another stream, three times as fast; the line adds 0.4 to the real one, 0.1 to the rival's, 0.38 to ours.
    (one,) = _changes(reference, [compared("l1", "1.00", "1.00", 3.0), compared("l2", "1.40", "1.10", 3.38)])
    assert (one.figure.truth.text, one.figure.rival.text, one.figure.levels) == ("0.40", "0.10", {"line": "l2"})
    assert one.closeness == {"virtual": "closer"}
    assert one.measured["virtual"].estimate == pytest.approx(0.38)


@pytest.mark.parametrize(
    ("truth", "measured", "half", "difference", "word"),
    [
        ("9.5", 9.1, 0.0, -0.4 / 9.5, "as published"),
        ("9.5", 9.0, 0.1, -0.5 / 9.5, "differs"),
        ("9.5", 9.0, 0.6, -0.5 / 9.5, "cannot be told"),
        ("9.5", 9.0, math.nan, -0.5 / 9.5, "cannot be told"),
        # Printed as 0.01, it may be up to 0.015.
        ("0.01", 0.0149, 0.0, 0.49, "as published"),
        ("0", 0.3, 0.0, None, "as published"),
        ("0", 0.6, 0.05, None, "differs"),
        ("<0.01", 0.009, 0.0005, None, "bound kept"),
        ("<0.01", 0.02, 0.001, None, "bound broken"),
        ("<0.01", 0.009, 0.002, None, "cannot be told"),
        ("", 0.02, 0.0, None, ""),
    ],
)
def test_the_word_says_whether_a_figure_is_as_published(
    truth: str, measured: float, half: float, difference: float | None, word: str
) -> None:
    low, high = (1e-3 * (measured - half), 1e-3 * (measured + half))
    seen = {"virtual": Interval(measured * 1e-3, low, high, 0.95, "t")}
    row = ComparedFigure(figure(truth, "1", 1e-3), seen, {"virtual": "closer"})
    assert row.word("virtual") == word
    assert row.difference("virtual") == (None if difference is None else pytest.approx(difference))
    assert (row.word("wall"), row.difference("wall")) == ("", None)
