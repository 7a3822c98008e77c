"""``twinnet lab --nat``: hosts of a lab reach what is outside by a gateway, without root."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import twinnet as tn
from labs_here import can_run_labs
from mininet_scripts import COMMAND
from outside_servers import ASKS, CARRIED, outside_of
from twinnet.cli.way_out import GATEWAY, give_gateway
from twinnet.errors import BadValue


@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
def test_hosts_of_a_lab_reach_servers_outside(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    lines = (f"h2 {sys.executable} asks.py", "pingall")
    given = [word for line in lines for word in ("-c", line)]
    told = outside_of(tmp_path, *COMMAND, "lab", "single:2", "--nat", *given)
    for line in (*CARRIED, "0% dropped"):
        assert line in told, told


def test_the_gateway_has_a_free_address_of_the_hosts_network_and_hosts_with_a_route_keep_it() -> None:
    net = tn.Network()
    net.host("h1", ip="192.0.2.1/29")
    net.host("h2", ip="192.0.2.6/29", gateway="192.0.2.1")
    net.host("h3", ip="198.51.100.1/24")
    net.switch("s1")
    for name in ("h1", "h2", "h3"):
        net.link(name, "s1")
    give_gateway(net)
    assert net.hosts[GATEWAY].addresses == ("192.0.2.5/29",)
    assert [net.hosts[name].routes for name in ("h1", "h2", "h3")] == [
        [("0.0.0.0/0", "192.0.2.5")],
        [("0.0.0.0/0", "192.0.2.1")],
        [],
    ]


def test_a_network_without_a_switch_or_a_free_address_gets_no_gateway() -> None:
    net = tn.Network()
    net.host("h1", ip="192.0.2.1/30")
    net.host("h2", ip="192.0.2.2/30")
    with pytest.raises(BadValue, match="no way out"):
        give_gateway(net)
    net.switch("s1")
    net.link("h1", "s1")
    net.link("h2", "s1")
    with pytest.raises(BadValue, match="free address"):
        give_gateway(net)
