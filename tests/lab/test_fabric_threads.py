"""A network that several threads move: what it does is what one thread does with the whole."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import twinnet as tn
from labs_here import can_run_labs
from twinnet.errors import BadValue, LabError
from twinnet.lab.lab import Lab

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")

SWITCHES = 4


def chain(delay: str = "200 us", model: bool = False) -> tn.Network:
    """Switches s1 to s4 in a row with two hosts each: a1 and b1 at s1, and so on."""
    network = tn.Network(seed=3)
    switches = [network.switch(f"s{number}") for number in range(1, SWITCHES + 1)]
    for number, switch in enumerate(switches, 1):
        for letter in "ab":
            network.link(network.host(f"{letter}{number}", model=model), switch, rate="100 Mbit")
    for left, right in itertools.pairwise(switches):
        network.link(left, right, rate="50 Mbit", delay=delay)
    return network


def parts_of(lab: Lab) -> Mapping[str, Any]:
    return lab.fidelity().raw["parts"]


def over_the_links(lab: Lab) -> list[tuple[int, int]]:
    """For each direction of the links between switches the frames that were sent and those that arrived."""
    counters = {row["port"]: row["counters"] for row in lab.ports()}
    # Behind the two hosts' ports of a switch come that to the left, if there is one, and that to the right.
    ends = [(f"s{at}-eth{3 if at == 1 else 4}", f"s{at + 1}-eth3") for at in range(1, SWITCHES)]
    ways = [*ends, *((b, a) for a, b in ends)]
    for a, _ in ways:
        assert counters[a]["dropped_overlimit"] == counters[a]["dropped_down"] == counters[a]["lost"] == 0
    return [(counters[a]["frames"], counters[b]["received_frames"]) for a, b in ways]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_hosts_reach_each_other_and_nothing_is_lost_between_the_parts(threads: int) -> None:
    with chain().emulate(fabric_threads=threads) as lab:
        assert lab.started["fabric_threads"] == threads
        probe = lab.start(tn.apps.ping("a1", "a4", count=5, interval="50 ms"))
        udp = lab.start(tn.apps.udp("a1", "b4", rate="8 Mbit", payload="1000 B", packets=1000))
        back = lab.start(tn.apps.udp("b3", "a2", rate="8 Mbit", payload="1000 B", packets=1000))
        assert lab.wait([probe, udp, back], until="10 s")
        deadline = time.monotonic() + 10
        # Hosts say something of their own accord now and then, which may be on its way at a look.
        while any(sent != arrived for sent, arrived in over_the_links(lab)) and time.monotonic() < deadline:
            lab.run_until(f"{lab.now() + 0.05:.3f} s")
        assert all(sent == arrived > 0 for sent, arrived in over_the_links(lab))
        rtt, reports, parts = probe.report().rtt, [udp.report(), back.report()], parts_of(lab)
    assert rtt is not None
    assert rtt.count == 5
    # Three links of 200 us each way; frames of real hosts may be late, never early.
    assert rtt.min >= 1.2e9
    assert [(report.packets, report.lost) for report in reports] == [(1000, 0)] * 2
    assert (parts["threads"], parts["links_cut"], len(parts["each"])) == (threads, threads - 1, threads)
    assert parts["messages"] == parts["messages_taken"]
    assert parts["frames_dropped"] == 0
    assert (parts["messages"] >= 2000) == (threads > 1)
    # A chain of four equal switches can be divided equally.
    assert parts["expected_largest_share"] < 1.15 / threads


@pytest.mark.judged
@pytest.mark.quiet
def test_tcp_fills_the_link_between_two_parts() -> None:
    with chain().emulate(fabric_threads=2) as lab:
        flow = lab.start(tn.apps.tcp_bulk("a1", "a4", duration="2 s"))
        assert lab.wait([flow], until="10 s")
        sender, receiver = flow.reports()
    received = receiver.flow(flow.flow or 0)
    assert received is not None
    assert received.bytes == sender.flows[0].bytes
    # Of 50 Mbit/s framing leaves 47.1; the start costs some round trips.
    assert 46e6 < received.throughput_bps < 47.2e6


def test_captures_on_both_sides_of_a_cut_link_show_the_same_frames(tmp_path: Path) -> None:
    with chain().emulate(fabric_threads=2) as lab:
        # The middle of the chain is where it is cut.
        near, far = (lab.capture(port, str(tmp_path / f"{port}.pcapng")) for port in ("s2-eth4", "s3-eth3"))
        assert lab.wait([lab.start(tn.apps.ping("a2", "a3", count=10, interval="20 ms"))], until="5 s")
        counts = [capture.stop().frames for capture in (near, far)]
        assert parts_of(lab)["messages"] > 0
    # Requests and answers of ten pings, and what hosts ask for by ARP and neighbour discovery.
    assert counts[0] == counts[1] >= 20


def test_a_cut_link_goes_down_and_up_again() -> None:
    with chain().emulate(fabric_threads=2) as lab:

        def answered(a: str, b: str) -> bool:
            probe = lab.start(tn.apps.ping(a, b, count=2, interval="20 ms", timeout="300 ms"))
            lab.wait([probe])
            rtt = probe.report().rtt
            return rtt is not None and rtt.count > 0

        assert answered("a1", "a4")
        lab.link("s2", "s3").set(up=False)
        assert [row["ab"]["up"] for row in lab.links()].count(False) == 1
        assert not answered("a1", "a4")
        assert answered("a1", "a2")
        assert answered("a3", "a4")
        lab.at(f"{lab.now() + 0.1:.3f} s").link("s2", "s3").set(up=True)
        lab.run_until(f"{lab.now() + 0.3:.3f} s")
        assert answered("a1", "a4")
        lab.link("s2", "s3").set(delay="30 ms")
        slow = lab.start(tn.apps.ping("a2", "a3", count=2, interval="100 ms"))
        lab.wait([slow])
        rtt = slow.report().rtt
        assert rtt is not None
        assert rtt.min >= 60e9


def test_flows_and_queues_reach_the_part_that_has_the_switch() -> None:
    with chain().emulate(fabric_threads=4) as lab:
        for number in range(1, SWITCHES + 1):
            switch = lab.switch(f"s{number}")
            switch.add_flow("priority=0,actions=normal")
            assert len(switch.dump_flows()) == 1
        assert lab.wait([lab.start(tn.apps.ping("a1", "a4", count=2, interval="20 ms"))], until="5 s")
        for number in range(1, SWITCHES + 1):
            [flow] = lab.switch(f"s{number}").dump_flows()
            assert "n_packets=0" not in flow, flow
        lab.switch("s4").set_queue("s4-eth1", tn.qos.Fifo(limit_frames=7))
        with pytest.raises(LabError, match="nobody"):
            lab.connection.flows_dump(switch="nobody")


def test_a_controller_serves_switches_of_all_parts() -> None:
    network = chain()
    network.controller(tn.control.LearningSwitch())
    with network.emulate(fabric_threads=4) as lab:
        lab.wait_for_controllers()
        assert len(lab.connection.controllers()) == SWITCHES
        probe = lab.start(tn.apps.ping("a1", "a4", count=3, interval="50 ms"))
        assert lab.wait([probe], until="10 s")
        rtt = probe.report().rtt
        assert rtt is not None
        assert rtt.count == 3


def test_samples_of_ports_in_all_parts_are_of_the_same_moments() -> None:
    with chain().emulate(fabric_threads=4) as lab:
        ports = [f"s{number}-eth3" for number in range(1, SWITCHES + 1)]
        with lab.sample(ports, "20 ms") as sampler:
            assert lab.wait([lab.start(tn.apps.udp("a1", "a4", rate="4 Mbit", packets=200, payload="1000 B"))])
            lab.run_until(f"{lab.now() + 0.1:.3f} s")
            told = sampler.stop()
        assert len(told) >= 5
        # The last part's port gets what the first sends, in the end.
        assert sum(told["s1-eth3"].frames) >= 200
        assert sum(told["s4-eth3"].received_frames) >= 200


def test_model_hosts_are_moved_by_several_threads_too() -> None:
    with chain(model=True).emulate(fabric_threads=2) as lab:
        probes = [lab.start(tn.apps.ping(a, b, count=3, interval="20 ms")) for a, b in (("a1", "a4"), ("b4", "b1"))]
        assert lab.wait(probes, until="10 s")
        assert {report.host for report in lab.reports()} >= {"a1", "b4"}
        for probe in probes:
            rtt = probe.report().rtt
            assert rtt is not None
            assert rtt.count == 3
        assert parts_of(lab)["threads"] == 2


def test_a_network_that_cannot_be_divided_says_why() -> None:
    with tn.templates.single(3).emulate(fabric_threads=2) as lab:
        parts = parts_of(lab)
    assert (parts["threads"], parts["messages"]) == (1, 0)
    assert "2 asked for; links between switches divide the 1 switches into 1" in parts["why"]


def test_by_itself_a_lab_takes_one_thread_where_fewer_than_eight_processors_are_free() -> None:
    with chain(delay="10 us").emulate() as lab:
        parts = parts_of(lab)
        assert lab.started["fabric_threads"] == 1
    assert "one for 4 processors" in parts["why"]


@pytest.mark.parametrize("threads", [0, 65, "many"])
def test_other_numbers_of_threads_are_refused(threads: Any) -> None:
    with pytest.raises(LabError, match="fabric_threads"), chain().emulate(fabric_threads=threads):
        pass


def test_a_lab_on_the_virtual_clock_has_no_threads() -> None:
    with pytest.raises(BadValue, match="fabric_threads"):
        Lab(chain(), clock="virtual", fabric_threads=2)


def test_a_network_says_how_many_threads_move_it_and_a_call_overrides_it() -> None:
    network = chain()
    network.fabric_threads = 2
    with network.emulate() as lab:
        assert lab.started["fabric_threads"] == 2
    with network.emulate(fabric_threads=1) as lab:
        assert lab.started["fabric_threads"] == 1
    with network.simulate() as lab:
        assert "fabric_threads" not in lab.started


HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))
print("begun", flush=True)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    pass
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may take a processor by real-time scheduling")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor cannot be taken while another is left")
def test_a_part_that_is_stopped_is_told_of_and_the_others_go_on() -> None:
    with chain().emulate(fabric_threads=2) as lab:
        tasks = Path(f"/proc/{lab.pid}/task")
        threads = sorted(int(task.name) for task in tasks.iterdir() if (task / "comm").read_text() == "fabric\n")
        assert len(threads) == 2
        first, second, *_ = sorted(os.sched_getaffinity(0))
        for thread, processor in zip(threads, (first, second), strict=True):
            os.sched_setaffinity(thread, {processor})
        flow = lab.start(tn.apps.udp("a1", "b2", rate="4 Mbit", payload="500 B", duration="1500 ms"))
        lab.run_until("300 ms")
        lab.fidelity(reset=True)
        hog = subprocess.Popen([sys.executable, "-c", HOG, str(second), "0.4"], stdout=subprocess.PIPE)
        assert hog.wait(20) == 0
        lab.wait([flow], until="10 s")
        parts = parts_of(lab)
        sent, arrived = over_the_links(lab)[0]
        verdict = lab.fidelity().verdict()
        # What was stopped goes on.
        probe = lab.start(tn.apps.ping("a1", "a4", count=3, interval="50 ms"))
        assert lab.wait([probe], until="10 s")
        rtt = probe.report().rtt
    assert rtt is not None
    assert rtt.count > 0
    other, stopped = (part["pauses"]["longest_ps"] / 1e9 for part in parts["each"])
    assert stopped > 300, parts
    assert other < stopped / 2, parts
    # The hosts' own network stacks may have had the processor that was taken; the other part carried what it got.
    assert sent == arrived > 0
    assert verdict.state == "invalid"
