"""A network on two machines beside the same network on one: ``python -m bench.cut_network [FRAMES]``.

The machines are network namespaces, each with a real sshd (tests/support/ssh_machines.py), and a lab between them is
the underlay: 200 us +- 50 us each way. FRAMES datagrams (100,000 when none are given) of 500 bytes cross a link of 1 ms
at 2,000 in a second, first on one machine and then cut between two. Both machines read one clock in that comparison, so
that the delays are exact; by how much they may be wrong where the clocks differ is measured beside it. Then the
underlay is raised to 1.2 ms: before the start, and while the network runs. Needs root.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from ssh_machines import SshMachines, missing_for_machines
from two_machines import NETWORK, unbridged

_RATE_FRAMES = 2000
_FRAMES = 100_000
_AHEAD_S = 7200
_PS_PER_US = 1e6
_NAMES = ("min", "p50", "mean", "p99", "max")

_DELAYS = """
import contextlib
seconds, place = float(sys.argv[1]), sys.argv[2] == "cut"
with underlay("200 us", "50 us") if place else contextlib.nullcontext(), network("1 ms", place).emulate() as lab:
    lab["h1"].run("ping -c 2 -i 0.2 h2", timeout="20 s", check=True)
    lab.fidelity(reset=True)
    flow = lab.start(tn.apps.udp("h1", "h2", rate="8 Mbit", payload="500 B", duration=f"{seconds:g} s"))
    assert lab.wait([flow])
    lab.run_until(f"{lab.now() + 0.1:.3f} s")
    report, verdict = flow.report().raw, lab.fidelity().verdict()
    print(json.dumps({"packets": report["packets"], "lost": report["lost"], "delay": report.get("delay_ps"),
                      "verdict": [str(verdict.state), list(verdict.reasons)],
                      "underlay": lab.started.get("underlay"), "clocks": lab.started.get("clocks"),
                      "watched": lab.fidelity().raw.get("underlay")}))
"""
_REFUSED = """
with underlay("1.2 ms"):
    try:
        with network("1 ms").emulate():
            print(json.dumps("started"))
    except tn.errors.TwinnetError as error:
        print(json.dumps(f"{error.name}: {error}"))
"""
_RAISED = """
with underlay("200 us") as under, network("1 ms").emulate() as lab:
    under.link("lan1", "lan2").set(delay="1.2 ms")
    lab.run_until("5 s")
    verdict = lab.fidelity().verdict()
    print(json.dumps(f"{verdict.state}: {'; '.join(verdict.reasons)}"))
"""


def main(frames: int) -> None:
    """Print both distributions of delays, their difference, and what is said of a slow underlay."""
    missing = missing_for_machines()
    if missing is not None:
        raise SystemExit(missing)
    seconds = str(frames / _RATE_FRAMES)
    with tempfile.TemporaryDirectory() as folder, SshMachines(Path(folder), 2) as machines, unbridged(machines):
        patience_s = float(seconds) + 120
        told = {
            name: machines.python(NETWORK + _DELAYS, seconds, name, timeout_s=patience_s) for name in ("one", "cut")
        }
        slow = [machines.python(NETWORK + program) for program in (_REFUSED, _RAISED)]
    with (
        tempfile.TemporaryDirectory() as folder,
        SshMachines(Path(folder), 2, apart={2: _AHEAD_S}) as machines,
        unbridged(machines),
    ):
        clocks = machines.python(NETWORK + _DELAYS, "1", "cut")["clocks"]
    for name, label in (("one", "one machine"), ("cut", "two machines")):
        _print_delays(label, told[name])
    if told["one"]["delay"] and told["cut"]["delay"]:
        apart = {name: (told["cut"]["delay"][name] - told["one"]["delay"][name]) / _PS_PER_US for name in _NAMES}
        print("difference    " + ", ".join(f"{name} {value:+.1f} us" for name, value in apart.items()))
    [path] = told["cut"]["underlay"]
    print(
        f"underlay      median {path['delay_ps'] / _PS_PER_US:.1f} us, shortest {path['shortest_ps'] / _PS_PER_US:.1f}"
        f" us, 99th percentile {path['p99_ps'] / _PS_PER_US:.1f} us"
    )
    print(f"bound         {clocks['m2']['bound_ps'] / _PS_PER_US:.1f} us, of clocks {_AHEAD_S} s apart")
    print(f"underlay of 1.2 ms before the start: {slow[0]}")
    print(f"underlay of 1.2 ms in the run: {slow[1]}")
    print(json.dumps(told))


def _print_delays(label: str, told: Mapping[str, Any]) -> None:
    delay = told["delay"]
    shown = ", ".join(f"{name} {delay[name] / _PS_PER_US:.1f} us" for name in _NAMES) if delay else "not told"
    print(f"{label:13} {shown}; {told['packets']} frames, {told['lost']} lost; {told['verdict'][0]}")
    for reason in told["verdict"][1]:
        print(f"{'':13} {reason}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else _FRAMES)
