"""Ports without an interface: patch ports, and tunnels of VXLAN and GRE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script
from twinnet.mininet.fabric import Fabric
from twinnet.mininet.fabric_plan import BarePort, Plan, SwitchPlan
from twinnet.mininet.switch_database import Refused, SwitchDatabase


@pytest.fixture
def database() -> SwitchDatabase:
    """Two switches in a fabric that does not run."""
    fabric = Fabric()
    fabric.topology_changed = lambda: None  # type: ignore[method-assign]
    for number in (1, 2):
        fabric.start_switch(SwitchPlan(f"s{number}", number, {1: BarePort(f"s{number}-eth1")}))
    return SwitchDatabase(fabric)


def added(switch: str, port: str, *settings: str) -> list[str]:
    """A command line that adds a port without an interface."""
    return ["add-port", switch, port, "--", "set", "interface", port, *settings]


def spec_of(database: SwitchDatabase) -> dict[str, Any]:
    """The network that the fabric is built from."""
    plans = {plan.name: plan for plan in database.fabric.switches()}
    return Plan(plans, []).spec({})


def ends(spec: dict[str, Any]) -> list[tuple[str, str]]:
    """The ends of the links of `spec`."""
    return [(link["a"]["node"], link["b"]["node"]) for link in spec["links"]]


def test_patch_ports_that_name_each_other_are_a_link(database: SwitchDatabase) -> None:
    outer = [("if0", "s1"), ("if1", "s2")]
    database.run(added("s1", "p1", "type=patch", "options:peer=p2"))
    assert ends(spec_of(database)) == outer
    database.run(added("s2", "p2", "type=patch", "option:peer=p1", "ofport_request=9"))
    assert ends(spec_of(database)) == [*outer, ("s1", "s2")]
    assert database.run(["get", "Interface", "p2", "ofport", "type", "options:peer"]) == "9\npatch\np1\n"
    database.run(["set", "interface", "p2", "options:peer=p3"])
    assert ends(spec_of(database)) == outer
    database.run(["del-port", "s2", "p2"])
    assert database.run(["list-ports", "s2"]) == "s2-eth1\n"


def test_tunnels_lead_to_their_other_speaker(database: SwitchDatabase) -> None:
    where = ("options:remote_ip=127.0.0.2", "options:local_ip=127.0.0.1")
    database.run(added("s1", "v1", "type=vxlan", *where, "options:key=7", "options:dst_port=4790"))
    database.run(added("s1", "g1", "type=gre", "options={remote_ip=127.0.0.3}"))
    spec = spec_of(database)
    vxlan, gre = [node for node in spec["nodes"] if node["kind"] == "tunnel"]
    assert (vxlan["remote"], vxlan["local"], vxlan["port"]) == ("127.0.0.2", "127.0.0.1", 4790)
    assert (vxlan["tunnel"]["kind"], vxlan["tunnel"]["vni"]) == ("vxlan", 7)
    assert (gre["remote"], gre["local"], gre["tunnel"]["key"]) == ("127.0.0.3", None, None)
    assert ends(spec)[2:] == [(vxlan["name"], "s1"), (gre["name"], "s1")]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["type=patch"], "type patch needs options:peer"),
        (["type=vxlan", "options:key=5"], "type vxlan needs options:remote_ip"),
        (["type=vxlan", "options:remote_ip=flow"], "address of the tunnel is 'flow'"),
        (
            ["type=vxlan", "options:remote_ip=10.0.0.1", "options:key=flow"],
            "options:key is flow; it can be a whole number",
        ),
        (["type=gre", "options:remote_ip=10.0.0.1", "options:csum=true"], "no options:csum of type gre"),
        (["type=geneve", "options:remote_ip=10.0.0.1"], "no type=geneve"),
    ],
)
def test_ports_that_ours_cannot_have_are_refused(database: SwitchDatabase, settings: list[str], told: str) -> None:
    with pytest.raises(Refused, match=told):
        database.run(added("s1", "x1", *settings))


@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
def test_frames_pass_patch_ports_and_tunnels_between_switches(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import os
        from mininet.net import Mininet
        from mininet.node import OVSSwitch

        # Without ARP: for three seconds after a failure Linux queues packets behind its last request, and drops them.
        net = Mininet(controller=None, autoStaticArp=True)
        for number in (1, 2):
            net.addLink(net.addHost(f"h{number}"), net.addSwitch(f"s{number}", cls=OVSSwitch, failMode="standalone"))
        net.start()
        hosts = net.hosts
        print(net.ping(hosts, timeout="0.3"))
        os.system("ovs-vsctl add-port s1 p1 -- set interface p1 type=patch options:peer=p2")
        os.system("ovs-vsctl add-port s2 p2 -- set interface p2 type=patch options:peer=p1")
        print(net.ping(hosts))
        os.system("ovs-vsctl del-port s1 p1; ovs-vsctl del-port s2 p2")
        print(net.ping(hosts, timeout="0.3"))
        for number in (1, 2):
            os.system(
                f"ovs-vsctl add-port s{number} v{number} -- set interface v{number} type=vxlan options:key=7 "
                f"options:local_ip=127.0.0.{number} options:remote_ip=127.0.0.{3 - number}"
            )
        print(net.ping(hosts))
        net.stop()
        """,
    )
    assert done.stdout.split() == ["100.0", "0.0", "100.0", "0.0"], done.stdout + done.stderr
