"""How often the forecast of runs that exceed the machine comes true: ``python -m bench.forecast [--seconds S]``.

Studies of TCP flows and of overloaded lines, from few to many, run on the wall clock as `twinnet run` makes them. Each
run stores what was expected of it and its verdict; the counts of both are printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Load", "expectations", "study_of"]

REPETITIONS = 2
_PATIENCE_S = 600


@dataclass(frozen=True)
class Load:
    """So many pairs of hosts behind one switch, each with a line of its own."""

    app: str
    pairs: int

    @property
    def name(self) -> str:
        """The study's name."""
        return f"{self.app}-{self.pairs}"


LOADS = (*(Load("tcp", pairs) for pairs in (3, 8, 16, 20)), *(Load("udp", pairs) for pairs in (10, 25, 50, 100)))


def study_of(load: Load, seconds: float) -> str:
    """Return the study: flows of 100 Mbit/s by TCP, or 20 Mbit/s by UDP offered to lines of 10 Mbit/s."""
    access, line = ("100 Mbit", "100 Mbit") if load.app == "tcp" else ("100 Mbit", "10 Mbit")
    numbers = range(load.pairs)
    links = [
        f"    - {{between: [{ends}], rate: {rate}}}"
        for number in numbers
        for ends, rate in ((f"a{number}, s1", access), (f"s1, b{number}", line))
    ]
    rate = "" if load.app == "tcp" else "rate: 20 Mbit, payload: 1470 B, "
    flows = [
        f"  - {{name: flow{number}, app: {load.app}, from: [a{number}], to: b{number}, port: 5001, {rate}"
        f"duration: {seconds:g} s}}"
        for number in numbers
    ]
    hosts = ", ".join(f"{side}{number}: " for number in numbers for side in "ab")
    lines = [
        f"study: {load.name}",
        f"title: {load.name}",
        "question: Does the machine carry this?",
        "network:",
        f"  hosts: {{{hosts}}}",
        "  switches: {s1: }",
        "  links:",
        *links,
        "traffic:",
        *flows,
        "measurements:",
        "  throughput: {of: throughput, interval: 1 s}",
        f"repetitions: {REPETITIONS}",
        "clock: wall",
    ]
    return "\n".join(lines) + "\n"


def expectations(results: Path) -> Iterator[tuple[bool, str]]:
    """Yield of each stored run under `results` whether it was expected to exceed the machine, and its verdict."""
    for path in sorted(results.rglob("run.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        exceeds = (record.get("forecast") or {}).get("exceeds")
        if exceeds is not None:
            yield bool(exceeds), record["fidelity"]["verdict"]


def main() -> int:
    """Run all loads and print the counts."""
    parser = argparse.ArgumentParser(prog="python -m bench.forecast", description="Does the forecast come true?")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each run sends (default 3)")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        for load in LOADS:
            file = Path(folder) / f"{load.name}.yaml"
            file.write_text(study_of(load, seconds), encoding="utf-8")
            command = [sys.executable, "-c", "from twinnet.cli import main; main()", "run", str(file)]
            options = ["--no-report", "--yes", "--out", folder]
            subprocess.run([*command, *options], check=True, timeout=_PATIENCE_S, stdout=subprocess.DEVNULL)
        found = list(expectations(Path(folder)))
    print("| expected | runs | valid | doubtful | invalid |\n|---|---:|---:|---:|---:|")
    for exceeds, what in ((True, "exceeds the machine"), (False, "does not")):
        verdicts = [verdict for expected, verdict in found if expected is exceeds]
        counts = " | ".join(str(verdicts.count(one)) for one in ("valid", "doubtful", "invalid"))
        print(f"| {what} | {len(verdicts)} | {counts} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
