"""``python -m bench.performance_page [RECORD]``: write the tables of docs/explanation/performance.md from a record.

Everything between ``<!-- record: NAME -->`` and ``<!-- end -->`` on the page is written; the rest is prose. ``--check``
writes nothing, and tells by the status whether the page has what the record gives.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from bench.__main__ import PARTS
from bench.figure import Figure, shown
from bench.record import PartRecord, read

__all__ = ["PAGE", "RECORD", "SLOWER", "filled", "goals", "missed", "slower", "table"]

_ROOT = Path(__file__).resolve().parent.parent
PAGE = _ROOT / "docs" / "explanation" / "performance.md"
RECORD = Path(__file__).resolve().parent / "records" / "performance.json"
SLOWER = RECORD.with_name("slower-machine.json")
"""Some parts as a slower machine measured them, at another commit."""
_BLOCK = re.compile(r"(<!-- record: (?P<name>[a-z_]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_MOST_LISTED_PEERS = 4
"""With more peers each has a column of its own."""
_MET = {True: "yes", False: "**no**", None: ""}


def filled(page: str, parts: Mapping[str, PartRecord]) -> str:
    """Return `page` with what `parts` give in its places; raises `ValueError` for a place that nothing fills."""
    blocks: dict[str, Callable[[], str]] = {
        "goals": lambda: goals(parts),
        "conditions": lambda: conditions(parts),
        "missed": lambda: missed(parts),
        "slower": lambda: slower(parts, read(SLOWER)),
        **{name: lambda name=name: _part(name, parts.get(name)) for name in PARTS},
    }

    def fill(match: re.Match[str]) -> str:
        name = match.group("name")
        if name not in blocks:
            raise ValueError(f"the page has a place for {name!r}; there are {', '.join(blocks)}")
        return f"{match.group(1)}\n{blocks[name]()}\n{match.group(3)}"

    absent = [name for name in blocks if f"<!-- record: {name} -->" not in page]
    if absent:
        raise ValueError(f"the page has no place for {', '.join(absent)}")
    return _BLOCK.sub(fill, page)


def conditions(parts: Mapping[str, PartRecord]) -> str:
    """Return when, of what and on which machine each part was measured."""
    lines = [
        "| part | commit | begin, UTC | form | others took of the machine, median (most), % | the hypervisor took, % |",
        "|---|---|---|---|---|---:|",
    ]
    machines: dict[str, list[str]] = {}
    for name in PARTS:
        if name not in parts:
            lines.append(f"| `{name}` | not measured | | | | |")
            continue
        part = parts[name]
        others = (
            f"{median(part.others_percent):.0f} ({max(part.others_percent):.0f})" if part.others_percent else "not kept"
        )
        form = "`--quick`" if part.quick else "whole"
        stolen = f"{part.stolen_percent:.1f}" if part.stolen_percent is not None else "not counted"
        lines.append(f"| `{name}` | {part.commit} | {part.begin} | {form} | {others} | {stolen} |")
        machines.setdefault(_machine(part.machine), []).append(name)
    whose = [f"- {text}" + (f" ({', '.join(names)})" if len(machines) > 1 else "") for text, names in machines.items()]
    return "\n".join([*whose, "", *lines, ""])


def _machine(machine: Mapping[str, str]) -> str:
    """The machine in a line; what changes from run to run is left out."""
    kept = {name: value for name, value in machine.items() if name not in ("date", "load")}
    return "; ".join(f"{name}: {value}" for name, value in kept.items())


def slower(parts: Mapping[str, PartRecord], other: Mapping[str, PartRecord]) -> str:
    """Return the figures of the record beside those of another machine, each with its peers."""
    lines = ["| part | figure | above | peers | slower machine | peers | n |", "|---|---|---|---|---|---|---|"]
    for name, part in other.items():
        above = {figure.name: figure for figure in parts[name].figures} if name in parts else {}
        for there in part.figures:
            here = above.get(there.name)
            if here is None or not (here.ours and there.ours):
                continue
            cells = [cell for one in (here, there) for cell in (_cell(one, "ours"), _peers(one))]
            count = f"{len(here.ours)}, {len(there.ours)}"
            lines.append(f"| {' | '.join([f'`{name}`', _name(there), *cells, count])} |")
    begun = "; ".join(f"`{name}` {part.begin}, commit {part.commit}" for name, part in other.items())
    return "\n".join([*lines, "", f"- The slower machine: {begun}.", ""])


def _peers(figure: Figure) -> str:
    return "; ".join(f"{name} {shown(figure.of(samples))}" for name, samples in figure.peers.items() if samples)


def _part(name: str, part: PartRecord | None) -> str:
    if part is None:
        return f"Not measured: `make bench PARTS={name}` does.\n"
    failure = f"\nThe part ended early: {part.failure}.\n" if part.failure else ""
    return table(part.figures) + failure


def table(figures: Sequence[Figure]) -> str:
    """Return the table of one part, in Markdown, with what a reader must know below it."""
    peers = list(dict.fromkeys(name for figure in figures for name in figure.peers))
    if len(peers) > _MOST_LISTED_PEERS:
        return _wide(figures, peers)
    lines = ["| figure | ours | peers (ours / theirs) | goal | met | n |", "|---|---|---|---|---|---:|"]
    for figure in figures:
        beside = "; ".join(_beside(figure, name) for name in figure.peers)
        lines.append(f"| {_name(figure)} | {_cell(figure, 'ours')} | {beside} | {_goal(figure)} | {_count(figure)} |")
    notes = dict.fromkeys(f"- {figure.name}: {figure.note}." for figure in figures if figure.note)
    return "\n".join([*lines, "", *notes, ""] if notes else [*lines, ""])


def _wide(figures: Sequence[Figure], peers: Sequence[str]) -> str:
    """A column for each of the `peers` that a part has in common; figures that have none of them stand below."""
    most = max((figure for figure in figures), key=lambda figure: len(figure.peers))
    columns = [name for name in peers if name in most.peers]
    common = [figure for figure in figures if figure.peers and set(figure.peers) <= set(columns)]
    lines = [
        f"| figure | ours | {' | '.join(columns)} | goal | met | n |",
        f"|---|---|{'---|' * len(columns)}---|---|---:|",
    ]
    for figure in common:
        cells = " | ".join(_cell(figure, name) for name in columns)
        lines.append(f"| {_name(figure)} | {_cell(figure, 'ours')} | {cells} | {_goal(figure)} | {_count(figure)} |")
    rest = [figure for figure in figures if figure not in common]
    narrow = ["| figure | ours | peers (ours / theirs) | goal | met | n |", "|---|---|---|---|---|---:|"]
    for figure in rest:
        beside = "; ".join(_beside(figure, name) for name in figure.peers)
        narrow.append(f"| {_name(figure)} | {_cell(figure, 'ours')} | {beside} | {_goal(figure)} | {_count(figure)} |")
    return "\n".join([*lines, "", *(narrow if rest else []), *([""] if rest else [])])


def _name(figure: Figure) -> str:
    unit = f", {figure.unit}" if figure.unit else ""
    return f"{figure.name}{unit}" + (" (the worst)" if figure.summary != "median" and len(figure.ours) > 1 else "")


def _samples(figure: Figure, name: str) -> Sequence[float]:
    return figure.ours if name == "ours" else figure.peers.get(name, ())


def _cell(figure: Figure, name: str) -> str:
    """The value with its range, and what marks it."""
    samples = _samples(figure, name)
    if not samples:
        return "-"
    spread = f" ({shown(min(samples))} to {shown(max(samples))})" if len(samples) > 1 else ""
    mark = f"; {figure.marks[name]}" if name in figure.marks else ""
    return f"{shown(figure.of(samples))}{spread}{mark}"


def _beside(figure: Figure, name: str) -> str:
    ratio = figure.ratio(name)
    return f"{name}: {_cell(figure, name)}" + (f" [{shown(ratio)}]" if ratio is not None else "")


def _goal(figure: Figure) -> str:
    return f"{figure.target} | {_MET[figure.met]}"


def _count(figure: Figure) -> int | str:
    counts = {figure.count(samples) for samples in (figure.ours, *figure.peers.values()) if samples}
    return "/".join(map(str, sorted(counts))) if counts else "0"


def goals(parts: Mapping[str, PartRecord]) -> str:
    """Return the goals of each part and its worst row. There is no sum: goals of different parts are no units of one
    quantity, and a part may have as many rows as it likes."""
    lines = ["| part | goals met | rows that miss | the worst row, and its goal |", "|---|---:|---:|---|"]
    for name in PARTS:
        part = parts.get(name)
        if part is None:
            lines.append(f"| `{name}` | not measured | | |")
            continue
        by_goal: dict[str, list[Figure]] = {}
        for figure in part.figures:
            if figure.met is not None:
                by_goal.setdefault(figure.goal or figure.name, []).append(figure)
        rows = [figure for of in by_goal.values() for figure in of]
        if not rows:
            lines.append(f"| `{name}` | none judged | | |")
            continue
        met = sum(all(figure.met for figure in of) for of in by_goal.values())
        misses = sum(not figure.met for figure in rows)
        lines.append(f"| `{name}` | {met} of {len(by_goal)} | {misses} of {len(rows)} | {_worst(rows)} |")
    return "\n".join([*lines, ""])


def _worst(rows: Sequence[Figure]) -> str:
    """The row that takes the most of its goal."""
    worst = max(rows, key=lambda figure: figure.strain or 0)
    return f"{_name(worst)}: {_cell(worst, 'ours')}; {worst.target} ({_MET[worst.met]})"


def missed(parts: Mapping[str, PartRecord]) -> str:
    """Return all rows that miss their goal, and all figures that were not measured."""
    lines = ["| part | figure | ours | peers | goal | |", "|---|---|---|---|---|---|"]
    for name in PARTS:
        if name not in parts:
            title = importlib.import_module(f"bench.{name}").TITLE
            lines.append(f"| `{name}` | {title} | | | | not measured |")
            continue
        for figure in parts[name].figures:
            if figure.met is False or (figure.target and figure.met is None) or not (figure.ours or figure.peers):
                why = (
                    "missed" if figure.met is False else "not judged" if figure.ours else f"not measured: {figure.note}"
                )
                beside = "; ".join(f"{peer} {shown(figure.of(samples))}" for peer, samples in figure.peers.items())
                lines.append(
                    f"| `{name}` | {_name(figure)} | {_cell(figure, 'ours')} | {beside} | {figure.target} | {why} |"
                )
        if parts[name].failure:
            lines.append(f"| `{name}` | all that would follow | | | | not measured: {parts[name].failure} |")
    return "\n".join([*lines, ""])


def main() -> int:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(prog="python -m bench.performance_page", description="Make the page's tables.")
    parser.add_argument("record", nargs="?", type=Path, default=RECORD, metavar="RECORD")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the page differs")
    wanted = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    made = filled(page, read(wanted.record))
    if wanted.check:
        return 0 if made == page else 1
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
