"""How soon the command line answers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median

from bench.figure import Figure
from bench.quiet import Quiet

TITLE = "Command line"
MEASURES = ("bench/command_line.py", "python/twinnet/cli")

TARGET_S = 0.2


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures."""
    repetitions = 3 if quick else 15
    completion = {"_TWINNET_COMPLETE": "bash_complete", "COMP_WORDS": "twinnet r", "COMP_CWORD": "1"}
    quiet.wait()
    for name, arguments, environment, expected in (
        ("twinnet --help", ["--help"], {}, "Usage"),
        ("a shell completion", [], completion, "run"),
    ):
        taken = [_seconds(arguments, environment, expected) for _ in range(repetitions)]
        yield Figure(
            name,
            "s",
            taken,
            {"python -c pass": [_python_alone() for _ in range(repetitions)]},
            "within 0.2",
            median(taken) <= TARGET_S,
            strain=median(taken) / TARGET_S,
        )


def _seconds(arguments: list[str], environment: Mapping[str, str], expected: str) -> float:
    program = Path(sys.executable).parent / "twinnet"
    begin = time.perf_counter()
    done = subprocess.run(
        [str(program), *arguments], capture_output=True, text=True, env={**os.environ, **environment}, check=True
    )
    taken = time.perf_counter() - begin
    if expected not in done.stdout:
        raise OSError(f"twinnet {' '.join(arguments)} did not answer with {expected!r}: {done.stdout[:200]!r}")
    return taken


def _python_alone() -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - begin
