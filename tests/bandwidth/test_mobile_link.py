"""A link that follows a trace of deliveries: counters and `slotted` tell what it has left, other probes say why not."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest
import twinnet as tn
from made_studies import made_study
from twinnet import bandwidth
from twinnet.control import AvailableBandwidth, BandwidthService, LearningSwitch, Together
from twinnet.errors import BadValue, LabError
from twinnet.results.bandwidth_report import Bandwidth
from two_switches import FULL_FRAMES_PAYLOAD_SHARE, PATH, Watched, answer_of, counted_meanwhile

from bench import mobile_links

STUDY = """
study: one-mobile-link
title: One mobile link
question: Is it right?
network:
  hosts: {h1: , h2: , x1: }
  switches: {s1: , s2: }
  links:
    - {between: [h1, s1], rate: 1 Gbit}
    - {between: [x1, s1], rate: 1 Gbit}
    - {between: [s1, s2], delivery_trace: {mean: 60 Mbit, duration: 20 s, doppler_hz: 30, users: 1}}
    - {between: [h2, s2], rate: 1 Gbit}
traffic:
  - {name: cross, app: udp, from: [x1], to: h2, port: 5003, rate: 10 Mbit, process: poisson, duration: 60 s}
  - {name: probes, app: bandwidth, from: [h1], to: h2, method: slotted, start: 500 ms}
measurements:
  error: {of: available_bandwidth_error, ports: [h1-eth0, s1-eth3, s2-eth1]}
  covered: {of: available_bandwidth_covered, ports: [h1-eth0, s1-eth3, s2-eth1]}
repetitions: 3
clock: virtual
settle: 100 ms
drain: 100 ms
statements:
  - {id: right, text: It is right., check: "max(error) < 0.3 and min(error) > -0.3"}
"""


def mobile(counters: AvailableBandwidth | None = None, delay: str = "0 s") -> tn.Network:
    """h1 and x1, s1, a modelled cell of 40 Mbit/s, s2, h2 and x2."""
    net = tn.Network(seed=1)
    left, right = net.switch("s1"), net.switch("s2")
    for switch, hosts in ((left, ("h1", "x1")), (right, ("h2", "x2"))):
        for host in hosts:
            net.link(net.host(host), switch, rate="1 Gbit")
    net.link(left, right, delivery_trace=tn.DeliveryTrace.fading("40 Mbit", duration="10 s", users=2, seed=7))
    if counters is not None:
        net.controller(Together(counters, LearningSwitch()), delay=delay)
    return net


def cross() -> tn.apps.Flow:
    """10 Mbit/s at exponential gaps."""
    rate = f"{10e6 * FULL_FRAMES_PAYLOAD_SHARE:.0f} bit"
    return tn.apps.udp("x1", "x2", rate=rate, process="poisson", duration="1 min")


@pytest.mark.parametrize("delay_ms", [0, 20])
def test_counters_tell_what_a_mobile_link_has_left(delay_ms: int) -> None:
    counters = AvailableBandwidth("500 ms")
    with mobile(counters, delay=f"{delay_ms} ms").simulate() as lab:
        lab.wait_for_controllers()
        watched = Watched(lab)
        lab.start(cross())
        lab.run_until("7 s")
        told = counters.estimate(PATH, since_s=2.0, until_s=6.0, delay_s=delay_ms / 1000)
        samples = watched.sampler.read()
        with BandwidthService(counters) as service:
            answer = json.load(urllib.request.urlopen(service.url + "/available?from=h1&to=h2", timeout=30))
    window_ps = [round((moment - delay_ms / 1000) * 1e12) for moment in (told.start_s, told.end_s)]
    true = bandwidth.available(samples, watched.ports, window_ps[0], window_ps[1])
    # Two packets at the ends of 4 s are 0.006 Mbit/s of about 30; a sample of 1 ms is as much again.
    assert told.available_bps == pytest.approx(true.available_bps, rel=0.005)
    assert abs(told.available_bps - true.available_bps) <= told.error_bps + 0.01e6
    assert told.tight.switch == "s1" and "of traces: two packets" in told.error_model
    assert set(answer["tight"]) == {"switch", "port", "direction", "capacity_bps"}


@pytest.mark.parametrize("method", sorted({*bandwidth.METHODS} - {"slotted"}))
def test_no_method_is_wrong_in_silence_over_a_mobile_link(method: str) -> None:
    with mobile().simulate() as lab:
        lab.start(cross())
        lab.run_until("1 s")
        capacity = "40 Mbit" if method == "spruce" else None
        probes = lab.start(bandwidth.bandwidth("h1", "h2", method, capacity=capacity, most_rate="200 Mbit"))
        lab.wait([probes])
        told = probes.report().bandwidth
    assert told is not None and told.estimate_bps is None and told.gave_up is not None
    assert "slots of 1 ms, as over a mobile link" in told.gave_up
    # It ends when it knows, before it has used up a plan of data.
    assert told.probe_bytes < 5e6


def test_hybrid_answers_over_a_mobile_link_with_the_word_of_the_counters() -> None:
    counters = AvailableBandwidth("1 s")
    with mobile(counters).simulate() as lab:
        lab.wait_for_controllers()
        watched = Watched(lab)
        lab.start(cross())
        lab.run_until("9.5 s")
        prior = counters.prior(PATH)
        flow = bandwidth.bandwidth("h1", "h2", "hybrid", most_rate="200 Mbit", **prior.settings())
        told = answer_of(lab, lab.start(flow))
        true = watched.truth(told)
        assert told.low_bps is not None and told.high_bps is not None
    assert told.estimate_bps == pytest.approx(prior.mean_bps, rel=1e-6)
    assert told.low_bps <= true.available_bps <= told.high_bps
    assert prior.tight.traced is not None and "capacity" not in prior.settings()
    assert told.gave_up is None and any("the estimate is the prior" in note for note in told.notes)


@pytest.mark.parametrize("half", ["chosen", "held"])
def test_slotted_covers_what_modelled_mobile_links_have_left(half: str) -> None:
    rows = [mobile_links.estimate(link, seed=4) for link in mobile_links.links(half) if "Brownian" not in link.name]
    rows.append(mobile_links.estimate(next(one for one in mobile_links.links(half) if "Brownian" in one.name), seed=4))
    # Of six intervals of 95 % fewer than four cover in one case of five hundred.
    assert sum(row.covered for row in rows) >= 4, rows
    # One may end without an answer, where slots are larger than groups can be.
    told = [row for row in rows if row.estimate is not None]
    assert len(told) >= 5 and all(row.estimate == pytest.approx(row.true, rel=0.4) for row in told), rows


def test_counters_and_slotted_together_are_surer_than_slotted_alone() -> None:
    counters = AvailableBandwidth("500 ms")
    with mobile(counters).simulate() as lab:
        lab.wait_for_controllers()
        watched = Watched(lab)
        lab.start(cross())
        lab.run_until("1 s")
        told = answer_of(lab, lab.start(bandwidth.bandwidth("h1", "h2", "slotted")), after_s=1)
        both = bandwidth.fuse(told, counted_meanwhile(counters, told))
        true = watched.truth(told)
    # The probes are a load of megabits a second: counters that took them for traffic would contradict them.
    assert both.agree and both.counters_weight > 0.9
    assert both.estimate_bps == pytest.approx(true.available_bps, rel=0.03)
    assert told.high_bps is not None and told.low_bps is not None
    assert both.high_bps - both.low_bps < (told.high_bps - told.low_bps) / 3


def test_a_recorded_trace_has_its_share_of_cross_traffic(tmp_path: Path) -> None:
    (tmp_path / "cell.down").write_text("1\n1\n4\n", encoding="utf-8")
    link = mobile_links.recorded(tmp_path / "cell.down", share=25)
    assert (link.name, list(link.trace.times_ms)) == ("cell, 9.2 (2.3)", [1, 1, 4])
    assert link.cross_bps == pytest.approx(link.trace.mean_bps() / 4)


def test_a_study_measures_what_a_mobile_link_has_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_study(STUDY, tmp_path, "--json", "--no-report")
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {one["id"]: one["verdict"] for one in record["statements"]} == {"right": "supported"}


def test_slotted_sends_those_who_ask_it_of_another_link_to_hybrid() -> None:
    net = tn.Network(seed=1)
    net.link(net.host("h1"), net.host("h2"), rate="40 Mbit")
    with net.simulate() as lab:
        probes = lab.start(bandwidth.bandwidth("h1", "h2", "slotted", most_rate="200 Mbit"))
        lab.wait([probes])
        told = probes.report().bandwidth
    assert told is not None and told.estimate_bps is None and told.gave_up is not None
    assert "choose hybrid" in told.gave_up and told.probe_bytes < 2e6


def test_slotted_refuses_settings_of_others_and_those_out_of_range() -> None:
    with pytest.raises(BadValue, match="slotted does not use a capacity"):
        bandwidth.bandwidth_method("slotted", capacity="40 Mbit")
    with pytest.raises(BadValue, match="twinnet's own"):
        bandwidth.bandwidth_method("slotted", preset="published")
    with mobile().simulate() as lab, pytest.raises(LabError, match="groups"):
        lab.start(bandwidth.bandwidth("h1", "h2", "slotted", settings={"groups": 5}))


def test_a_record_of_a_mobile_link_is_refused_when_it_is_replayed() -> None:
    with mobile().simulate() as lab:
        probes = lab.start(bandwidth.bandwidth("h1", "h2", "yaz", most_rate="200 Mbit", record=True))
        lab.wait([probes])
        told: Bandwidth | None = probes.report().bandwidth
    assert told is not None and told.gave_up is not None
    again = bandwidth.replay(told.record, "kalman", most_rate_bps=200e6)
    assert again.estimate_bps is None and again.gave_up == told.gave_up
