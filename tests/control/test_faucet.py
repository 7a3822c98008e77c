"""Faucet, a controller that operators use, against our switches: VLANs, an ACL, routing between VLANs, table features.

It needs an environment of its own (Faucet 1.10 wants os-ken 3.1): ``echo "setuptools<70" > constraints.txt;
python3.11 -m venv faucet && PIP_CONSTRAINT=constraints.txt faucet/bin/pip install "setuptools<70" faucet==1.10.11``,
and ``TWINNET_FAUCET=faucet/bin/faucet``, or the command ``faucet`` on the path.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import twinnet as tn
from kernels_here import a_kernel_is_here

FAUCET = os.environ.get("TWINNET_FAUCET") or shutil.which("faucet")
CONFIG = Path(__file__).parents[1] / "support" / "controllers" / "faucet.yaml"
pytestmark = pytest.mark.skipif(FAUCET is None, reason="Faucet is not installed: see the top of this file")


def faucet_network(tmp_path: Path, hardware: str) -> tn.Network:
    config = tmp_path / "faucet.yaml"
    config.write_text(CONFIG.read_text().replace("Open vSwitch", hardware))
    settings = {
        # It starts osken-manager of its own environment.
        "PATH": f"{Path(str(FAUCET)).absolute().parent}:{os.environ['PATH']}",
        "FAUCET_CONFIG": config,
        "FAUCET_LOG": tmp_path / "faucet.log",
        "FAUCET_EXCEPTION_LOG": tmp_path / "exception.log",
        "FAUCET_EVENT_SOCK": 0,
        "FAUCET_PROMETHEUS_PORT": 0,
    }
    net = tn.Network()
    s1 = net.switch("s1", dpid=1, fail_mode="secure", protocols=["OpenFlow13"])
    for number, (address, gateway) in enumerate(
        [("10.0.1.1/24", "10.0.1.254"), ("10.0.1.2/24", "10.0.1.254"), ("10.0.2.3/24", "10.0.2.254")], start=1
    ):
        host = net.host(f"h{number}", ip=address, ip6=False, gateway=gateway)
        net.link(host, s1, port_b=number, rate="100 Mbit")
    net.host("c0")
    listen = ["--ryu-ofp-listen-host", "127.0.0.1", "--ryu-ofp-tcp-listen-port", "{port}"]
    run = ["env", *(f"{key}={value}" for key, value in settings.items()), str(Path(str(FAUCET)).absolute()), *listen]
    net.controller(run=run, host="c0")
    return net


def wait_for_flows(lab: tn.Lab) -> None:
    """Until Faucet has written its tables."""
    for _ in range(200):
        if len(lab.switch("s1").dump_flows()) > 20:
            return
        lab.run_until(tn.units.Picoseconds(lab.now_ps() + 10**11))
    raise AssertionError(lab.switch("s1").dump_flows())


def connects(lab: tn.Lab, port: int) -> bool:
    """Whether h1 reaches a server of h2 by TCP at `port`."""
    server = lab["h2"].popen(["python3", "-u", "-m", "http.server", str(port), "--bind", "10.0.1.2"])
    assert server.stdout is not None and b"Serving" in server.stdout.readline()
    attempt = f"import socket; socket.create_connection(('10.0.1.2', {port}), 3)"
    reached = lab["h1"].run(["python3", "-c", attempt]).returncode == 0
    server.kill()
    return reached


# Faucet writes table features to "GenericTFM" before it uses the tables, and not to the other.
@pytest.mark.parametrize("clock", ["wall", "virtual"])
@pytest.mark.parametrize("hardware", ["Open vSwitch", "GenericTFM"])
def test_vlans_an_acl_and_routing_between_vlans_work(hardware: str, clock: str, tmp_path: Path) -> None:
    if clock == "virtual" and not a_kernel_is_here():
        pytest.skip("there is no kernel for programs on the virtual clock")
    net = faucet_network(tmp_path, hardware)
    with net.emulate() if clock == "wall" else net.simulate(hosts="programs") as lab:
        lab.wait_for_controllers("60 s")
        wait_for_flows(lab)
        assert " 0% packet loss" in lab["h1"].run("ping -c 3 -i 0.3 10.0.1.2").stdout
        assert " 0% packet loss" in lab["h1"].run("ping -c 2 -i 0.3 10.0.1.254").stdout
        # The first packets to a host that the router has not resolved yet may be lost.
        lab["h1"].run("ping -c 5 -i 0.3 -W 2 10.0.2.3")
        assert " 0% packet loss" in lab["h1"].run("ping -c 3 -i 0.3 10.0.2.3").stdout
        assert [connects(lab, port) for port in (80, 81)] == [False, True], "the ACL lets no HTTP pass"
        (state,) = lab.switch("s1").controller_state
        assert state["version"] == "1.3" and state["errors"] == 0
        # What it writes in a guest stays there.
        written = lab["c0"].run(["sh", "-c", f"cat {tmp_path}/exception.log || true"]).stdout
        assert written == ""


@pytest.mark.skipif(not a_kernel_is_here(), reason="there is no kernel for programs on the virtual clock")
def test_it_acts_by_timers_in_virtual_time_and_two_runs_are_one(tmp_path: Path) -> None:
    def run() -> tuple[int, str]:
        with faucet_network(tmp_path, "Open vSwitch").simulate(hosts="programs", seed=3) as lab:
            lab.wait_for_controllers("60 s")
            wait_for_flows(lab)
            assert " 0% packet loss" in lab["h1"].run("ping -c 3 -i 0.3 10.0.1.2").stdout
            before = _messages(lab)
            # No host says anything, and Faucet goes on: it asks the switch, and looks for neighbours.
            lab.run_until(f"{lab.now() + 700:.0f} s")
            return _messages(lab) - before, lab.trace_hash

    messages, trace = run()
    assert messages > 10
    assert run() == (messages, trace)


def _messages(lab: tn.Lab) -> int:
    (state,) = lab.switch("s1").controller_state
    return int(state["messages"])
