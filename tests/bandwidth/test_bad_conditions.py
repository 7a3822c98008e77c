"""What an estimate says of paths and peers that are not as they should be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import twinnet as tn
from twinnet import bandwidth
from twinnet.control import AvailableBandwidth
from twinnet.results.bandwidth_report import Bandwidth
from twinnet.traffic.bandwidth import METHODS
from two_switches import answer_of, counted_by, counted_meanwhile, cross_traffic, two_switches


def estimate(net: tn.Network, method: str, most_rate: str = "20 Mbit", **settings: Any) -> Bandwidth:
    """Estimate on the virtual clock."""
    with net.simulate() as lab:
        lab.start(cross_traffic(4))
        lab.run_until("1 s")
        handle = lab.start(bandwidth.bandwidth("h1", "h2", method, most_rate=most_rate, **settings))
        lab.wait([handle])
        told = handle.reports()[0].flows[0].bandwidth
    assert told is not None
    return told


def test_a_listener_that_ends_in_the_middle_is_told() -> None:
    with two_switches(10).simulate() as lab:
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
    told = estimate(two_switches(10), method, most_rate, duration="60 s")
    if told.estimate_bps is None:
        assert told.gave_up
        return
    assert told.low_bps is not None and told.high_bps is not None
    assert told.low_bps <= 6e6 <= told.high_bps
    if method == "hybrid":
        # Short packets tell how often the path has no queue, at any rate.
        assert abs(told.estimate_bps / 6e6 - 1) < 0.1 or any("lift most_rate" in note for note in told.notes)


@pytest.mark.parametrize(("burst", "is_seen"), [("3028 B", True), ("100 kB", False)])
def test_a_shaper_that_lets_bursts_pass_is_said_where_it_cannot_be_seen_through(burst: str, is_seen: bool) -> None:
    net = tn.Network()
    bucket = tn.qos.Tbf(rate="100 Mbit", burst=burst)
    s1, s2 = net.switch("s1"), net.switch("s2")
    for host in ("h1", "x1"):
        net.link(net.host(host), s1, rate="1 Gbit")
    net.link(s1, s2, rate="1 Gbit", queue_a=bucket)
    for host in ("h2", "y1"):
        net.link(s2, net.host(host), rate="1 Gbit")
    with net.simulate() as lab:
        lab.start(tn.apps.udp("x1", "y1", rate="57 Mbit", duration="60 s"))
        lab.run_until("1 s")
        most = {"capacity": "100 Mbit", "most_rate": "200 Mbit", "duration": "50 s"}
        handle = lab.start(bandwidth.bandwidth("h1", "h2", "hybrid", **most))
        lab.wait([handle])
        told = handle.reports()[0].flows[0].bandwidth
    assert told is not None
    if is_seen:
        assert told.estimate_bps == pytest.approx(100e6 * 1538 / 1514 - 57e6 * 1538 / 1472, rel=0.05)
    else:
        assert told.estimate_bps is None and told.gave_up and "a shaper lets bursts pass" in told.gave_up


def test_loss_on_the_way_leaves_hybrid_right_or_without_an_answer() -> None:
    told = estimate(two_switches(10, loss="2 %"), "hybrid")
    assert told.probe_lost > 0
    assert told.estimate_bps is None or told.estimate_bps == pytest.approx(6e6, rel=0.1)


def test_stab_behind_switches_that_do_not_count_hops_sees_one_hop() -> None:
    told = estimate(two_switches(10), "stab")
    assert len(told.hops) == 1
    assert told.estimate_bps == pytest.approx(6e6, rel=0.1)


def test_spruce_with_a_wrong_capacity_is_wrong_in_proportion_and_repeats_the_capacity() -> None:
    told = estimate(two_switches(10), "spruce", capacity="5 Mbit")
    assert told.capacity_bps == 5e6
    assert told.estimate_bps is None or told.estimate_bps < 5e6


def test_a_wrong_capacity_of_the_counters_is_seen_by_the_probes() -> None:
    counters = AvailableBandwidth("500 ms")
    with counted_by(counters, 10).simulate() as lab:
        lab.wait_for_controllers()
        lab.start(cross_traffic(4))
        lab.run_until("1 s")
        told = answer_of(lab, lab.start(bandwidth.bandwidth("h1", "h2", most_rate="20 Mbit")), after_s=1)
        right = counted_meanwhile(counters, told)
    wrong = replace(right, available_bps=right.available_bps + 90e6)
    both = bandwidth.fuse(told, wrong)
    assert not both.agree
    assert both.low_bps <= 6e6 <= both.high_bps


def test_two_estimates_on_one_path_each_take_the_other_for_cross_traffic() -> None:
    with two_switches(10).simulate() as lab:
        lab.start(cross_traffic(4))
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
    told = estimate(two_switches(10), "hybrid", record=True)
    slow = [
        {**train, "arrived_ns": [None if one is None else one + round(one * 100e-6) for one in train["arrived_ns"]]}
        for train in told.record
    ]
    drifting = bandwidth.replay(slow, "hybrid", most_rate_bps=20e6)
    # C times the drift, of 10 Mbit/s; and what the base delay's drift over some seconds makes of idle times.
    assert drifting.estimate_bps == pytest.approx(told.estimate_bps, rel=0.02)
