"""``python -m bench.virtual_scripts``: what Mininet scripts on the virtual clock take of real time.

Each row is a script in a process of its own, from its start to its end, with the start of the guest. The rows of the
table in ``docs/how-to/run-mininet-scripts.md`` are printed: the median of all runs, and the range.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

from bench.mininet_tests import COMMAND

__all__ = ["ROWS", "Row", "Took", "main", "measure"]

RUNS = 5
_PATIENCE_S = 600
_NETWORK = """
    import sys, time
    from mininet.link import TCLink
    from mininet.net import Mininet
    from mininet.node import OVSBridge
    from mininet.topo import SingleSwitchTopo
    hosts, settings, seconds = int(sys.argv[1]), eval(sys.argv[2]), int(sys.argv[3])
    net = Mininet(topo=SingleSwitchTopo(hosts, lopts=settings), link=TCLink, switch=OVSBridge, controller=None)
    net.start()
    h1, h2 = net["h1"], net["h2"]
    begin = time.time()
    WORK
    print("simulated", time.time() - begin)
    net.stop()
    """
_PING = 'print(h1.cmd(f"ping -c {seconds} 10.0.0.2"))'
_TCP = 'h2.cmd("iperf3 -s -D"); print(h1.cmd(f"sleep 0.1; iperf3 -c 10.0.0.2 -t {seconds}"))'
_SHAPED = '{"bw": 10, "delay": "5ms"}'


class Row(NamedTuple):
    """A script: its name, what it does, and its arguments; `shows` is in its output when it worked."""

    name: str
    work: str
    arguments: tuple[str, ...]
    shows: str


class Took(NamedTuple):
    """What one run took, in seconds: of real time in all, and of simulated time for its work."""

    real_s: float
    simulated_s: float


ROWS = (
    Row("two hosts, one ping", _PING, ("2", _SHAPED, "1"), "1 received"),
    Row("two hosts, 1000 pings, one a second", _PING, ("2", _SHAPED, "1000"), "1000 received"),
    Row("200 hosts, one ping", _PING, ("200", _SHAPED, "1"), "1 received"),
    Row("TCP over 10 Mbit/s, 10 s", _TCP, ("2", _SHAPED, "10"), "iperf Done"),
    Row("TCP over 100 Mbit/s, 10 s", _TCP, ("2", '{"bw": 100, "delay": "1ms"}', "10"), "iperf Done"),
    Row("TCP over links without a rate, 1 s", _TCP, ("2", "{}", "1"), "iperf Done"),
)


def measure(row: Row) -> Took:
    """Run the script of `row` once."""
    with tempfile.TemporaryDirectory(prefix="virtual-script-") as folder:
        Path(folder, "script.py").write_text(textwrap.dedent(_NETWORK).replace("WORK", row.work))
        command = [*COMMAND, "--clock", "virtual", "script.py", *row.arguments]
        begin = time.monotonic()
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE_S
        )
        real_s = time.monotonic() - begin
    found = re.search(r"^simulated ([0-9.]+)$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or row.shows not in done.stdout or found is None:
        raise RuntimeError(f"{row.name}: status {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return Took(real_s, float(found[1]))


def main() -> int:
    """Measure all rows by turns and print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=RUNS, help=f"how often each script runs; default {RUNS}")
    parser.add_argument("--only", default="", help="rows whose name has this")
    given = parser.parse_args()
    rows = [row for row in ROWS if given.only in row.name]
    times: dict[str, list[Took]] = {row.name: [] for row in rows}
    for _ in range(given.runs):
        for row in rows:
            times[row.name].append(measure(row))
    for name, took in times.items():
        real = [one.real_s for one in took]
        # Each run simulates the same.
        (simulated_s,) = {one.simulated_s for one in took}
        spread = f"{statistics.median(real):.3g} ({min(real):.3g} to {max(real):.3g})"
        print(f"| {name} | {simulated_s:.4g} | {spread} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
