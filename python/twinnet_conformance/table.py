"""The table of outcomes: for the terminal, and in the reference page between two markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinnet.errors import BadValue

from twinnet_conformance.outcome import Outcome

__all__ = ["Row", "markdown", "rows", "write_page"]

BEGIN = "<!-- conformance: begin, written by twinnet conformance --write -->"
END = "<!-- conformance: end -->"


@dataclass(frozen=True)
class Row:
    """One feature of one switch."""

    section: str
    feature: str
    passed: int
    run: int
    """Cases whose outcome is known."""


def rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """Return the features in the order of their first cases, and all together as the last row."""
    order: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        order.setdefault(outcome.case.feature, []).append(outcome)
    found = [_row(feature, of_it) for feature, of_it in order.items()]
    return [*found, _row("together", outcomes)]


def _row(feature: str, outcomes: Sequence[Outcome]) -> Row:
    sections = sorted({one.case.section for one in outcomes}, key=_numbers)
    span = sections[0] if len(sections) == 1 else f"{sections[0]} to {sections[-1]}" if sections else ""
    passed = sum(one.passed is True for one in outcomes)
    return Row(span if feature != "together" else "", feature, passed, sum(one.passed is not None for one in outcomes))


def _numbers(section: str) -> list[int]:
    return [int(part) for part in section.split(".")]


def markdown(columns: Mapping[str, Sequence[Outcome]]) -> str:
    """Return the table with one column for each switch."""
    tables = {name: rows(outcomes) for name, outcomes in columns.items()}
    first = next(iter(tables.values()))
    lines = ["| section | feature | " + " | ".join(tables) + " |", "|---|---|" + "---:|" * len(tables)]
    for place, row in enumerate(first):
        cells = [f"{table[place].passed} of {table[place].run}" for table in tables.values()]
        lines.append(f"| {row.section} | {row.feature} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def failures(outcomes: Sequence[Outcome]) -> str:
    """Return the cases that failed as a list."""
    return "\n".join(f"- {one.case.identifier}" for one in outcomes if one.passed is False)


def write_page(page: Path, columns: Mapping[str, Sequence[Outcome]]) -> None:
    """Put the table into `page`, between the markers that it has."""
    text = page.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise BadValue(f"{page} has no place for the table", f"put these two lines where it shall stand: {BEGIN} {END}")
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    page.write_text(f"{before}{BEGIN}\n{markdown(columns)}\n{END}{after}", encoding="utf-8")
