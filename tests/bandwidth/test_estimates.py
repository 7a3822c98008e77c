"""Estimates of available bandwidth in labs, against what the fabric itself counted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
import twinnet as tn
from twinnet import bandwidth
from twinnet.bandwidth import Truth
from twinnet.control import AvailableBandwidth
from twinnet.errors import BadValue, LabError
from twinnet.results.bandwidth_report import Bandwidth
from twinnet.traffic.bandwidth import bandwidth_method
from two_switches import (
    FULL_FRAMES_PAYLOAD_SHARE,
    PATH,
    Watched,
    answer_of,
    counted_by,
    counted_meanwhile,
    cross_traffic,
    two_switches,
)


@dataclass(frozen=True)
class Made:
    """An estimate and the truth over its window."""

    told: Bandwidth
    true: Truth

    @property
    def error(self) -> float:
        """As a share of the truth, with its sign."""
        assert self.told.estimate_bps is not None, self.told.gave_up
        return self.told.estimate_bps / self.true.available_bps - 1


def make(method: str, link: float, cross: float, process: str = "constant", **settings: Any) -> Made:
    """Estimate on the virtual clock."""
    with two_switches(link).simulate() as lab:
        watched = Watched(lab)
        lab.start(cross_traffic(cross, process=process))
        lab.run_until("1 s")
        settings = {"most_rate": f"{2 * link:g} Mbit", **settings}
        told = answer_of(lab, lab.start(bandwidth.bandwidth("h1", "h2", method, **settings)))
        return Made(told, watched.truth(told))


@pytest.mark.parametrize("method", ["pathload", "yaz", "assolo", "stab", "pathchirp", "ptr"])
@pytest.mark.parametrize(("capacity", "cross"), [(10, 4), (100, 74)])
def test_our_settings_of_published_methods_are_within_a_tenth(method: str, capacity: float, cross: float) -> None:
    made = make(method, capacity, cross)
    assert abs(made.error) < 0.10
    assert made.true.tight == "s1-eth3"


@pytest.mark.parametrize(
    ("method", "capacity", "cross"),
    [("pathload", 10, 2), ("yaz", 3, 1.5), ("assolo", 10, 4), ("stab", 20, 6), ("pathchirp", 10, 4), ("ptr", 5, 1.5)],
)
def test_as_published_a_method_is_farther_off_than_with_our_settings(
    method: str, capacity: float, cross: float
) -> None:
    ours, published = (abs(make(method, capacity, cross, preset=preset).error) for preset in ("ours", "published"))
    assert ours < 0.10 < published


def test_the_published_settings_are_those_of_the_papers_and_give_way_to_settings_that_are_given() -> None:
    found = bandwidth_method("pathload", preset="published", settings={"streams": 6})
    assert (found["usual_gap_ns"], found["variation"], found["streams"], found["packets"]) == (80_000, 0.0, 6, 100)
    assert bandwidth_method("igi", preset="published")["equal_ns"] == 5000
    assert bandwidth_method("assolo", preset="published")["high_bps"] == 200e6
    assert bandwidth_method("yaz", preset="published")["first_gap_ns"] == 40_000
    for chirps in ("assolo", "stab", "pathchirp"):
        published = bandwidth_method(chirps, preset="published")
        assert (published["hold"], published["mean_signature"]) == (1, False)
    assert bandwidth_method("stab") == {"name": "stab"}
    spruce = bandwidth_method("spruce", preset="published", capacity="10 Mbit")
    assert spruce["capacity_bps"] == 10e6 and spruce["pairs"] == 100
    with pytest.raises(BadValue, match="hybrid is twinnet's own"):
        bandwidth_method("hybrid", preset="published")
    with pytest.raises(BadValue, match=r"there is no preset .publised.*published"):
        bandwidth_method("yaz", preset="publised")


@pytest.mark.parametrize(("capacity", "cross"), [(3, 1.5), (10, 2), (100, 76), (1000, 74)])
def test_hybrid_is_within_a_twentieth_of_the_truth_at_any_rate(capacity: float, cross: float) -> None:
    made = make("hybrid", capacity, cross)
    assert abs(made.error) < 0.05
    assert made.told.probe_bytes < 500_000


def test_hybrid_follows_random_traffic_and_its_interval_says_how_well() -> None:
    made = make("hybrid", 20, 14, "poisson")
    # The precision that it stops at is a standard error of 2 %: four of them are allowed here.
    assert abs(made.error) < 0.08
    assert made.told.low_bps is not None and made.told.high_bps is not None
    assert made.told.low_bps < made.told.estimate_bps < made.told.high_bps  # type: ignore[operator]


def test_a_report_tells_what_the_estimate_took() -> None:
    told = make("hybrid", 10, 4).told
    assert told.layer == "wire" and told.confidence == 0.95
    assert told.generated_share == pytest.approx(1.0, abs=1e-3), "on the virtual clock the sender keeps its gaps"
    assert told.interruptions == told.batched_trains == told.overflowed == told.clock_steps == 0
    assert told.probe_packets > told.trains == len(told.rates) > 0
    assert told.window_s > 0


def test_the_same_seed_gives_the_same_estimate() -> None:
    assert make("hybrid", 10, 4, "poisson").told == make("hybrid", 10, 4, "poisson").told


def test_a_budget_ends_an_estimate_with_what_is_known() -> None:
    told = make("kalman", 10, 4, budget="1 MB").told
    assert told.probe_bytes + told.control_bytes <= 1_000_000
    assert told.gave_up is not None and "budget" in told.gave_up
    assert told.estimate_bps is not None


def test_the_layer_of_ip_counts_less_than_the_wire() -> None:
    told: dict[str, float | None] = {}
    for layer in ("wire", "network"):
        with two_switches(10).simulate() as lab:
            lab.start(cross_traffic(4))
            handle = lab.start(bandwidth.bandwidth("h1", "h2", "ptr", layer=layer, most_rate="20 Mbit"))
            lab.wait([handle])
            found = handle.report().bandwidth
            assert found is not None and found.layer == layer
            told[layer] = found.estimate_bps
    assert told["wire"] is not None and told["network"] is not None
    # Packets of 500 bytes are 538 on the wire.
    assert told["network"] / told["wire"] == pytest.approx(500 / 538, rel=0.03)


def test_stab_tells_which_routed_link_is_tight() -> None:
    net = tn.Network(seed=3)
    for number in (1, 2, 3, 4):
        gateway = f"10.0.{number}.254"
        net.host(f"h{number}", ip=f"10.0.{number}.1/24", ip6=False, gateway=gateway)
    net.router("r1", routes=[("10.0.2.0/24", "10.0.9.2"), ("10.0.4.0/24", "10.0.9.2")])
    net.router("r2", routes=[("10.0.1.0/24", "10.0.9.1"), ("10.0.3.0/24", "10.0.9.1")])
    for host, router in (("h1", "r1"), ("h3", "r1"), ("h2", "r2"), ("h4", "r2")):
        net.link(host, router, rate="100 Mbit", address_b=f"10.0.{host[1]}.254/24")
    net.link("r1", "r2", rate="20 Mbit", address_a="10.0.9.1/24", address_b="10.0.9.2/24")
    with net.simulate() as lab:
        lab.start(tn.apps.udp("h3", "h4", rate=f"{5e6 * FULL_FRAMES_PAYLOAD_SHARE:.0f} bit", duration="1 h"))
        handle = lab.start(bandwidth.bandwidth("h1", "h2", "stab", most_rate="100 Mbit"))
        lab.wait([handle])
        told = handle.report().bandwidth
    assert told is not None and told.estimate_bps is not None, told
    assert len(told.hops) == 3
    assert told.tight_hop == 2, "the link between the routers"
    assert told.estimate_bps == pytest.approx(15e6, rel=0.1)
    assert told.hops[0].estimate_bps is not None and told.hops[0].estimate_bps > 60e6


@pytest.mark.parametrize("method", ["spruce", "hybrid"])
def test_methods_that_use_a_capacity_take_it(method: str) -> None:
    made = make(method, 10, 4, capacity="10 Mbit")
    assert made.told.capacity_bps == 10e6
    assert abs(made.error) < (0.25 if method == "spruce" else 0.05)


def test_spruce_without_a_capacity_says_what_it_needs() -> None:
    with two_switches(10).simulate() as lab:
        handle = lab.start(bandwidth.bandwidth("h1", "h2", "spruce"))
        lab.wait([handle])
        told = handle.reports()[0].flows[0]
    assert told.bandwidth is not None and told.bandwidth.estimate_bps is None
    assert "give capacity" in (told.bandwidth.gave_up or "")


def test_nobody_listening_is_told() -> None:
    with two_switches(10).simulate() as lab:
        handle = lab.start(bandwidth.bandwidth_prober("h1", "h2", "hybrid"))
        lab.wait([handle])
        told = handle.report()
    assert told.errors and "listen" in told.errors[0]


def test_a_probe_above_the_mtu_is_refused_with_its_size() -> None:
    with two_switches(10).simulate() as lab:
        handle = lab.start(bandwidth.bandwidth("h1", "h2", "ptr", mtu=9000, settings={"payload": 4000}))
        lab.wait([handle])
        told = handle.report().bandwidth
    assert told is not None and told.estimate_bps is None
    assert told.gave_up is not None and told.gave_up


def test_settings_that_are_not_known_are_refused() -> None:
    with pytest.raises(BadValue, match="'guess' is not known"):
        bandwidth.bandwidth("h1", "h2", "guess")
    with pytest.raises(BadValue, match="leave capacity out"):
        bandwidth.bandwidth("h1", "h2", "yaz", capacity="1 Mbit")
    with two_switches(10).simulate() as lab, pytest.raises(LabError, match="packets"):
        lab.start(bandwidth.bandwidth("h1", "h2", "pathload", settings={"packets": 5}))


def test_both_sides_know_the_same_methods() -> None:
    prober = bandwidth.bandwidth_prober("h1", "h2", "ptr")
    unknown = tn.apps.App(prober.host, prober.kind, {**prober.fields, "method": {"name": "guess"}})
    with two_switches(10).simulate() as lab, pytest.raises(LabError) as refused:
        lab.start(unknown)
    told = str(refused.value).partition("expected one of ")[2]
    # One that was brought along is named by its class.
    assert set(re.findall(r"`([a-z]+)`", told)) == {*bandwidth.METHODS, "own"}


def test_the_record_of_an_estimate_gives_the_same_estimate_again_and_feeds_other_methods() -> None:
    told = make("hybrid", 10, 4, record=True).told
    again = bandwidth.replay(told.record, "hybrid", most_rate_bps=20e6)
    assert again.estimate_bps == pytest.approx(told.estimate_bps, rel=1e-9)
    other = bandwidth.replay(told.record, "kalman", most_rate_bps=20e6)
    assert other.estimate_bps is not None or other.gave_up is not None
    with pytest.raises(BadValue, match="cannot be replayed"):
        bandwidth.replay([{"plan": {}, "sent_ns": "no"}], "hybrid")


@pytest.mark.parametrize("clock", ["switch", "controller"])
def test_counters_equal_the_truth_over_the_same_window(clock: Any) -> None:
    counters = AvailableBandwidth("500 ms", clock=clock)
    with counted_by(counters).simulate() as lab:
        lab.wait_for_controllers()
        watched = Watched(lab)
        lab.start(cross_traffic(74, process="poisson"))
        lab.run_until("8 s")
        nodes = counters.shortest_path("h1", "h2")
        told = counters.estimate(nodes, since_s=2.0, until_s=7.0)
        samples = watched.sampler.read()
    begin, end = round(told.start_s * 1000), round(told.end_s * 1000)
    carried = sum(samples["s1-eth3"].wire_bytes[begin:end]) * 8 / (told.end_s - told.start_s)
    assert nodes == PATH and (told.tight.switch, told.layer) == ("s1", "wire")
    assert told.available_bps == pytest.approx(100e6 - carried, rel=0.005)


def test_probes_and_counters_together_are_within_three_hundredths() -> None:
    counters = AvailableBandwidth("200 ms")
    with counted_by(counters).simulate() as lab:
        lab.wait_for_controllers()
        watched = Watched(lab)
        lab.start(cross_traffic(74, process="poisson"))
        lab.run_until("2 s")
        prior = counters.estimate(PATH)
        flow = bandwidth.bandwidth(
            "h1", "h2", capacity="100 Mbit", prior=f"{prior.available_bps:.0f} bit", prior_std="5 Mbit"
        )
        told = answer_of(lab, lab.start(flow), after_s=0.5)
        both = bandwidth.fuse(told, counted_meanwhile(counters, told))
        true = watched.truth(told)
    assert both.estimate_bps == pytest.approx(true.available_bps, rel=0.03)
    assert both.counters_weight > 0.9


def test_all_pairs_at_once_are_what_each_pair_is_alone() -> None:
    counters = AvailableBandwidth("500 ms")
    with counted_by(counters).simulate() as lab:
        lab.wait_for_controllers()
        lab.start(cross_traffic(74))
        lab.run_until("4 s")
        hosts = ["h1", "h2", "x1", "x2"]
        every = counters.between_all(hosts)
        alone = {
            (source, target): counters.estimate(counters.shortest_path(source, target)).available_bps
            for source in hosts
            for target in hosts
            if source != target
        }
    assert every == alone
    assert every["h1", "h2"] == pytest.approx(26e6, rel=0.005)
    assert every["x1", "h1"] > 900e6


def test_counters_that_have_not_answered_twice_say_so() -> None:
    counters = AvailableBandwidth("1 s")
    net = two_switches(10)
    net.controller(counters)
    with net.simulate() as lab:
        lab.wait_for_controllers()
        with pytest.raises(BadValue, match="two answers are needed"):
            counters.estimate(PATH)
        with pytest.raises(BadValue, match="is no host at a switch"):
            counters.shortest_path("h1", "s2")
