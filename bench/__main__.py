"""``python -m bench [NAME...] [--quick] [--json FILE]``: measure, and say what is met."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path

from rich.console import Console

from bench.figure import Figure, print_figures
from bench.machine import describe, missing

PARTS = ("command_line", "start_stop", "throughput", "small_frames", "line_rate", "back_pressure", "idle")
PEERS = ("mininet", "ovs", "kernel", "iperf3", "ping", "bare")


def main() -> int:
    """Run the parts that were asked for; the status tells whether they could be measured, not whether targets are met."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure twinnet beside its peers.")
    parser.add_argument("parts", nargs="*", metavar="NAME", help=f"any of: {', '.join(PARTS)}; all when none is named")
    parser.add_argument("--quick", action="store_true", help="shorter and fewer repetitions: for a first look")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE, samples too")
    wanted = parser.parse_args()
    unknown = [name for name in wanted.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; allowed are {', '.join(PARTS)}")
    console = Console(width=None if sys.stdout.isatty() else 160)
    machine = describe()
    console.print("   ".join(f"{name}: {value}" for name, value in machine.items()), highlight=False)
    for reason in filter(None, map(missing, PEERS)):
        console.print(f"[yellow]{reason}[/]")
    report: dict[str, object] = {"machine": machine, "quick": wanted.quick, "parts": {}}
    measured: list[Figure] = []
    failed = False
    for name in wanted.parts or PARTS:
        part = importlib.import_module(f"bench.{name}")
        begin = time.monotonic()
        figures: list[Figure] = []
        try:
            figures.extend(part.measure(wanted.quick))
        except (OSError, TimeoutError) as error:
            failed = True
            console.print(f"[red]{name} could not be measured to the end:[/] {error}")
        print_figures(console, part.TITLE, figures)
        console.print(f"{time.monotonic() - begin:.0f} s\n", style="dim", highlight=False)
        measured += figures
        report["parts"] |= {name: [figure.to_json() for figure in figures]}  # type: ignore[operator]
        if wanted.json is not None:
            wanted.json.write_text(json.dumps(report, indent=1))
    missed = [figure.name for figure in measured if figure.met is False]
    judged = sum(figure.met is not None for figure in measured)
    console.print(f"{judged - len(missed)} of {judged} targets are met" + (": all but " + "; ".join(missed) if missed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
