"""Slots: pairs of processors of one NUMA node, so that runs side by side do not take the processor from each other."""

from __future__ import annotations

import itertools
import os
import re
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from twinnet.errors import BadValue
from twinnet.study.machine import processor_ranges

__all__ = ["MOST_SLOTS", "Processor", "Slot", "claimed_cores", "processors_here", "slots_in_words", "slots_on"]

MOST_SLOTS = 256
_SYSTEM = Path("/sys/devices/system")


@dataclass(frozen=True)
class Processor:
    """A processor as Linux counts them, with the core and the NUMA node that it belongs to."""

    number: int
    core: tuple[int, int]
    """The package and the core in it: processors of one core share its units."""
    node: int


@dataclass(frozen=True)
class Slot:
    """One run at a time.

    Attributes
    ----------
    number
        Counted from 1 on each machine.
    processors
        Those that the run may use.
    alone
        Whether no other slot uses a core of these; without that it takes no runs on the wall clock.
    """

    number: int
    processors: tuple[int, ...]
    alone: bool


def processors_here(system: Path = _SYSTEM, allowed: set[int] | None = None) -> list[Processor]:
    """The processors that this process may use, in order."""
    allowed = allowed if allowed is not None else os.sched_getaffinity(0)
    node_of: dict[int, int] = {}
    for path in sorted((system / "node").glob("node[0-9]*")):
        for number in _list(path / "cpulist"):
            node_of[number] = int(path.name.removeprefix("node"))
    found: list[Processor] = []
    for number in sorted(allowed):
        topology = system / "cpu" / f"cpu{number}" / "topology"
        core = (_number(topology / "physical_package_id", 0), _number(topology / "core_id", number))
        found.append(Processor(number, core, node_of.get(number, 0)))
    return found


def slots_on(processors: Sequence[Processor], count: int | None, taken: frozenset[tuple[int, int]]) -> list[Slot]:
    """The slots of a machine.

    Left to itself, each slot has a processor of two cores of one NUMA node; further threads of these cores stay idle,
    and so does an odd core. Where a node has one core only, its slot has all of it.

    Parameters
    ----------
    processors
        Those that may be used.
    count
        How many slots; `None` for as many as share nothing. More than that share cores.
    taken
        Cores that slots of another process have.

    Raises
    ------
    BadValue
        `count` is not between 1 and `MOST_SLOTS`.
    """
    if count is not None and not 1 <= count <= MOST_SLOTS:
        raise BadValue(f"a machine has 1 to {MOST_SLOTS} slots, not {count}", "write for example --slots auto")
    apart = _apart(processors)
    pairs = apart[: len(apart) if count is None else count]
    if count is not None and count > len(pairs):
        used = {number for pair in apart for number in pair}
        left = [
            pair for node in _by_node(processors) for pair in _pairs([p.number for p in node if p.number not in used])
        ]
        again = itertools.cycle([*apart])
        pairs = [*pairs, *left][:count]
        pairs += [next(again) for _ in range(count - len(pairs))]
    core_of = {one.number: one.core for one in processors}
    users = Counter(core for pair in pairs for core in {core_of[number] for number in pair})
    slots = [Slot(number, pair, True) for number, pair in enumerate(pairs, 1)]
    return [
        replace(slot, alone=all(users[core_of[one]] == 1 and core_of[one] not in taken for one in slot.processors))
        for slot in slots
    ]


def _apart(processors: Sequence[Processor]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for node in _by_node(processors):
        first_of = {one.core: one.number for one in reversed(node)}
        firsts = sorted(first_of.values())
        if len(firsts) == 1:
            found.append(tuple(one.number for one in node)[:2])
        found += [pair for pair in _pairs(firsts) if len(pair) == 2]
    return found


def _by_node(processors: Sequence[Processor]) -> list[list[Processor]]:
    nodes = sorted({one.node for one in processors})
    return [[one for one in processors if one.node == node] for node in nodes]


def _pairs(numbers: Sequence[int]) -> list[tuple[int, ...]]:
    return [tuple(numbers[start : start + 2]) for start in range(0, len(numbers), 2)]


def claimed_cores(processors: Sequence[Processor]) -> tuple[list[socket.socket], frozenset[tuple[int, int]]]:
    """Claim the cores of `processors` for this process on this machine.

    Returns what holds the claim, and the cores that another process has claimed before. A claim is an abstract socket
    (unix(7)), so it ends with the process.
    """
    held: list[socket.socket] = []
    taken: set[tuple[int, int]] = set()
    for package, core in sorted({one.core for one in processors}):
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            claim.bind(f"\0twinnet-slot-core-{package}-{core}")
        except OSError:
            claim.close()
            taken.add((package, core))
        else:
            held.append(claim)
    return held, frozenset(taken)


def slots_in_words(processors: Sequence[Processor], slots: Sequence[Slot]) -> list[str]:
    """Describe the division of the machine into slots, as sentences."""
    nodes = len({one.node for one in processors})
    cores = len({one.core for one in processors})
    lines = [
        f"{len(processors)} processors in {cores} cores and {nodes} NUMA {'node' if nodes == 1 else 'nodes'};"
        f" {len(slots)} {'slot' if len(slots) == 1 else 'slots'}"
    ]
    idle = {one.number for one in processors} - {number for slot in slots for number in slot.processors}
    if idle:
        lines.append(f"processors {processor_ranges(idle)} stay free of runs")
    for slot in slots:
        where = f"slot {slot.number}: processors {processor_ranges(set(slot.processors))}"
        lines.append(where if slot.alone else f"{where}; shares a core with another slot: virtual runs only")
    return lines


def _list(path: Path) -> list[int]:
    """The numbers in a list such as `0-3,8`."""
    found: list[int] = []
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return found
    for part in text.split(","):
        if span := re.fullmatch(r"(\d+)(?:-(\d+))?", part):
            found += range(int(span[1]), int(span[2] or span[1]) + 1)
    return found


def _number(path: Path, otherwise: int) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return otherwise
