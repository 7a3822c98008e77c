"""``python -m bench.mininet_start [N]``: one script of Mininet, on twinnet and on Mininet by turns, N times.

The script is ``bench/mininet_peer.py``: it creates a network by Mininet's classes, starts it and stops it, once as it
is and once with a first command on each host. Mininet has Open vSwitch's user-space datapath, in namespaces of its own.
Prints the rows of the table in ``docs/reference/mininet.md``: medians, with the least and the greatest. Needs root,
Mininet and Open vSwitch; ``--only NAME`` leaves the other networks out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from statistics import median

from bench.machine import missing
from bench.mininet_tests import COMMAND
from bench.start_stop import MININET_SCRIPT, ROWS, Times, mininet_times

__all__ = ["main", "our_times"]

NETWORKS = ROWS[:3]
FACTOR = 15
"""Start and stop are to be so many times faster than Mininet's."""
_PATIENCE_S = 600


def our_times(name: str, *options: str) -> Times:
    """Return what the same script took on twinnet."""
    command = [*COMMAND, str(MININET_SCRIPT), *name.split(","), *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=_PATIENCE_S, check=True)
    return Times(*map(float, done.stdout.split()))


def _row(name: str, what: str, of: Callable[[Times], float], ours: Sequence[Times], theirs: Sequence[Times]) -> str:
    cells: list[str] = []
    for times in (ours, theirs):
        found = sorted(map(of, times))
        cells.append(f"{median(found):.2f} s ({found[0]:.2f} to {found[-1]:.2f})")
    ratio = median(map(of, theirs)) / median(map(of, ours))
    return f"| `{name}` | {what} | {cells[0]} | {cells[1]} | {ratio:.1f} |"


def main() -> int:
    """Measure, and print the rows; the status is 1 when start and stop are not `FACTOR` times faster."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("number", type=int, nargs="?", default=3)
    parser.add_argument("--only", default="", choices=("", *NETWORKS), help="one of the networks")
    given = parser.parse_args()
    why = missing("mininet")
    if why is not None:
        print(why, file=sys.stderr)
        return 2
    met = True
    for name in [given.only] if given.only else NETWORKS:
        plain: tuple[list[Times], list[Times]] = ([], [])
        commands: tuple[list[Times], list[Times]] = ([], [])
        for _ in range(given.number):
            for options, found in (((), plain), (("--commands",), commands)):
                found[0].append(our_times(name, *options))
                found[1].append(mininet_times(name, *options))
        print(_row(name, "create and start", lambda one: one.create_s, *plain))
        print(_row(name, "stop", lambda one: one.return_s, *plain))
        print(_row(name, "both", _both, *plain))
        print(_row(name, "both, with a command on each host", _both, *commands), flush=True)
        met &= median(map(_both, plain[1])) >= FACTOR * median(map(_both, plain[0]))
    return 0 if met else 1


def _both(times: Times) -> float:
    return times.create_s + times.return_s


if __name__ == "__main__":
    sys.exit(main())
