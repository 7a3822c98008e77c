"""Controllers in the lab's process on switches of OpenFlow 1.0, alone and beside some of 1.3, on both clocks."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Sequence

import pytest
import twinnet as tn
from twinnet.control import (
    ArpResponder,
    AvailableBandwidth,
    ConnectedSwitch,
    Controller,
    Flow,
    FlowRemoved,
    LearningSwitch,
    LinkDiscovery,
    PacketIn,
    PacketOut,
    PortStatus,
    ShortestPath,
    Slices,
    Statistics,
    StatisticsPoller,
    Together,
    TreeFlooding,
)
from twinnet.control.events import StatisticsKind
from twinnet.control.framing import HEADER
from twinnet.control.session import Session
from twinnet.errors import LabError, NotAvailable

CLOCKS = pytest.mark.parametrize("clock", ["virtual", "wall"])
ONLY_10, BOTH = ["OpenFlow10"], ["OpenFlow10", "OpenFlow13"]
NETWORKS = pytest.mark.parametrize("speak", [[ONLY_10], [ONLY_10, ["OpenFlow13"]]], ids=["1.0", "1.0 and 1.3"])
"""What the switches of a network speak, by turns."""


def lab_of(net: tn.Network, clock: str) -> tn.Lab:
    return net.simulate() if clock == "virtual" else net.emulate()


def line(switches: int, speak: Sequence[list[str]] = (ONLY_10,), rate: str | None = None) -> tn.Network:
    """h1 - s1 - ... - sN - h2; without IPv6 hosts send nothing by themselves."""
    net = tn.Network()
    spoken = itertools.cycle(speak)
    middle = [net.switch(f"s{n + 1}", fail_mode="secure", protocols=next(spoken)) for n in range(switches)]
    for a, b in itertools.pairwise([net.host("h1"), *middle, net.host("h2")]):
        net.link(a, b, delay="1 ms", rate=rate)
    net.without_ip6()
    return net


def ring(switches: int, speak: Sequence[list[str]]) -> tn.Network:
    """A ring of switches with a host at each; without IPv6 hosts send nothing by themselves."""
    net = tn.Network()
    spoken = itertools.cycle(speak)
    nodes = [net.switch(f"s{n + 1}", fail_mode="secure", protocols=next(spoken)) for n in range(switches)]
    for number, switch in enumerate(nodes):
        net.link(net.host(f"h{number + 1}"), switch, delay="100 us")
        net.link(switch, nodes[(number + 1) % switches], delay="1 ms")
    net.without_ip6()
    return net


def later(lab: tn.Lab, seconds: float) -> tn.units.Picoseconds:
    return tn.units.Picoseconds(lab.now_ps() + round(seconds * 1e12))


def lost(lab: tn.Lab, source: str, target: str) -> int:
    flow = lab.start(tn.apps.ping(source, target, count=3, interval="100 ms"))
    assert lab.wait([flow], until=later(lab, 10))
    return flow.report().lost


def versions(lab: tn.Lab, names: Sequence[str]) -> list[object]:
    return [lab.switch(name).controller_state[0]["version"] for name in names]


def flows_marked(lab: tn.Lab, switch: str, cookie: int) -> list[str]:
    return [line for line in lab.switch(switch).dump_flows() if f"cookie={cookie:#x}," in line]


@CLOCKS
@NETWORKS
@pytest.mark.parametrize("kind", [LearningSwitch, ShortestPath, TreeFlooding])
def test_hosts_reach_each_other_round_a_ring_and_when_a_link_goes_down(
    clock: str, speak: list[list[str]], kind: type[Controller]
) -> None:
    net = ring(4, speak)
    net.controller(kind)
    with lab_of(net, clock) as lab:
        lab.wait_for_controllers()
        spoken = itertools.cycle("1.0" if one == ONLY_10 else "1.3" for one in speak)
        assert versions(lab, ["s1", "s2", "s3", "s4"]) == list(itertools.islice(spoken, 4))
        assert [lost(lab, "h1", target) for target in ("h2", "h3", "h4")] == [0, 0, 0]
        lab.link("s1", "s2").set(up=False)
        lab.run_until(later(lab, 0.2))
        assert [lost(lab, "h1", target) for target in ("h2", "h3", "h4")] == [0, 0, 0]
        assert all(row["counters"]["dropped_loop"] == 0 for row in lab.ports())


def test_a_switch_of_both_versions_speaks_1_3() -> None:
    net = line(1, [BOTH])
    net.controller(LearningSwitch)
    with net.simulate() as lab:
        assert versions(lab, ["s1"]) == ["1.3"]


@CLOCKS
def test_the_flows_of_both_versions_are_the_same(clock: str) -> None:
    def flows(speak: list[str], kind: Callable[[], Controller]) -> list[str]:
        net = line(2, [speak])
        net.controller(kind)
        with lab_of(net, clock) as lab:
            lab.wait_for_controllers()
            assert lost(lab, "h1", "h2") == 0
            # Of a line of a dump: cookie, priority, match and actions, without what was counted.
            dumped = [re.sub(r"duration=\S+ |n_\w+=\d+, ", "", line) for line in lab.switch("s1").dump_flows()]
            return sorted(dumped)

    for kind in (LearningSwitch, TreeFlooding):
        assert flows(ONLY_10, kind) == flows(["OpenFlow13"], kind)
    # A group address stands for all of them.
    groups = "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00"
    of_13 = sorted(line.replace(groups, "dl_dst=ff:ff:ff:ff:ff:ff") for line in flows(["OpenFlow13"], ShortestPath))
    assert flows(ONLY_10, ShortestPath) == of_13


@CLOCKS
def test_a_link_that_goes_down_has_all_switches_forget_what_was_learnt(clock: str) -> None:
    cookie = 0x6C65_6172
    net = ring(3, [ONLY_10])
    net.controller(LearningSwitch)
    with lab_of(net, clock) as lab:
        lab.wait_for_controllers()
        assert lost(lab, "h1", "h2") == 0
        # One for each direction; h1 may have asked for more than the address of h2.
        assert len(flows_marked(lab, "s1", cookie)) >= 2
        lab.link("s2", "s3").set(up=False)
        lab.run_until(later(lab, 0.2))
        assert [flows_marked(lab, name, cookie) for name in ("s1", "s2", "s3")] == [[], [], []]
        assert any("actions=CONTROLLER" in line for line in lab.switch("s1").dump_flows())


class GroupSender(Controller):
    """Has s1 take a frame for a group of hosts through its table, as if h1 had sent it."""

    def send(self) -> None:
        frame = bytes.fromhex("01005e000005 000000000001 88b5") + bytes(46)
        self.switches["s1"].send(PacketOut(frame, "table", in_port=1))


def test_shortest_paths_send_frames_for_any_group_along_the_tree() -> None:
    sender = GroupSender()
    net = ring(3, [ONLY_10])
    net.controller(Together(sender, ShortestPath()))
    with net.simulate() as lab:
        lab.wait_for_controllers()
        sender.send()
        lab.run_until("1 s")
        asked = int(lab.switch("s1").controller_state[0]["packet_ins"])
        for _ in range(3):
            sender.send()
        lab.run_until("2 s")
        # The first has left a flow: those that follow come to no controller.
        assert int(lab.switch("s1").controller_state[0]["packet_ins"]) == asked
        for name in ("s2", "s3"):
            (flow,) = [line for line in lab.switch(name).dump_flows() if "dl_dst=01:00:5e:00:00:05" in line]
            # The first itself was sent on by the controller.
            assert "n_packets=3," in flow and "output" in flow


@CLOCKS
@NETWORKS
def test_link_discovery_finds_every_link_and_every_host(clock: str, speak: list[list[str]]) -> None:
    discovery = LinkDiscovery("1 s")
    net = ring(3, speak)
    net.controller(Together(discovery, LearningSwitch()))
    with lab_of(net, clock) as lab:
        lab.wait_for_controllers()
        assert lost(lab, "h1", "h3") == 0
        lab.run_until(later(lab, 1.5))
        links = discovery.links
        assert {frozenset((here.switch, there.switch)) for here, there in links} == {
            frozenset(pair) for pair in itertools.combinations(("s1", "s2", "s3"), 2)
        }
        assert len(links) == 6
        known = {mac: place.switch for mac, place in discovery.hosts.items()}
        assert known["00:00:00:00:00:01"] == "s1" and known["00:00:00:00:00:03"] == "s3"


@pytest.mark.parametrize("rate", ["10 Mbit", "100 Mbit", "1 Gbit", "10 Gbit"])
def test_a_path_of_discovered_links_has_the_rates_that_features_of_ports_tell(rate: str) -> None:
    discovery = LinkDiscovery("1 s")
    net = line(2, rate=rate)
    net.controller(Together(discovery, LearningSwitch()))
    with net.simulate() as lab:
        lab.wait_for_controllers()
        assert lost(lab, "h1", "h2") == 0
        lab.run_until("2 s")
        capacities = {link.capacity_bps for link in discovery.path("10.0.0.1", "10.0.0.2")}
    number, unit = rate.split()
    assert capacities == {float(number) * {"Mbit": 1e6, "Gbit": 1e9}[unit]}


@CLOCKS
def test_an_arp_responder_and_a_poller_work_together_with_a_learning_switch(clock: str) -> None:
    kinds: list[StatisticsKind] = ["ports", "flows", "tables", "queues"]
    poller, responder = StatisticsPoller("100 ms", kinds=kinds), ArpResponder()
    net = line(2)
    net.controller(Together(poller, responder, LearningSwitch()))
    with lab_of(net, clock) as lab:
        lab.wait_for_controllers()
        assert lost(lab, "h1", "h2") == 0
        lab.run_until(later(lab, 1))
        assert responder.answered >= 1
        ports, flows = poller.table("ports"), poller.table("flows")
        assert poller.table("tables")["flows"].max() == len(lab.switch("s1").dump_flows())
    assert set(ports["switch"]) == {"s1", "s2"} and set(ports["port"]) == {1, 2}
    # Three requests have come in from h1, and their answers have gone out to it.
    assert ports["received_frames"].max() >= 3 and ports["sent_bytes"].max() >= 3 * 98
    assert ports["lived_s"].null_count() == len(ports)
    assert any("dl_dst=00:00:00:00:00:02" in match for match in flows["match"])


@CLOCKS
def test_available_bandwidth_is_counted_by_the_clock_of_the_controller(clock: str) -> None:
    counters = AvailableBandwidth("200 ms", clock="controller")
    net = line(1, rate="10 Mbit")
    net.controller(Together(counters, LearningSwitch()))
    with lab_of(net, clock) as lab:
        lab.wait_for_controllers()
        lab.start(tn.apps.udp("h1", "h2", rate="4 Mbit", duration="3 s"))
        lab.run_until(later(lab, 2))
        found = counters.estimate(["h1", "s1", "h2"])
    # 4 Mbit/s of payload and their headers are used; answers on the wall clock come at times that vary.
    assert 4.5e6 < found.available_bps < 6.5e6


class Recorder(Controller):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[object] = []
        self.come = threading.Condition()

    def note(self, event: object) -> None:
        with self.come:
            self.heard.append(event)
            self.come.notify_all()

    def wait_for(self, lab: tn.Lab, kind: type) -> object:
        if lab.clock == "virtual":
            lab.run_until(later(lab, 3))
        with self.come:
            assert self.come.wait_for(lambda: any(isinstance(one, kind) for one in self.heard), 20), self.heard
            return next(one for one in self.heard if isinstance(one, kind))

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        switch.install("priority=1,arp,actions=controller")
        switch.install(Flow("ip,nw_dst=10.0.0.0/8", ["flood"], hard_timeout_s=1, cookie=7), tell_when_removed=True)

    def on_packet_in(self, event: PacketIn) -> None:
        self.note(event)

    def on_port_status(self, event: PortStatus) -> None:
        self.note(event)

    def on_flow_removed(self, event: FlowRemoved) -> None:
        self.note(event)

    def on_statistics(self, event: Statistics) -> None:
        self.note(event)


@CLOCKS
def test_every_event_is_told_to_a_controller_of_a_user(clock: str) -> None:
    recorder = Recorder()
    net = line(1)
    net.controller(recorder)
    with lab_of(net, clock) as lab:
        lab.wait_for_controllers()
        switch = recorder.switches["s1"]
        assert switch.version == "1.0"
        assert {number: port.name for number, port in switch.ports.items()} == {1: "s1-eth1", 2: "s1-eth2"}
        lab.start(tn.apps.ping("h1", "h2", count=1))
        packet = recorder.wait_for(lab, PacketIn)
        assert isinstance(packet, PacketIn)
        assert packet.in_port == 1 and packet.length == len(packet.data)
        removed = recorder.wait_for(lab, FlowRemoved)
        assert isinstance(removed, FlowRemoved)
        assert (removed.reason, removed.match, removed.cookie) == ("hard_timeout", "ip,nw_dst=10.0.0.0/8", 7)
        switch.statistics("ports")
        statistics = recorder.wait_for(lab, Statistics)
        assert isinstance(statistics, Statistics)
        assert [row["port"] for row in statistics.rows] == [1, 2] and statistics.rows[0]["received_frames"] >= 1
        lab.link("s1", "h2").set(up=False)
        status = recorder.wait_for(lab, PortStatus)
        assert isinstance(status, PortStatus)
        assert (status.port.number, status.port.up) == (2, False) and not switch.ports[2].up


@CLOCKS
def test_frames_and_flows_that_a_controller_of_a_user_sends_take_effect(clock: str) -> None:
    recorder = Recorder()
    net = line(1)
    net.controller(recorder)
    with lab_of(net, clock) as lab:
        lab.wait_for_controllers()
        switch = recorder.switches["s1"]
        done = threading.Event()
        switch.delete()
        for number in (1, 2, 3):
            switch.install(f"cookie={number},priority={number},actions=output:1,output:2")
        switch.delete("cookie=3/-1")
        switch.delete("cookie=2/2")
        switch.modify("actions=mod_dl_dst:00:00:00:00:00:09,set_queue:1,controller")
        switch.send(PacketOut(bytes(60), "table", in_port=2))
        switch.barrier(done.set)
        packet = recorder.wait_for(lab, PacketIn)
        assert isinstance(packet, PacketIn)
        assert (packet.in_port, packet.data, packet.reason) == (2, bytes([0, 0, 0, 0, 0, 9]) + bytes(54), "action")
        assert done.wait(20)
        (flow,) = lab.switch("s1").dump_flows()
        assert "cookie=0x1," in flow and flow.endswith(
            "actions=mod_dl_dst:00:00:00:00:00:09,set_queue:1,CONTROLLER:65535"
        ), flow


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda switch: switch.install("table=1,actions=drop"), "no table 1: it has one table"),
        (lambda switch: switch.install("actions=goto_table:1"), "no action goto_table:1"),
        (lambda switch: switch.install("actions=group:4"), "no action group:4"),
        (lambda switch: switch.install("actions=meter:4,output:1"), "no action meter:4"),
        (lambda switch: switch.install("ipv6,ipv6_dst=fd00::2,actions=drop"), "no match of ipv6_dst=fd00::2"),
        (lambda switch: switch.delete("table=2"), "no table 2"),
        (lambda switch: switch.send(PacketOut(bytes(60), "group:4")), "no action group:4"),
        (lambda switch: switch.add_meter(4, 1000, 100), "no meters"),
        (lambda switch: switch.delete_meter(4), "no meters"),
        (lambda switch: switch.statistics("groups"), "no groups"),
        (lambda switch: switch.statistics("meters"), "no meters"),
    ],
)
@CLOCKS
def test_what_the_version_cannot_say_is_refused(clock: str, ask: Callable[[ConnectedSwitch], None], what: str) -> None:
    class Asking(Controller):
        def on_switch_joined(self, switch: ConnectedSwitch) -> None:
            ask(switch)

    net = line(1)
    net.controller(Asking)
    said = (
        rf"s1 speaks OpenFlow 1\.0 alone .*OpenFlow 1\.0 has {re.escape(what)}.*add OpenFlow13 to the protocols of s1"
    )
    with pytest.raises(NotAvailable, match=said), lab_of(net, clock) as lab:
        lab.wait_for_controllers()
    # Where the switch speaks 1.3 as well, nothing is refused but what needs a group or a meter that is not there.
    others = line(1, [BOTH])
    others.controller(Asking)
    if "group" not in what and "meter" not in what:
        with others.simulate() as lab:
            lab.wait_for_controllers()


@pytest.mark.parametrize(
    ("controller", "said"),
    [
        (
            lambda: Slices({"one": (LearningSwitch(), ["h1", "h2"])}),
            r"s1 cannot be divided .*\(add OpenFlow13 to the protocols of s1",
        ),
        (lambda: AvailableBandwidth("1 s"), r"s1 speaks OpenFlow 1\.0 alone.*clock=\"controller\""),
    ],
)
def test_controllers_that_need_more_than_the_version_tells_say_so(
    controller: Callable[[], Controller], said: str
) -> None:
    net = line(1)
    net.controller(controller)
    with pytest.raises(NotAvailable, match=said):
        net.simulate().open()


def test_a_switch_of_neither_version_is_refused() -> None:
    session = Session(LearningSwitch(), "s1", {}, lambda: None, lambda _: None)
    with pytest.raises(LabError, match=r"s1 and its controller have no version .*OpenFlow10 or OpenFlow13"):
        session.receive(HEADER.pack(2, 0, 8, 1))
