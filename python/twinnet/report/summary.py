"""The answer as text: verdicts on the statements, the numbers with their intervals, and how far they can be trusted."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from twinnet.report.naming import label_names, measurement_title
from twinnet.report.published_section import HEAD, published_rows, published_sentence
from twinnet.report.reference_section import closeness_sentences, reference_record
from twinnet.report.wording import (
    Scale,
    common_scale,
    counted,
    of_runs,
    value_with_interval,
    worded_effect,
    worded_levels,
    worded_mean,
    worded_p,
    worded_phase,
    worded_value,
)
from twinnet.results.fidelity import FidelityRecord
from twinnet.study.analysis import Analysis, PhaseMean
from twinnet.study.answer_text import parse_answer
from twinnet.study.closeness import compare_with_reference
from twinnet.study.comparison import Compared, Comparison
from twinnet.study.congestion_control import controls_in_words
from twinnet.study.extremes import is_extreme
from twinnet.study.interaction import interaction
from twinnet.study.natural_range import clipped, range_of_side
from twinnet.study.specification import StudySpecification
from twinnet.study.verdict import ComparisonResult, StatementResult, evaluate_side
from twinnet.study.virtual_hosts import has_programs

__all__ = [
    "VERDICT_MARKS",
    "answer",
    "answer_in_words",
    "compared_record",
    "compared_rows",
    "failure_sentences",
    "fidelity_sentences",
    "machine_sentences",
    "merged_reasons",
    "print_answer",
    "print_summary",
    "reason_against",
    "statement_numbers",
    "summary_record",
]

CLOCKS = {
    "wall": "wall (emulation, real hosts)",
    "virtual": "virtual (simulation, model hosts)",
    "real": "real (physical machines)",
}
"""The clocks in a few words."""
_REAL_ON_VIRTUAL = "virtual (real hosts in a guest kernel)"
# A number that stands for itself: no part of a name such as s1-eth4.
_NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w-])")
_ANY = "\0"
"""Stands for any number; no message has this character."""
_MOST_PUBLISHED = 16
"""Published figures that the terminal shows; more are in the page and the CSV file."""
_WORST_FIRST = ("not supported", "undecided", "supported")
_MOST_CHAINS = 6
"""Lines of a claim in every level that are shown."""
VERDICT_MARKS = {"supported": ("✓", "green"), "not supported": ("✗", "red"), "undecided": ("?", "yellow")}
"""The mark and the colour of each verdict."""


def answer(analysis: Analysis) -> str:
    """The verdicts in one sentence, and what the reader must know before them: what was not measured or has no
    effect."""
    return " ".join([_verdicts(analysis), *_not_in_it(analysis), *analysis.silent])


def _not_in_it(analysis: Analysis) -> list[str]:
    """The runs that are in no number: those that failed, and those that are still to be made."""
    failed, of = len(analysis.failed), f"of {counted(len(analysis.planned), 'run')}"
    rest = len(analysis.planned) - len(analysis.stored) - failed if analysis.stored else 0
    said = [f"{failed} {of} failed, and {'is' if failed == 1 else 'are'} in no number."] if failed else []
    return said + ([f"{rest} {of} {'is' if rest == 1 else 'are'} not made yet."] if rest > 0 else [])


def _verdicts(analysis: Analysis) -> str:
    results = analysis.statements
    if not analysis.stored:
        return "There is no finished run yet."
    if not analysis.used:
        return "No run kept its schedule, so there is no result."
    if analysis.makes_no_claims:
        return "This size shows that the study works and claims nothing; for an answer take another preset, or none."
    if not results:
        return "The study makes no statements; the numbers are below."
    undecided = all(result.verdict == "undecided" for result in results)
    if undecided and all(len(runs) < 2 for runs in map(analysis.runs_at, analysis.combinations)):
        return f"One repetition judges none of the {len(results)} statements; repeat at least twice (--repeat 2)."
    counts = {verdict: sum(result.verdict == verdict for result in results) for verdict in VERDICT_MARKS}
    parts = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    return f"Of {counted(len(results), 'statement')}: {', '.join(parts)}."


def answer_in_words(analysis: Analysis) -> str:
    """The study's answer with what was measured in it; empty where the study has none or nothing was measured."""
    if analysis.makes_no_claims or not analysis.used:
        return ""
    words: list[str] = []
    for part in parse_answer(analysis.specification.answer, analysis.study.names()):
        if part.side is None:
            words.append(part.text)
            continue
        try:
            found = evaluate_side(part.side, analysis.used, analysis.specification.confidence)
        except LookupError:
            return ""
        words.append(worded_value(found.interval.estimate, part.unit))
    return "".join(words).strip()


def _warm_up_sentences(analysis: Analysis) -> list[str]:
    """What runs left out as their warm-up, and where none was found."""
    sentences: list[str] = []
    for name, measurement in analysis.specification.measurements.items():
        found, missing = analysis.warm_ups(name)
        title = measurement_title(name, measurement)
        if found:
            sentences.append(f"{title}: the first {min(found):.3g} to {max(found):.3g} s were left out (MSER-5).")
        for reason in dict.fromkeys(missing):
            sentences.append(f"{title}: {counted(missing.count(reason), 'value')} missing: {reason}.")
    return sentences


def clock_words(specification: StudySpecification) -> str:
    """The clock of a study, and what its hosts are, in a few words."""
    if specification.clock == "virtual" and has_programs(specification):
        return _REAL_ON_VIRTUAL
    return CLOCKS[specification.clock]


def fidelity_sentences(analysis: Analysis) -> list[str]:
    """Say how far the numbers can be trusted: one sentence with the answer, then the facts behind it."""
    counts = analysis.verdict_counts
    total = sum(counts.values())
    if not total:
        return ["No run is finished."]
    worded = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    clock = clock_words(analysis.specification)
    sentences = [f"Clock: {clock}. Fidelity of {counted(total, 'run')}: {worded}."]
    if analysis.left_out:
        sentences.append(
            f"{analysis.left_out} invalid {'run is' if analysis.left_out == 1 else 'runs are'} left out of all "
            "numbers; lower the rates (--set, --preset demo) or use an idle machine, and run again."
        )
    elif counts["invalid"]:
        sentences.append("Invalid runs are in the numbers, as asked for: do not rely on them.")
    reasons = merged_reasons(
        [reason for run in analysis.stored.values() for reason in run.record["fidelity"]["reasons"]]
    )
    sentences += [f"{reason}." for reason in reasons[:5]]
    if len(reasons) > 5:
        sentences.append(f"{counted(len(reasons) - 5, 'more reason')} in the table of runs.")
    forecast = analysis.forecast.sentence()
    sentences += [forecast] if forecast else []
    sentences += machine_sentences(analysis)
    control = controls_in_words(analysis.study)
    sentences += [control] if control is not None else []
    sentences += _warm_up_sentences(analysis)
    lateness = [run.record["fidelity"]["record"].get("lateness_ns", {}).get("p99") for run in analysis.stored.values()]
    known = [value for value in lateness if value is not None]
    if known:
        worst = worded_value(max(known) / 1e9, "s")
        sentences.append(f"99 % of frames were handed over within {worst} of their time in the worst run.")
    records = [FidelityRecord.from_spec(run.record["fidelity"]["record"]) for run in analysis.stored.values()]
    agents = [(record.agent, record.agent_processor) for record in records if record.agent and record.agent.timers]
    if agents:
        worst = worded_value(max(agent.lateness_ns.p99 for agent, _ in agents) / 1e9, "s")
        shared = sum(processor == "shared" for _, processor in agents)
        sentences.append(
            f"99 % of the built-in apps' timers were served within {worst} of their time in the worst run; "
            f"their thread shared its processor with others in {shared} of {counted(len(agents), 'run')}."
        )
    return sentences


def machine_sentences(analysis: Analysis) -> list[str]:
    """Name the machines that made the runs on the wall clock, and say where machines cannot be told from levels;
    empty for one machine."""
    if len(analysis.machines) < 2:
        return []
    made = ", ".join(f"{name} ({counted(count, 'run')})" for name, count in list(analysis.machines.items())[:10])
    more = f" and {len(analysis.machines) - 10} more" if len(analysis.machines) > 10 else ""
    return [
        f"Made on {len(analysis.machines)} machines: {made}{more}. Levels are compared within machines.",
        *analysis.confounded,
    ]


def merged_reasons(reasons: Sequence[str]) -> list[str]:
    """Each kind of reason once: those that differ in their numbers alone are one, with the least and the greatest."""
    kinds: dict[str, list[str]] = {}
    for reason in reasons:
        kinds.setdefault(_NUMBER.sub(_ANY, reason), []).append(reason)
    merged: list[str] = []
    for same in kinds.values():
        numbers = [_NUMBER.findall(reason) for reason in dict.fromkeys(same)]
        said = _with_numbers(same[0], [_from_least_to_most(column) for column in zip(*numbers, strict=True)])
        said = said[:1].upper() + said[1:]
        merged.append(said + (f" ({counted(len(same), 'run')})" if len(same) > 1 else ""))
    return merged


def failure_sentences(failures: Mapping[str, str]) -> list[str]:
    """Why runs failed, by their names: each kind of message once, as the first of its runs has it."""
    kinds: dict[str, list[str]] = {}
    for run, message in failures.items():
        kinds.setdefault(_NUMBER.sub(_ANY, message), []).append(run)
    return [
        f"The run {runs[0]} failed: {failures[runs[0]]}"
        if len(runs) == 1
        else f"{len(runs)} runs failed for the same reason. The first is {runs[0]}: {failures[runs[0]]}"
        for runs in kinds.values()
    ]


def _with_numbers(reason: str, numbers: Sequence[str]) -> str:
    """Return `reason` with these instead of its numbers."""
    left = iter(numbers)
    return _NUMBER.sub(lambda _: next(left), reason)


def _from_least_to_most(numbers: Sequence[str]) -> str:
    least, most = min(numbers, key=float), max(numbers, key=float)
    return least if float(least) == float(most) else f"{least} to {most}"


def statement_numbers(analysis: Analysis, result: StatementResult) -> list[str]:
    """Return the numbers behind a statement's comparisons, one line for each chain such as `a < b < c`.

    Of a claim in every level, those that do not hold come first, and no more than some are shown.
    """
    chains: list[list[ComparisonResult]] = []
    for one in result.comparisons:
        if chains and chains[-1][-1].comparison.right is one.comparison.left:
            chains[-1].append(one)
        else:
            chains.append([one])
    if not any(chain[0].comparison.under for chain in chains):
        return [_chain(analysis, chain) for chain in chains]
    plain = [chain for chain in chains if not chain[0].comparison.under]
    every = [chain for chain in chains if chain[0].comparison.under]
    every.sort(key=lambda chain: min(_WORST_FIRST.index(one.verdict) for one in chain))
    left = len(every) - _MOST_CHAINS
    held = sum(all(one.verdict == "supported" for one in chain) for chain in every)
    terms = [term.aggregate for chain in every for term in (*chain[0].comparison.left, *chain[0].comparison.right)]
    of_means = any(one is not None and not is_extreme(one) for one in terms)
    return [
        *(_chain(analysis, chain) for chain in plain),
        f"supported in {held} of {len(every)}" + (", by the mean over the runs of each" if of_means else ""),
        *(f"{chain[0].comparison.under}: {_chain(analysis, chain)}" for chain in every[:_MOST_CHAINS]),
        *([f"and {left} more"] if left > 0 else []),
    ]


def reason_against(result: StatementResult) -> str:
    """Why a statement may not hold here, as its study says; empty where it is supported, and where nothing is said."""
    why = result.statement.why.strip()
    return f"Why: {why}" if why and result.verdict != "supported" else ""


def _chain(analysis: Analysis, chain: list[ComparisonResult]) -> str:
    first = chain[0]
    if first.repetitions == 0:
        return first.why
    unit = analysis.unit_of((*first.comparison.left, *first.comparison.right))
    sides = [first.left, *(one.right for one in chain)]
    scale = common_scale((side.estimate for side in sides), unit)
    measured = analysis.specification.measurements
    left = clipped(first.left, range_of_side(first.comparison.left, measured))
    text = value_with_interval(left, unit, scale, with_unit=False)
    for one in chain:
        right = clipped(one.right, range_of_side(one.comparison.right, measured))
        text += f" {one.comparison.operator} {value_with_interval(right, unit, scale, with_unit=False)}"
    if first.comparison.operator == "=":
        within = first.comparison.text.rpartition("within")[2].strip()
        text += f" within {within}: difference {value_with_interval(first.difference, unit, scale, with_unit=False)}"
    said = ["1 run" if first.repetitions == 1 else f"{first.repetitions} runs"]
    said += dict.fromkeys(one.how for one in chain if one.how)
    said += list(dict.fromkeys(one.why for one in chain if one.why))[:1]
    said += [text for one in chain for text in _across(analysis, one, unit, scale)]
    return f"{text} {scale[1]} ({'; '.join(said)})"


def _across(analysis: Analysis, one: ComparisonResult, unit: str, scale: Scale) -> list[str]:
    """What a comparison is under levels that it leaves out, where that is not the same."""
    found = interaction(one.comparison, analysis.used, analysis.specification.confidence)
    if found is None:
        return []
    ends = [
        f"{value_with_interval(value, unit, scale)} ({', '.join('='.join(level) for level in cell)})"
        for cell, value in (found.least, found.most)
    ]
    what = "the difference" if found.of_difference else "it"
    said = f"{what} is not the same under all levels: {' to '.join(ends)}"
    if not 0 < found.reversed < found.blocks:
        return [said]
    factors = ", ".join(name for name, _ in found.least[0])
    return [
        f"on the mean of {found.blocks} combinations of levels, and reversed in {found.reversed} of them",
        said,
        f"to claim it of each, write 'in every {factors}'",
    ]


def print_answer(analysis: Analysis, console: Console) -> None:
    """Print the question, the answer and the verdicts on the statements."""
    console.print()
    console.print(Text(analysis.specification.title, style="bold"))
    console.print(Text(analysis.specification.question, style="italic"))
    console.print()
    words = answer_in_words(analysis)
    if words:
        console.print(Text(words, style="bold"))
    console.print(Text(answer(analysis), style="" if words else "bold"))
    if analysis.statements and analysis.used:
        console.print()
        console.print(_statements(analysis))


def print_summary(analysis: Analysis, console: Console) -> None:
    """Print the whole answer; the reader need not open the page."""
    print_answer(analysis, console)
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
    if analysis.published:
        console.print()
        console.print(Text(published_sentence(analysis), style="bold"))
        if len(analysis.published) <= _MOST_PUBLISHED:
            console.print(_published(analysis))
    console.print()
    for sentence in fidelity_sentences(analysis):
        console.print(Text(sentence))
    for sentence in failure_sentences({run.id: str(run.record["error"]["message"]) for run in analysis.failed}):
        console.print(Text(sentence, style="red"))
    if analysis.others:
        console.print(
            Text(f"{analysis.others} runs of other settings stand in {analysis.store.folder}; not used here.")
        )


def _published(analysis: Analysis) -> Table:
    table = Table(*HEAD, box=None, pad_edge=False, header_style="dim")
    for row in published_rows(analysis.published):
        table.add_row(*map(Text, row))
    return table


def _statements(analysis: Analysis) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for result in analysis.statements:
        mark, colour = VERDICT_MARKS[result.verdict]
        numbers = [Text(line, style="dim") for line in statement_numbers(analysis, result)]
        why = [Text(line) for line in (reason_against(result),) if line]
        said = Group(Text(result.statement.text), *numbers, *why)
        table.add_row(Text(f"{mark} {result.verdict}", style=colour), said)
    return table


def _means(analysis: Analysis, name: str) -> Group | None:
    means = [one for one in analysis.means if one.measurement == name]
    if not means:
        return None
    measurement = analysis.specification.measurements[name]
    layer = f", {measurement.layer} layer" if measurement.is_series else ""
    percent = f"{analysis.specification.confidence * 100:g} %"
    title = measurement_title(name, measurement)
    caption = Text.assemble((title, "bold"), f"{layer}: mean [{percent} interval]. {measurement.text}")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("levels")
    table.add_column("time")
    labels = list(dict.fromkeys(one.label for one in means))
    scale = common_scale((one.interval.estimate for one in means), means[0].unit)
    names = label_names(analysis.specification, measurement)
    for label in labels:
        table.add_column(f"{names.get(label, label)} ({scale[1]})", justify="right")
    rows: dict[tuple[str, str], dict[str, PhaseMean]] = {}
    for one in means:
        rows.setdefault((worded_levels(one.levels), worded_phase(one.phase)), {})[one.label] = one
    for (levels, phase), cells in rows.items():
        shown = [worded_mean(cells[label], scale, with_unit=False) if label in cells else "" for label in labels]
        table.add_row(levels, phase, *shown)
    return Group(caption, table)


def summary_record(analysis: Analysis) -> dict[str, object]:
    """The same as `--json` prints it; units in the names, `None` for what is not known or infinite."""
    return {
        "study": analysis.study.name,
        "results": str(analysis.store.folder),
        "clock": analysis.specification.clock,
        "runs": {"planned": len(analysis.planned), "finished": len(analysis.stored), "failed": len(analysis.failed)},
        "fidelity": analysis.verdict_counts,
        "forecast": dataclasses.asdict(analysis.forecast),
        "machines": analysis.machines,
        "confounded": analysis.confounded,
        "answer": answer(analysis),
        "in_words": answer_in_words(analysis),
        "reference": reference_record(compare_with_reference(analysis)),
        "statements": [
            {
                "id": one.statement.id,
                "text": one.statement.text,
                "verdict": one.verdict,
                "numbers": statement_numbers(analysis, one),
                "why": one.statement.why,
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
                "statistic": analysis.specification.measurements[one.measurement].show,
                "mean": _finite(one.interval.estimate),
                "low": _finite(one.interval.low),
                "high": _finite(one.interval.high),
                "repetitions": len(one.samples),
                "missing": dict(one.missing),
                "shown": worded_value(one.interval.estimate, one.unit) + of_runs(one),
            }
            for one in analysis.means
        ],
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def compared_rows(found: Comparison) -> list[list[str]]:
    """One row of text for each compared mean: quantity, levels, time, first, second, difference, n, p, effect."""
    rows: list[list[str]] = []
    for one in found.compared:
        unit = one.first.unit
        scale = common_scale([one.first.interval.estimate, one.second.interval.estimate], unit)
        rows.append(
            [
                f"{one.first.measurement}, {one.first.label}",
                worded_levels(one.first.levels),
                worded_phase(one.first.phase),
                worded_mean(one.first, scale),
                worded_mean(one.second, scale),
                value_with_interval(one.difference, unit, scale),
                f"{len(one.first.samples)}, {len(one.second.samples)}",
                _tested(one),
                # The size of an effect that may be none says nothing.
                worded_effect(one.effect.value, one.effect.magnitude)
                if one.effect and _is_shown(one.adjusted_p)
                else "",
            ]
        )
    return rows


def _tested(one: Compared) -> str:
    if one.adjusted_p is not None:
        return worded_p(one.adjusted_p)
    if one.first.missing or one.second.missing:
        return "not all runs have a value"
    if not all(map(math.isfinite, (*one.first.samples, *one.second.samples))):
        return "some values are infinite"
    alone = min(len(one.first.samples), len(one.second.samples)) < 2
    return "one repetition" if alone else "repetitions do not differ"


def _is_shown(p_value: float | None) -> bool:
    return p_value is not None and p_value < 0.05


def compared_record(found: Comparison) -> dict[str, object]:
    """The comparison as `--json` prints it."""
    return {
        "compared": [
            {
                "measurement": one.first.measurement,
                "levels": dict(one.first.levels),
                "label": one.first.label,
                "phase_s": one.first.phase,
                "unit": one.first.unit,
                "first": _finite(one.first.interval.estimate),
                "second": _finite(one.second.interval.estimate),
                "shown": [
                    worded_value(side.interval.estimate, side.unit) + of_runs(side) for side in (one.first, one.second)
                ],
                "difference": _finite(one.difference.estimate),
                "low": _finite(one.difference.low),
                "high": _finite(one.difference.high),
                "p_adjusted": _finite(one.adjusted_p),
                "hedges_g": _finite(one.effect.value) if one.effect is not None else None,
            }
            for one in found.compared
        ],
        "only_first": found.only_first,
        "only_second": found.only_second,
        "warning": found.warning,
    }
