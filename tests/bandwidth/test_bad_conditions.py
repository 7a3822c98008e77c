"""What an estimate says of paths and peers that are not as they should be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import twinnet as tn
from twinnet import bandwidth
from twinnet.control import AvailableBandwidth, LearningSwitch, Together
from twinnet.results.bandwidth_report import Bandwidth
from twinnet.traffic.bandwidth import METHODS

PATH = ["h1", "s1", "s2", "h2"]
FULL_FRAMES_PAYLOAD_SHARE = 1472 / 1538
"""Of the wire's rate, with preamble, check sequence and gap."""


def network(*, loss: str = "0 %") -> tn.Network:
    """h1 and x1, s1, one link of 10 Mbit/s that loses a share of the packets, s2, h2 and x2."""
    net = tn.Network(seed=1)
    left, right = net.switch("s1"), net.switch("s2")
    for switch, hosts in ((left, ("h1", "x1")), (right, ("h2", "x2"))):
        for host in hosts:
            net.link(net.host(host), switch, rate="100 Mbit")
    net.link(left, right, rate="10 Mbit", loss=loss)
    return net


def cross_traffic() -> tn.apps.Flow:
    """Full-size frames of 4 Mbit/s on the wire, from x1 to x2."""
    return tn.apps.udp("x1", "x2", rate=f"{4e6 * FULL_FRAMES_PAYLOAD_SHARE:.0f} bit", duration="1 h")


def estimate(net: tn.Network, method: str, most_rate: str = "20 Mbit", **settings: Any) -> Bandwidth:
    """Estimate on the virtual clock."""
    with net.simulate() as lab:
        lab.start(cross_traffic())
        lab.run_until("1 s")
        handle = lab.start(bandwidth.bandwidth("h1", "h2", method, most_rate=most_rate, **settings))
        lab.wait([handle])
        told = handle.reports()[0].flows[0].bandwidth
    assert told is not None
    return told


def test_a_listener_that_ends_in_the_middle_is_told() -> None:
    with network().simulate() as lab:
        listener = lab.start(bandwidth.bandwidth_listener("h2"))
        prober = lab.start(bandwidth.bandwidth_prober("h1", "h2", "pathload", most_rate="20 Mbit"))
        lab.run_until("1 s")
        listener.stop()
        lab.wait([prober])
        told = prober.report().bandwidth
    assert told is not None and told.gave_up and "the listener at " in told.gave_up


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"spruce"}))
@pytest.mark.parametrize("most_rate", ["1 Mbit", "4 Mbit"])
def test_who_may_not_send_as_fast_as_the_path_can_take_is_not_wrong_in_silence(method: str, most_rate: str) -> None:
    told = estimate(network(), method, most_rate, duration="60 s")
    if told.estimate_bps is None:
        assert told.gave_up
        return
    assert told.low_bps is not None and told.high_bps is not None
    assert told.low_bps <= 6e6 <= told.high_bps
    if method == "hybrid":
        # Short packets tell how often the path has no queue, at any rate.
        assert abs(told.estimate_bps / 6e6 - 1) < 0.1 or any("lift most_rate" in note for note in told.notes)


def test_loss_on_the_way_leaves_hybrid_right_or_without_an_answer() -> None:
    told = estimate(network(loss="2 %"), "hybrid")
    assert told.probe_lost > 0
    assert told.estimate_bps is None or told.estimate_bps == pytest.approx(6e6, rel=0.1)


def test_stab_behind_switches_that_do_not_count_hops_sees_one_hop() -> None:
    told = estimate(network(), "stab")
    assert len(told.hops) == 1
    assert told.estimate_bps == pytest.approx(6e6, rel=0.1)


def test_spruce_with_a_wrong_capacity_is_wrong_in_proportion_and_repeats_the_capacity() -> None:
    told = estimate(network(), "spruce", capacity="5 Mbit")
    assert told.capacity_bps == 5e6
    assert told.estimate_bps is None or told.estimate_bps < 5e6


def test_a_wrong_capacity_of_the_counters_is_seen_by_the_probes() -> None:
    counters = AvailableBandwidth("500 ms")
    net = network()
    net.controller(Together(counters, LearningSwitch()))
    with net.simulate() as lab:
        lab.wait_for_controllers()
        lab.start(cross_traffic())
        lab.run_until("1 s")
        handle = lab.start(bandwidth.bandwidth("h1", "h2", most_rate="20 Mbit"))
        lab.wait([handle])
        lab.run_until(f"{lab.now() + 1:.6f} s")
        told = handle.reports()[0].flows[0].bandwidth
        assert told is not None and told.window_start_ps is not None and told.window_end_ps is not None
        right = counters.estimate(
            PATH,
            since_s=told.window_start_ps / 1e12,
            until_s=told.window_end_ps / 1e12,
            probe_bytes=told.probe_bytes + told.control_bytes,
        )
    wrong = replace(right, available_bps=right.available_bps + 90e6)
    both = bandwidth.fuse(told, wrong)
    assert not both.agree
    assert both.low_bps <= 6e6 <= both.high_bps


def test_two_estimates_on_one_path_each_take_the_other_for_cross_traffic() -> None:
    with network().simulate() as lab:
        lab.start(cross_traffic())
        lab.run_until("1 s")
        flows = [bandwidth.bandwidth("h1", "h2", most_rate="20 Mbit", port=port) for port in (5010, 5011)]
        handles = [lab.start(flow) for flow in flows]
        lab.wait(handles)
        told = [handle.reports()[0].flows[0].bandwidth for handle in handles]
    for one in told:
        assert one is not None and one.estimate_bps is not None
        # Below what is there without the other, by no more than the other sent, and a tenth.
        other_bps = max(8 * two.probe_bytes / two.window_s for two in told if two is not None)
        assert 0.9 * (6e6 - other_bps) <= one.estimate_bps <= 1.1 * 6e6


def test_a_slow_clock_changes_nothing_but_its_own_part_in_a_million() -> None:
    told = estimate(network(), "hybrid", record=True)
    slow = [
        {**train, "arrived_ns": [None if one is None else one + round(one * 100e-6) for one in train["arrived_ns"]]}
        for train in told.record
    ]
    drifting = bandwidth.replay(slow, "hybrid", most_rate_bps=20e6)
    # C times the drift, of 10 Mbit/s; and what the base delay's drift over some seconds makes of idle times.
    assert drifting.estimate_bps == pytest.approx(told.estimate_bps, rel=0.02)
