"""``python -m bench [NAME...] [--quick] [--record FILE]``: measure, and say what is met."""

from __future__ import annotations

import argparse
import importlib
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from rich.console import Console

from bench import record
from bench.figure import Figure, print_figures
from bench.machine import describe, missing
from bench.quiet import Quiet

PARTS = (
    "command_line",
    "start_stop",
    "throughput",
    "small_frames",
    "line_rate",
    "load",
    "back_pressure",
    "idle",
    "simulation",
    "scale",
    "analysis",
    "captures",
    "generators",
    "control",
    "policies",
    "abw",
)
CAMPAIGNS = ("verdict", "virtual_programs", "repeated_programs", "own_code", "live_page")
"""Only when they are named: what takes more than half an hour and says nothing about speed, what needs the guest
kernel or a browser, and what has a record of its own."""
PARTS_HELP = f"any of: {', '.join(PARTS + CAMPAIGNS)}; all but {', '.join(CAMPAIGNS)} when none is named"
PEERS = ("mininet", "ovs", "kernel", "iperf3", "ping", "bare", "ns-3")
PATIENCE_S = 30.0
QUICK_PATIENCE_S = 3.0
"""How long a part may wait for a quiet machine."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure twinnet beside its peers.")
    parser.add_argument("parts", nargs="*", metavar="NAME", help=PARTS_HELP)
    parser.add_argument("--quick", action="store_true", help="shorter and fewer repetitions: for a first look")
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="write every repetition, with commit, machine and settings; other parts in FILE are kept",
    )
    parser.add_argument(
        "--rows",
        nargs="+",
        metavar="ROW",
        default=(),
        help="only these rows of one part, as its ROWS names them; what FILE has of its others at this commit is kept",
    )
    return parser


def main() -> int:
    """Run the parts that were asked for; the status says whether they could be measured, met or not."""
    parser = _parser()
    wanted = parser.parse_args()
    # The end that `timeout` brings is to close what was opened, as an interrupt does.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    unknown = [name for name in wanted.parts if name not in PARTS + CAMPAIGNS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; allowed are {', '.join(PARTS + CAMPAIGNS)}")
    console = Console(width=None if sys.stdout.isatty() else 160)
    machine = describe()
    console.print("   ".join(f"{name}: {value}" for name, value in machine.items()), highlight=False)
    for reason in filter(None, map(missing, PEERS)):
        console.print(f"[yellow]{reason}[/]")
    parts = record.read(wanted.record) if wanted.record is not None else {}
    if wanted.rows and (wrong := _wrong_rows(wanted.parts, wanted.rows, parts)):
        parser.error(wrong)
    measured: list[Figure] = []
    failed = False
    for name in wanted.parts or PARTS:
        part = importlib.import_module(f"bench.{name}")
        begin, moment, processors = time.monotonic(), record.now(), record.Processors()
        figures: list[Figure] = []
        quiet = Quiet(QUICK_PATIENCE_S if wanted.quick else PATIENCE_S)
        failure = ""
        try:
            pieces = (wanted.rows,) if wanted.rows else ()
            figures.extend(part.measure(wanted.quick, quiet, *pieces))
        except (OSError, TimeoutError, subprocess.CalledProcessError) as error:
            failed, failure = True, str(error)
            console.print(f"[red]{name} could not be measured to the end:[/] {error}")
        print_figures(console, part.TITLE, figures)
        others = (
            f"; others took {median(quiet.seen):.0f} % of the machine, at most {max(quiet.seen):.0f} %"
            if quiet.seen
            else ""
        )
        seconds = time.monotonic() - begin
        console.print(f"{seconds:.0f} s{others}\n", style="dim", highlight=False)
        measured += figures
        if wanted.record is not None:
            told = record.PartRecord(
                part.TITLE,
                record.commit(),
                moment,
                round(seconds, 1),
                wanted.quick,
                machine,
                [round(share, 1) for share in quiet.seen],
                round(processors.stolen_percent, 2),
                failure,
                figures,
                tuple(wanted.rows),
            )
            parts[name] = record.joined(parts.get(name), told, part.ROWS) if wanted.rows else told
            record.write(wanted.record, parts)
    missed = [figure.name for figure in measured if figure.met is False]
    console.print(f"missed: {'; '.join(missed)}" if missed else "no row that has a goal misses it")
    return 1 if failed else 0


def _wrong_rows(names: Sequence[str], rows: Sequence[str], parts: Mapping[str, record.PartRecord]) -> str:
    """Return what is wrong with asking for these rows; nothing when they can be measured."""
    if len(names) != 1:
        return "--rows is for one part: name it"
    (name,) = names
    known: Sequence[str] = getattr(importlib.import_module(f"bench.{name}"), "ROWS", ())
    if not known:
        return f"{name} is measured as a whole: leave --rows out"
    if unknown := [row for row in rows if row not in known]:
        return f"{name} has no row {unknown[0]!r}; allowed are: {'; '.join(known)}"
    done = parts[name].rows if name in parts and parts[name].commit == record.commit() else ()
    again = [row for row in rows if row in done]
    return (
        f"the record has {', '.join(again)} of {name} at this commit; without --rows it is measured anew"
        if again
        else ""
    )


if __name__ == "__main__":
    sys.exit(main())
