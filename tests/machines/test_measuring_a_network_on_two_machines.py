"""What is measured in a network on two machines is told as on one: captures, samples of ports, and studies."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ssh_machines import SshMachines, missing_for_machines
from two_machines import NETWORK

_MISSING = missing_for_machines()
pytestmark = pytest.mark.skipif(_MISSING is not None, reason=_MISSING or "")

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
_TWINNET = str(Path(sys.executable).parent / "twinnet")
_STUDY = """
study: cut
title: A stream between two machines
question: Does a link between two machines carry a stream?
network:
  hosts: {h1: , h2: }
  switches: {s1: , s2: }
  links:
    - {between: [h1, s1]}
    - {between: [h2, s2]}
    - {between: [s1, s2], rate: 1 Gbit, delay: 2 ms}
  on: {s1: {ssh: m1, address: 10.8.0.1}, s2: {ssh: m2, address: 10.8.0.2}}
traffic:
  - {name: stream, app: udp, from: [h1], to: h2, port: 5003, rate: 2 Mbit, payload: 500 B, duration: 1 s}
measurements:
  arrived: {of: throughput, interval: 500 ms}
  lost: {of: loss}
  sent: {of: port_throughput, layer: link, ports: [s1-eth2, s2-eth1], interval: 200 ms}
repetitions: 1
settle: 200 ms
drain: 200 ms
clock: wall
"""


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshMachines]:
    """Two machines on one wire."""
    with SshMachines(tmp_path_factory.mktemp("measured"), 2) as made:
        yield made


@needs_tshark
def test_captures_on_both_machines_are_files_here(machines: SshMachines, tmp_path: Path):
    told = machines.python(
        NETWORK
        + """
folder = sys.argv[1]
with network().emulate() as lab:
    with lab.capture("s1-eth2", f"{folder}/near.pcapng") as near, lab.capture("s2-eth2", f"{folder}/far.pcapng") as far:
        flow = lab.start(tn.apps.udp("h1", "h2", rate="2 Mbit", payload="500 B", duration="500 ms"))
        assert lab.wait([flow])
        # The last one is on its way for 2 ms.
        lab.run_until(f"{lab.now() + 0.1:.3f} s")
    running = lab.capture("s2-eth1", f"{folder}/left.pcapng")
    lab["h1"].run("ping -c 1 10.0.0.2", timeout="20 s", check=True)
    try:
        lab.capture("s1-eth2", f"{folder}/ring.pcapng", ring=(2, "1 MB"))
    except tn.errors.NotAvailable as error:
        refused = str(error)
print(json.dumps({"near": near.frames, "far": far.frames, "failures": [near.failure, far.failure],
                  "dropped": near.dropped + far.dropped, "refused": refused}))
""",
        str(tmp_path),
    )
    # 250 datagrams in half a second, and neighbour discovery beside them.
    assert told["near"] >= 250 and told["far"] >= 250
    assert (told["dropped"], told["failures"]) == (0, [None, None])
    assert "leave ring out" in told["refused"]
    for name in ("near", "far"):
        assert _datagrams(tmp_path / f"{name}.pcapng") == 250
    # It was never stopped: the end of the lab has it written to its end.
    assert _frames(tmp_path / "left.pcapng", "icmp") == 2
    machines.wait_until_no_agent_runs()


def _datagrams(path: Path) -> int:
    return _frames(path, "udp && ip.dst == 10.0.0.2 && udp.length == 508")


def _frames(path: Path, shown: str) -> int:
    done = subprocess.run(
        ["tshark", "-r", str(path), "-Y", shown], capture_output=True, text=True, timeout=60, check=True
    )
    return len(done.stdout.splitlines())


def test_ports_of_both_machines_are_sampled_as_one(machines: SshMachines):
    told = machines.python(
        NETWORK
        + """
with network().emulate() as lab:
    sampler = lab.sample(["s1-eth2", "s2-eth1", "s1-eth1"], "200 ms")
    flow = lab.start(tn.apps.udp("h1", "h2", rate="2 Mbit", payload="500 B", duration="1 s"))
    assert lab.wait([flow])
    lab.run_until(f"{lab.now() + 0.5:.3f} s")
    read, samples = sampler.read(), sampler.stop()
    try:
        lab.sample(["s1-eth2", "s2-eth1"], "1 us")
        refused = None
    except tn.errors.NotAvailable as error:
        refused = str(error)
frames = {name: sum(one.frames) for name, one in samples.ports.items()}
print(json.dumps({"ports": list(samples.ports), "frames": frames,
                  "length": [len(read), len(samples)], "refused": refused}))
"""
    )
    assert sorted(told["ports"]) == ["s1-eth1", "s1-eth2", "s2-eth1"]
    # 500 datagrams towards h2, at the cut link on one machine and at the last port on the other.
    assert told["frames"]["s1-eth2"] >= 500 and told["frames"]["s2-eth1"] >= 500
    assert 0 < told["length"][0] <= told["length"][1]
    assert "sample at least every 1 ms" in told["refused"]


def test_a_study_runs_on_two_machines(machines: SshMachines, tmp_path: Path):
    study = tmp_path / "cut.yaml"
    study.write_text(_STUDY)
    done = machines.run(_TWINNET, "run", str(study), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, (done.stdout, done.stderr)
    [record] = (tmp_path / "out").rglob("run.json")
    told = json.loads(record.read_text())
    assert set(told["fidelity"]["record"]["machines"]) == {"m1", "m2"}
    machines.wait_until_no_agent_runs()
