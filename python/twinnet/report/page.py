"""The report as one HTML page that carries all it needs: it opens without a network, now and in ten years."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from twinnet.report.distribution_section import distribution_section, value_figures
from twinnet.report.html import figure_sections, footer, table, whole_page
from twinnet.report.method import method_paragraphs, parameter_rows, traffic_rows
from twinnet.report.panels import figures_of
from twinnet.report.reference_section import reference_figures, reference_section
from twinnet.report.summary import answer, fidelity_sentences, statement_numbers
from twinnet.report.wording import (
    Scale,
    common_scale,
    value_with_interval,
    worded_levels,
    worded_p,
    worded_phase,
    worded_span,
    worded_value,
)
from twinnet.results.fidelity import FidelityRecord
from twinnet.study.analysis import Analysis, PhaseMean
from twinnet.study.closeness import compare_with_reference
from twinnet.study.distributions import described

__all__ = ["html_page"]


def html_page(analysis: Analysis, files: Sequence[str] = ()) -> str:
    """The page; `files` are the names of figures and tables that stand beside it."""
    reference = compare_with_reference(analysis)
    figures = figures_of(analysis)
    names = list(analysis.specification.measurements)
    panels: dict[str, Any] = {}
    body = [
        _header(analysis),
        _statements(analysis),
        reference_section(reference),
        *figure_sections(reference_figures(reference), panels),
        *figure_sections([*figures, *value_figures(analysis)], panels, " over time"),
        _means(analysis),
        distribution_section(described(analysis), names),
        _published(analysis),
        _differences(analysis),
        _method(analysis),
        _runs(analysis),
        _machine(analysis),
        footer(files),
    ]
    return whole_page(analysis.specification.title, body, panels)


def _header(analysis: Analysis) -> str:
    trust = "".join(f"<p>{escape(sentence)}</p>" for sentence in fidelity_sentences(analysis))
    text = f"<p>{escape(analysis.specification.text)}</p>" if analysis.specification.text else ""
    failed = f"<p class='invalid'>{len(analysis.failed)} runs failed.</p>" if analysis.failed else ""
    return (
        f"<header><h1>{escape(analysis.specification.title)}</h1>"
        f"<p class='question'>{escape(analysis.specification.question)}</p></header>"
        f"<section class='answer'><p class='lead'>{escape(answer(analysis))}</p>{trust}{failed}</section>{text}"
    )


def _statements(analysis: Analysis) -> str:
    if not analysis.statements:
        return ""
    items: list[str] = []
    for result in analysis.statements:
        numbers = "<br>".join(escape(line) for line in statement_numbers(analysis, result))
        source = f"<div class='note'>{escape(result.statement.source)}</div>" if result.statement.source else ""
        items.append(
            f"<li><span class='verdict {result.verdict.replace(' ', '-')}'>{_mark(result.verdict)} {result.verdict}"
            "</span>"
            f"<div>{escape(result.statement.text)}<div class='numbers'>{numbers}</div>{source}</div></li>"
        )
    return (
        "<section><h2>What the original study said, and what was seen here</h2>"
        f"<ul class='statements'>{''.join(items)}</ul></section>"
    )


def _mark(verdict: str) -> str:
    return {"supported": "✓", "not supported": "✗", "undecided": "?"}[verdict]


def _estimate(mean: PhaseMean, scale: Scale) -> str:
    shown = value_with_interval(mean.interval, mean.unit, scale, with_unit=False)
    number, _, rest = shown.partition(" ")
    return f"{escape(number)} <span class='interval'>{escape(rest)}</span>"


def _means(analysis: Analysis) -> str:
    parts: list[str] = []
    for name, measurement in analysis.specification.measurements.items():
        means = [one for one in analysis.means if one.measurement == name]
        if not means:
            continue
        scale = common_scale((one.interval.estimate for one in means), means[0].unit)
        labels = list(dict.fromkeys(one.label for one in means))
        rows: dict[tuple[str, str], dict[str, PhaseMean]] = {}
        for one in means:
            rows.setdefault((worded_levels(one.levels), worded_phase(one.phase)), {})[one.label] = one
        layer = f", {measurement.layer} layer" if measurement.is_series else ""
        body = [
            [
                escape(levels),
                escape(phase),
                *(_estimate(cells[label], scale) if label in cells else "" for label in labels),
            ]
            for (levels, phase), cells in rows.items()
        ]
        head = ["Levels", "Time", *(f"{escape(label)} ({escape(scale[1])})" for label in labels)]
        parts.append(f"<h3>{escape(name.replace('_', ' ').capitalize())}{layer}</h3>{table(head, body, 2)}")
    if not parts:
        return ""
    percent = f"{analysis.specification.confidence * 100:g} %"
    note = f"<p class='soft'>Mean over repetitions [{percent} confidence interval].</p>"
    return f"<section><h2>Numbers</h2>{note}{''.join(parts)}</section>"


def _published(analysis: Analysis) -> str:
    if not analysis.published:
        return ""
    rows: list[list[str]] = []
    for one in analysis.published:
        scale = common_scale([one.value, one.measured.estimate if one.measured else 0.0], one.unit)
        seen = value_with_interval(one.measured, one.unit, scale) if one.measured else f"not measured: {one.why}"
        rows.append(
            [
                escape(one.published.text),
                worded_value(one.value, one.unit, scale),
                escape(seen),
                escape(one.published.source),
            ]
        )
    return (
        "<section><h2>Published figures beside these</h2>"
        + table(["Quantity", "Published (scaled to this study)", "Measured here", "Source"], rows)
        + "</section>"
    )


def _differences(analysis: Analysis) -> str:
    if not analysis.differences:
        return ""
    rows: list[list[str]] = []
    for one in analysis.differences:
        if one.first.interval.estimate == one.second.interval.estimate == 0:
            continue
        scale = common_scale([one.first.interval.estimate, one.second.interval.estimate], one.first.unit)
        rows.append(
            [
                escape(f"{one.first.measurement}, {one.first.label}"),
                escape(worded_phase(one.first.phase)),
                escape(" minus ".join(", ".join(side.levels.values()) for side in (one.first, one.second))),
                escape(value_with_interval(one.interval, one.first.unit, scale)),
                escape(worded_p(one.adjusted_p)),
                escape(_effect(one.effect.value, one.effect.magnitude)),
            ]
        )
    head = ["Quantity", "Time", "Levels", "Difference [interval]", "p (Welch, Holm)", "Hedges' g"]
    return f"<section><h2>Differences between levels</h2>{table(head, rows, 3)}</section>"


def _effect(value: float, magnitude: str) -> str:
    if abs(value) > 100:
        return f"beyond ±100, {magnitude}"
    return f"{value:.2f}, {magnitude}"


def _method(analysis: Analysis) -> str:
    text = "".join(f"<h3>{escape(title)}</h3><p>{escape(said)}</p>" for title, said in method_paragraphs(analysis))
    traffic = table(
        ["Traffic", "Path", "What", "When", "Tool"], [[escape(cell) for cell in row] for row in traffic_rows(analysis)]
    )
    parameters = parameter_rows(analysis)
    shown = [[f"<code>{escape(name)}</code>", escape(value), escape(said)] for name, value, said in parameters]
    parameter_table = f"<h3>Parameters</h3>{table(['Name', 'Value', 'Meaning'], shown)}" if shown else ""
    return f"<section><h2>Method</h2>{text}<h3>Traffic</h3>{traffic}{parameter_table}</section>"


def _runs(analysis: Analysis) -> str:
    rows: list[list[str]] = []
    for run in analysis.stored.values():
        record = run.record["fidelity"]["record"]
        late = record.get("lateness_ns", {})
        worst = [
            worded_value(late[key] / 1e9, "s") if late.get(key) is not None else "" for key in ("p50", "p99", "max")
        ]
        lost = FidelityRecord.from_spec(record).machine_losses
        reasons = "; ".join(run.record["fidelity"]["reasons"])
        rows.append(
            [f"<code>{escape(run.id)}</code>", f"<span class='{escape(run.verdict)}'>{escape(run.verdict)}</span>"]
            + [escape(cell) for cell in (*worst, str(lost), worded_span(run.record["elapsed_s"]), reasons)]
        )
    for run in analysis.failed:
        message = escape(str(run.record["error"]["message"]))
        rows.append(
            [f"<code>{escape(run.id)}</code>", "<span class='invalid'>failed</span>", "", "", "", "", "", message]
        )
    head = ["Run", "Fidelity", "Late: median", "99 %", "most", "Lost by overload", "Took", "Why"]
    missing = len(analysis.planned) - len(analysis.stored) - len(analysis.failed)
    note = f"<p class='soft'>{missing} planned runs are not made yet.</p>" if missing else ""
    return f"<section><h2>Runs</h2>{table(head, rows)}{note}</section>"


def _machine(analysis: Analysis) -> str:
    runs = list(analysis.stored.values())
    if not runs:
        return ""
    machine, versions = runs[0].record["machine"]["before"], runs[0].record["versions"]
    loads = [run.record["machine"][when]["load_1min"] for run in runs for when in ("before", "after")]
    facts = [
        ("Kernel", f"{machine['system']} {machine['kernel']} ({machine['architecture']})"),
        (
            "Processor",
            f"{machine['cpu_model']}, {machine['cores']} cores{', virtual' if machine['virtualised'] else ''}",
        ),
        ("Governor", str(machine["governor"] or "not told by the kernel")),
        ("Load (1 min)", f"{min(loads):.2f} to {max(loads):.2f} before and after runs"),
        ("Versions", ", ".join(f"{name} {version}" for name, version in versions.items() if version)),
    ]
    different = {
        (run.record["machine"]["before"]["kernel"], run.record["machine"]["before"]["cpu_model"]) for run in runs
    }
    if len(different) > 1:
        facts.append(
            ("Note", f"The runs were made on {len(different)} different machines; run.json of each tells which.")
        )
    sysctls = [[f"<code>{escape(k)}</code>", escape(str(v))] for k, v in machine["sysctls"].items() if v is not None]
    return (
        "<section><h2>Machine and software</h2>"
        + table(["", ""], [[escape(name), escape(value)] for name, value in facts])
        + "<details><summary>Kernel settings outside of the hosts</summary>"
        + f"{table(['Setting', 'Value'], sysctls)}</details></section>"
    )
