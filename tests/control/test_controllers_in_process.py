"""Controllers written in Python, on both clocks by one body each."""

from __future__ import annotations

import itertools
import socket
import threading

import pytest
import twinnet as tn
from twinnet.control import (
    ArpResponder,
    ConnectedSwitch,
    Controller,
    Flow,
    FlowRemoved,
    LearningSwitch,
    PacketIn,
    PacketOut,
    PortStatus,
    ShortestPath,
    Statistics,
    StatisticsPoller,
    Together,
    TreeFlooding,
)
from twinnet.errors import BadFlow, BadValue, LabClosed, LabError, NotAvailable

CLOCKS = pytest.mark.parametrize("clock", ["virtual", "wall"])
MS_PS = 10**9


def lab_of(net: tn.Network, clock: str) -> tn.Lab:
    return net.simulate() if clock == "virtual" else net.emulate()


def line(switches: int, **switch: str) -> tn.Network:
    """h1 - s1 - ... - sN - h2, every link 1 ms."""
    net = tn.Network()
    nodes = [net.host("h1"), *(net.switch(f"s{n + 1}", fail_mode="secure") for n in range(switches)), net.host("h2")]
    for a, b in itertools.pairwise(nodes):
        net.link(a, b, delay="1 ms")
    return net


def ring(switches: int) -> tn.Network:
    """A ring of switches with a host at each."""
    net = tn.Network()
    nodes = [net.switch(f"s{n + 1}", fail_mode="secure") for n in range(switches)]
    for number, switch in enumerate(nodes):
        net.link(net.host(f"h{number + 1}"), switch, delay="100 us")
        net.link(switch, nodes[(number + 1) % switches], delay="1 ms")
    return net


def later(lab: tn.Lab, seconds: float) -> tn.units.Picoseconds:
    return tn.units.Picoseconds(lab.now_ps() + round(seconds * 1e12))


def ping(lab: tn.Lab, source: str, target: str, count: int = 3) -> tuple[int, int, int]:
    """Least and longest round trip in picoseconds, and how many were lost."""
    flow = lab.start(tn.apps.ping(source, target, count=count, interval="100 ms"))
    assert lab.wait([flow], until=later(lab, 10))
    report = flow.report()
    assert report.rtt is not None
    return int(report.rtt.min), int(report.rtt.max), report.lost


@CLOCKS
def test_a_learning_switch_makes_hosts_reach_each_other(clock: str) -> None:
    net = line(2)
    net.controller(LearningSwitch)
    with lab_of(net, clock) as lab:
        lab.wait_for_controllers()
        assert ping(lab, "h1", "h2")[2] == 0
        assert isinstance(lab.controller, LearningSwitch)
        assert lab.controller.stations["s1"] == {"00:00:00:00:00:01": 1, "00:00:00:00:00:02": 2}
        (state,) = lab.switch("s1").controller_state
        assert state["version"] == "1.3" and state["packet_ins"] >= 3 and state["target"] == "app:LearningSwitch"


def test_the_same_seed_gives_the_same_trace_hash_and_another_delay_another() -> None:
    def trace(delay: str) -> str:
        net = ring(5)
        net.controller(LearningSwitch, delay=delay)
        with net.simulate() as lab:
            lab.wait_for_controllers()
            for target in ("h2", "h3", "h4"):
                lab.start(tn.apps.ping("h1", target, count=5, interval="10 ms"))
            lab.run_until("3 s")
            return lab.trace_hash

    assert len({trace("2 ms") for _ in range(3)}) == 1
    assert trace("2 ms") != trace("3 ms")


def test_the_delay_of_the_control_channel_is_in_the_first_round_trip_to_the_picosecond() -> None:
    def first(delay: str) -> tuple[int, int]:
        net = line(2)
        net.controller(LearningSwitch, delay=delay)
        with net.simulate() as lab:
            lab.wait_for_controllers()
            return ping(lab, "h1", "h2")[:2]

    # Each of two switches asks its controller about the request by ARP, its answer, and the first request of ping.
    assert first("0 s") == (6 * MS_PS, 12 * MS_PS)
    assert first("2 ms") == (6 * MS_PS, 12 * MS_PS + 6 * 2 * 2 * MS_PS)


def test_the_delay_of_the_control_channel_is_in_the_first_round_trip_on_the_wall_clock() -> None:
    net = line(1)
    net.controller(LearningSwitch, delay="20 ms")
    with net.emulate() as lab:
        lab.wait_for_controllers()
        least, longest, lost = ping(lab, "h1", "h2")
    # Three questions of 40 ms each; the machine may be slow, but never fast.
    assert lost == 0 and longest - least >= 3 * 40 * MS_PS - least
    assert least < 40 * MS_PS


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
        switch.install(Flow({"ip": True}, ["flood"], hard_timeout_s=1, cookie=7), tell_when_removed=True)

    def on_packet_in(self, event: PacketIn) -> None:
        self.note(event)

    def on_port_status(self, event: PortStatus) -> None:
        self.note(event)

    def on_flow_removed(self, event: FlowRemoved) -> None:
        self.note(event)

    def on_statistics(self, event: Statistics) -> None:
        self.note(event)


@CLOCKS
def test_every_event_is_told(clock: str) -> None:
    net = line(1)
    recorder = Recorder()
    net.controller(recorder)
    with lab_of(net, clock) as lab:
        lab.wait_for_controllers()
        switch = recorder.switches["s1"]
        assert {number: port.name for number, port in switch.ports.items()} == {1: "s1-eth1", 2: "s1-eth2"}
        lab.start(tn.apps.ping("h1", "h2", count=1))
        packet = recorder.wait_for(lab, PacketIn)
        assert isinstance(packet, PacketIn)
        assert (packet.in_port, packet.eth_src, packet.eth_type) == (1, "00:00:00:00:00:01", 0x0806)
        assert packet.length == len(packet.data) and packet.reason == "action"
        removed = recorder.wait_for(lab, FlowRemoved)
        assert isinstance(removed, FlowRemoved)
        assert (removed.reason, removed.match, removed.cookie) == ("hard_timeout", "ip", 7)
        switch.statistics("ports")
        statistics = recorder.wait_for(lab, Statistics)
        assert isinstance(statistics, Statistics)
        assert [row["port"] for row in statistics.rows] == [1, 2] and statistics.rows[0]["received_frames"] >= 1
        lab.link("s1", "h2").set(up=False)
        status = recorder.wait_for(lab, PortStatus)
        assert isinstance(status, PortStatus)
        assert (status.port.number, status.port.up) == (2, False) and not switch.ports[2].up


@CLOCKS
def test_frames_and_flows_that_a_controller_sends_take_effect(clock: str) -> None:
    net = line(1)
    recorder = Recorder()
    net.controller(recorder)
    with lab_of(net, clock) as lab:
        lab.wait_for_controllers()
        switch = recorder.switches["s1"]
        done = threading.Event()
        switch.delete()
        switch.install("actions=output:1,output:2")
        switch.modify("actions=controller")
        switch.send(PacketOut(bytes(60), "table", in_port=2))
        switch.barrier(done.set)
        packet = recorder.wait_for(lab, PacketIn)
        assert isinstance(packet, PacketIn) and packet.in_port == 2 and packet.data == bytes(60)
        assert done.wait(20)
        assert [line.partition("actions=")[2] for line in lab.switch("s1").dump_flows()] == ["CONTROLLER:65535"]


@CLOCKS
def test_timers_run_by_the_clock_of_the_lab(clock: str) -> None:
    net = line(1)
    moments: list[float] = []

    class Ticking(Controller):
        def on_start(self) -> None:
            self.every("100 ms", lambda: moments.append(self.now))
            self.after("250 ms", lambda: moments.append(-self.now))

    net.controller(Ticking)
    with lab_of(net, clock) as lab:
        lab.run_until("350 ms")
    if clock == "virtual":
        assert moments == [0.1, 0.2, -0.25, 0.3]
    # A busy machine is later, and nothing is earlier.
    ticks = [moment for moment in moments if moment > 0]
    assert len(ticks) >= 2 and all(moment >= 0.1 * number - 1e-9 for number, moment in enumerate(ticks, 1))
    assert min(moments) <= -0.25


@CLOCKS
@pytest.mark.parametrize("kind", [LearningSwitch, ShortestPath, TreeFlooding])
def test_rings_do_no_harm(clock: str, kind: type[Controller]) -> None:
    net = ring(4)
    net.controller(kind)
    with lab_of(net, clock) as lab:
        lab.wait_for_controllers()
        for target in ("h2", "h3", "h4"):
            assert ping(lab, "h1", target)[2] == 0
        # A frame that went round and round would be counted here.
        assert all(row["counters"]["dropped_loop"] == 0 for row in lab.ports())


@CLOCKS
@pytest.mark.parametrize("kind", [ShortestPath, TreeFlooding, LearningSwitch])
def test_traffic_finds_another_way_when_a_link_goes_down(clock: str, kind: type[Controller]) -> None:
    net = ring(4)
    net.controller(kind)
    with lab_of(net, clock) as lab:
        lab.wait_for_controllers()
        assert ping(lab, "h1", "h2")[2] == 0
        lab.link("s1", "s2").set(up=False)
        lab.run_until(later(lab, 0.2))
        assert ping(lab, "h1", "h2")[2] == 0


def test_shortest_paths_are_shortest_and_flows_are_spread_over_equal_ones() -> None:
    net = tn.Network()
    edges = [net.switch(f"e{n}", dpid=n, fail_mode="secure") for n in (1, 2)]
    for n in range(3, 7):
        middle = net.switch(f"m{n}", dpid=n, fail_mode="secure")
        for edge in edges:
            net.link(edge, middle, delay="10 us")
    for n, edge in enumerate(edges, start=1):
        net.link(net.host(f"h{n}"), edge)
    net.controller(ShortestPath)
    with net.simulate() as lab:
        lab.wait_for_controllers()
        for port in range(64):
            lab.start(tn.apps.udp("h1", "h2", rate="80 kbit", duration="50 ms", port=6000 + port))
        lab.run_until("1 s")
        controller = lab.controller
        assert isinstance(controller, ShortestPath)
        paths = [
            path for words, path in controller.paths.items() if "nw_proto=17" in words and "nw_src=10.0.0.1" in words
        ]
        assert len(paths) == 64 and all(len(path) == 3 for path in paths)
        # Of 64 flows over 4 paths each gets 16, give or take the 3.5 of a fair draw; four deviations are never met.
        used = [sum(path[1] == f"m{n}" for path in paths) for n in range(3, 7)]
        assert min(used) >= 3 and sum(used) == 64


@CLOCKS
def test_an_arp_responder_keeps_requests_from_the_network(clock: str) -> None:
    net = line(2)
    net.controller(lambda: Together(ArpResponder(), LearningSwitch()))
    with lab_of(net, clock) as lab:
        lab.wait_for_controllers()
        assert ping(lab, "h1", "h2")[2] == 0
        together = lab.controller
        assert isinstance(together, Together)
        responder = together.controllers[0]
        assert isinstance(responder, ArpResponder) and responder.answered >= 1
        arps = [line for line in lab.switch("s2").dump_flows() if "arp_op=1" in line]
        # h1's request has stayed at s1; h2 may ask for h1 itself.
        assert len(arps) == 1


@CLOCKS
def test_a_statistics_poller_fills_a_table(clock: str) -> None:
    net = line(2)
    net.controller(lambda: Together(StatisticsPoller("100 ms", kinds=["ports", "flows"]), LearningSwitch()))
    with lab_of(net, clock) as lab:
        lab.wait_for_controllers()
        assert ping(lab, "h1", "h2")[2] == 0
        lab.run_until(later(lab, 1))
        together = lab.controller
        assert isinstance(together, Together)
        poller = together.controllers[0]
        assert isinstance(poller, StatisticsPoller)
        table = poller.table()
        assert {"time_s", "switch", "port", "sent_bytes"} <= set(table.columns)
        assert sorted(table["switch"].unique()) == ["s1", "s2"]
        last = table.filter(switch="s1", port=1)[-1]
        assert last["received_frames"].item() >= 4
        assert "dl_src=00:00:00:00:00:01" in ",".join(poller.table("flows")["match"])
        with pytest.raises(BadValue, match="does not ask for 'queues'"):
            poller.table("queues")


class Failing(Controller):
    """Fails at the first frame."""

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        switch.install("arp,actions=controller")

    def on_packet_in(self, event: PacketIn) -> None:
        raise ZeroDivisionError("the controller has a mistake")


def test_a_mistake_in_a_controller_is_raised_where_time_passes() -> None:
    net = line(1)
    net.controller(Failing)
    with net.simulate() as lab:
        lab.wait_for_controllers()
        lab.start(tn.apps.ping("h1", "h2", count=1))
        with pytest.raises(ZeroDivisionError):
            lab.run_until("1 s")


def test_a_mistake_in_a_controller_ends_it_on_the_wall_clock_and_is_raised_at_the_end() -> None:
    net = line(1)
    net.controller(Failing)
    with pytest.raises(ZeroDivisionError), net.emulate() as lab:
        lab.wait_for_controllers()
        lab["h1"].run("ping -c 1 -W 1 10.0.0.2")
        (state,) = lab.switch("s1").controller_state
        assert state["version"] is None and "ZeroDivisionError" in state["trouble"]


def test_a_controller_and_a_switch_that_talk_for_ever_at_one_moment_are_stopped() -> None:
    class Echoing(Controller):
        def on_switch_joined(self, switch: ConnectedSwitch) -> None:
            switch.send(PacketOut(bytes(60), "controller"))

        def on_packet_in(self, event: PacketIn) -> None:
            event.switch.send(event.out("controller"))

    net = line(1)
    net.controller(Echoing)
    with pytest.raises(LabError, match="at one moment") as refusal:
        net.simulate().open()
    assert refusal.value.name == "ControllerLoop"
    # With a delay of the channel time goes on, and so does the lab.
    net.controller(Echoing, delay="1 ms")
    with net.simulate() as lab:
        lab.run_until("100 ms")
        assert lab.switch("s1").controller_state[0]["packet_ins"] == 48


def test_a_refused_message_ends_a_controller_that_does_not_care() -> None:
    class Wrong(Controller):
        def on_switch_joined(self, switch: ConnectedSwitch) -> None:
            switch.install("actions=group:77")

    net = line(1)
    net.controller(Wrong)
    with pytest.raises(BadValue, match="s1 refused a message"):
        net.simulate().open()


def test_wrong_flows_are_refused_where_they_are_written() -> None:
    net = line(1)
    recorder = Recorder()
    net.controller(recorder)
    with net.simulate():
        switch = recorder.switches["s1"]
        with pytest.raises(BadFlow, match="column"):
            switch.install("prority=1,actions=flood")
        with pytest.raises(BadFlow, match="belongs to flows"):
            switch.send(PacketOut(b"", "goto_table:1"))
        with pytest.raises(BadValue, match="no statistics of 'colours'"):
            switch.statistics("colours")  # pyright: ignore[reportArgumentType]


def test_a_controller_serves_one_lab_at_a_time_and_its_class_any_number() -> None:
    net = line(1)
    one = LearningSwitch()
    net.controller(one)
    with net.simulate(), pytest.raises(BadValue, match="runs in another lab already"):
        net.simulate().open()
    with net.simulate() as lab:
        assert lab.controller is one
    with pytest.raises(LabClosed):
        _ = one.now
    net.controller(LearningSwitch)
    with net.simulate() as first, net.simulate() as second:
        assert first.controller is not second.controller


def test_what_is_no_controller_is_refused() -> None:
    net = line(1)
    with pytest.raises(BadValue, match="the controller is 7"):
        net.controller(7)  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadValue, match="leave run away"):
        net.controller(LearningSwitch, run="true")
    net.controller(lambda: 7)  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadValue, match="makes 7"):
        net.simulate().open()
    with line(1).simulate() as lab, pytest.raises(NotAvailable, match="no controller runs in this process"):
        _ = lab.controller


def test_a_closed_lab_leaves_no_socket_behind() -> None:
    net = line(1)
    net.controller(LearningSwitch)
    before = threading.active_count()
    with net.emulate() as lab:
        lab.wait_for_controllers()
    assert threading.active_count() <= before
    with socket.socketpair()[0] as probe:
        lowest = probe.fileno()
    with net.simulate():
        pass
    with socket.socketpair()[0] as probe:
        assert probe.fileno() <= lowest + 1
