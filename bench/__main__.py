"""``python -m bench [NAME...] [--quick] [--json FILE] [--markdown FILE]``: measure, and say what is met."""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
import time
from pathlib import Path
from statistics import median

from rich.console import Console

from bench.figure import Figure, markdown, print_figures
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
    "abw",
)
CAMPAIGNS = ("verdict",)
"""Parts that take more than half an hour and say nothing about speed: only when they are named."""
PARTS_HELP = f"any of: {', '.join(PARTS + CAMPAIGNS)}; all but {', '.join(CAMPAIGNS)} when none is named"
PEERS = ("mininet", "ovs", "kernel", "iperf3", "ping", "bare", "ns-3")
PATIENCE_S = 30.0
QUICK_PATIENCE_S = 3.0
"""How long a part may wait for a quiet machine."""


def main() -> int:
    """Run the parts that were asked for; the status tells whether they could be measured, met or not."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure twinnet beside its peers.")
    parser.add_argument("parts", nargs="*", metavar="NAME", help=PARTS_HELP)
    parser.add_argument("--quick", action="store_true", help="shorter and fewer repetitions: for a first look")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE, samples too")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables to FILE, for the documentation")
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
    parts: dict[str, object] = {}
    report: dict[str, object] = {"machine": machine, "quick": wanted.quick, "parts": parts}
    measured: list[Figure] = []
    tables: list[str] = []
    failed = False
    for name in wanted.parts or PARTS:
        part = importlib.import_module(f"bench.{name}")
        begin = time.monotonic()
        figures: list[Figure] = []
        quiet = Quiet(QUICK_PATIENCE_S if wanted.quick else PATIENCE_S)
        try:
            figures.extend(part.measure(wanted.quick, quiet))
        except (OSError, TimeoutError) as error:
            failed = True
            console.print(f"[red]{name} could not be measured to the end:[/] {error}")
        print_figures(console, part.TITLE, figures)
        others = (
            f"; others took {median(quiet.seen):.0f} % of the machine, at most {max(quiet.seen):.0f} %"
            if quiet.seen
            else ""
        )
        console.print(f"{time.monotonic() - begin:.0f} s{others}\n", style="dim", highlight=False)
        measured += figures
        parts[name] = {"others_percent": quiet.seen, "figures": [figure.to_json() for figure in figures]}
        if wanted.json is not None:
            wanted.json.write_text(json.dumps(report, indent=1))
        tables.append(markdown(part.TITLE, figures))
        if wanted.markdown is not None:
            wanted.markdown.write_text("\n".join(tables))
    missed = [figure.name for figure in measured if figure.met is False]
    judged = sum(figure.met is not None for figure in measured)
    console.print(
        f"{judged - len(missed)} of {judged} targets are met" + (": all but " + "; ".join(missed) if missed else "")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
