"""Controllers that fail, on the wall clock: the lab goes on, says so, and loses no frame that an installed flow covers.

On the virtual clock the same is in ``test_lockstep.py``.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import twinnet as tn
from labs_here import can_run_labs

PROGRAM = Path(__file__).parents[1] / "support" / "controllers" / "small_learning_13.py"
GIVEN_UP = ("die", "hang", "nonsense", "stranger", "half", "busy", "trickle")
"""Modes in which a connection is of no use any more."""
ALIVE = ("flood", "slow")
"""A controller that floods, or is slow to greet, is one still."""
Told = dict[str, tuple[int, int, set[str]]]
COVERED = [
    "priority=100,in_port=1,actions=output:2",
    "priority=100,in_port=2,actions=output:1",
    # What hosts send unasked when they start must not reach the controller early.
    "priority=50,in_port=3,ipv6,actions=drop",
]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextlib.contextmanager
def controllers(modes: tuple[str, ...]) -> Iterator[dict[str, int]]:
    """A controller for each mode; gives their ports."""
    ports = {mode: free_port() for mode in modes}
    programs = [subprocess.Popen([sys.executable, PROGRAM, str(port), mode]) for mode, port in ports.items()]
    try:
        yield ports
    finally:
        for program in programs:
            program.kill()
            program.wait()


def stars(ports: dict[str, int]) -> tn.Network:
    """For each mode a switch with a controller of its own, two hosts whose frames flows cover, and a third."""
    net = tn.Network()
    for number, port in enumerate(ports.values(), start=1):
        switch = net.switch(f"s{number}", fail_mode="secure", flows=COVERED, controllers=[f"tcp:127.0.0.1:{port}"])
        for host in "abc":
            net.link(net.host(f"{host}{number}"), switch, rate="100 Mbit")
    return net


pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


@pytest.fixture(scope="module")
def told() -> Iterator[Told]:
    """For each mode: datagrams that came of those that flows cover, that were lost, and the troubles that were told."""
    modes = GIVEN_UP + ALIVE
    troubles: dict[str, set[str]] = {mode: set() for mode in modes}
    with controllers(modes) as ports:
        with stars(ports).emulate() as lab:
            lab.wait_for_controllers("30 s")
            numbers = range(1, len(modes) + 1)
            flows = [
                lab.start(tn.apps.udp(f"a{number}", f"b{number}", rate="1 Mbit", payload="500 B", duration="2 s"))
                for number in numbers
            ]
            # What no flow covers, while the others are on their way: the controller is asked, and fails.
            asks = [lab.start(tn.apps.ping(f"c{number}", f"a{number}", count=1)) for number in numbers]
            deadline_s = time.monotonic() + 40
            while time.monotonic() < deadline_s and not all(troubles[mode] for mode in GIVEN_UP):
                for number, mode in enumerate(modes, start=1):
                    (state,) = lab.switch(f"s{number}").controller_state
                    if state["trouble"]:
                        troubles[mode].add(state["trouble"])
                time.sleep(0.05)  # Between two looks; nothing is awaited by it.
            assert lab.wait(flows, until="60 s") and asks
            reports = [flow.report() for flow in flows]
        yield {
            mode: (report.packets or 0, -1 if report.lost is None else report.lost, troubles[mode])
            for mode, report in zip(modes, reports, strict=True)
        }


@pytest.mark.quiet
@pytest.mark.parametrize("mode", GIVEN_UP + ALIVE)
def test_no_frame_is_lost_that_an_installed_flow_covers(told: Told, mode: str) -> None:
    came, lost, _ = told[mode]
    # 1 Mbit/s of 500 bytes for 2 s.
    assert (came, lost) == (500, 0)


@pytest.mark.quiet
@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("die", "closed|refused|reset"),
        ("hang", "did not answer for 10 s"),
        ("nonsense", "length"),
        ("stranger", "did not answer for 10 s"),
        ("half", "did not answer for 10 s"),
        ("busy", "did not answer for 10 s"),
        ("trickle", "did not answer for 10 s"),
    ],
)
def test_the_trouble_is_told(told: Told, mode: str, why: str) -> None:
    _, _, troubles = told[mode]
    assert any(word in trouble for trouble in troubles for word in why.split("|")), troubles


@pytest.mark.quiet
def test_a_controller_that_is_slow_to_greet_joins_when_it_does(told: Told) -> None:
    # The fixture waited for it; it has been in no trouble since.
    assert told["slow"][2] == set()


@pytest.mark.alone
def test_a_host_of_the_lab_does_not_reach_the_control_port() -> None:
    knock = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"
    with controllers(("",)) as ports, stars(ports).emulate() as lab:
        lab.wait_for_controllers("30 s")
        before = lab.switch("s1").controller_state
        for address in ("127.0.0.1", "10.0.0.254"):
            result = lab["a1"].run([sys.executable, "-c", knock, address, str(ports[""])], timeout="20 s", check=False)
            assert result.returncode != 0 and "Error" in result.stderr, result
        (state,) = lab.switch("s1").controller_state
        assert state["version"] == "1.3" and not state["trouble"] and state["target"] == before[0]["target"]
