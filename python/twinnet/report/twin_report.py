"""The report of a twin: the summary for the terminal, the record for `--json`, and the page with its figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from twinnet.report.drawn import draw_figure
from twinnet.report.network_pictures import network_pictures
from twinnet.report.pages import figure_views, render_page
from twinnet.report.panels import Figure
from twinnet.report.reference_section import (
    closeness_sentences,
    reference_figures,
    reference_frame,
    reference_record,
    reference_view,
)
from twinnet.report.summary import VERDICT_MARKS, answer_in_words, merged_reasons, reason_against, statement_numbers
from twinnet.report.twin_figures import twin_figures
from twinnet.report.view import Cell
from twinnet.report.view import Table as PageTable
from twinnet.report.wording import (
    Scale,
    common_scale,
    counted,
    value_with_interval,
    worded_levels,
    worded_phase,
    worded_value,
)
from twinnet.study.analysis import Analysis
from twinnet.study.closeness import ReferenceTable, compare_with_reference
from twinnet.study.congestion_control import controls_in_words
from twinnet.study.store import StoreError
from twinnet.study.twin import Twin, TwinResult
from twinnet.study.twin_table import twin_frame
from twinnet.study.verdict import StatementResult
from twinnet.study.virtual_hosts import has_programs

__all__ = ["print_twin", "twin_answer", "twin_record", "write_twin_report"]

_MARKS = {"agrees": ("✓", "green"), "differs": ("✗", "red"), "cannot tell": ("?", "yellow")}
_MOST_APART = 6
_MOST_REASONS = 4
_DIFFERENCE = "difference [interval]"
_OF_MODEL = "virtual - models"
_HEAD = ("", "metric", "levels", "time", "wall", "virtual", _DIFFERENCE, "allowed", "KS")


def twin_answer(twin: Twin) -> str:
    """The verdicts in one sentence."""
    counts = twin.counts()
    total = sum(counts.values())
    if not total:
        return "There are no finished runs on both clocks yet."
    parts = [f"{name} {count}" for name, count in counts.items() if count]
    return f"Of {total} comparisons between the clocks: {', '.join(parts)}."


def _on_both(twin: Twin) -> list[tuple[StatementResult, StatementResult | None]]:
    """Each statement as the virtual clock decides it, and as this machine does in real time, where runs there can be
    used."""
    here = {one.statement.id: one for one in twin.here.statements} if twin.here.used else {}
    if not twin.virtual.used:
        return []
    return [(one, here.get(one.statement.id)) for one in twin.virtual.statements]


def statements_sentence(twin: Twin) -> str:
    """Say how many statements come out alike on both clocks; empty where the study makes none."""
    both = _on_both(twin)
    if not both:
        return ""
    if not twin.here.used:
        return "No run kept its schedule on this machine, so it decides no statement."
    same = sum(here is not None and here.verdict == virtual.verdict for virtual, here in both)
    if same == len(both):
        return f"All {len(both)} statements come out alike on both clocks."
    return f"{same} of {len(both)} statements come out alike on both clocks."


def _sentences(twin: Twin) -> list[str]:
    """Explain how to read the comparison."""
    said = statements_sentence(twin)
    found = [said] if said else []
    found += [_runs_sentence("wall", twin.wall), *_trust(twin.wall), _runs_sentence("virtual", twin.virtual)]
    found += [_runs_sentence("real", twin.real)] if twin.real.used else []
    found += _whose(twin)
    control = controls_in_words(twin.study)
    found += [control] if control is not None else []
    defaults = [one for one in twin.results if not one.tolerance.stated]
    if defaults:
        found.append(
            f"{len(defaults)} of {len(twin.results)} have the default tolerance of {twin.tolerances.default.text}; the "
            "study can state its own (twin: tolerance:)."
        )
    return found


def _whose(twin: Twin) -> list[str]:
    """Say which difference belongs to the model, and which to the machine."""
    if twin.models is None:
        if has_programs(twin.study.specification):
            return ["Hosts are real on both clocks: what differs between the clocks belongs to the machine."]
        return [
            "Hosts are models on the virtual clock and real ones on the wall clock: what differs may belong to the "
            "model or to the machine."
        ]
    machine = "What differs between the clocks belongs to the machine: hosts are real on both."
    if not twin.models.used:
        return [machine, "There are no runs with model hosts beside them; --models makes them."]
    counts = ", ".join(f"{name} {count}" for name, count in twin.model_counts().items() if count)
    return [
        machine,
        f"What differs between models and real hosts on the virtual clock belongs to the model: {counts}. The column "
        f"'{_OF_MODEL}' shows it.",
    ]


def _with_models(twin: Twin) -> bool:
    return twin.models is not None and bool(twin.models.used)


def _runs_sentence(clock: str, analysis: Analysis) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in analysis.verdict_counts.items() if count) or "none"
    return f"Runs on the {clock} clock: {counts}."


def _trust(analysis: Analysis) -> list[str]:
    """Why runs are not valid: how far what this machine did can be trusted."""
    reasons = merged_reasons(
        [
            reason
            for run in analysis.stored.values()
            if run.verdict != "valid"
            for reason in run.record["fidelity"]["reasons"]
        ]
    )
    more = [f"{counted(len(reasons) - _MOST_REASONS, 'more reason')}."] if len(reasons) > _MOST_REASONS else []
    return [f"{reason}." for reason in reasons[:_MOST_REASONS]] + more


def _head(twin: Twin) -> tuple[str, ...]:
    """The titles of the columns; physical machines have one where they made runs."""
    place = _HEAD.index("virtual") + 1
    more = (*(("real",) if twin.real.used else ()), *(("models",) if _with_models(twin) else ()))
    return (*_HEAD[:place], *more, *_HEAD[place:], *((_OF_MODEL,) if _with_models(twin) else ()))


def _cells(one: TwinResult, with_real: bool, with_models: bool) -> list[str]:
    sides = [one.wall, one.virtual, *([one.real] if with_real else []), *([one.models] if with_models else [])]
    known = [sum(side) / len(side) for side in sides if side]
    scale = common_scale(known, one.unit)
    means = [worded_value(sum(side) / len(side), one.unit, scale) if side else "" for side in sides]
    allowed = "" if math.isnan(one.allowed) else worded_value(one.allowed, one.unit, scale)
    # No p: the intervals and packets of a run depend on each other.
    test = f"{one.test.statistic:.2f}" if one.test else ""
    return [
        f"{one.measurement}, {one.label}",
        worded_levels(one.levels),
        worded_phase(one.phase),
        *means,
        value_with_interval(one.difference, one.unit, scale),
        allowed,
        test,
        *([_model_cell(one, scale)] if with_models else []),
    ]


def _model_cell(one: TwinResult, scale: Scale) -> str:
    if one.of_model is None or one.model_verdict is None:
        return ""
    return f"{_MARKS[one.model_verdict][0]} {value_with_interval(one.of_model, one.unit, scale)}"


def apart_sentence(one: TwinResult) -> str:
    """Return the time at which the clocks part and the fidelity measured there, in words; empty when they do not
    part."""
    parting = one.parting
    if parting is None or parting.first_s is None or one.verdict == "agrees":
        return ""
    said = (
        f"apart from {parting.first_s:g} s, in {parting.share * 100:.0f} % of the intervals, for at most "
        f"{parting.sustained_s:g} s without a break (from {parting.sustained_from_s:g} s); most at "
        f"{parting.worst_s:g} s: wall minus virtual {worded_value(parting.worst_difference, one.unit)}"
    )
    moment = one.moment
    if moment is None or moment.slipped_ms is None:
        return said
    late = "" if moment.lateness_p99_ms is None else f"1 % of the frames late by {moment.lateness_p99_ms:.3g} ms, "
    return (
        f"{said}. Fidelity then: {late}schedule slipped by {moment.slipped_ms:.3g} ms, {moment.lost_frames} frames "
        f"lost, {moment.steal_ms or 0.0:.3g} ms stolen"
    )


def print_twin(twin: Twin, console: Console) -> None:
    """Print the whole comparison."""
    console.print()
    console.print(Text(f"{twin.study.specification.title}: both clocks", style="bold"))
    console.print()
    console.print(Text(twin_answer(twin), style="bold"))
    for sentence in _sentences(twin):
        console.print(Text(sentence))
    rows = Table(box=None, pad_edge=False, header_style="dim")
    head = _head(twin)
    last_number = head.index(_DIFFERENCE)
    for place, title in enumerate(head):
        rows.add_column(title, justify="right" if 4 <= place <= last_number else "left", no_wrap=place == 0)
    for one in twin.results:
        mark, colour = _MARKS[one.verdict]
        rows.add_row(
            Text(f"{mark} {one.verdict}", style=colour),
            *map(Text, _cells(one, bool(twin.real.used), _with_models(twin))),
        )
    reference = compare_with_reference(twin.wall)
    for sentence in closeness_sentences(reference) if reference is not None else ():
        console.print(Text(sentence))
    if both := _on_both(twin):
        console.print()
        console.print(_statements(both))
    console.print()
    console.print(rows)
    whys = Counter(f"{one.verdict}: {one.why}" for one in twin.results if one.why)
    if whys:
        console.print()
    for why, count in whys.most_common():
        console.print(Text(f"{count} {why}."))
    # What differs before what cannot be judged.
    apart = [one for one in sorted(twin.results, key=lambda one: one.verdict != "differs") if apart_sentence(one)]
    for one in apart[:_MOST_APART]:
        where = f"{one.measurement}, {one.label}, {worded_levels(one.levels)}, {worded_phase(one.phase)}"
        console.print(Text(f"{where}: {apart_sentence(one)}.", style="dim"))
    if len(apart) > _MOST_APART:
        console.print(Text(f"{len(apart) - _MOST_APART} more are apart in time; the page and --json say where."))


def _statements(both: Sequence[tuple[StatementResult, StatementResult | None]]) -> Table:
    """The verdicts of both clocks beside each statement."""
    table = Table("virtual clock", "this machine", "", box=None, pad_edge=False, header_style="dim")
    for virtual, here in both:
        table.add_row(*(_verdict(one) for one in (virtual, here)), Text(virtual.statement.text))
    return table


def _verdict(result: StatementResult | None) -> Text:
    if result is None:
        return Text("no run")
    mark, colour = VERDICT_MARKS[result.verdict]
    return Text(f"{mark} {result.verdict}", style=colour)


def _statements_view(twin: Twin) -> list[dict[str, Any]]:
    """The verdicts and numbers of both clocks, for the page."""
    return [
        {
            "text": virtual.statement.text,
            "source": virtual.statement.source,
            "why": next((why for one in (virtual, here) if one is not None and (why := reason_against(one))), ""),
            "sides": [
                {
                    "clock": clock,
                    "verdict": one.verdict if one is not None else "undecided",
                    "mark": VERDICT_MARKS[one.verdict][0] if one is not None else "?",
                    "numbers": statement_numbers(analysis, one) if one is not None else ["no run can be used"],
                }
                for clock, analysis, one in (
                    ("virtual clock", twin.virtual, virtual),
                    ("this machine", twin.here, here),
                )
            ],
        }
        for virtual, here in _on_both(twin)
    ]


def twin_record(twin: Twin) -> dict[str, Any]:
    """The comparison as `--json` prints it: the rows of the table `twin`."""
    return {
        "study": twin.study.name,
        "results": str(twin.store.folder),
        "answer": twin_answer(twin),
        "answer_of_virtual_clock": answer_in_words(twin.virtual),
        "statements": [
            {
                "id": virtual.statement.id,
                "virtual": virtual.verdict,
                "wall": here.verdict if here is not None else None,
            }
            for virtual, here in _on_both(twin)
        ],
        "counts": twin.counts(),
        "model_counts": twin.model_counts() if _with_models(twin) else None,
        "runs": {
            "wall": twin.wall.verdict_counts,
            "virtual": twin.virtual.verdict_counts,
            "real": twin.real.verdict_counts,
            "models": twin.models.verdict_counts if twin.models is not None else {},
        },
        "reference": reference_record(compare_with_reference(twin.wall)),
        "comparisons": twin_frame(twin).to_dicts(),
    }


def write_twin_report(twin: Twin, folder: Path) -> Path:
    """Write `twin.html`, `twin.csv` and the figures into `folder`, and the table `twin` into the store; return the
    page's path.

    Raises
    ------
    StoreError
        There is nothing to compare, or it cannot be written.
    """
    if not twin.results:
        raise StoreError(
            f"{twin.store.folder} holds no finished runs on both clocks", "make them with `twinnet twin` first"
        )
    frame = twin_frame(twin)
    twin.store.write_twin(frame)
    figures = twin_figures(twin)
    reference = compare_with_reference(twin.wall)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = [
            path
            for figure in (*reference_figures(reference, twin.study.specification.factors), *figures)
            for path in draw_figure(figure, folder)
        ]
        if reference is not None:
            reference_frame(reference).write_csv(folder / "published.csv")
            written.append(folder / "published.csv")
        frame.write_csv(folder / "twin.csv")
        written.append(folder / "twin.csv")
        page = folder / "twin.html"
        partial = folder / ".twin.html.partial"
        text = _page(twin, figures, reference, [path.name for path in written])
        partial.write_text(text, encoding="utf-8")
        partial.replace(page)
    except OSError as error:
        raise StoreError(
            f"the report cannot be written to {folder}: {error.strerror or error}", "choose --out"
        ) from error
    return page


def _comparison(twin: Twin) -> tuple[PageTable, list[tuple[str, str]]]:
    """The table of all comparisons, and of those that need it why, and where they part."""
    words = {"agrees": "supported", "differs": "not-supported", "cannot tell": "undecided"}
    rows: list[list[Cell]] = []
    reasons: list[tuple[str, str]] = []
    for one in twin.results:
        verdict = Cell(f"{_MARKS[one.verdict][0]} {one.verdict}", kind=f"verdict {words[one.verdict]}")
        stated = one.tolerance.text if one.tolerance.stated else f"{one.tolerance.text} (default)"
        cells = _cells(one, bool(twin.real.used), _with_models(twin))
        rows.append([verdict, *map(Cell, cells), Cell(stated)])
        why = "; ".join(part for part in (one.why, apart_sentence(one)) if part)
        if why:
            reasons.append((", ".join(part for part in cells[:3] if part), why))
    titles = (title.capitalize() if title.islower() else title for title in _head(twin)[1:])
    return PageTable(["Verdict", *titles, "Tolerance"], rows), reasons


_NOTE = (
    "Means over repetitions on each clock; the difference is wall minus virtual with its confidence interval (Welch). "
    "They agree when the whole interval lies within what is allowed, and differ when it lies wholly beyond. An "
    "emulation that did not keep its schedule is never held against the model: then nothing can be told. KS is the "
    "largest distance of the distributions of intervals, or of packets that were kept, on both clocks."
)


def _page(twin: Twin, figures: Sequence[Figure], reference: ReferenceTable | None, files: Sequence[str]) -> str:
    comparison, reasons = _comparison(twin)
    views = figure_views([*reference_figures(reference, twin.study.specification.factors), *figures])
    return render_page(
        "twin.html.jinja",
        views,
        title=f"{twin.study.specification.title}: both clocks",
        question=twin.study.specification.question,
        words=answer_in_words(twin.virtual),
        statements=_statements_view(twin),
        answer=twin_answer(twin),
        trust=_sentences(twin),
        networks=network_pictures(twin.study),
        note=_NOTE,
        comparison=comparison,
        reasons=reasons,
        reference=reference_view(reference),
        figures=views,
        files=files,
    )
