"""A controller that switches on two machines have in common: each machine connects its own switches."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from ssh_machines import SshMachines, missing_for_machines
from two_machines import NETWORK

_MISSING = missing_for_machines()
pytestmark = [
    pytest.mark.skipif(_MISSING is not None, reason=_MISSING or ""),
    pytest.mark.skipif(importlib.util.find_spec("os_ken") is None, reason="os-ken is not installed"),
]

_LEARNING = Path(__file__).parents[1] / "support" / "controllers" / "learning_at.py"
_HERE = "10.7.0.254"
"""The address of the namespace beside the machines."""


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshMachines]:
    """Two machines on one wire."""
    with SshMachines(tmp_path_factory.mktemp("controlled"), 2) as made:
        yield made


def test_one_controller_has_the_switches_of_both_machines(machines: SshMachines):
    told = machines.python(
        NETWORK
        + f"""
net = network()
net.controller("tcp:{_HERE}:6653", run=[sys.executable, sys.argv[1], "{_HERE}", "6653"])
with net.emulate() as lab:
    lab.wait_for_controllers("30 s")
    ping = lab["h1"].run("ping -c 3 -i 0.5 h2", timeout="20 s").stdout
    lab.check_controllers()
    states = {{name: lab.switch(name).controller_state for name in ("s1", "s2")}}
    flows = len(lab.switch("s2").dump_flows())
print(json.dumps({{"ping": ping, "states": states, "flows": flows}}))
""",
        str(_LEARNING),
    )
    assert "3 received" in told["ping"]
    for rows in told["states"].values():
        [row] = rows
        assert (row["target"], row["version"]) == (f"tcp:{_HERE}:6653", "1.3") and row["packet_ins"] >= 1
    # The flow for missing packets, and one for each direction.
    assert told["flows"] >= 3
    machines.wait_until_no_agent_runs()


def test_a_controller_that_nobody_answers_at_is_told_with_its_reason(machines: SshMachines):
    told = machines.python(
        NETWORK
        + f"""
net = network()
net.controller("tcp:{_HERE}:6699")
with net.emulate() as lab:
    try:
        lab.wait_for_controllers("1 s")
    except tn.errors.TimeLimit as error:
        print(json.dumps([str(error), {{switch: why for (switch, _), why in lab.lost_controllers.items()}}]))
"""
    )
    assert "no controller has joined s1, s2 (Connection refused)" in told[0]
    assert told[1] == {"s1": "Connection refused", "s2": "Connection refused"}
    machines.wait_until_no_agent_runs()


def test_a_controller_that_ends_is_missed(machines: SshMachines):
    told = machines.python(
        NETWORK
        + f"""
import time
from twinnet.control import ControllerProgram
net = network()
net.controller("tcp:{_HERE}:6654")
with ControllerProgram([sys.executable, sys.argv[1], "{_HERE}", "6654"]) as program, net.emulate() as lab:
    lab.wait_for_controllers("30 s")
    program.stop()
    end_s = time.monotonic() + 10
    while len(lab.lost_controllers) < 2 and time.monotonic() < end_s:
        time.sleep(0.05)
    try:
        lab.check_controllers()
        print(json.dumps(""))
    except tn.errors.NotAvailable as error:
        print(json.dumps(str(error)))
""",
        str(_LEARNING),
    )
    assert "has lost its controller tcp:10.7.0.254:6654" in told
    machines.wait_until_no_agent_runs()
