"""The results of a study as tables, figures and text."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl
from rich.console import Console

from twinnet.errors import BadValue, did_you_mean
from twinnet.report.chosen import chosen_figure, figure_titles
from twinnet.report.console import text_console
from twinnet.report.design import Choice
from twinnet.report.drawn import matplotlib_figure
from twinnet.report.summary import (
    answer,
    answer_in_words,
    compared_rows,
    fidelity_sentences,
    print_summary,
    statement_numbers,
)
from twinnet.report.tables import means_frame, runs_frame, series_frame
from twinnet.report.wording import worded_mean, worded_phase
from twinnet.report.write import write_report
from twinnet.results.shown import html_section
from twinnet.results.tables import TABLES, unit_of_column
from twinnet.study.comparison import Comparison, compare_results
from twinnet.study.consent import CodeNotRun
from twinnet.study.predicate import parse_side
from twinnet.study.sound_aggregates import check_aggregate
from twinnet.study.store import stored_table
from twinnet.study.verdict import evaluate_side

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

    from twinnet.stats import Interval
    from twinnet.study.analysis import Analysis

__all__ = ["StudyComparison", "StudyResults"]

_MM_OF_AN_INCH = 25.4


class StudyResults:
    """The results of a study's runs, from :func:`twinnet.studies.run` or :func:`twinnet.results.load`.

    Tables are polars tables. Quantities are in bit/s, s and shares of 1, or in the unit that the column's name or the
    column ``unit`` names; :meth:`columns` lists them, and docs/reference/results.md says what each means. In a notebook
    the object shows its answer.
    """

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    @property
    def study(self) -> str:
        """The study's name."""
        return self._analysis.specification.study

    @property
    def folder(self) -> Path:
        """The folder in which the results are stored."""
        return self._analysis.store.folder

    @property
    def answer(self) -> str:
        """The study's answer with what was measured, where it has one, and how many statements are supported."""
        return f"{answer_in_words(self._analysis)} {answer(self._analysis)}".strip()

    @property
    def fidelity(self) -> str:
        """The trust that the numbers deserve, in words: the runs' verdicts, with the reasons."""
        return "\n".join(fidelity_sentences(self._analysis))

    @cached_property
    def statements(self) -> pl.DataFrame:
        """A row for each statement: ``id``, ``statement``, ``verdict`` (supported, not supported, undecided), and the
        ``numbers`` that it rests on, with units."""
        rows = [
            {
                "id": one.statement.id,
                "statement": one.statement.text,
                "verdict": one.verdict,
                "numbers": "; ".join(statement_numbers(self._analysis, one)),
            }
            for one in self._analysis.statements
        ]
        return pl.DataFrame(rows, schema=dict.fromkeys(("id", "statement", "verdict", "numbers"), pl.String))

    @cached_property
    def means(self) -> pl.DataFrame:
        """A row for each measurement, combination of levels, label and phase: ``mean``, its confidence interval ``low``
        to ``high``, the ``unit`` of all three, how many ``repetitions``, and their ``values``."""
        return means_frame(self._analysis)

    def value(self, text: str) -> Interval:
        """Return what `text`, one side of a check of a study file, measures: the estimate with its confidence interval,
        in the unit of the measurement (bit/s, s, shares of 1), such as
        ``"p99(delay[flow=voice], during=[5 s, 20 s], queue=codel)"``.

        Raises
        ------
        BadValue
            The text cannot be read, or asks for what the study does not measure; or no run has a value.
        """
        try:
            side = parse_side(text, self._analysis.study.names())
            for term in side:
                if term.aggregate is not None:
                    check_aggregate(self._analysis.specification, term.aggregate)
            found = evaluate_side(side, self._analysis.used, self._analysis.specification.confidence)
        except CodeNotRun:
            raise
        except (ValueError, LookupError) as error:
            raise BadValue(str(error.args[0]), "docs/reference/study-files.md has the language of checks") from None
        return found.interval

    @cached_property
    def series(self) -> pl.DataFrame:
        """Throughputs over time: ``mean_bps`` with its confidence band ``low_bps`` to ``high_bps`` by ``start_s``."""
        return series_frame(self._analysis)

    @cached_property
    def runs(self) -> pl.DataFrame:
        """A row for each finished run: levels, repetition, seed, when, how long (``elapsed_s``), fidelity, reasons."""
        return runs_frame(self._analysis)

    @property
    def twin(self) -> pl.DataFrame | None:
        """Of ``twinnet twin``: a row for each metric on both clocks; ``None`` of a study on one clock."""
        path = self.folder / "twin.parquet"
        return stored_table(path, "twin") if path.is_file() else None

    @cached_property
    def failures(self) -> pl.DataFrame:
        """A row for each run that failed, with the error's name and message."""
        rows = [{"run": one.id, **one.record["error"]} for one in self._analysis.failed]
        return pl.DataFrame(rows, schema=dict.fromkeys(("run", "name", "message"), pl.String))

    @property
    def flows(self) -> pl.DataFrame:
        """A row for each run, flow and end of it: what that end saw in all."""
        return self.table("flows")

    @property
    def intervals(self) -> pl.DataFrame:
        """A row for each run, flow, end and interval."""
        return self.table("intervals")

    @property
    def packets(self) -> pl.DataFrame:
        """A row for each packet that arrived, of traffic with ``record_packets``."""
        return self.table("packets")

    @property
    def port_samples(self) -> pl.DataFrame:
        """A row for each run, sampled port and interval."""
        return self.table("port_samples")

    @property
    def tcp(self) -> pl.DataFrame:
        """A row for each run, flow of TCP and look at its sender's state, where the study measures that."""
        return self.table("tcp")

    @property
    def fidelity_samples(self) -> pl.DataFrame:
        """A row for each look at how well a run kept its schedule; none on the virtual clock."""
        return self.table("fidelity")

    def table(self, name: str) -> pl.DataFrame:
        """Return a table of all used runs together: ``run``, a column ``factor_NAME`` for each factor, ``repetition``,
        and the table's own columns.

        Parameters
        ----------
        name
            ``flows``, ``intervals``, ``packets``, ``port_samples``, ``tcp`` or ``fidelity``.
        """
        self._check_table(name)
        frames = [
            one.run.table(name).select(
                pl.lit(one.run.id).alias("run"),
                *(pl.lit(level).alias(f"factor_{factor}") for factor, level in one.run.levels.items()),
                pl.lit(one.run.repetition).alias("repetition"),
                pl.all(),
            )
            for one in self._analysis.used
        ]
        return pl.concat(frames, how="vertical_relaxed") if frames else pl.DataFrame(schema=TABLES[name])

    def columns(self, name: str) -> pl.DataFrame:
        """Return the columns of the table `name`: ``column``, ``type`` and ``unit``."""
        self._check_table(name)
        kinds = TABLES[name]
        return pl.DataFrame(
            {
                "column": list(kinds),
                "type": [str(kind) for kind in kinds.values()],
                "unit": [unit_of_column(column) for column in kinds],
            }
        )

    def _check_table(self, name: str) -> None:
        allowed = [one for one in TABLES if one != "twin"]
        if name not in allowed:
            raise BadValue(f"a run has no table {name!r}", did_you_mean(name, allowed))

    @cached_property
    def figures(self) -> tuple[str, ...]:
        """The names of the figures that :meth:`figure` draws: throughputs over time by the measurement's name, then
        ``levels-NAME``, ``distribution-NAME``, ``values-NAME`` and ``published-NAME``, where there is one."""
        return tuple(figure_titles(self._analysis))

    def figure(
        self,
        name: str | None = None,
        *,
        axis: str | None = None,
        colour: str | None = None,
        panels: Sequence[str] | None = None,
        where: Mapping[str, Sequence[str]] | None = None,
        log: bool | None = None,
        order: Literal["file", "value"] = "file",
        kind: Literal["dots", "grid"] | None = None,
        size_mm: tuple[float, float] | None = None,
        columns: int | None = None,
    ) -> MatplotlibFigure:
        """Return a figure as a matplotlib figure, which a notebook shows and ``savefig`` stores.

        What you leave out follows from the design of the study: the factor that its answer is about stands on the axis,
        the next has colours, the others make panels.

        Parameters
        ----------
        name
            One of :attr:`figures`; default: the first.
        axis, colour, panels
            Factors, or ``label`` for kinds of traffic, ports or flows; ``colour="none"`` for no colours.
        where
            The levels that are shown, by factor; of ``label`` too.
        log
            Whether the axis of values is logarithmic; default: where values differ by more than ten.
        order
            Of the levels on the axis: ``"file"``, that of the study, or ``"value"``, by what was measured.
        kind
            ``"dots"`` or ``"grid"``, a grid of numbers; default: by how many there are.
        size_mm
            Width and height; default: those of a column or a page of a paper, and as high as needed.
        columns
            How many panels stand beside each other.

        Raises
        ------
        BadValue
            There is no such figure, factor or level, or what is chosen has no meaning for the figure.
        """
        if name is None and not self.figures:
            raise BadValue(f"{self.study} has no figure: nothing was measured", "look at .failures")
        chosen = Choice(
            axis,
            colour,
            None if panels is None else tuple(panels),
            {factor: tuple(levels) for factor, levels in (where or {}).items()},
            log,
            order,
            kind,
        )
        made = chosen_figure(self._analysis, self.figures[0] if name is None else name, chosen)
        size = None if size_mm is None else (size_mm[0] / _MM_OF_AN_INCH, size_mm[1] / _MM_OF_AN_INCH)
        return matplotlib_figure(made, size, columns)

    def compare(self, other: StudyResults) -> StudyComparison:
        """Return every mean that both results have, with the difference: `other` less these."""
        return StudyComparison(self, other, compare_results(self._analysis, other._analysis))

    def report(self, folder: str | os.PathLike[str] | None = None) -> Path:
        """Write the page, its figures and tables into `folder` (default: ``report`` beside the runs) and
        return the page's path."""
        return write_report(self._analysis, Path(folder) if folder is not None else self.folder / "report")

    def __str__(self) -> str:
        """Return what ``twinnet run`` says: verdicts, means with units and intervals, fidelity."""
        return _printed(lambda console: print_summary(self._analysis, console))

    def __repr__(self) -> str:
        """Return study, number of runs and folder."""
        return f"<StudyResults {self.study}: {len(self._analysis.stored)} runs in {self.folder}>"

    def _repr_html_(self) -> str:
        specification = self._analysis.specification
        parts: list[str | pl.DataFrame] = [specification.question, self.answer]
        if not self.statements.is_empty():
            parts.append(self.statements.drop("id"))
        rows = [
            {"measurement": one.measurement, **one.levels, "label": one.label, "time": worded_phase(one.phase)}
            | {"mean": worded_mean(one)}
            for one in self._analysis.means
        ]
        parts += [pl.DataFrame(rows, infer_schema_length=None), *fidelity_sentences(self._analysis)]
        return html_section(specification.title, parts)


class StudyComparison:
    """Two results compared: every mean that both have."""

    def __init__(self, first: StudyResults, second: StudyResults, found: Comparison) -> None:
        self.first: StudyResults = first
        self.second: StudyResults = second
        self._found = found

    @cached_property
    def table(self) -> pl.DataFrame:
        """A row for each mean: ``first`` and ``second`` in ``unit``, ``difference`` (second less first) with its
        confidence interval ``low`` to ``high``, ``adjusted_p`` (Welch's test, or the t test within machines where
        several made the runs on the wall clock, adjusted by Holm's method) and ``hedges_g``; the last four are null
        where a side has a single repetition."""
        rows = [
            {"measurement": one.first.measurement}
            | {f"factor_{name}": level for name, level in one.first.levels.items()}
            | {"label": one.first.label, "time": worded_phase(one.first.phase), "unit": one.first.unit}
            | {"first": one.first.interval.estimate, "second": one.second.interval.estimate}
            | {"difference": one.difference.estimate}
            | {"low": one.difference.low if one.test is not None else None}
            | {"high": one.difference.high if one.test is not None else None}
            | {"adjusted_p": one.adjusted_p, "hedges_g": None if one.effect is None else one.effect.value}
            for one in self._found.compared
        ]
        frame = pl.DataFrame(rows, infer_schema_length=None)
        return frame.with_columns(pl.col("low", "high", "adjusted_p", "hedges_g").cast(pl.Float64))

    @property
    def only_in_one(self) -> tuple[int, int]:
        """The number of means that only the first has, and that only the second has: other levels or durations."""
        return self._found.only_first, self._found.only_second

    def _worded(self) -> pl.DataFrame:
        head = ("quantity", "levels", "time", "first", "second", "difference", "n", "p", "effect (g)")
        return pl.DataFrame(compared_rows(self._found), schema=dict.fromkeys(head, pl.String), orient="row")

    def __str__(self) -> str:
        """Return the comparison as aligned text, with units."""
        from twinnet.report.text_table import table

        worded = self._worded()
        warning = f"\n{self._found.warning}" if self._found.warning else ""
        return table(worded.columns, [list(row) for row in worded.rows()]) + warning

    def _repr_html_(self) -> str:
        return html_section(f"{self.first.folder} and {self.second.folder}", [self._worded()])


def _printed(write: Callable[[Console], None]) -> str:
    text = io.StringIO()
    write(text_console(text, width=120, coloured=False))
    return text.getvalue().strip("\n")
