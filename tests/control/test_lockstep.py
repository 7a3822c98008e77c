"""Controllers that are programs of their own on the virtual clock: real TCP, and the same run every time."""

from __future__ import annotations

import importlib.util
import itertools
import socket
import sys
import warnings
from pathlib import Path

import pytest
import twinnet as tn
from twinnet.errors import BadQuantity, BadValue, ControllerWarning, NotAvailable, TimeLimit

CONTROLLERS = Path(__file__).parents[1] / "support" / "controllers"
MS_PS = 10**9
needs_os_ken = pytest.mark.skipif(
    importlib.util.find_spec("os_ken") is None, reason="os-ken is not installed: pip install os-ken"
)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def line_of_switches(
    switches: int, program: str, *arguments: str, fail_mode: str = "secure", **settings: str
) -> tn.Network:
    """h1 - s1 - ... - sN - h2, every link 1 ms."""
    net = tn.Network()
    nodes = [net.host("h1"), *(net.switch(f"s{n + 1}", fail_mode=fail_mode) for n in range(switches)), net.host("h2")]
    for a, b in itertools.pairwise(nodes):
        net.link(a, b, delay="1 ms")
    command = [sys.executable, str(CONTROLLERS / program), "{port}", *arguments]
    net.controller(run=command, **settings)
    return net


def pinged(net: tn.Network, seconds: int = 4) -> tuple[list[int], str]:
    """The round trips of three pings, and the trace hash."""
    with net.simulate() as lab:
        lab.wait_for_controllers()
        there = lab.start(tn.apps.ping("h1", "h2", count=3, interval="1 s"))
        back = lab.start(tn.apps.ping("h2", "h1", count=3, interval="700 ms"))
        lab.run_until(f"{seconds} s")
        rtt = there.report().rtt
        assert rtt is not None and rtt.count == 3 and back.report().lost == 0
        return [int(rtt.min), int(rtt.max)], lab.trace_hash


@needs_os_ken
@pytest.mark.parametrize("program", ["learning_13.py", "learning_10.py"])
def test_a_real_os_ken_application_gives_the_same_run_each_time(program: str) -> None:
    runs = [pinged(line_of_switches(2, program, delay="2 ms")) for _ in range(3)]
    assert runs[0] == runs[1] == runs[2]


def test_a_controller_in_one_thread_needs_no_quiet_time() -> None:
    runs = [pinged(line_of_switches(3, "small_learning_13.py", quiet="0 s", delay="2 ms")) for _ in range(5)]
    assert len({trace for _, trace in runs}) == 1


def test_the_first_round_trip_pays_for_the_control_channel_exactly() -> None:
    def first(delay: str) -> tuple[int, int]:
        net = line_of_switches(1, "small_learning_13.py", quiet="0 s", delay=delay)
        with net.simulate() as lab:
            lab.wait_for_controllers()
            ping = lab.start(tn.apps.ping("h1", "h2", count=2, interval="1 s"))
            lab.run_until("3 s")
            rtt = ping.report().rtt
            assert rtt is not None
            return int(rtt.max), int(rtt.min)

    # A request by ARP and its answer, a request of ping, and its answer over a flow that is there by then: the
    # switch asks for the first three, each time there and back.
    assert first("0 s") == (8 * MS_PS, 4 * MS_PS)
    assert first("5 ms") == (8 * MS_PS + 3 * 2 * 5 * MS_PS, 4 * MS_PS)


def test_a_switch_says_itself_how_far_away_its_controllers_are() -> None:
    net = line_of_switches(1, "small_learning_13.py", quiet="0 s", delay="1 ms")
    net.switch("s2", control_delay="5 ms")
    net.switch("s3", control_delay="0 s")
    net.switch("s4", controllers=["tcp:127.0.0.1:6653"])
    net.switch("s5", controllers=["tcp:127.0.0.1:6653"], control_delay="7 ms")
    nodes = net.to_spec()["nodes"]
    told = {node["name"]: node.get("control_delay_ps", 0) for node in nodes if node["kind"] == "switch"}
    assert told == {"s1": MS_PS, "s2": 5 * MS_PS, "s3": 0, "s4": 0, "s5": 7 * MS_PS}
    with pytest.raises(BadQuantity, match="control delay"):
        net.switch("s6", control_delay="5 h")


def test_no_time_passes_while_a_switch_joins_without_a_delay() -> None:
    with line_of_switches(2, "small_learning_13.py", quiet="0 s").simulate() as lab:
        assert lab.now_ps() == 0
        assert [lab.switch(name).controller_state[0]["version"] for name in ("s1", "s2")] == ["1.3", "1.3"]
        assert [len(lab.switch(name).dump_flows()) for name in ("s1", "s2")] == [1, 1]


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("die", "closed it|reset"),
        ("hang", "owed an answer"),
        ("nonsense", "length"),
        ("stranger", "owed an answer"),
        ("half", "owed an answer"),
        ("flood", "owed an answer|silent"),
        ("busy", "owed an answer"),
    ],
)
def test_a_controller_that_fails_is_given_up_and_the_lab_goes_on_by_its_fail_mode(mode: str, why: str) -> None:
    net = line_of_switches(1, "small_learning_13.py", mode, fail_mode="standalone", quiet="5 ms", patience="2 s")
    net.link(net.host("h3"), "s1", delay="1 ms")
    with net.simulate() as lab:
        lab.wait_for_controllers()
        switch = lab.switch("s1")
        switch.add_flows([f"priority=100,in_port={port},actions=output:{3 - port}" for port in (1, 2)])
        covered = lab.start(tn.apps.udp("h1", "h2", rate="1 Mbit", payload="500 B", duration="2 s"))
        # What no flow covers, while that is on its way: the controller is asked, and fails.
        lab.start(tn.apps.ping("h3", "h1", count=1), at="1 s")
        with pytest.warns(ControllerWarning, match=f"s1 has lost its controller .*({why})"):
            lab.run_until("2 s")
        lab.run_until("8 s")
        assert (covered.report().packets, covered.report().lost) == (500, 0)
        # The table-miss flow that the controller left sends frames to nobody; without it the switch learns.
        switch.delete_flows()
        again = lab.start(tn.apps.ping("h1", "h2", count=2, interval="1 s"))
        lab.run_until("12 s")
        assert again.report().lost == 0
        (state,) = switch.controller_state
        assert state["version"] is None and state["trouble"]
        with pytest.raises(NotAvailable, match="s1 has lost its controller"):
            lab.check_controllers()


def test_a_controller_that_is_not_there_is_told_at_once() -> None:
    net = tn.Network()
    net.link(net.host("h1"), net.switch("s1"))
    net.controller(f"tcp:127.0.0.1:{free_port()}")
    with (
        pytest.warns(ControllerWarning, match="refused"),
        net.simulate() as lab,
        pytest.raises(TimeLimit, match=r"no controller has joined s1.*refused"),
    ):
        lab.wait_for_controllers("1 s")


def test_a_program_that_cannot_start_says_why() -> None:
    net = tn.Network()
    net.link(net.host("h1"), net.switch("s1"))
    net.controller(f"tcp:127.0.0.1:{free_port()}", run=[sys.executable, "-c", "raise SystemExit('no such app')"])
    with pytest.warns(ControllerWarning, match="no such app"), net.simulate():
        pass


@pytest.mark.parametrize("clock", ["virtual", "wall"])
def test_a_program_is_not_started_where_another_listens(clock: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        net = tn.Network()
        net.link(net.host("h1"), net.switch("s1"))
        net.controller(f"tcp:127.0.0.1:{taken.getsockname()[1]}", run="true")
        lab = net.simulate() if clock == "virtual" else net.emulate()
        with pytest.raises(NotAvailable, match=r"write \{port\} in run"):
            lab.open()


def test_labs_stand_side_by_side_each_with_a_program_of_its_own() -> None:
    net = line_of_switches(1, "small_learning_13.py", quiet="0 s")
    with net.simulate() as one, net.simulate() as other:
        targets = [lab.switch("s1").controller_state[0]["target"] for lab in (one, other)]
        assert targets[0] != targets[1] and all("{" not in target for target in targets)
    with pytest.raises(BadValue, match="leave connect away"):
        net.controller("tcp:127.0.0.1:6653", run="app {port}")


def test_probes_of_silent_controllers_cost_no_real_time_and_lose_none() -> None:
    net = line_of_switches(1, "small_learning_13.py", quiet="50 ms")
    with warnings.catch_warnings(), net.simulate() as lab:
        warnings.simplefilter("error")
        lab.wait_for_controllers()
        # Two thousand probes: with a quiet time each they would take 100 s.
        lab.run_until("10000 s")
        (state,) = lab.switch("s1").controller_state
        assert state["version"] == "1.3"


def test_times_out_of_range_are_refused() -> None:
    net = tn.Network()
    with pytest.raises(BadValue, match="patience '1 ms' is no longer than the quiet '20 ms'"):
        net.controller(patience="1 ms")
    with pytest.raises(BadValue, match="out of range"):
        net.controller(quiet="2 h")
    with pytest.raises(NotAvailable, match="cannot listen on the virtual clock"):
        net.switch("s1", listen="ptcp:16999")
        net.simulate().open()
