"""A long queue before a slow line, filled by TCP, against queues that watch the delay; on the virtual clock."""

from __future__ import annotations

from typing import Any

import pytest
import twinnet as tn
from twinnet.results.flow_report import FlowReport

LINE_BPS = 10e6
BASE_MS = 40.0
"""Twice the way there and back, without any queue."""


def download(queue: tn.qos.Queue, ecn: int = 2) -> tuple[float, float, dict[str, Any]]:
    """TCP fills a line of 10 Mbit/s while the client pings: its rate, the median round trip, and the queue's counters
    beside `retransmits` of the transfer and `pings_lost`."""
    network = tn.Network(seed=3)
    server, client = (network.host(name, sysctls={"net.ipv4.tcp_ecn": ecn}) for name in ("server", "client"))
    network.link(server, network.switch("s1"), rate="1 Gbit", delay="10 ms")
    network.link("s1", client, rate="10 Mbit", delay="10 ms", queue_a=queue)
    with network.simulate() as lab:
        bulk = lab.start(tn.apps.tcp_bulk("server", "client", duration="20 s", info_interval="1 s"))
        pings = lab.start(tn.apps.ping("client", "server", count=190, interval="100 ms", timeout="5 s"))
        assert lab.wait([bulk, pings], until="60 s")
        counters = next(port["counters"] for port in lab.ports() if port["port"] == "s1-eth2")
        told = [flow.tcp_info for report in bulk.reports() for flow in report.flows if flow.tcp_info is not None]
        lost = {"retransmits": told[0].retransmits[-1], "pings_lost": pings.report().lost}
        return (bulk.report().bytes or 0) * 8 / 20, median_ms(pings.report()), counters | lost


def median_ms(report: FlowReport) -> float:
    assert report.rtt is not None and report.rtt.p50 is not None and report.rtt.count > 100
    return report.rtt.p50 / 1e9


@pytest.fixture(scope="module")
def long_fifo_ms() -> float:
    return download(tn.qos.Fifo(limit_frames=1000))[1]


def test_a_thousand_frames_before_ten_megabits_delay_everything(long_fifo_ms: float) -> None:
    # 1000 full frames are 1.23 s; CUBIC's window starts anew after the losses of slow start and grows towards that.
    assert long_fifo_ms > 5 * BASE_MS


@pytest.mark.parametrize(
    ("queue", "most_queueing_ms", "least_share"),
    [
        # A queue shorter than the 40 ms of the way runs empty after CUBIC has taken its window down to seven tenths:
        # the less it may hold, the longer. 94.1 % of the line are payload.
        (tn.qos.Codel(), 10.0, 0.9),  # The target is 5 ms.
        (tn.qos.FqCodel(), 1.5, 0.9),  # A ping waits for the frame on the line: 1.2 ms.
        (tn.qos.Sfq(), 3.0, 0.94),  # And for a frame of its turn; 127 frames are 156 ms, and it never runs empty.
        (tn.qos.Pie(), 22.0, 0.93),  # The target is 15 ms.
        # 15 kB are 12 ms; the average stays in the lower half of 15 to 45 kB, and drops come in groups.
        (tn.qos.Red(min="15 kB"), 25.0, 0.85),
    ],
)
def test_queues_that_watch_the_delay_keep_it_short_and_the_line_busy(
    queue: tn.qos.Queue, most_queueing_ms: float, least_share: float, long_fifo_ms: float
) -> None:
    rate_bps, delay_ms, counters = download(queue)
    assert BASE_MS <= delay_ms <= BASE_MS + most_queueing_ms < long_fifo_ms / 3
    assert rate_bps > least_share * LINE_BPS
    assert counters["marked"] == 0
    early, late = counters["dropped_early"], counters["dropped_overlimit"]
    assert (early == 0 and late > 0) if isinstance(queue, tn.qos.Sfq) else early > 0


@pytest.mark.parametrize("queue", [tn.qos.Codel(ecn=True), tn.qos.FqCodel(), tn.qos.Red(min="15 kB", ecn=True)])
def test_a_sender_that_understands_marks_loses_nothing(queue: tn.qos.Queue) -> None:
    rate_bps, delay_ms, counters = download(queue, ecn=1)
    assert counters["marked"] > 0
    assert counters["retransmits"] == counters["dropped_overlimit"] == 0
    # The pings beside the transfer understand no marks: one of them is dropped where a segment would be marked.
    assert counters["dropped_early"] == counters["pings_lost"]
    assert delay_ms < BASE_MS + 25 and rate_bps > 0.85 * LINE_BPS


def test_the_same_seed_draws_the_same_drops() -> None:
    queue = tn.qos.Pie()
    assert download(queue) == download(queue)
