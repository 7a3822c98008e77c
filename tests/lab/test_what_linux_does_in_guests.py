"""What Linux offers to a host with programs on the virtual clock: disciplines, rules of routes, filters and more."""

from __future__ import annotations

import shutil

import pytest
import twinnet as tn
from kernels_here import a_kernel_is_here

if not a_kernel_is_here():
    pytest.skip("there is no kernel for programs on the virtual clock", allow_module_level=True)

DISCIPLINES = (
    "cake bandwidth 1Mbit",
    "choke limit 1000 min 100 max 300 avpkt 1000 bandwidth 10Mbit",
    "codel",
    "ets bands 3 strict 1",
    "fq",
    "fq_codel",
    "fq_pie",
    "hhf",
    "htb",
    "netem delay 5ms",
    "pie",
    "prio",
    "red limit 400000 min 30000 max 90000 avpkt 1000",
    "sfb",
    "sfq",
    "skbprio",
    "tbf rate 1Mbit burst 10kb latency 70ms",
)
INTERFACES = (
    "type bridge",
    "type dummy",
    "type veth peer name peer0",
    "type vrf table 10",
    "type wireguard",
    "type geneve id 1 remote 10.0.0.2",
    "type vxlan id 1 dstport 4789 dev h1-eth0",
    "type gre local 10.0.0.1 remote 10.0.0.2",
    "type ip6gre local fd00::1 remote fd00::2",
    "type ip6tnl local fd00::1 remote fd00::2",
    "link h1-eth0 type macvlan",
    "link h1-eth0 type vlan id 5",
)
needs_ping = pytest.mark.skipif(shutil.which("ping") is None, reason="ping is not installed")


def two_hosts() -> tn.Network:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
    return net


def test_a_host_has_no_interface_that_nobody_made() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        assert lab["h1"].run("ls /sys/class/net", check=True).stdout.split() == ["h1-eth0", "lo"]


def test_a_host_can_make_every_kind_of_interface_that_the_page_lists() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        host = lab["h1"]
        for kind in INTERFACES:
            link, _, rest = kind.rpartition("type ")
            host.run(f"ip link add {link}name made0 type {rest}", check=True)
            assert f"{rest.split()[0]} " in host.run("ip -d link show dev made0", check=True).stdout
            host.run("ip link del dev made0", check=True)
        assert host.run("ls /sys/class/net", check=True).stdout.split() == ["h1-eth0", "lo"]


@needs_ping
def test_disciplines_of_tc_stand_at_interfaces_of_hosts_and_let_packets_pass() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        host = lab["h1"]
        for discipline in DISCIPLINES:
            host.run(f"tc qdisc replace dev h1-eth0 root {discipline}", check=True)
            name = discipline.split()[0]
            assert f"qdisc {name} " in host.run("tc qdisc show dev h1-eth0", check=True).stdout
            host.run("ping -4 -c 1 -W 1 h2", check=True)


@needs_ping
def test_a_filter_sends_a_flow_to_a_class_whose_rate_it_gets() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        host = lab["h1"]
        for words in (
            "qdisc add dev h1-eth0 root handle 1: hfsc default 1",
            "class add dev h1-eth0 parent 1: classid 1:1 hfsc sc rate 8Mbit",
            "class add dev h1-eth0 parent 1: classid 1:2 hfsc sc rate 100Kbit ul rate 100Kbit",
            "filter add dev h1-eth0 parent 1: protocol ip u32 match ip protocol 1 0xff flowid 1:2",
        ):
            host.run(f"tc {words}", check=True)
        host.run("ping -4 -q -c 3 h2", check=True)
        shown = host.run("tc -s class show dev h1-eth0", check=True).stdout
        assert "Sent 294 bytes 3 pkt" in shown.split("class hfsc 1:2 ")[1], shown


def test_every_congestion_control_of_linux_is_there_and_cubic_is_chosen() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        folder = "/proc/sys/net/ipv4/tcp"
        there = set(lab["h1"].run(f"cat {folder}_available_congestion_control", check=True).stdout.split())
        assert there > {
            "bbr",
            "bic",
            "cubic",
            "dctcp",
            "htcp",
            "hybla",
            "illinois",
            "reno",
            "vegas",
            "westwood",
            "yeah",
        }
        assert lab["h1"].run(f"cat {folder}_congestion_control", check=True).stdout == "cubic\n"


def test_a_rule_chooses_the_table_of_routes() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        host = lab["h1"]
        host.run("ip route add 192.0.2.0/24 via 10.0.0.2 table 100", check=True)
        assert host.run("ip route get 192.0.2.1").returncode != 0
        host.run("ip rule add to 192.0.2.0/25 lookup 100", check=True)
        assert "via 10.0.0.2" in host.run("ip route get 192.0.2.1", check=True).stdout
        assert host.run("ip route get 192.0.2.200").returncode != 0


@needs_ping
@pytest.mark.skipif(shutil.which("iptables") is None, reason="iptables is not installed")
def test_iptables_filters_and_translates() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        assert lab["h1"].run("ping -4 -c 1 -W 1 h2").returncode == 0
        lab["h2"].run("iptables -A INPUT -p icmp --icmp-type echo-request -j DROP", check=True)
        assert lab["h1"].run("ping -4 -c 1 -W 1 h2").returncode == 1
        lab["h2"].run("iptables -F INPUT", check=True)
        # To h2 it seems now that an address asks which no host has.
        lab["h1"].run("iptables -t nat -A POSTROUTING -p icmp -j SNAT --to-source 10.0.0.77", check=True)
        assert lab["h1"].run("ping -4 -c 1 -W 1 h2").returncode == 1
        lab["h1"].run("iptables -t nat -F POSTROUTING", check=True)
        assert lab["h1"].run("ping -4 -c 1 -W 1 h2").returncode == 0


@needs_ping
@pytest.mark.parametrize("known", [True, False])
def test_programs_need_not_ask_for_hardware_addresses_that_were_told(known: bool) -> None:
    net = two_hosts()
    net.without_ip6()
    with net.simulate(hosts="programs", static_neighbours=known) as lab:
        assert lab["h1"].run("ping -c 1 h2").returncode == 0
        told = lab["h1"].run("ip neigh show 10.0.0.2").stdout
        frames = {row["port"]: row["counters"]["frames"] for row in lab.ports()}
    assert ("PERMANENT" in told) == known, told
    # Without the table an ARP question and its answer go before the echo.
    assert (frames["h1-eth0"], frames["h2-eth0"]) == ((1, 1) if known else (2, 2))
