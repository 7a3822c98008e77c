"""The report as one HTML page that carries all it needs: it opens without a network, now and in ten years."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from twinnet.report.captures_section import captures_table
from twinnet.report.design import asked_measurements
from twinnet.report.distribution_figures import distribution_figures
from twinnet.report.distribution_section import DISTRIBUTIONS_NOTE, distribution_tables, value_figures
from twinnet.report.level_figures import alike_sentence, level_figures
from twinnet.report.method import method_paragraphs, parameter_rows, traffic_rows
from twinnet.report.naming import label_names, measurement_title
from twinnet.report.network_pictures import network_pictures
from twinnet.report.over_time import figures_of
from twinnet.report.pages import figure_views, render_page
from twinnet.report.panels import Figure
from twinnet.report.published_section import published_figures, published_tables
from twinnet.report.reference_section import reference_figures, reference_view
from twinnet.report.summary import answer, answer_in_words, fidelity_sentences, reason_against, statement_numbers
from twinnet.report.view import Cell, Table, interval_cell
from twinnet.report.wording import (
    common_scale,
    counted,
    value_with_interval,
    worded_effect,
    worded_levels,
    worded_mean,
    worded_p,
    worded_phase,
    worded_span,
    worded_value,
)
from twinnet.results.fidelity import FidelityRecord
from twinnet.study.analysis import Analysis, PhaseMean
from twinnet.study.closeness import compare_with_reference
from twinnet.study.distributions import described
from twinnet.study.machine import machine_of

__all__ = ["html_page", "lead_name", "report_figures"]

_MARKS = {"supported": "✓", "not supported": "✗", "undecided": "?"}
_MOST_PANELS_OVER_TIME = 6


def report_figures(analysis: Analysis) -> list[Figure]:
    """All figures of the report, as files stand beside the page."""
    reference = compare_with_reference(analysis)
    return [
        *figures_of(analysis),
        *level_figures(analysis, reference),
        *distribution_figures(analysis),
        *value_figures(analysis),
        *reference_figures(reference, analysis.specification.factors),
        *published_figures(analysis),
    ]


def lead_figure(analysis: Analysis, over_time: Sequence[Figure], by_level: Sequence[Figure]) -> list[Figure]:
    """The figure that shows the answer: of the quantity that it names; over time if it speaks of a part of the time and
    there are few combinations of levels."""
    few = len(analysis.combinations) <= _MOST_PANELS_OVER_TIME
    for name in asked_measurements(analysis.study):
        at_levels = [one for one in by_level if one.name == f"levels-{name}"]
        in_time = [one for one in over_time if one.name in (name, f"values-{name}")] if few else []
        if in_time or at_levels:
            return [*in_time, *at_levels][:1]
    return [*over_time, *by_level][:1]


def lead_name(analysis: Analysis) -> str | None:
    """The name of the figure that shows the answer, which stands beside the page as a file; `None` without one."""
    chosen = lead_figure(analysis, [*figures_of(analysis), *value_figures(analysis)], level_figures(analysis))
    return chosen[0].name if chosen else None


def html_page(analysis: Analysis, files: Sequence[str] = (), recordings: Mapping[str, str] | None = None) -> str:
    """The page; `files` are the names of figures and tables that stand beside it, `recordings` pages of single runs by
    the names of these."""
    specification = analysis.specification
    reference = compare_with_reference(analysis)
    over_time = [*figures_of(analysis), *value_figures(analysis)]
    by_level = level_figures(analysis, reference)
    distributions = distribution_figures(analysis)
    # Few combinations are read over time; many are compared side by side, and their times can be unfolded.
    few = len(analysis.combinations) <= _MOST_PANELS_OVER_TIME
    lead = lead_figure(analysis, over_time, by_level)
    published = reference_figures(reference, specification.factors)
    groups = [
        lead,
        [*published, *(over_time if few else []), *distributions],
        published_figures(analysis),
        by_level,
        [] if few else over_time,
    ]
    views = [figure_views(figure for figure in group if group is lead or figure not in lead) for group in groups]
    verdicts = answer(analysis)
    words = answer_in_words(analysis)
    missing = len(analysis.planned) - len(analysis.stored) - len(analysis.failed)
    runs = counted(len(analysis.stored) + len(analysis.failed), "run")
    return render_page(
        "study.html.jinja",
        [view for group in views for view in group],
        title=specification.title,
        question=specification.question,
        answer=words or verdicts,
        judged=verdicts if words else "",
        trust=fidelity_sentences(analysis),
        text=specification.text,
        networks=network_pictures(analysis.study),
        lead_figure=views[0][0] if views[0] else None,
        statements=_statements(analysis),
        statements_title=_statements_title(analysis),
        contradictions=specification.contradictions,
        reference=reference_view(reference),
        figures=views[1],
        published_figures=views[2],
        beside=views[3],
        beside_note=alike_sentence(analysis),
        more_figures=views[4],
        means=mean_tables(analysis, analysis.specification.measurements),
        means_note=f"Mean over repetitions [{specification.confidence * 100:g} % confidence interval].",
        distributions=distribution_tables(described(analysis), specification),
        distributions_note=DISTRIBUTIONS_NOTE,
        published=published_tables(analysis),
        differences=_differences(analysis),
        method=method_paragraphs(analysis),
        traffic=_traffic(analysis),
        parameters=_parameters(analysis),
        runs=_runs(analysis, recordings),
        run_pages=_run_pages(analysis, recordings or {}),
        captures=captures_table(analysis),
        runs_title=f"{runs}: how well each kept its schedule",
        missing=f"{counted(missing, 'planned run')} not made yet." if missing else "",
        files=files,
        **_machine(analysis),
    )


def _statements_title(analysis: Analysis) -> str:
    if any(one.statement.source for one in analysis.statements):
        return "What the original study said, and what was seen here"
    return "Statements"


def _statements(analysis: Analysis) -> list[dict[str, Any]]:
    return [
        {
            "verdict": one.verdict,
            "mark": _MARKS[one.verdict],
            "text": one.statement.text,
            "numbers": statement_numbers(analysis, one),
            "source": one.statement.source,
            "why": reason_against(one),
        }
        for one in analysis.statements
    ]


def mean_tables(analysis: Analysis, names: Iterable[str]) -> list[Table]:
    """A table of the means of each of the measurements `names` under all levels."""
    tables: list[Table] = []
    for name in names:
        measurement = analysis.specification.measurements[name]
        means = [one for one in analysis.means if one.measurement == name]
        if not means:
            continue
        scale = common_scale((one.interval.estimate for one in means), means[0].unit)
        names = label_names(analysis.specification, measurement)
        labels = list(dict.fromkeys(one.label for one in means))
        cells: dict[tuple[str, str], dict[str, PhaseMean]] = {}
        for one in means:
            cells.setdefault((worded_levels(one.levels), worded_phase(one.phase)), {})[one.label] = one
        rows = [
            [
                Cell(levels),
                Cell(phase),
                *(
                    interval_cell(worded_mean(row[label], scale, with_unit=False)) if label in row else Cell("")
                    for label in labels
                ),
            ]
            for (levels, phase), row in cells.items()
        ]
        head = ["Levels", "Time", *(f"{names.get(label, label)} ({scale[1]})" for label in labels)]
        layer = f", {measurement.layer} layer" if measurement.is_series else ""
        tables.append(Table(head, rows, 2, measurement_title(name, measurement) + layer, measurement.text))
    return tables


def _differences(analysis: Analysis) -> Table | None:
    rows: list[list[Cell]] = []
    for one in analysis.differences:
        if one.first.interval.estimate == one.second.interval.estimate == 0:
            continue
        measurement = analysis.specification.measurements[one.first.measurement]
        scale = common_scale([one.first.interval.estimate, one.second.interval.estimate], one.first.unit)
        label = label_names(analysis.specification, measurement).get(one.first.label, one.first.label)
        rows.append(
            [
                Cell(f"{measurement_title(one.first.measurement, measurement)}, {label}"),
                Cell(worded_phase(one.first.phase)),
                Cell(" minus ".join(", ".join(side.levels.values()) for side in (one.first, one.second))),
                Cell(value_with_interval(one.interval, one.first.unit, scale)),
                Cell(worded_p(one.adjusted_p)),
                Cell(worded_effect(one.effect.value, one.effect.magnitude)),
            ]
        )
    tests = dict.fromkeys(one.test.name.removesuffix("'s t") for one in analysis.differences)
    test = "within machines" if len(analysis.machines) > 1 else " or ".join(tests)
    head = ["Quantity", "Time", "Levels", "Difference [interval]", f"p ({test}, Holm)", "Hedges' g"]
    return Table(head, rows, 3) if rows else None


def _traffic(analysis: Analysis) -> Table:
    rows = [[Cell(cell) for cell in row] for row in traffic_rows(analysis)]
    return Table(["Traffic", "Path", "What", "When", "Tool"], rows, title="Traffic")


def _parameters(analysis: Analysis) -> Table | None:
    rows = [[Cell(name, code=True), Cell(value), Cell(said)] for name, value, said in parameter_rows(analysis)]
    return Table(["Name", "Value", "Meaning"], rows, title="Parameters") if rows else None


def _runs(analysis: Analysis, recordings: Mapping[str, str] | None = None) -> Table:
    rows: list[list[Cell]] = []
    for run in analysis.stored.values():
        record = run.record["fidelity"]["record"]
        late = record.get("lateness_ns", {})
        worst = [
            worded_value(late[key] / 1e9, "s") if late.get(key) is not None else "" for key in ("p50", "p99", "max")
        ]
        lost = FidelityRecord.from_spec(record).machine_losses
        reasons = "; ".join(run.record["fidelity"]["reasons"])
        cells = (machine_of(run.record), *worst, str(lost), worded_span(run.record["elapsed_s"]), reasons)
        name = Cell(run.id, code=True, link=(recordings or {}).get(run.id, ""))
        rows.append([name, Cell(run.verdict, kind=run.verdict), *map(Cell, cells)])
    for run in analysis.failed:
        message = str(run.record["error"]["message"])
        rows.append(
            [
                Cell(run.id, code=True),
                Cell("failed", kind="invalid"),
                Cell(machine_of(run.record)),
                *[Cell("")] * 5,
                Cell(message),
            ]
        )
    head = ["Run", "Fidelity", "Machine", "Late: median", "99 %", "most", "Lost by overload", "Took", "Why"]
    return Table(head, rows)


def _run_pages(analysis: Analysis, recordings: Mapping[str, str]) -> str:
    """Which runs have a page, and how the others get one; nothing where no run has."""
    if not recordings:
        return ""
    every = len({frozenset(run.levels.items()) for run in analysis.stored.values()})
    few = len(recordings) < every
    which = f"{len(recordings)} of {every} combinations" if few else "each combination"
    why = " (of those whose ports were sampled; 64 pages and 100 MB at most)" if few else ""
    return (
        f"The first run of {which} of levels has a page, to which its name leads{why}. Of any other run it is made by"
    )


def _machine(analysis: Analysis) -> dict[str, Table | None]:
    runs = list(analysis.stored.values())
    if not runs:
        return {"machine": None, "sysctls": None}
    machine, versions = runs[0].record["machine"]["before"], runs[0].record["versions"]
    loads = [run.record["machine"][when]["load_1min"] for run in runs for when in ("before", "after")]
    cores = f"{machine['cpu_model']}, {counted(machine['cores'], 'core')}"
    facts = [
        ("Kernel", f"{machine['system']} {machine['kernel']} ({machine['architecture']})"),
        ("Processor", f"{cores}{', virtual' if machine['virtualised'] else ''}"),
        ("Governor", str(machine["governor"] or "not reported by the kernel")),
        ("Load (1 min)", f"{min(loads):.2f} to {max(loads):.2f} before and after runs"),
        ("Versions", ", ".join(f"{name} {version}" for name, version in versions.items() if version)),
    ]
    names = sorted({machine_of(run.record) for run in runs})
    facts.insert(0, ("Name", ", ".join(names)))
    if len(names) > 1:
        note = f"The runs were made on {len(names)} machines; what follows is of {machine_of(runs[0].record)}."
        facts.insert(1, ("Note", f"{note} run.json of each run tells its machine."))
    sysctls = [(name, str(value)) for name, value in machine["sysctls"].items() if value is not None]
    return {
        "machine": Table(["", ""], [[Cell(name), Cell(value)] for name, value in facts]),
        "sysctls": Table(["Setting", "Value"], [[Cell(name, code=True), Cell(value)] for name, value in sysctls]),
    }
