"""The conformance suite over TCP against a switch of ours that runs alone, its ports cabled to interfaces."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from private_network import PrivateNetwork, needs_private_network
from twinnet_conformance import all_cases, run_case
from twinnet_conformance.bare import Bare

TWINNET = (sys.executable, "-c", "from twinnet.cli import main; main()")
PORTS = range(1, 5)
LISTEN = "6661"
FEATURES = (
    "Barriers",
    "Channel: echo",
    "Channel: errors",
    "Channel: version negotiation",
    "Groups: all",
    "Packet-in: contents",
    "Packet-out",
    "Pipeline: priorities",
    "Push and pop: VLAN",
    "Roles",
)
"""Those of the channel, and some of each part of the pipeline: all cases take ten minutes."""
pytestmark = needs_private_network


@pytest.fixture(scope="module")
def network() -> Iterator[PrivateNetwork]:
    """A namespace with a switch on s1 to s4, and t1 to t4 at the other ends of its cables."""
    with PrivateNetwork(0) as made:
        # Neighbour discovery would put frames of its own among those that are awaited.
        made.here.run("sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
        for number in PORTS:
            made.here.run("ip", "link", "add", f"s{number}", "type", "veth", "peer", "name", f"t{number}")
            for end in "st":
                made.here.run("ip", "link", "set", f"{end}{number}", "up")
        ports = [word for number in PORTS for word in ("--port", f"s{number}")]
        command = (*TWINNET, "switch", *ports, "--listen", f"ptcp:{LISTEN}", "--fail-mode", "secure")
        switch = made.here.popen(*command, stdout=subprocess.PIPE)
        try:
            assert switch.stdout is not None and "is ready on" in switch.stdout.readline()
            yield made
        finally:
            switch.send_signal(signal.SIGTERM)
            switch.communicate(timeout=20)


def outcomes(network: PrivateNetwork, *options: str) -> list[dict[str, object]]:
    """What `twinnet conformance` tells of the switch."""
    ports = [word for number in PORTS for word in ("--port", f"{number}=t{number}")]
    command = (*TWINNET, "conformance", f"tcp:127.0.0.1:{LISTEN}", *ports, "--json", *options)
    told = network.here.run(*command, timeout_s=300, check=False)
    return json.loads(told)[f"tcp:127.0.0.1:{LISTEN}"]


@pytest.mark.parametrize("feature", FEATURES)
def test_a_live_switch_passes_the_cases_that_it_passes_in_process(network: PrivateNetwork, feature: str) -> None:
    found = [one for one in outcomes(network, "--only", feature) if one["feature"] == feature]
    live = {f"{one['version']} {one['section']} {one['name']}": one for one in found}
    target = Bare()
    in_process = {case.identifier: run_case(case, target).passed for case in all_cases() if case.feature == feature}
    assert set(live) == set(in_process)
    differing = {name: live[name]["why"] for name, passed in in_process.items() if live[name]["passed"] is not passed}
    assert not differing


def test_what_cannot_be_done_from_afar_is_left_out_and_not_passed(network: PrivateNetwork) -> None:
    found = outcomes(network, "--only", "Queues", "--only", "Ports: port-status")
    not_run = [one for one in found if one["passed"] is None]
    assert any("queues" in str(one["why"]) for one in not_run)
    assert any("cables" in str(one["why"]) for one in not_run)
    assert not [one for one in found if one["passed"] is False]
