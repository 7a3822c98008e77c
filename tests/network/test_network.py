"""A network is described; every mistake is raised where it is made, with its name."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

import pytest
import twinnet as tn
from twinnet import errors
from twinnet.network import addressing
from twinnet.network.network import Network


def two_hosts() -> Network:
    net = Network()
    net.host("h1")
    net.host("h2")
    return net


def test_the_spec_is_the_lab_protocols_form() -> None:
    net = Network(seed=7)
    net.link(net.host("h1"), net.switch("s1", flows=["actions=flood"]), rate="1 Gbit", delay="50 us", loss="1 %")
    direction = {
        "rate_bps": 10**9, "framing": "ethernet", "delay_ps": 50_000_000, "jitter": None, "reorder": False,
        "loss": {"model": "bernoulli", "probability": 0.01}, "duplicate": 0.0, "corrupt": 0.0, "delivery_trace": None,
    }  # fmt: skip
    assert net.to_spec() == {
        "seed": 7,
        "nodes": [
            {
                "kind": "host", "name": "h1", "forwarding": False, "model": False, "routes": [], "sysctls": {},
                "processing": None,
                "coalescing": None,
                "image": None,
                "limits": None,
                "ports": [{"name": "h1-eth0", "mac": "00:00:00:00:00:01", "queue": None,
                           "addresses": ["10.0.0.1/8", "fd00::1/64"]}],
            },
            {
                "kind": "switch", "name": "s1", "dpid": 1, "fail_mode": "standalone", "delay_ps": 0,
                "flows": ["actions=flood"], "ports": [{"name": "s1-eth1", "number": 1, "queue": None}],
            },
        ],
        "links": [{"a": {"node": "h1", "port": 0}, "b": {"node": "s1", "port": 0}, "mtu": 1500, "up": True,
                   "ab": direction, "ba": direction}],
        "schedule": [],
    }  # fmt: skip


def test_addresses_stay_predictable_past_255_hosts() -> None:
    net = tn.templates.single(1100)
    assert net["h256"].addresses == ("10.0.1.0/8", "fd00::100/64")
    assert net["h1024"].ports[0].mac == "00:00:00:00:04:00"
    assert net["s1"].ports[1099].name == "s1-eth1100"


def test_directions_may_differ() -> None:
    net = two_hosts()
    link = net.link("h1", "h2", rate="10 Mbit", a_to_b={"rate": "1 Mbit"}, b_to_a={"delay": "5 ms"})
    assert (link.ab["rate_bps"], link.ab["delay_ps"]) == (1_000_000, 0)
    assert (link.ba["rate_bps"], link.ba["delay_ps"]) == (10_000_000, 5_000_000_000)


def test_a_queue_stands_at_both_ends_or_at_one() -> None:
    net = two_hosts()
    net.switch("s1")
    both = net.link("h1", "s1", queue=tn.qos.Fifo(limit_frames=5))
    one = net.link("s1", "h2", queue_a=tn.qos.Fifo(limit="64 KiB"))
    assert both.a.to_spec()["queue"] == both.b.to_spec()["queue"] == {"kind": "fifo", "limit_frames": 5}
    assert one.a.to_spec()["queue"] == {"kind": "fifo", "limit_bytes": 65536}
    assert one.b.to_spec()["queue"] is None


def test_a_router_has_the_addresses_of_its_links() -> None:
    net = Network()
    r1 = net.router("r1", routes=[("10.9.0.0/16", "10.2.0.2")])
    net.link(net.host("h1", ip="10.1.0.2/24", gateway="10.1.0.1"), r1, address_b="10.1.0.1/24")
    net.link(r1, net.host("h2", ip="10.2.0.2/24"), address_a=["10.2.0.1/24", "fd01::1/64"])
    spec = r1.to_spec()
    assert spec["forwarding"] is True
    assert [port["addresses"] for port in spec["ports"]] == [["10.1.0.1/24"], ["10.2.0.1/24", "fd01::1/64"]]
    assert spec["ports"][1]["mac"] == "02:00:01:00:00:01"
    assert net["h1"].routes == [("0.0.0.0/0", "10.1.0.1")]


def test_changes_are_scheduled_together_and_in_order() -> None:
    net = two_hosts()
    net.link("h1", "h2")
    net.at("2 s").link("h2", "h1").set(direction="ab", rate="1 Mbit", delay="5 ms")
    net.at("1 s").link("h1", "h2").set(up=False)
    assert net.to_spec()["schedule"] == [
        {"at_ps": 10**12, "set": {"link": 0, "direction": "both", "set": {"up": False}}},
        {
            "at_ps": 2 * 10**12,
            "set": {"link": 0, "direction": "ba", "set": {"rate_bps": 10**6, "delay_ps": 5 * 10**9}},
        },
    ]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"rate": 10}, errors.BadQuantity, "the rate 10 has no unit"),
        ({"rate": "10"}, errors.BadQuantity, 'the rate "10" has no unit'),
        ({"rate": "10 parsec"}, errors.BadQuantity, "unknown unit"),
        ({"rate": "0 Mbit"}, errors.BadQuantity, "above zero"),
        ({"delay": "-5ms"}, errors.BadQuantity, "is negative"),
        ({"delay": 0.005}, errors.BadQuantity, "has no unit"),
        ({"delay": None}, errors.BadQuantity, "is not text with a unit"),
        ({"loss": "120 %"}, errors.BadProbability, "outside 0 to 1"),
        ({"loss": -0.1}, errors.BadProbability, "outside 0 to 1"),
        ({"loss": 1}, errors.BadProbability, "has no unit"),
        ({"loss": float("nan")}, errors.BadProbability, "is not a share of frames"),
        ({"loss": {"to_bad": 0.1}}, errors.BadValue, "lacks 'to_good'"),
        ({"duplicate": "often"}, errors.BadProbability, "is not a share of frames"),
        ({"jitter": tn.Jitter}, errors.BadQuantity, "is not text"),
        ({"jitter": {"scale": "1 ms", "distribution": "gauss"}}, errors.BadValue, "'gauss' is not known"),
        ({"framing": "ethernt"}, errors.BadValue, "did you mean 'ethernet'"),
        ({"reorder": "yes"}, errors.BadValue, "reorder is 'yes'"),
        ({"mtu": 40}, errors.BadValue, "allowed are whole numbers from 68 to 65521"),
        ({"a_to_b": {"dely": "1 ms"}}, errors.BadValue, "did you mean 'delay'"),
        ({"queue": "fifo"}, errors.BadQueue, "tn.qos.Fifo"),
        ({"port_a": 1}, errors.BadTopology, "not a switch"),
        ({"address_a": "10.0.0.2/8"}, errors.AddressInUse, "h2 has the address 10.0.0.2 already"),
        ({"address_a": "10.0.0.300/8"}, errors.BadAddress, "not an IP address"),
    ],
)
def test_a_link_refuses(settings: dict[str, object], error: type[Exception], message: str) -> None:
    net = two_hosts()
    with pytest.raises(error) as caught:
        net.link("h1", "h2", **settings)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert not net.links
    assert not net["h1"].ports


def test_nodes_are_refused_with_their_names() -> None:
    net = two_hosts()
    net.link("h1", "h2")
    with pytest.raises(errors.DuplicateName, match="a node 'h1' already"):
        net.switch("h1")
    with pytest.raises(errors.DuplicateLink, match="h2 and h1 are linked already"):
        net.link("h2", "h1")
    with pytest.raises(errors.UnknownNode, match="did you mean 'h1'"):
        net.link("h11", "h2")
    with pytest.raises(errors.UnknownNode, match="another network"):
        net.link(Network().host("h1"), "h2")
    with pytest.raises(errors.BadTopology, match="h1 to itself"):
        net.link("h1", "h1")
    with pytest.raises(errors.InterfaceNameTooLong, match="Linux allows 15"):
        net.host("a-long-name")
    with pytest.raises(errors.BadName):
        net.host("h 3")
    with pytest.raises(errors.AddressInUse, match=r"h1 has the address 10\.0\.0\.1 already"):
        net.host("h3", ip="10.0.0.1/8")
    with pytest.raises(errors.BadTopology, match="has no address"):
        net.link(net.router("r1"), "h1")
    with pytest.raises(errors.BadAddress, match="has no prefix length"):
        net.host("h4", ip="192.168.0.1")
    with pytest.raises(errors.BadValue, match=r"under net\."):
        net.host("h5", sysctls={"kernel.panic": 1})


def test_switch_ports_and_dpids_are_told_apart() -> None:
    net = two_hosts()
    net.switch("s7")
    assert net["s7"].dpid == 7
    assert net.switch("edge").dpid == 1
    with pytest.raises(errors.DuplicateName, match="dpid 7"):
        net.switch("x", dpid="7")
    assert net.link("h1", "s7", port_b=2).b.name == "s7-eth2"
    assert net.link("edge", "s7").b.number == 3
    with pytest.raises(errors.PortInUse, match="port 2 of s7"):
        net.link("h2", "s7", port_b=2)


def test_parallel_links_are_asked_for() -> None:
    net = Network()
    net.switch("s1")
    net.switch("s2")
    net.link("s1", "s2")
    assert net.link("s1", "s2", parallel=True).index == 1


def test_a_host_that_is_a_model_is_said_to_be_one() -> None:
    net = Network()
    assert net.host("h1", model=True).to_spec()["model"] is True
    assert net.router("r1").to_spec()["model"] is False
    with pytest.raises(errors.BadValue, match="model is 'yes'; allowed are True and False"):
        net.host("h2", model="yes")  # type: ignore[arg-type]


def test_a_lab_is_made_for_either_clock_and_none_is_started() -> None:
    net = Network(seed=3)
    assert (net.emulate().clock, net.simulate().clock) == ("wall", "virtual")
    with pytest.raises(errors.BadValue, match="the seed is -1"):
        net.simulate(seed=-1)


@pytest.mark.parametrize(
    "text", ["10.0.0.1/8", "1.1.1.1/0", "223.255.255.255/32", "10.0.0.1/08", "240.0.0.1/8", "fd00::1/64"]
)
def test_an_address_has_the_form_that_the_standard_library_gives_it(text: str) -> None:
    assert addressing.interface_address(text) == str(ipaddress.ip_interface(text))


@pytest.mark.parametrize(
    "text", ["10.0.0.256/8", "10.0.0.01/8", "10.0.0.1/33", "0.0.0.0/8", "127.0.0.1/8", "10.0.0.1/8\n"]
)
def test_an_address_that_no_interface_can_have_is_refused(text: str) -> None:
    with pytest.raises(errors.BadAddress):
        addressing.interface_address(text)


@pytest.mark.parametrize("number", [1, 65_535, 65_536, (1 << 24) - 2])
def test_a_hosts_ipv6_address_is_in_its_usual_form(number: int) -> None:
    address = addressing.host_ip6(number)
    assert str(ipaddress.ip_interface(address)) == address


@pytest.mark.parametrize("given", [["10.0.0.1"], 5, None])
def test_a_next_hop_that_is_no_text_is_refused(given: object) -> None:
    with pytest.raises(errors.BadAddress, match="not an IP address"):
        addressing.next_hop(given, "10.0.0.0/8")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda net: net.link("h1", "s1", bw="10 Mbit"), r"link\(\) takes no 'bw': did you mean 'rate'"),
        (lambda net: net.host("h2", adress="10.0.0.2"), r"host\(\) takes no 'adress'"),
        (lambda net: net.switch("s2", fail_mod="secure"), "did you mean 'fail_mode'"),
        (lambda net: tn.templates.single(2, bandwidth="10 Mbit"), "did you mean 'rate'"),
    ],
)
def test_a_keyword_that_is_not_taken_is_answered_with_the_nearest(
    wrong: Callable[[tn.Network], object], said: str
) -> None:
    net = tn.Network()
    net.link(net.host("h1"), net.switch("s1"))
    with pytest.raises(errors.BadValue, match=said):
        wrong(net)
    assert len(net.links) == 1


def test_hosts_and_switches_are_found_by_name_and_by_place() -> None:
    net = two_hosts()
    net.switch("s1")
    assert net.hosts["h2"] is net.hosts[1] is net["h2"]
    assert net.hosts[:1] == [net["h1"]]
    with pytest.raises(errors.UnknownNode, match="did you mean 'h2'"):
        net.hosts["h22"]
    with pytest.raises(errors.UnknownNode, match="did you mean 's1'"):
        net.switches["s9"]
    # A switch is no host, whatever its name is near to.
    with pytest.raises(errors.UnknownNode, match="there is no 's1' among h1, h2"):
        net.hosts["s1"]


def test_nodes_and_links_print_what_they_are() -> None:
    net = Network()
    net.link(net.host("h1"), net.switch("s1"), rate="10 Mbit", delay="1 ms")
    assert repr(net["h1"]) == "<Host h1 10.0.0.1/8, fd00::1/64>"
    assert repr(net["s1"]) == "<Switch s1>"
    assert repr(net.links[0]) == "<Link h1-eth0<->s1-eth1 up: 10 Mbit/s delay 1 ms>"


@pytest.mark.parametrize(
    ("looked_for", "told"),
    [
        ("addHost", 'write net.host("h1")'),
        ("start", "write with net.emulate() as lab:"),
        ("swich", "did you mean 'switch'?"),
    ],
)
def test_names_of_mininet_are_answered_with_what_is_written_here(looked_for: str, told: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(tn.Network(), looked_for)
    assert str(caught.value) == f"'Network' object has no attribute {looked_for!r}: {told}"
    assert not hasattr(tn.Network(), "_nothing")
