"""Counters under control delays, and how soon estimates follow a step of the cross traffic."""

from __future__ import annotations

import random

import pytest
import twinnet as tn
from twinnet import bandwidth
from twinnet.control import AvailableBandwidth
from twinnet.errors import BadValue
from two_switches import FULL_FRAMES_PAYLOAD_SHARE, PATH, Watched, answer_of, counted_by, cross_traffic, two_switches


@pytest.mark.parametrize("delay_ms", [0, 10, 100])
def test_the_error_model_of_counters_holds_whatever_the_control_delay(delay_ms: int) -> None:
    counters = AvailableBandwidth("500 ms")
    with counted_by(counters, delay=f"{delay_ms} ms").simulate() as lab:
        lab.wait_for_controllers()
        sampler = lab.sample(list(bandwidth.path_ports(lab, PATH)), "1 ms")
        lab.start(cross_traffic(74, process="poisson"))
        lab.run_until("8 s")
        told = counters.estimate(PATH, since_s=2.0, until_s=7.0)
        samples = sampler.read()
    # The counters were read one delay before their answers arrived.
    sampled_ms = 1000 * samples.start_ps / 1e12
    begin, end = (round(1000 * moment - delay_ms - sampled_ms) for moment in (told.start_s, told.end_s))
    carried = sum(samples["s1-eth3"].wire_bytes[begin:end]) * 8 / ((end - begin) / 1000)
    # The window's ends are known to a sample of 1 ms: a packet at each is 0.005 Mbit/s of 26.
    assert told.available_bps == pytest.approx(100e6 - carried, rel=0.005)
    assert told.error_bps < 0.005 * told.available_bps


def test_counters_follow_a_step_within_two_seconds() -> None:
    counters = AvailableBandwidth("500 ms")
    with counted_by(counters).simulate() as lab:
        lab.wait_for_controllers()
        lab.start(cross_traffic(30))
        lab.run_until("5 s")
        assert counters.estimate(PATH).available_bps == pytest.approx(70e6, rel=0.01)
        lab.start(cross_traffic(35, port=5004))
        lab.run_until("7 s")
        assert counters.estimate(PATH).available_bps == pytest.approx(35e6, rel=0.01)


def test_probes_follow_a_step_within_five_seconds() -> None:
    with two_switches(100).simulate() as lab:
        lab.start(cross_traffic(30))
        lab.run_until("3 s")
        # One estimate is on its way when the step comes; the next one is the first that can know.
        under_way = lab.start(bandwidth.bandwidth("h1", "h2", "hybrid", most_rate="200 Mbit"))
        lab.run_until("3.2 s")
        lab.start(cross_traffic(35, port=5004))
        lab.wait([under_way])
        after = lab.start(bandwidth.bandwidth("h1", "h2", "hybrid", most_rate="200 Mbit", port=5011))
        lab.wait([after])
        told = after.report().bandwidth
        assert lab.now() < 3.2 + 5
    assert told is not None and told.estimate_bps == pytest.approx(35e6, rel=0.1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_traffic_that_ends_is_not_forgotten_in_silence(seed: int) -> None:
    with two_switches(100, seed=seed).simulate() as lab:
        watched = Watched(lab, "5 ms")
        rate = f"{85e6 * FULL_FRAMES_PAYLOAD_SHARE:.0f} bit"
        lab.start(tn.apps.udp("x1", "x2", rate=rate, duration="15 s", process="poisson"))
        # It is to go on until its time is over.
        patient = {"precision": 0.0}
        probes = lab.start(
            bandwidth.bandwidth("h1", "h2", "hybrid", most_rate="200 Mbit", duration="16 s", settings=patient)
        )
        told = answer_of(lab, probes)
        true = watched.truth(told)
    assert told.window_s > 15 and told.low_bps is not None and told.high_bps is not None
    # In the last second all is available. An estimate of that second alone must not claim the whole window.
    assert told.low_bps <= true.available_bps <= told.high_bps, told


class Late(AvailableBandwidth):
    """Counters whose answers the control network holds up by chance, each by up to `most_s`."""

    def __init__(self, interval: str, most_s: float) -> None:
        super().__init__(interval, clock="controller")
        self._most_s, self._random = most_s, random.Random(1)

    @property
    def now(self) -> float:
        """The time when it is told, later than it is."""
        return super().now + self._random.uniform(0, self._most_s)


@pytest.mark.parametrize(("interval", "jitter_s"), [("500 ms", 0.01), ("2 s", 0.0)])
def test_probes_with_counters_that_are_late_or_coarse_cover_the_truth(interval: str, jitter_s: float) -> None:
    counters = Late(interval, jitter_s)
    with counted_by(counters).simulate() as lab:
        lab.wait_for_controllers()
        watched = Watched(lab, "5 ms")
        lab.start(cross_traffic(74, process="poisson"))
        lab.run_until("13 s")
        prior = counters.prior(PATH, jitter_s=jitter_s)
        probes = lab.start(bandwidth.bandwidth("h1", "h2", "hybrid", most_rate="200 Mbit", **prior.settings()))
        told = answer_of(lab, probes)
        true = watched.truth(told)
        assert told.low_bps is not None and told.high_bps is not None
    # 10 ms of 500 ms are 2 % of 74 Mbit/s, 1.5 of the 26 that are available.
    assert prior.std_bps > (0.2e6 if jitter_s else 0)
    assert prior.tight.switch == "s1"
    assert told.estimate_bps == pytest.approx(true.available_bps, rel=0.1)
    assert told.low_bps <= true.available_bps <= told.high_bps


def test_how_available_bandwidth_varies_needs_four_answers() -> None:
    counters = AvailableBandwidth("500 ms")
    with counted_by(counters).simulate() as lab:
        lab.wait_for_controllers()
        lab.run_until("1.2 s")
        with pytest.raises(BadValue, match="three polling periods"):
            counters.prior(PATH)
        with pytest.raises(BadValue, match="periods is 2"):
            counters.prior(PATH, periods=2)


def test_a_token_bucket_at_the_port_bounds_the_capacity_of_its_link() -> None:
    net = tn.Network()
    bucket = tn.qos.Tbf(rate="100 Mbit", burst="3028 B")
    net.link(net.host("h1"), net.host("h2"), rate="1 Gbit", queue_a=bucket)
    with net.simulate() as lab:
        ports = bandwidth.path_ports(lab, ["h1", "h2"])
        back = bandwidth.path_ports(lab, ["h2", "h1"])
        sampler = lab.sample(list(ports), "10 ms")
        lab.start(tn.apps.udp("h1", "h2", rate="200 Mbit", duration="3 s"))
        lab.run_until("3 s")
        full = bandwidth.available(sampler.read(), ports, 10**12, 2 * 10**12)
    # A bucket counts frames from the header on: what passes takes 1538 bytes of the wire for 1514.
    assert ports == {"h1-eth0": pytest.approx(100e6 * 1538 / 1514)}
    assert back == {"h2-eth0": 1e9}
    assert full.available_bps == pytest.approx(0, abs=0.001 * 100e6)
