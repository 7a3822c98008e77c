"""What it takes until physical machines are hosts: ``python -m bench.machine_start [MACHINES] [REPETITIONS]``.

Machines are network namespaces of this one, each with a real sshd (tests/support/ssh_machines.py), so all of them share
its processors. SSH's own time is that of ``ssh MACHINE true`` to all machines side by side; the rest is twinnet's: the
agent's start, the checks of interfaces and routes, the comparison of the clocks, and the way to the first datagram that
arrives. Needs root.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from ssh_machines import SshMachines, missing_for_machines

_START = """
import json, sys, time
import twinnet as tn
from twinnet.machines.machine_lab import MachineLab
count = int(sys.argv[1])
net = tn.Network()
s1 = net.switch("s1")
for number in range(1, count + 1):
    net.link(net.machine(f"h{number}", f"m{number}", "lan", f"10.8.0.{number}/24"), s1)
begin_s = time.monotonic()
with net.operate() as lab:
    up_s = time.monotonic() - begin_s
    before_ps = lab.now_ps()
    flow = lab.start(tn.apps.udp("h1", "h2", rate="1 Mbit", payload="500 B", duration="200 ms"))
    lab.wait([flow])
    first_s = (flow.report().start_ps - before_ps) / 1e12
    ssh_s = max(lab.started["ssh_ms"].values()) / 1000
print(json.dumps({"up": up_s, "first": first_s, "agents": ssh_s}))
"""


def _ssh_s(machines: SshMachines) -> float:
    """Seconds that ssh takes by itself, to all machines at once."""
    begin_s = time.monotonic()
    command = ["ssh", "-F", str(machines.folder / "config"), "-T", "-o", "BatchMode=yes"]
    started = [subprocess.Popen(machines.here.command(*command, name, "true")) for name in machines.names]
    for one in started:
        if one.wait(60) != 0:
            raise SystemExit("ssh failed")
    return time.monotonic() - begin_s


def main(count: int, repetitions: int) -> None:
    """Print the medians and the ranges in seconds."""
    missing = missing_for_machines()
    if missing is not None:
        raise SystemExit(missing)
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder, SshMachines(Path(folder), count, apart={2: 3600}) as machines:
        for _ in range(repetitions):
            own_s = _ssh_s(machines)
            told = machines.python(_START, str(count), timeout_s=300)
            whole_s = told["up"] + told["first"]
            rows.append({"ssh true": own_s, "to first datagram": whole_s, "beyond ssh": whole_s - own_s} | told)
    for name in rows[0]:
        values = [row[name] for row in rows]
        spread = f"{statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f})"
        print(f"{name:18} {spread}, n = {len(values)}, {count} machines")
    print(json.dumps(rows))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2, int(sys.argv[2]) if len(sys.argv) > 2 else 10)
