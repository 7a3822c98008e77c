"""A sender on a physical machine, started by hand and by twinnet's agent: ``python -m bench.machine_generators``.

Machines are network namespaces of this one, each with a real sshd (tests/support/ssh_machines.py). By turns, the same
flow is sent by ``twinnet send`` in a shell of the machine, and by the agent that SSH starts there. One observer counts
both: a packet socket at the receiving machine's interface, with the kernel's stamps. Needs root.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from ssh_machines import SshMachines, missing_for_machines

_OBSERVE = """
import json, select, socket, struct, sys, time
port, seconds = int(sys.argv[1]), float(sys.argv[2])
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
sock.bind(("lan", 0))
sock.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
print("ready", flush=True)
end, stamps = time.monotonic() + seconds, []
while (left := end - time.monotonic()) > 0:
    if not select.select([sock], [], [], left)[0]:
        continue
    frame, told, _, _ = sock.recvmsg(64, 128)
    if len(frame) >= 38 and frame[23] == 17 and struct.unpack("!H", frame[36:38])[0] == port:
        whole, nano = struct.unpack("@qq", told[0][2][:16])
        stamps.append(whole * 10**9 + nano)
print(json.dumps(stamps))
"""
_AGENT = """
import sys
import twinnet as tn
net = tn.Network()
s1 = net.switch("s1")
for number in (1, 2):
    net.link(net.machine(f"h{number}", f"m{number}", "lan", f"10.8.0.{number}/24"), s1)
with net.operate() as lab:
    rate, payload, seconds, port = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    asked = {"payload": f"{payload} B", "duration": f"{seconds} s", "port": port}
    # As `twinnet send` does unless it is told to gather.
    lab.wait([lab.start(tn.apps.udp("h1", "h2", packets_per_second=rate, exact=True, **asked))])
print("{}")
"""
_PORT = 5003
_LEAD_S = 6.0
"""What the observer waits beyond the flow: both ways to start take a second or two."""


def _observed(machines: SshMachines, rate: int, payload: int, seconds: float, by_agent: bool) -> list[int]:
    """The stamps of one flow in nanoseconds."""
    observer = subprocess.Popen(
        machines.machines[1].command(sys.executable, "-c", _OBSERVE, str(_PORT), str(seconds + _LEAD_S)),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert observer.stdout is not None and observer.stdout.readline() == "ready\n"
    if by_agent:
        machines.python(_AGENT, str(rate), str(payload), f"{seconds:g}", str(_PORT))
    else:
        flow = ["--pps", str(rate), "--payload", f"{payload} B", "--duration", f"{seconds:g} s", "--no-clock"]
        sender = [sys.executable, "-c", "from twinnet.cli import main; main()", "send", "10.8.0.2", *flow]
        receiver = [sys.executable, "-c", "from twinnet.cli import main; main()", "recv", "--udp", str(_PORT)]
        listen = machines.machines[1].command(*receiver, "--idle", "1 s", "--no-clock")
        with subprocess.Popen(listen, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as listening:
            subprocess.run(machines.machines[0].command(*sender), check=True, stdout=subprocess.DEVNULL, timeout=120)
            listening.wait(30)
    told = observer.communicate(timeout=60)[0]
    return json.loads(told)


def main() -> None:
    """Print the medians and ranges for each rate, by hand and by the agent."""
    parser = argparse.ArgumentParser(prog="python -m bench.machine_generators", description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rates", type=int, nargs="+", default=[1000, 10_000], help="datagrams a second")
    chosen = parser.parse_args()
    if (missing := missing_for_machines()) is not None:
        raise SystemExit(missing)
    with tempfile.TemporaryDirectory() as folder, SshMachines(Path(folder), 2) as machines:
        for rate in chosen.rates:
            found: dict[bool, list[tuple[float, float, float]]] = {False: [], True: []}
            for turn in range(chosen.turns):
                for by_agent in (False, True) if turn % 2 == 0 else (True, False):
                    stamps = _observed(machines, rate, 1000, chosen.seconds, by_agent)
                    gaps_us = sorted(
                        abs(after - before - 1e9 / rate) / 1e3 for before, after in itertools.pairwise(stamps)
                    )
                    achieved = (len(stamps) - 1) * 1e9 / (stamps[-1] - stamps[0])
                    error = 100 * (achieved / rate - 1)
                    found[by_agent].append((error, gaps_us[len(gaps_us) // 2], gaps_us[int(0.99 * len(gaps_us))]))
            for by_agent, name in ((False, "by hand"), (True, "by the agent")):
                columns = zip(*found[by_agent], strict=True)
                rate_error, median_gap, most_gaps = (
                    f"{statistics.median(one):.3g} ({min(one):.3g} to {max(one):.3g})" for one in columns
                )
                print(
                    f"{rate} a second, {name:12}: rate off by {rate_error} %, gaps by {median_gap} us at the median and"
                    f" {most_gaps} us at 99 %, n = {chosen.turns}"
                )


if __name__ == "__main__":
    main()
