"""A network divided between controllers."""

from __future__ import annotations

import pytest
import twinnet as tn
from twinnet.control import ConnectedSwitch, Controller, LearningSwitch, ShortestPath, Slices, Statistics
from twinnet.errors import BadFlow, BadValue


def crossed() -> tn.Network:
    """h1 and h3 at s1, h2 and h4 at s2."""
    net = tn.Network()
    s1, s2 = (net.switch(name, fail_mode="secure") for name in ("s1", "s2"))
    for name, switch in (("h1", s1), ("h3", s1), ("h2", s2), ("h4", s2)):
        net.link(net.host(name), switch, delay="100 us")
    net.link(s1, s2, delay="1 ms")
    return net


def replies(lab: tn.Lab, source: str, target: str) -> int:
    flow = lab.start(tn.apps.ping(source, target, count=3, interval="100 ms"))
    lab.wait([flow], until=f"{lab.now() + 5:.3f} s")
    return 3 - (flow.report().lost or 0)


def divided(lab: tn.Lab) -> Slices:
    assert isinstance(lab.controller, Slices)
    return lab.controller


@pytest.mark.parametrize("kind", [LearningSwitch, ShortestPath])
def test_hosts_reach_those_of_their_slice_alone(kind: type[Controller]) -> None:
    net = crossed()
    net.controller(Slices({"odd": (kind(), ["h1", "h2"]), "even": (LearningSwitch(), ["h3", "h4"])}))
    with net.simulate() as lab:
        lab.wait_for_controllers()
        assert (replies(lab, "h1", "h2"), replies(lab, "h3", "h4")) == (3, 3)
        assert (replies(lab, "h1", "h3"), replies(lab, "h1", "h4"), replies(lab, "h4", "h2")) == (0, 0, 0)
        even, _ = divided(lab).slices["even"]
        assert isinstance(even, LearningSwitch)
        assert sorted(even.stations["s1"]) == ["00:00:00:00:00:02", "00:00:00:00:00:04"]


class Wiper(LearningSwitch):
    """Deletes all flows that it may, and asks what is left."""

    def on_start(self) -> None:
        super().on_start()
        self.seen: list[Statistics] = []

    def on_statistics(self, event: Statistics) -> None:
        self.seen.append(event)

    def wipe(self) -> None:
        for switch in self.switches.values():
            switch.statistics("flows")
            switch.delete()
            switch.statistics("flows")
            switch.statistics("ports")


def test_a_slice_deletes_and_counts_its_own_flows_and_ports_alone() -> None:
    net = crossed()
    net.controller(Slices({"odd": (Wiper(), ["h1", "h2"]), "even": (LearningSwitch(), ["h3", "h4"])}))
    with net.simulate() as lab:
        lab.wait_for_controllers()
        assert (replies(lab, "h1", "h2"), replies(lab, "h3", "h4")) == (3, 3)
        odd, _ = divided(lab).slices["odd"]
        assert isinstance(odd, Wiper)
        odd.after("10 ms", odd.wipe)
        lab.run_until(f"{lab.now() + 1:.3f} s")
        assert (replies(lab, "h1", "h2"), replies(lab, "h3", "h4")) == (0, 3)
        of_s1 = [event.rows for event in odd.seen if event.switch.name == "s1"]
        # A rule for each of two hosts that sends to the controller, and one for each way of the pings.
        assert [len(rows) for rows in of_s1] == [4, 0, 2]
        assert all(row["cookie"] < 1 << 48 for row in of_s1[0])
        assert set(odd.switches["s1"].ports) == {1, 3}, "not that of h3"


class Asking(Controller):
    """Has the first switch that joins do something."""

    def __init__(self, line: str) -> None:
        self.line = line

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        switch.install(self.line)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("dl_dst=00:00:00:00:00:02,actions=output:2", r"port 2 of s[12], which leads to a host of another slice"),
        ("actions=enqueue:2:1", "port 2 of s"),
        ("actions=2", "port 2 of s"),
        ("actions=normal", "learn from all slices"),
        ("cookie=0x1000000000000,actions=drop", "its highest 16 bits tell the slice"),
        ("dl_src=00:00:00:00:00:00/ff:ff:00:00:00:00,actions=drop", "match all of it in a slice"),
    ],
)
def test_a_flow_that_would_reach_beyond_the_slice_is_refused(line: str, said: str) -> None:
    net = crossed()
    net.controller(Slices({"odd": (Asking(line), ["h1", "h2"])}))
    with pytest.raises(BadFlow, match=said), net.simulate() as lab:
        lab.wait_for_controllers()


def test_flows_that_no_host_of_the_slice_can_send_are_not_installed() -> None:
    net = crossed()
    stranger = "dl_src=00:00:00:00:00:02,actions=drop"
    net.controller(Slices({"odd": (Asking(stranger), ["h1", "h2"]), "even": (LearningSwitch(), ["h3", "h4"])}))
    with net.simulate() as lab:
        lab.wait_for_controllers()
        assert replies(lab, "h3", "h4") == 3


def test_wrong_slices_are_told() -> None:
    with pytest.raises(BadValue, match="h1 would be in two slices"):
        Slices({"a": (LearningSwitch(), ["h1"]), "b": (LearningSwitch(), ["h1", "h2"])})
    net = crossed()
    net.controller(Slices({"a": (LearningSwitch(), ["h11"])}))
    with pytest.raises(BadValue, match="the slice a has no host 'h11' here"), net.simulate():
        pass
