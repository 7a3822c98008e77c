"""``python -m bench.mininet_tcp [N]``: TCP through one switch of a Mininet script, on twinnet and on Mininet by turns.

The script is ``bench/mininet_tcp_peer.py``. Mininet has Open vSwitch's user-space datapath, in namespaces of its own.
Prints the row of the table in ``docs/reference/mininet.md``: medians of N pairs, with the least and the greatest. Needs
root, Mininet, Open vSwitch and iperf3.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

from bench.arena import Arena
from bench.machine import missing
from bench.mininet_tests import COMMAND

__all__ = ["main", "on_mininet", "on_twinnet"]

FACTOR = 7
"""TCP through our switch is to be so many times faster."""
FLOWS = 3
_SCRIPT = Path(__file__).with_name("mininet_tcp_peer.py")
_PATIENCE_S = 300


def on_twinnet(seconds: int, flows: int = FLOWS) -> float:
    """Return what passes here, in Gbit/s: the median of so many `flows` of so many `seconds`."""
    command = [*COMMAND, str(_SCRIPT), str(seconds), str(flows)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=_PATIENCE_S, check=True)
    return float(done.stdout)


def on_mininet(seconds: int, flows: int = FLOWS) -> float:
    """Return what passes on Mininet, as :func:`on_twinnet` does."""
    with Arena() as arena:
        arena.start_open_vswitch()
        command = ["/usr/bin/python3", str(_SCRIPT), str(seconds), str(flows), "--checksums"]
        return float(arena.run(command, timeout_s=_PATIENCE_S))


def main() -> int:
    """Measure and print; the status is 1 when the factor is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("number", type=int, nargs="?", default=5)
    parser.add_argument("--seconds", type=int, default=3, help="how long each flow lasts; default 3")
    given = parser.parse_args()
    why = missing("mininet") or (None if shutil.which("iperf3") else "TCP is not measured: install iperf3")
    if why is not None:
        print(why, file=sys.stderr)
        return 2
    pairs = [(on_twinnet(given.seconds), on_mininet(given.seconds)) for _ in range(given.number)]
    cells = [f"{median(side):.2f} ({min(side):.2f} to {max(side):.2f})" for side in zip(*pairs, strict=True)]
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    print(f"| {cells[0]} | {cells[1]} | {median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f}) |")
    return 0 if median(ratios) >= FACTOR else 1


if __name__ == "__main__":
    sys.exit(main())
