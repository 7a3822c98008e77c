"""The answer as text: verdicts on the statements, the numbers with their intervals, and how far they can be trusted."""

from __future__ import annotations

import math

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from twinnet.report.reference_section import closeness_sentences, reference_record
from twinnet.report.wording import (
    common_scale,
    value_with_interval,
    worded_levels,
    worded_p,
    worded_phase,
    worded_value,
)
from twinnet.results.fidelity import FidelityRecord
from twinnet.study.analysis import Analysis, PhaseMean
from twinnet.study.closeness import compare_with_reference
from twinnet.study.comparison import Comparison
from twinnet.study.run_quantities import unit_of
from twinnet.study.verdict import ComparisonResult, StatementResult

__all__ = [
    "answer",
    "compared_record",
    "compared_rows",
    "fidelity_sentences",
    "print_summary",
    "statement_numbers",
    "summary_record",
]

CLOCKS = {"wall": "wall (emulation, real hosts)", "virtual": "virtual (simulation, model hosts)"}
"""The clocks in a few words."""
_MARKS = {"supported": ("✓", "green"), "not supported": ("✗", "red"), "undecided": ("?", "yellow")}


def answer(analysis: Analysis) -> str:
    """The verdicts in one sentence."""
    results = analysis.statements
    if not analysis.stored:
        return "There is no finished run yet."
    if not analysis.used:
        return "No run kept its schedule, so nothing can be said."
    if not results:
        return "The study makes no statements; the numbers speak below."
    counts = {verdict: sum(result.verdict == verdict for result in results) for verdict in _MARKS}
    parts = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    return f"Of {len(results)} statements: {', '.join(parts)}."


def fidelity_sentences(analysis: Analysis) -> list[str]:
    """How far the numbers can be trusted."""
    counts = analysis.verdict_counts
    total = sum(counts.values())
    if not total:
        return ["No run is finished."]
    worded = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    clock = CLOCKS[analysis.specification.clock]
    sentences = [f"Clock: {clock}.", f"Fidelity of {total} {'run' if total == 1 else 'runs'}: {worded}."]
    if analysis.left_out:
        sentences.append(
            f"{analysis.left_out} invalid {'run is' if analysis.left_out == 1 else 'runs are'} left out of all "
            "numbers; lower the rates (--set, --preset demo) or use an idle machine, and run again."
        )
    elif counts["invalid"]:
        sentences.append("Invalid runs are in the numbers, as asked for: do not rely on them.")
    reasons = sorted({reason for run in analysis.stored.values() for reason in run.record["fidelity"]["reasons"]})
    sentences += [f"  {reason}" for reason in reasons[:5]]
    if len(reasons) > 5:
        sentences.append(f"  and {len(reasons) - 5} more reasons in the table of runs")
    lateness = [run.record["fidelity"]["record"].get("lateness_ns", {}).get("p99") for run in analysis.stored.values()]
    known = [value for value in lateness if value is not None]
    if known:
        sentences.append(
            f"99 % of frames were handed over within {max(known) / 1000:.3g} µs of their time in the worst run."
        )
    records = [FidelityRecord.from_spec(run.record["fidelity"]["record"]) for run in analysis.stored.values()]
    agents = [(record.agent, record.agent_processor) for record in records if record.agent and record.agent.timers]
    if agents:
        worst_us = max(agent.lateness_ns.p99 for agent, _ in agents) / 1000
        shared = sum(processor == "shared" for _, processor in agents)
        sentences.append(
            f"99 % of the built-in apps' timers were served within {worst_us:.3g} µs of their time in the worst run; "
            f"their thread shared its processor with others in {shared} of {len(agents)} runs."
        )
    return sentences


def statement_numbers(analysis: Analysis, result: StatementResult) -> list[str]:
    """What a statement's comparisons rest on, one line for each chain such as `a < b < c`."""
    chains: list[list[ComparisonResult]] = []
    for one in result.comparisons:
        if chains and chains[-1][-1].comparison.right is one.comparison.left:
            chains[-1].append(one)
        else:
            chains.append([one])
    return [_chain(analysis, chain) for chain in chains]


def _chain(analysis: Analysis, chain: list[ComparisonResult]) -> str:
    first = chain[0]
    if first.repetitions == 0:
        return first.why
    unit = _unit(analysis, first)
    sides = [first.left, *(one.right for one in chain)]
    scale = common_scale((side.estimate for side in sides), unit)
    text = value_with_interval(first.left, unit, scale, with_unit=False)
    for one in chain:
        text += f" {one.comparison.operator} {value_with_interval(one.right, unit, scale, with_unit=False)}"
    times = "1 run" if first.repetitions == 1 else f"{first.repetitions} runs"
    why = next((one.why for one in chain if one.why), "")
    return f"{text} {scale[1]} ({times}{'; ' + why if why else ''})"


def _unit(analysis: Analysis, one: ComparisonResult) -> str:
    for term in (*one.comparison.left, *one.comparison.right):
        if term.aggregate is not None:
            return unit_of(analysis.specification.measurements[term.aggregate.measurement])
    return "1"


def print_summary(analysis: Analysis, console: Console) -> None:
    """Print the whole answer; the reader need not open the page."""
    console.print()
    console.print(Text(analysis.specification.title, style="bold"))
    console.print(Text(analysis.specification.question, style="italic"))
    console.print()
    console.print(Text(answer(analysis), style="bold"))
    if analysis.statements and analysis.used:
        console.print()
        console.print(_statements(analysis))
    for name in analysis.specification.measurements:
        table = _means(analysis, name)
        if table is not None:
            console.print()
            console.print(table)
    reference = compare_with_reference(analysis)
    if reference is not None and reference.clocks:
        console.print()
        for sentence in closeness_sentences(reference):
            console.print(Text(sentence, style="bold"))
    console.print()
    for sentence in fidelity_sentences(analysis):
        console.print(Text(sentence))
    for run in analysis.failed:
        console.print(Text(f"The run {run.id} failed: {run.record['error']['message']}", style="red"))
    if analysis.others:
        console.print(
            Text(f"{analysis.others} runs of other settings stand in {analysis.store.folder}; not used here.")
        )


def _statements(analysis: Analysis) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for result in analysis.statements:
        mark, colour = _MARKS[result.verdict]
        numbers = [Text(line, style="dim") for line in statement_numbers(analysis, result)]
        table.add_row(Text(f"{mark} {result.verdict}", style=colour), Group(Text(result.statement.text), *numbers))
    return table


def _means(analysis: Analysis, name: str) -> Group | None:
    means = [one for one in analysis.means if one.measurement == name]
    if not means:
        return None
    measurement = analysis.specification.measurements[name]
    layer = f", {measurement.layer} layer" if measurement.is_series else ""
    percent = f"{analysis.specification.confidence * 100:g} %"
    caption = Text.assemble((name, "bold"), f"{layer}: mean [{percent} interval]. {measurement.text}")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("levels")
    table.add_column("time")
    labels = list(dict.fromkeys(one.label for one in means))
    scale = common_scale((one.interval.estimate for one in means), means[0].unit)
    for label in labels:
        table.add_column(f"{label} ({scale[1]})", justify="right")
    rows: dict[tuple[str, str], dict[str, PhaseMean]] = {}
    for one in means:
        rows.setdefault((worded_levels(one.levels), worded_phase(one.phase)), {})[one.label] = one
    for (levels, phase), cells in rows.items():
        shown = [
            value_with_interval(cells[label].interval, cells[label].unit, scale, with_unit=False)
            if label in cells
            else ""
            for label in labels
        ]
        table.add_row(levels, phase, *shown)
    return Group(caption, table)


def summary_record(analysis: Analysis) -> dict[str, object]:
    """The same as `--json` prints it; units in the names, `None` where an interval is not known."""
    return {
        "study": analysis.study.name,
        "results": str(analysis.store.folder),
        "clock": analysis.specification.clock,
        "runs": {"planned": len(analysis.planned), "finished": len(analysis.stored), "failed": len(analysis.failed)},
        "fidelity": analysis.verdict_counts,
        "answer": answer(analysis),
        "reference": reference_record(compare_with_reference(analysis)),
        "statements": [
            {
                "id": one.statement.id,
                "text": one.statement.text,
                "verdict": one.verdict,
                "numbers": statement_numbers(analysis, one),
            }
            for one in analysis.statements
        ],
        "means": [
            {
                "measurement": one.measurement,
                "levels": dict(one.levels),
                "label": one.label,
                "phase_s": one.phase,
                "unit": one.unit,
                "mean": one.interval.estimate,
                "low": None if math.isnan(one.interval.low) else one.interval.low,
                "high": None if math.isnan(one.interval.high) else one.interval.high,
                "repetitions": len(one.samples),
                "shown": worded_value(one.interval.estimate, one.unit),
            }
            for one in analysis.means
        ],
    }


def compared_rows(found: Comparison) -> list[list[str]]:
    """One row of text for each compared mean: quantity, levels, time, first, second, difference, p, effect."""
    rows: list[list[str]] = []
    for one in found.compared:
        unit = one.first.unit
        scale = common_scale([one.first.interval.estimate, one.second.interval.estimate], unit)
        rows.append(
            [
                f"{one.first.measurement}, {one.first.label}",
                worded_levels(one.first.levels),
                worded_phase(one.first.phase),
                value_with_interval(one.first.interval, unit, scale),
                value_with_interval(one.second.interval, unit, scale),
                value_with_interval(one.difference, unit, scale),
                "one repetition" if one.adjusted_p is None else worded_p(one.adjusted_p),
                "" if one.effect is None else f"{one.effect.value:.2f} {one.effect.magnitude}",
            ]
        )
    return rows


def compared_record(found: Comparison) -> dict[str, object]:
    """The comparison as `--json` prints it."""

    def finite(value: float | None) -> float | None:
        return value if value is not None and math.isfinite(value) else None

    return {
        "compared": [
            {
                "measurement": one.first.measurement,
                "levels": dict(one.first.levels),
                "label": one.first.label,
                "phase_s": one.first.phase,
                "unit": one.first.unit,
                "first": one.first.interval.estimate,
                "second": one.second.interval.estimate,
                "difference": one.difference.estimate,
                "low": finite(one.difference.low),
                "high": finite(one.difference.high),
                "p_adjusted": finite(one.adjusted_p),
                "hedges_g": finite(one.effect.value) if one.effect is not None else None,
            }
            for one in found.compared
        ],
        "only_first": found.only_first,
        "only_second": found.only_second,
    }
