"""Figures over the levels of factors: each mean with its interval and its number, or a grid of numbers where there are
many; published values in the same figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from twinnet.report.design import (
    MOST_CELLS,
    MOST_LINES,
    MOST_PANELS,
    Choice,
    Design,
    asked_factors,
    designed,
    is_wide,
    kept_combinations,
)
from twinnet.report.level_words import LABEL, case_words, level_words
from twinnet.report.naming import label_names, measurement_title
from twinnet.report.panels import Figure, Grid, Line, Panel
from twinnet.report.wording import Scale, common_scale, of_runs, value_with_interval, worded_mean, worded_phase
from twinnet.stats import Interval
from twinnet.study.analysis import Analysis, PhaseMean
from twinnet.study.closeness import ReferenceTable
from twinnet.study.specification import StudySpecification
from twinnet.study.window import is_span

__all__ = ["alike_sentence", "level_figure", "level_figures"]

_NEAR = 0.1
"""Values that differ by less than this share are drawn on an axis that does not begin at zero."""


@dataclass(frozen=True)
class _Cell:
    """One mean that is drawn: its place in the design, what was measured, the published value, and of how many runs it
    is, where some failed."""

    levels: Mapping[str, str]
    interval: Interval
    published: float | None
    of: str = ""


def level_figures(analysis: Analysis, reference: ReferenceTable | None = None) -> list[Figure]:
    """A figure of each measurement that differs between levels, drawn by the design of the study."""
    if len(analysis.combinations) < 2:
        return []
    names = [name for name in analysis.specification.measurements if not _is_alike(analysis, name)]
    found = [level_figure(analysis, name, Choice(), reference) for name in names]
    return [figure for figure in found if figure is not None]


def alike_sentence(analysis: Analysis) -> str:
    """Name the measurements of which no figure is drawn, since all levels have the same; empty if there are none."""
    alike: list[str] = []
    for name, measurement in analysis.specification.measurements.items():
        means = _means(analysis, name)
        if len(analysis.combinations) > 1 and means and _is_alike(analysis, name):
            value = worded_mean(means[0])
            value += f" from {worded_phase(means[0].phase)}" if len(analysis.phases_of(name)) > 1 else ""
            alike.append(f"{measurement_title(name, measurement)} ({value})")
    return f"The same at all levels, and not drawn: {', '.join(alike)}." if alike else ""


def _is_alike(analysis: Analysis, name: str) -> bool:
    """True if all means of `name` are the same in the digits that are shown."""
    means = _means(analysis, name)
    scale = common_scale((one.interval.estimate for one in means), means[0].unit) if means else (1.0, "")
    return (
        len({value_with_interval(one.interval, one.unit, scale).partition(" ")[0] + of_runs(one) for one in means}) <= 1
    )


def _means(analysis: Analysis, name: str) -> list[PhaseMean]:
    """The means of `name` that are drawn: of a throughput with several phases those of the first, in which all of its
    traffic runs."""
    phases = analysis.phases_of(name)
    return [one for one in analysis.means if one.measurement == name and one.phase == phases[0]]


def level_figure(
    analysis: Analysis, name: str, choice: Choice, reference: ReferenceTable | None = None
) -> Figure | None:
    """Return the figure of the measurement `name` over the levels; `None` if nothing of it was measured.

    Parameters
    ----------
    choice
        What the reader chooses: factors, levels, order and axis.
    reference
        The study's table of published figures beside what was measured; they are drawn too.

    Raises
    ------
    BadValue
        A factor or level has no such name.
    """
    specification = analysis.specification
    measurement = specification.measurements[name]
    shown = kept_combinations(analysis, choice)
    labels = choice.where.get(LABEL)
    means = [one for one in _means(analysis, name) if one.levels in shown and (labels is None or one.label in labels)]
    if not means:
        return None
    published = _published(analysis, name, reference)
    cells, many = _cells(means, published)
    dimensions = [*specification.levels_run(), LABEL]
    levels_of = {
        dimension: list(dict.fromkeys(cell.levels[dimension] for cell in cells)) for dimension in dimensions
    }  # fmt: skip
    design = designed(asked_factors(analysis.study), {one: len(levels) for one, levels in levels_of.items()}, choice)
    if choice.order == "value":
        levels_of[design.axis].sort(key=lambda level: _mean_at(cells, design.axis, level))
    words = {one: level_words(specification.factors[one]) for one in specification.levels_run()}
    words[LABEL] = label_names(specification, measurement)
    scale = common_scale((cell.interval.estimate for cell in cells), means[0].unit)
    title = measurement_title(name, measurement)
    phased = len(analysis.phases_of(name)) > 1 or is_span(measurement.window)
    caption = (measurement.text or title).rstrip(".") + (f" from {worded_phase(means[0].phase)}" if phased else "")
    caption += ": mean over repetitions"
    if many:
        counted_ones = f"{many} {'ports' if measurement.is_of_ports else 'flows'}"
        caption += f" and {counted_ones}, and from the least to the greatest of these."
    elif any(math.isfinite(cell.interval.low) for cell in cells):
        caption += f" with its {specification.confidence * 100:g} % confidence interval."
    else:
        caption += "."
    size = len(levels_of[design.axis]) * (len(levels_of[design.colour]) if design.colour else 1)
    is_grid = bool(design.colour) and size > MOST_CELLS if choice.kind is None else choice.kind == "grid"
    made = _Drawing(cells, design, levels_of, words, scale)
    figure = made.grid() if is_grid else made.dots(choice.log)
    drawn = (design.axis, design.colour) if design.colour else (design.axis,)
    texts = [f"{one}: {text}" for one in drawn if (text := _text(specification, one))]
    return _named(figure, f"levels-{name}", title, " ".join([caption, *texts]) + made.note)


def _text(specification: StudySpecification, dimension: str) -> str:
    """What the study says of a factor, as a sentence; empty if it says nothing."""
    text = specification.factors[dimension].text.strip() if dimension in specification.factors else ""
    return text if not text or text.endswith((".", "?")) else f"{text}."


def _named(figure: Figure, name: str, title: str, caption: str) -> Figure:
    return Figure(
        name, title, caption, figure.y_title, figure.y_top, figure.end_s, figure.panels, (), "", figure.cases,
        figure.y_low, figure.headings, figure.log,
    )  # fmt: skip


def _cells(means: Sequence[PhaseMean], published: Mapping[tuple[object, str], float]) -> tuple[list[_Cell], int]:
    """A cell for each mean; of many flows one for all of them, and how many they are."""
    labels = dict.fromkeys(one.label for one in means)
    if len(labels) <= MOST_LINES:
        return [
            _Cell(
                {**one.levels, LABEL: one.label}, one.interval, _published_at(published, one, len(labels)), of_runs(one)
            )
            for one in means
        ], 0
    groups: dict[tuple[tuple[str, str], ...], list[PhaseMean]] = {}
    for one in means:
        groups.setdefault(tuple(one.levels.items()), []).append(one)
    cells: list[_Cell] = []
    for levels, group in groups.items():
        # Of those with a value; infinite ones are among these.
        values = [one.interval.estimate for one in group if one.samples] or [math.nan]
        known = [value for value in values if math.isfinite(value)] or [math.nan]
        interval = Interval(float(np.mean(values)), min(known), max(known), group[0].interval.level, "range")
        whole = sum(bool(one.samples) and not of_runs(one) for one in group)
        of = "" if whole == len(group) else f" ({whole} of {len(group)} in all runs)"
        cells.append(_Cell({**dict(levels), LABEL: ""}, interval, _published_at(published, group[0], 1), of))
    return cells, len(labels)


def _published_at(published: Mapping[tuple[object, str], float], one: PhaseMean, labels: int) -> float | None:
    levels = frozenset(one.levels.items())
    return published.get((levels, one.label), published.get((levels, "")) if labels == 1 else None)


def _published(analysis: Analysis, name: str, reference: ReferenceTable | None) -> dict[tuple[object, str], float]:
    """What was published of the measurement `name`, by levels and label; the label is empty where none was named."""
    found: dict[tuple[object, str], float] = {}
    shown = analysis.specification.measurements[name].function
    filters = {chosen: label for label, chosen in analysis.labels(name)}
    whole = len(analysis.phases_of(name)) == 1
    if whole and not analysis.makes_no_claims:
        for one, sides in zip(analysis.study.published(), analysis.study.published_sides(), strict=True):
            if one.sense in ("below", "above") or one.to:
                continue
            term = sides.measured[0] if len(sides.measured) == 1 and not sides.over else None
            aggregate = term.aggregate if term is not None and term.factor == 1 else None
            if aggregate is None or aggregate.measurement != name or aggregate.during_s is not None:
                continue
            if (aggregate.function, aggregate.bound) != (shown.name, shown.bound):
                continue
            label = filters.get(aggregate.filters, "")
            found[frozenset(aggregate.levels), label] = sum(number.factor for number in sides.value)
    if reference is not None and shown.name == "mean":
        for row in reference.rows:
            figure = row.figure
            is_this = reference.reference.metrics[figure.metric].measurement == name
            if is_this and figure.statistic == "mean" and figure.truth.value is not None:
                found[frozenset(figure.levels.items()), ""] = figure.truth.value
    return found


def _mean_at(cells: Sequence[_Cell], dimension: str, level: str) -> float:
    values = [cell.interval.estimate for cell in cells if cell.levels[dimension] == level]
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.inf


@dataclass
class _Drawing:
    """The cells of one figure, arranged by its design.

    Attributes
    ----------
    note
        Sentences that the caption needs for what was drawn.
    """

    cells: Sequence[_Cell]
    design: Design
    levels: Mapping[str, list[str]]
    words: Mapping[str, Mapping[str, str]]
    scale: Scale
    note: str = ""

    def _panels(self) -> list[tuple[str, list[_Cell]]]:
        """The title of each panel and its cells."""
        panels: dict[tuple[str, ...], list[_Cell]] = {}
        for cell in self.cells:
            panels.setdefault(tuple(cell.levels[name] for name in self.design.panels), []).append(cell)
        if len(panels) > MOST_PANELS:
            self.note += f" Shown are {MOST_PANELS} of {len(panels)} panels; `twinnet figure` draws the others."
        found: list[tuple[str, list[_Cell]]] = []
        for key, cells in list(panels.items())[:MOST_PANELS]:
            levels = dict(zip(self.design.panels, key, strict=True))
            found.append((case_words(levels, self.design.panels, self.words), cells))
        return found

    def _word(self, dimension: str, level: str) -> str:
        return self.words.get(dimension, {}).get(level, level)

    def _words(self, cell: _Cell, with_unit: bool) -> str:
        text = value_with_interval(cell.interval, "", self.scale, with_unit) + cell.of
        return text if cell.published is None else f"{text} ({self._number(cell.published)})"

    def _number(self, value: float) -> str:
        return "∞" if math.isinf(value) else value_with_interval(_exact(value), "", self.scale, with_unit=False)

    def grid(self) -> Figure:
        """Numbers in rows and columns, the dimension with more levels in rows."""
        rows, columns = self.design.axis, self.design.colour or LABEL
        if len(self.levels[columns]) > len(self.levels[rows]):
            rows, columns = columns, rows
        panels: list[Panel] = []
        for title, cells in self._panels():
            by_place = {(cell.levels[rows], cell.levels[columns]): cell for cell in cells}
            beside = [level for level in self.levels[rows] if any(place[0] == level for place in by_place)]
            above = [level for level in self.levels[columns] if any(place[1] == level for place in by_place)]
            here = [[by_place.get((row, column)) for column in above] for row in beside]
            grid = Grid(
                tuple(self._word(rows, row) for row in beside),
                tuple(self._word(columns, column) for column in above),
                np.array([[math.nan if one is None else self._drawn(one) for one in row] for row in here]),
                tuple(tuple("" if one is None else self._short(one) for one in row) for row in here),
                tuple(tuple("not measured" if one is None else self._words(one, True) for one in row) for row in here),
            )
            panels.append(Panel(title, grid=grid))
        self._tell_published()
        if any(cell.of for cell in self.cells):
            self.note += " *: some runs have no value, or an infinite one."
        return Figure("", "", "", self.scale[1], 1.0, 1.0, tuple(panels))

    def _drawn(self, cell: _Cell) -> float:
        """The estimate in the figure's unit."""
        return cell.interval.estimate / self.scale[0]

    def _short(self, cell: _Cell) -> str:
        text = self._number(cell.interval.estimate) + ("*" if cell.of else "")
        return text if cell.published is None else f"{text} ({self._number(cell.published)})"

    def _tell_published(self) -> None:
        if any(cell.published is not None for cell in self.cells):
            self.note += " In brackets: as published."

    def dots(self, log: bool | None) -> Figure:
        """A point for each cell in a row of its own, with its words to the left and its number to the right."""
        design = self.design
        cases: list[str] = []
        headings: list[int] = []
        places: dict[tuple[str, str], int] = {}
        colours = self.levels[design.colour] if design.colour else [""]
        for level in self.levels[design.axis]:
            if design.colour:
                headings.append(len(cases))
                cases.append(self._word(design.axis, level))
            for colour in colours:
                places[level, colour] = len(cases)
                cases.append(self._word(design.colour, colour) if design.colour else self._word(design.axis, level))
        panels: list[Panel] = []
        shown = self._without_dull(self._panels())
        for title, cells in shown:
            at = [
                (places[cell.levels[design.axis], cell.levels[design.colour] if design.colour else ""], cell)
                for cell in cells
            ]
            lines = [line for colour in colours for line in self._lines(colour, at)]
            panels.append(Panel(title, tuple(lines), numbers={place: self._words(cell, False) for place, cell in at}))
        self._tell_published()
        estimates = [self._drawn(cell) for cell in self.cells]
        is_log = is_wide(estimates) if log is None else log
        if is_log and 0 in estimates:
            self.note += " Zeros stand at the left end."
        low, high = self._ends([cell for _, cells in shown for cell in cells], is_log)
        tops = [self._ends(cells, is_log) for _, cells in shown]
        if not is_log and len(tops) > 1 and is_wide(top for _, top in tops):
            panels = [
                Panel(one.title, one.lines, top, bottom, None, one.numbers)
                for one, (bottom, top) in zip(panels, tops, strict=True)
            ]
            self.note += " Each panel has its own axis."
        elif low != 0 and not is_log and low > 0:
            self.note += " The axis does not begin at zero."
        return Figure(
            "", "", "", self.scale[1], high, len(cases) - 0.5, tuple(panels), (), "", tuple(cases), low,
            frozenset(headings), is_log,
        )  # fmt: skip

    def _without_dull(self, panels: list[tuple[str, list[_Cell]]]) -> list[tuple[str, list[_Cell]]]:
        """The panels in which something differs; the caption says what the others hold."""
        dull = {title: {self._words(cell, True) for cell in cells} for title, cells in panels if len(cells) > 1}
        dull = {title: values for title, values in dull.items() if len(values) == 1}
        if not dull or len(dull) == len(panels):
            return panels
        told_apart = "; ".join(f"{title} ({values.pop()})" for title, values in dull.items())
        self.note += f" Not drawn, since all are the same: {told_apart}."
        return [(title, cells) for title, cells in panels if title not in dull]

    def _lines(self, colour: str, at: Sequence[tuple[int, _Cell]]) -> list[Line]:
        here = [(place, cell) for place, cell in at if not colour or cell.levels[self.design.colour] == colour]
        if not here:
            return []
        divisor = self.scale[0]
        name = self._word(self.design.colour, colour) if colour else "here"
        # What is infinite is in the tables.
        mean, low, high = (
            np.array([value / divisor if math.isfinite(value) else math.nan for value in values])
            for values in (
                [cell.interval.estimate for _, cell in here],
                [cell.interval.low for _, cell in here],
                [cell.interval.high for _, cell in here],
            )
        )
        places = np.array([float(place) for place, _ in here])
        lines = [Line(colour or "here", places, mean, low, high, name)]
        known = [(float(place), cell.published / divisor) for place, cell in here if cell.published is not None]
        if known:
            nothing = np.full(len(known), np.nan)
            at_places, values = np.array(known).T
            lines.append(Line(colour or "here", at_places, values, nothing, nothing, "published", hollow=True))
        return lines

    def _ends(self, cells: Sequence[_Cell], log: bool) -> tuple[float, float]:
        """The ends of the axis of values."""
        values = [
            value / self.scale[0]
            for cell in cells
            for value in (cell.interval.estimate, cell.interval.low, cell.interval.high, cell.published)
            if value is not None and math.isfinite(value)
        ]
        if log:
            above = [value for value in values if value > 0] or [1.0]
            return min(above) / 1.5, max(above) * 1.5
        low, high = min(values, default=0.0), max(values, default=1.0)
        span = high - low
        if low >= 0 and (span > _NEAR * high or span == 0):
            return 0.0, high * 1.08 or 1.0
        pad = 0.08 * (span or abs(low))
        return low - pad, high + pad if high > 0 else 0.0


def _exact(value: float) -> Interval:
    return Interval(value, math.nan, math.nan, math.nan, "exact")
