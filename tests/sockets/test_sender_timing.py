"""How well built-in sources kept their schedule, as a lab tells it; and how far from their places packets arrived."""

from __future__ import annotations

import pytest
import twinnet as tn
from fidelity_sources import SOURCES
from twinnet.results.distributions import ReorderDensity
from twinnet.results.fidelity import FidelityRecord
from twinnet.results.flow_report import AppReport
from twinnet.study.collect import PlannedFlow, collect
from twinnet.study.fidelity_thresholds import FidelityThresholds
from twinnet.study.judgement import judged_record
from twinnet.study.resolution import load_study

SECOND_PS = 10**12


def test_the_agent_of_a_lab_tells_how_late_it_served_its_timers():
    with tn.templates.single(2, rate="100 Mbit").emulate() as lab:
        lab.fidelity(reset=True)
        flow = lab.start(tn.apps.udp("h1", "h2", packets_per_second=500, payload="100 B", packets=200))
        lab.wait([flow])
        record = lab.fidelity()
        agent = record.agent
        assert agent is not None
        # Each datagram but those that a late thread sent together was a timer of its own.
        assert 20 <= agent.timers == sum(count for _, count in agent.lateness_ns.histogram)
        assert 0 <= agent.lateness_ns.p50 <= agent.lateness_ns.p99 <= agent.lateness_ns.max
        assert 0 <= agent.waited_s <= record.elapsed_ps / 1e12
        assert record.agent_processor in ("own", "shared")
        lab.fidelity(reset=True)
        again = lab.fidelity().agent
        assert again is not None and again.timers == 0


def test_on_the_virtual_clock_there_is_no_agent():
    with tn.templates.single(2).simulate() as lab:
        assert (lab.fidelity().agent, lab.fidelity().agent_processor) == (None, None)


@pytest.mark.parametrize(("waited_s", "processor"), [(0.019, "own"), (0.021, "shared")])
def test_an_agent_that_waits_for_more_than_a_hundredth_shares_its_processor(waited_s: float, processor: str):
    agent = {"timers": 1, "lateness_ns": {"p99": 7}, "waited_s": waited_s}
    record = FidelityRecord.from_spec({"elapsed_ps": 2 * SECOND_PS, "agent": agent, "sources": SOURCES})
    assert record.agent_processor == processor
    assert record.verdict().state == "valid"


def test_a_run_in_which_senders_could_not_keep_up_is_doubtful_and_says_so():
    agent = {"timers": 1, "lateness_ns": {"p99": 7}, "waited_s": 0.0, "overloaded_senders": 2}
    told = {"elapsed_ps": 2 * SECOND_PS, "agent": agent, "sources": SOURCES}
    verdict = FidelityRecord.from_spec(told).verdict()
    assert verdict.state == "doubtful"
    assert verdict.reasons == (
        "2 built-in senders could not keep up: the machine, and no model, decided what was sent",
    )
    # What makes a run invalid still does.
    assert FidelityRecord.from_spec(told | {"slipped_ps": SECOND_PS}).verdict().state == "invalid"
    # As a study stores it, and judges it again by thresholds that were changed since.
    stored = judged_record(told, FidelityThresholds())
    assert (stored.verdict, stored.reasons) == ("doubtful", verdict.reasons)


def test_the_table_of_flows_tells_a_sources_timing_and_whose_its_processor_was():
    entry = load_study("tcp-udp-queues").specification.traffic[0]
    planned = [PlannedFlow(entry, "h1", 1, "10.0.0.1"), PlannedFlow(entry, "h3", 2, "10.0.0.3")]
    times = {
        "count": 9,
        "mean": 2e6,
        "min": 0,
        "max": 8 * 10**6,
        "std": 1e6,
        "p50": 10**6,
        "p90": 5 * 10**6,
        "p99": 7 * 10**6,
    }
    rate = {
        f"{which}_{what}": 1.0 for which in ("requested", "achieved") for what in ("packets_per_second", "rate_bps")
    }
    pacing = {"gap_error_ps": None, "lateness_ps": times, "kept_up": False, **rate}
    sent = {"flow": 1, "protocol": "tcp", "role": "source", "from": "10.0.0.1:9", "bytes": 7, "pacing": pacing}
    heard = {"flow": 2, "protocol": "tcp", "role": "sink", "from": "10.0.0.3:9", "bytes": 7}
    reports = [AppReport.from_spec({"app": 1, "report": {"flows": [one]}}) for one in (sent, heard)]
    flows = collect(reports, planned, None, 0, SECOND_PS, {"h1": "shared", "h3": "shared"}).flows
    told = flows.select("kept_up", "send_lateness_p99_ms", "send_gap_error_p99_ms", "sender_processor").rows()
    assert told == [(False, pytest.approx(0.007), None, "shared"), (None, None, None, None)]


def test_packets_that_overtake_each_other_have_a_density_of_displacements():
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), delay="5 ms", jitter="200 us", reorder=True)
    # Packets that wait for a neighbour's address leave all at once.
    with net.simulate(seed=3, static_neighbours=True) as lab:
        flow = lab.start(tn.apps.udp("h1", "h2", packets_per_second=10_000, payload="100 B", packets=2000))
        lab.wait([flow])
        lab.run_until("2 s")
        report = flow.report()
    density = report.reordering_density
    assert density is not None
    assert (density.threshold, density.packets, density.beyond) == (64, 2000, 0)
    assert min(density.shares) < 0 < max(density.shares)
    assert sum(density.shares.values()) == pytest.approx(1)
    # Where nothing is lost each place is taken once: packets are late by as much as others are early.
    assert sum(displacement * number for displacement, number in density.histogram) == 0


def test_the_shares_of_a_density_are_those_of_its_packets():
    density = ReorderDensity.from_spec(
        {"threshold": 3, "packets": 8, "beyond": 0, "histogram": [[-1, 2], [0, 4], [2, 2]]}
    )
    assert density is not None
    assert density.shares == {-1: 0.25, 0: 0.5, 2: 0.25}
