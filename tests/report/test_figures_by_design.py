"""Figures follow from the design of a study: what stands on the axis, what has colours, and what is not drawn."""

from __future__ import annotations

import functools
import importlib
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twinnet as tn
from twinnet.errors import BadValue
from twinnet.report.axis_ticks import log_ticks, log_words
from twinnet.report.colours import colour_of, shades_of
from twinnet.report.design import Choice, asked_factors, designed
from twinnet.report.distribution_figures import _as_one, _places, distribution_figure
from twinnet.report.drawn import matplotlib_figure
from twinnet.report.level_figures import alike_sentence, level_figure
from twinnet.report.level_words import level_words
from twinnet.report.page import lead_name, report_figures
from twinnet.report.panels import Figure, Line, Panel
from twinnet.report.write import write_report
from twinnet.study.analysis import Analysis, analyse
from twinnet.study.resolution import built_in_studies, load_study
from twinnet.study.store import ResultStore

STUDY = """\
study: shapes
title: Lines, loads and queues
question: Where does delay come from?
answer: "At full load a frame takes {mean(delay, load=full)}, at a tenth {mean(delay, load=tenth)}."
clock: virtual
repetitions: 1
settle: 10 ms
drain: 100 ms
parameters:
  rate: {default: 10 Mbit}
  load: {default: 1 Mbit}
network:
  hosts: {h1: , h2: }
  switches: {s1: }
  links:
  - {between: [h1, s1], rate: 1 Gbit}
  - {between: [s1, h2], rate: "${rate}", queue: {kind: fifo, limit_frames: 20}}
factors:
  line:
    text: Rate of the line
    levels:
      r10: {text: 10 Mbit/s, set: {rate: 10 Mbit}}
      r20: {text: 20 Mbit/s, set: {rate: 20 Mbit}}
      r50: {text: 50 Mbit/s, set: {rate: 50 Mbit}}
      r500: {text: 500 Mbit/s, set: {rate: 500 Mbit}}
  load:
    levels:
      tenth: {text: "A tenth: 1 Mbit/s", set: {load: 1 Mbit}}
      half: {text: Half, set: {load: 5 Mbit}}
      most: {text: Most, set: {load: 9 Mbit}}
      full: {text: "More than the slowest line carries, so that it is never idle", set: {load: 11 Mbit}}
traffic:
- {name: stream, app: udp, from: [h1], to: h2, port: 5001, rate: "${load}", payload: 1000 B, duration: 200 ms}
measurements:
  delay: {of: delay}
  reordered: {of: reordering}
  carried: {of: throughput, interval: 50 ms}
published:
- {text: Half, source: Nobody, value: 1 ms, measured: "mean(delay, line=r10, load=half)"}
"""


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    place = tmp_path_factory.mktemp("shapes")
    (place / "study.yaml").write_text(STUDY)
    tn.studies.run(place / "study.yaml", out=place / "out", progress=False)
    return analyse(ResultStore(place / "out" / "shapes"))


SMALL: dict[str, tuple[str, dict[str, str]]] = {
    "mtu-sweep": ("tiny", {}),
    "multimedia-delivery": ("tiny", {"duration": "1 s"}),
    "multimedia-fitted": ("tiny", {}),
    "qos-policies": ("tiny", {"levels.policy": "best-effort basic-cbq openqos"}),
    "qos-class-profiles": ("tiny", {}),
    "tcp-udp-queues": ("tiny", {"clock": "virtual"}),
    "bandwidth-conditions": ("tiny", {}),
}
"""Sizes of built-in studies on the virtual clock that take seconds."""


@pytest.fixture(scope="module", params=SMALL)
def built_in(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    preset, settings = SMALL[request.param]
    place = tmp_path_factory.mktemp(request.param)
    results = tn.studies.run(request.param, preset=preset, settings=settings, out=place, progress=False)
    return analyse(ResultStore(results.folder))


study_of = functools.cache(load_study)


def drawn(analysis: Analysis, name: str, **choice: Any) -> Figure:
    figure = level_figure(analysis, name, Choice(**choice))
    assert figure is not None
    return figure


def test_more_than_a_dozen_cells_are_a_grid_with_its_numbers(shapes: Analysis) -> None:
    grid = drawn(shapes, "delay").panels[0].grid
    assert grid is not None
    assert (grid.rows, grid.columns) == (
        ("A tenth: 1 Mbit/s", "Half", "Most", "More than the slowest line carries"),
        ("10 Mbit/s", "20 Mbit/s", "50 Mbit/s", "500 Mbit/s"),
    )
    # One frame of 1066 bytes with its framing over 10 Mbit/s and over 1 Gbit/s, in ms; the gap behind it is 1 % of it.
    assert grid.values[0, 0] == pytest.approx(1066 * 8 * (1 / 10e6 + 1 / 1e9) * 1e3, rel=0.02)
    assert grid.texts[1][0].endswith(" (1.00)"), "the published value stands in its cell"
    assert all(text for row in grid.texts for text in row)


def test_the_factor_that_the_answer_compares_stands_on_the_axis(shapes: Analysis) -> None:
    assert asked_factors(shapes.study) == ["load", "line"]
    expected = {
        "available-bandwidth": "estimator",
        "bandwidth-conditions": "estimator",
        "mtu-sweep": "size",
        "multimedia-delivery": "case",
        "qos-class-profiles": "profile",
        "qos-policies": "policy",
        "sending-accuracy": "place",
        "sending-fairness": "process",
        "tcp-udp-queues": "queues",
    }
    for name, factor in expected.items():
        assert asked_factors(study_of(name))[0] == factor, name


def test_few_cells_are_points_whose_axis_is_logarithmic_where_levels_differ_by_more_than_ten(shapes: Analysis) -> None:
    chosen = {"load": ("tenth", "full"), "line": ("r10", "r500")}
    figure = drawn(shapes, "delay", where=chosen)
    assert figure.cases == (
        "A tenth: 1 Mbit/s",
        "10 Mbit/s",
        "500 Mbit/s",
        "More than the slowest line carries",
        *figure.cases[1:3],
    )
    assert sorted(figure.headings) == [0, 3]
    assert figure.log
    assert not drawn(shapes, "delay", where=chosen, log=False).log
    near = drawn(shapes, "delay", where={"load": ("tenth", "half"), "line": ("r10",)})
    assert not near.log


def test_a_reader_chooses_axis_colours_panels_levels_and_order(shapes: Analysis) -> None:
    grid = drawn(shapes, "delay").panels[0].grid
    assert grid is not None
    figure = drawn(shapes, "delay", axis="line", colour="none", panels=("load",), order="value", log=False)
    assert [panel.title for panel in figure.panels] == [f"load: {word}" for word in grid.rows]
    assert figure.cases == ("500 Mbit/s", "50 Mbit/s", "20 Mbit/s", "10 Mbit/s")
    means = [float(line.mean[0]) for line in figure.panels[-1].lines]
    assert all(math.isfinite(mean) for mean in means)
    with pytest.raises(BadValue, match="did you mean 'line'"):
        drawn(shapes, "delay", axis="lines")
    with pytest.raises(BadValue, match="line is to stand in two places"):
        drawn(shapes, "delay", axis="line", colour="line")
    with pytest.raises(BadValue, match="load has no level 'ful'"):
        drawn(shapes, "delay", where={"load": ("ful",)})


def test_what_is_the_same_at_all_levels_is_told_and_not_drawn(shapes: Analysis) -> None:
    names = [figure.name for figure in report_figures(shapes)]
    assert "levels-reordered" not in names and "levels-delay" in names
    assert alike_sentence(shapes) == "The same at all levels, and not drawn: Reordered (0 %)."


def test_the_lead_is_of_what_the_answer_tells(shapes: Analysis) -> None:
    assert lead_name(shapes) == "levels-delay"


def test_the_page_has_the_grid_as_a_table(shapes: Analysis, tmp_path: Path) -> None:
    text = write_report(shapes, tmp_path).read_text(encoding="utf-8")
    assert text.count('<table class="grid">') == 2
    grid = drawn(shapes, "delay").panels[0].grid
    assert grid is not None and f'title="{grid.titles[0][0]}"' in text


def test_the_published_value_is_a_hollow_point_of_the_same_colour(shapes: Analysis) -> None:
    figure = drawn(shapes, "delay", where={"line": ("r10",)})
    hollow = [line for line in figure.panels[0].lines if line.hollow]
    assert [(line.time_s.tolist(), line.mean.tolist(), line.label) for line in hollow] == [([1.0], [1.0], "here")]


def test_no_two_of_eight_things_have_one_colour() -> None:
    for labels in (list("abcdefgh"), ["udp", "tcp", "http", "icmp", "rtp", "x", "y", "z"], ["x", "tcp", "y", "z"]):
        assert len({colour_of(label, labels) for label in labels}) == len(labels)


def test_shades_follow_sizes_also_where_they_differ_by_more_than_ten() -> None:
    shades = shades_of(np.array([[-3.0, 0.0, 0.1, 30.0], [math.nan, 1.0, 2.0, 29.0]]))
    assert shades[0, 0] < 0 == shades[1, 0]
    assert 0 <= shades[0, 1] < shades[0, 2] < shades[1, 1] < shades[1, 2] < shades[1, 3] < shades[0, 3] <= 0.6


@pytest.mark.parametrize("name", built_in_studies())
def test_levels_of_built_in_studies_have_short_words_that_tell_them_apart(name: str) -> None:
    for factor in study_of(name).specification.factors.values():
        words = level_words(factor)
        assert len(set(words.values())) == len(words)
        assert max(map(len, words.values())) <= 40
        assert not any(word.endswith("...") for word in words.values())


def test_every_dimension_stands_somewhere() -> None:
    for sizes in itertools.product((1, 2, 3, 20), repeat=3):
        levels: dict[str, int] = dict(zip(("a", "b", "label"), sizes, strict=True))
        design = designed(["a", "b"], levels, Choice())
        stands = {design.axis, design.colour, *design.panels} - {""}
        assert {name for name, size in levels.items() if size > 1} <= stands
        assert len([design.axis, *design.panels]) == len({design.axis, *design.panels})


def boxes(drawing: Any) -> list[Any]:
    """The words that stand in the drawing, with their boxes: titles, ticks, numbers, legends."""
    agg: Any = importlib.import_module("matplotlib.backends.backend_agg")
    canvas = agg.FigureCanvasAgg(drawing)
    canvas.draw()
    texts: list[Any] = [text for legend in drawing.legends for text in legend.get_texts()]
    for axes in drawing.axes:
        if axes.get_visible():
            texts += [axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
            for axis in (axes.xaxis, axes.yaxis):
                low, high = sorted(axis.get_view_interval())
                # Ticks beyond the ends of the axis are there and not drawn.
                ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
                texts += [label for tick in ticks for label in (tick.label1, tick.label2)]
    shown = [text for text in texts if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent(canvas.get_renderer())) for text in shown]


def overlapping(found: list[Any], slanted: set[str]) -> list[tuple[str, str]]:
    """Pairs of words that cover each other by more than a pixel in both directions. `slanted` words beside each other
    have boxes that overlap though the words do not."""
    pairs: list[tuple[str, str]] = []
    for (first, one), (second, other) in itertools.combinations(found, 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        along = min(one.y1, other.y1) - max(one.y0, other.y0)
        if across > 1 and along > 1 and not {first, second} <= slanted:
            pairs.append((first, second))
    return pairs


def check_logarithmic(axis: Any, name: str) -> None:
    """Three numbers at the least, each another, so that a reader can tell the scale."""
    low, high = axis.get_view_interval()
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    words = [tick.label1.get_text() for tick in ticks]
    assert len(words) >= 3 and len(set(words)) == len(words), (name, words)


def check_drawing(figure: Figure) -> None:
    """No words over each other, no colour twice, something in every panel."""
    slanted = {word for panel in figure.panels if panel.grid is not None for word in panel.grid.columns}
    drawing = matplotlib_figure(figure)
    assert overlapping(boxes(drawing), slanted) == [], figure.name
    for axes in drawing.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axes.get_visible() and axis.get_scale() == "log":
                check_logarithmic(axis, figure.name)
    if not figure.cases and not figure.is_grid:
        # One point makes no line.
        assert any(np.isfinite(line.mean).sum() > 1 for panel in figure.panels for line in panel.lines), figure.name
    for panel in figure.panels:
        values = [panel.grid.values] if panel.grid is not None else [line.mean for line in panel.lines]
        assert any(np.isfinite(one).any() for one in values), (figure.name, panel.title)
        seen = {line.label for line in panel.lines}
        assert len({colour_of(label, figure.labels) for label in seen}) == len(seen), (figure.name, panel.title)
        assert len({line.shown for line in panel.lines if not line.hollow}) == len(
            [line for line in panel.lines if not line.hollow]
        )


def test_zeros_on_a_logarithmic_axis_are_named_and_whole() -> None:
    places = np.arange(3.0)
    zeros = Line("mininet", places, np.array([0.0, 2.0, 900.0]), *[np.full(3, np.nan)] * 2)
    figure = Figure(
        "zeros", "", "", "ms", 1350.0, 2.5, (Panel("", (zeros,)),), cases=("a", "b", "c"), y_low=1.33, log=True
    )
    drawing = matplotlib_figure(figure)
    (axes,) = drawing.axes
    words = {label.get_text(): place for place, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)}
    assert words["0"] == 1.33 and axes.get_xlim()[0] < 1.2
    assert "2" not in words and {"10", "100", "1000"} <= set(words)
    check_drawing(figure)


def test_an_axis_of_millions_has_no_factor_at_its_end() -> None:
    cost = Line("hybrid", np.arange(2.0), np.array([358_876.0, 998_134.0]), *[np.full(2, np.nan)] * 2)
    drawing = matplotlib_figure(Figure("cost", "", "", "B", 1.1e6, 1.5, (Panel("", (cost,)),), cases=("a", "b")))
    drawing.canvas.draw()
    (axes,) = drawing.axes
    assert axes.xaxis.get_offset_text().get_text() == ""
    assert "1000000" in {label.get_text() for label in axes.get_xticklabels()}


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(5.5, 16, ["6", "8", "10", "12", "14", "16"]), (0.02, 3, ["0.03", "0.1", "0.3", "1", "3"]),
     (5e-7, 1.2, ["10⁻⁶", "10⁻⁴", "0.01", "1"]), (900, 2100, ["1000", "1200", "1400", "1600", "1800", "2000"])],
)  # fmt: skip
def test_a_logarithmic_axis_has_as_many_numbers_as_can_be_read(low: float, high: float, words: list[str]) -> None:
    assert log_words(log_ticks(low, high)) == words


def test_the_figures_of_built_in_studies_can_be_read(built_in: Analysis) -> None:
    figures = report_figures(built_in)
    assert figures
    for figure in figures:
        check_drawing(figure)


def test_the_figures_of_two_factors_can_be_read(shapes: Analysis) -> None:
    for figure in report_figures(shapes):
        check_drawing(figure)


def test_lines_that_lie_on_one_another_are_drawn_as_one() -> None:
    """Of six lines of one course the last would hide five."""
    course = np.linspace(0, 0.5, 50)
    lines = [("a", course), ("b", course + 0.001), ("c", course + 1), ("d", course)]
    # d is not in the second panel, where a and b are: there it does not lie on them.
    assert _as_one({"x": lines, "y": lines[:2]}) == {"a": ["b"], "c": [], "d": []}
    assert _places(np.array([1.0, 10.0, 100.0]), 1.0, 100.0, True).tolist() == pytest.approx([0, 0.5, 1])
    assert _places(np.array([-1.0, 5.0, 10.0]), 0.0, 10.0, False).tolist() == [0, 0.5, 1]


def test_the_caption_names_the_lines_that_are_drawn_as_one(tmp_path: Path) -> None:
    results = tn.studies.run("multimedia-fitted", preset="tiny", out=tmp_path, progress=False)
    analysis = analyse(ResultStore(results.folder))
    figure = distribution_figure(analysis, "bandwidth", Choice())
    assert figure is not None
    # Bandwidth is what the video sends, whichever line carries it.
    (line,) = figure.panels[0].lines
    assert line.shown == "two hosts, 1 Gbit/s and 5 more"
    assert "On the line of two hosts, 1 Gbit/s lie those of two switches, 10 Mbit/s; two" in figure.caption


def test_points_of_several_lines_in_one_row_do_not_hide_each_other() -> None:
    nothing = np.full(2, np.nan)
    lines = [Line(name, np.array([0.0, 1.0]), np.array([3.0, 3.0]), nothing, nothing) for name in ("a", "b", "c")]
    panel = Panel("equal", tuple(lines))
    moved = [line.time_s.tolist() for line in panel.in_rows()]
    # In their order from top to bottom, and nearer to their own row than to another.
    assert moved[0] < moved[1] < moved[2] and moved[1] == [0.0, 1.0]
    assert moved[2][0] - moved[0][0] == pytest.approx(0.6)
    # One line in each row, and what was published around it, stay in the middle.
    published = Line("a", np.array([0.0, 1.0]), np.array([3.0, 3.0]), nothing, nothing, hollow=True)
    alone = Panel("one", (lines[0], published))
    assert [line.time_s.tolist() for line in alone.in_rows()] == [[0.0, 1.0]] * 2
