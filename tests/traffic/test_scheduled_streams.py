"""TCP and ICMP by schedules: processes of gaps and sizes, DSCP, and what a connection cannot keep up with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twinnet as tn
from captured_frames import CapturedFrame, captured_ip
from labs_here import needs_a_lab
from scipy import stats  # pyright: ignore[reportMissingTypeStubs]
from twinnet.errors import BadValue
from twinnet.traffic import distributions

PACKETS = 10_000
CRITICAL = 1.95 / np.sqrt(PACKETS)
"""The 0.1 % level of the distance of Kolmogorov and Smirnov."""
TCP, ICMP, ICMPV6 = 6, 1, 58


def two_hosts() -> tn.Network:
    network = tn.Network(seed=3)
    network.link(network.host("h1"), network.host("h2"), rate="1 Gbit", mtu=1500)
    return network


def leaving(path: Path, traffic: tn.apps.App | tn.apps.Flow, protocol: int) -> list[CapturedFrame]:
    """What the first host sends of `protocol` on the virtual clock."""
    with two_hosts().simulate(seed=1) as lab:
        capture = lab.capture("h1-eth0", str(path))
        handle = lab.start(traffic)
        assert lab.wait([handle], until="20 h")
        capture.stop()
        own = lab.layout.address("h1")
    import socket

    return [one for one in captured_ip(path) if one.protocol == protocol and one.source == socket.inet_aton(own)]


def tcp_payload(segment: CapturedFrame) -> int:
    return segment.payload - (segment.head[12] >> 4) * 4


def test_writes_have_the_gaps_and_the_sizes_that_were_asked_for(tmp_path: Path) -> None:
    gap, size = distributions.exponential("1 ms"), distributions.uniform("16 B", "1000 B")
    flow = tn.apps.tcp("h1", "h2", gap=gap, size=size, writes=PACKETS)
    segments = [one for one in leaving(tmp_path / "tcp.pcapng", flow, TCP) if tcp_payload(one) > 0]
    # Of a way without delay each write is acknowledged before the next, and leaves in a segment of its own.
    assert len(segments) == PACKETS
    gaps = np.diff([one.time_ns for one in segments]) / 1e6
    assert stats.kstest(gaps, stats.expon(scale=1).cdf).statistic < CRITICAL
    sizes = np.array([tcp_payload(one) for one in segments])
    assert stats.kstest(sizes, stats.uniform(15.5, 985).cdf).statistic < CRITICAL


def test_echo_requests_have_the_gaps_and_the_sizes_that_were_asked_for(tmp_path: Path) -> None:
    gap, size = distributions.gamma(2, "5 ms"), distributions.normal("500 B", "100 B")
    ping = tn.apps.ping("h1", "h2", gap=gap, size=size, count=PACKETS)
    requests = leaving(tmp_path / "icmp.pcapng", ping, ICMP)
    assert len(requests) == PACKETS
    gaps = np.diff([one.time_ns for one in requests]) / 1e6
    assert stats.kstest(gaps, stats.gamma(2, scale=5).cdf).statistic < CRITICAL
    # Sizes are rounded: 10,000 draws of a deviation of 100 tell it from a continuous one by less than 0.2 %.
    sizes = np.array([one.payload - 8 for one in requests])
    assert stats.kstest(sizes, stats.norm(500, 100).cdf).statistic < CRITICAL + 0.002


def test_a_rate_is_kept_to_the_byte_on_the_virtual_clock() -> None:
    with two_hosts().simulate() as lab:
        handle = lab.start(tn.apps.tcp("h1", "h2", rate="3 Mbit", payload="1000 B", duration="8 s"))
        assert lab.wait([handle], until="20 s")
        source = handle.reports()[0].flows[0]
        assert handle.report().bytes == source.bytes == 3_000_000
    pacing = source.pacing
    assert pacing is not None and pacing.gap_error is not None and pacing.kept_up
    assert (pacing.gap_error.max, pacing.gap_error.count) == (0, 2999)


def test_a_link_that_is_too_slow_is_told_and_nothing_is_left_out() -> None:
    network = tn.Network()
    network.link(network.host("h1"), network.host("h2"), rate="1 Mbit")
    with network.simulate() as lab:
        # Far more than a send buffer: 50 MB in 20 s.
        handle = lab.start(tn.apps.tcp("h1", "h2", rate="20 Mbit", payload="100 kB", duration="20 s"))
        lab.run_until("21 s")
        source = handle.reports()[0].flows[0]
    assert source.pacing is not None and not source.pacing.kept_up
    assert any("the connection could not keep up" in error for error in source.errors)


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    def sent(seed: int, **settings: Any) -> list[int]:
        with two_hosts().simulate(seed=seed) as lab:
            size = distributions.exponential("300 B")
            handle = lab.start(tn.apps.tcp("h1", "h2", packets_per_second=100, size=size, writes=300, **settings))
            assert lab.wait([handle], until="1 min")
            intervals = handle.reports()[0].flows[0].intervals
            assert intervals is not None
            return list(intervals.bytes)

    assert sent(1) == sent(1) != sent(2)
    assert sent(1) != sent(1, process="poisson")


@pytest.mark.parametrize("clock", ["virtual", pytest.param("wall", marks=needs_a_lab)])
@pytest.mark.parametrize("version", [4, 6])
def test_segments_requests_and_replies_carry_the_code_point(clock: str, version: int, tmp_path: Path) -> None:
    network, path = two_hosts(), tmp_path / "marked.pcapng"
    with network.simulate() if clock == "virtual" else network.emulate() as lab:
        to = lab.layout.address("h2", version)
        capture = lab.capture("h1-eth0", str(path))
        # By a number of writes: it has as long to connect as a busy machine takes.
        source = tn.apps.tcp_source("h1", to, rate="1 Mbit", dscp=46, writes=9)
        sink = lab.start(tn.apps.tcp_sink("h2"))
        handles = [lab.start(source), lab.start(tn.apps.ping("h1", to, dscp=10, interval="10 ms", count=3))]
        assert lab.wait(handles, until=tn.units.Picoseconds(lab.now_ps() + 5 * 10**12))
        capture.stop()
        del sink
    packets = captured_ip(path)
    ours = min(one.time_ns for one in packets if one.protocol == TCP)
    first = next(one.source for one in packets if one.time_ns == ours and one.protocol == TCP)
    segments = {one.traffic_class for one in packets if one.protocol == TCP and one.source == first}
    assert segments == {46 << 2}
    assert {one.traffic_class for one in packets if one.protocol == TCP and one.source != first} == {0}
    kinds = {one.head[0]: one.traffic_class for one in packets if one.protocol in (ICMP, ICMPV6) and one.payload == 64}
    # As Linux answers: with the traffic class of the request.
    assert kinds == ({8: 10 << 2, 0: 10 << 2} if version == 4 else {128: 10 << 2, 129: 10 << 2})


@pytest.mark.parametrize("clock", ["virtual", pytest.param("wall", marks=needs_a_lab)])
@pytest.mark.parametrize("version", [4, 6])
def test_a_reset_of_a_connection_that_was_given_up_has_the_code_point_of_what_it_answers(
    clock: str, version: int, tmp_path: Path
) -> None:
    """The host's own: no app's socket is left that could mark it. Linux takes the class of the segment it refuses."""
    network, path = tn.Network(seed=3), tmp_path / "reset.pcapng"
    # The answer comes after 160 ms, when the source has given up.
    network.link(network.host("h1"), network.host("h2"), rate="1 Gbit", delay="80 ms")
    with network.simulate() if clock == "virtual" else network.emulate() as lab:
        to = lab.layout.address("h2", version)
        known = lab.start(tn.apps.ping("h1", to, count=1))
        assert lab.wait([known], until=tn.units.Picoseconds(lab.now_ps() + 5 * 10**12))
        capture = lab.capture("h1-eth0", str(path))
        sink = lab.start(tn.apps.tcp_sink("h2"))
        source = lab.start(tn.apps.tcp_source("h1", to, rate="1 Mbit", dscp=46, duration="100 ms"))
        assert lab.wait([source], until=tn.units.Picoseconds(lab.now_ps() + 5 * 10**12))
        lab.run_until(tn.units.Picoseconds(lab.now_ps() + 10**12))
        capture.stop()
        del sink
        assert source.reports()[0].flows[0].errors == ("no connection was made within the flow's duration",)
    segments = [(one.head[13], one.traffic_class) for one in captured_ip(path) if one.protocol == TCP]
    syn, answer, reset = 0x02, 0x12, 0x04
    assert segments == [(syn, 46 << 2), (answer, 0), (reset, 0)]


@needs_a_lab
@pytest.mark.parametrize(
    "flow",
    [
        tn.apps.udp("h1", "h2", packets_per_second=500, process="poisson", payload="200 B", duration="500 ms"),
        tn.apps.udp("h1", "h2", gap="2 ms", size=distributions.uniform("50 B", "1400 B"), duration="500 ms"),
        tn.apps.rtp("h1", "h2", rate="1 Mbit", duration="500 ms"),
    ],
    ids=["gaps", "sizes", "frames of video"],
)
def test_both_clocks_draw_the_same_gaps_sizes_and_frames_of_video(flow: tn.apps.Flow) -> None:
    def sent(clock: str, seed: int) -> tuple[int, int]:
        network = two_hosts()
        network.seed = seed
        with network.emulate() if clock == "wall" else network.simulate() as lab:
            handle = lab.start(flow)
            assert lab.wait([handle], until="10 s")
            (source,) = handle.reports()[0].flows
            return source.packets, source.bytes

    drawn = [sent("virtual", seed) for seed in (1, 2, 3)]
    assert len(set(drawn)) == 3
    assert [sent("wall", seed) for seed in (1, 2, 3)] == drawn


@needs_a_lab
def test_real_sockets_keep_a_schedule_of_writes_and_of_requests() -> None:
    with two_hosts().emulate() as lab:
        writes = lab.start(
            tn.apps.tcp(
                "h1", "h2", gap=distributions.constant("5 ms"), size=distributions.uniform("16 B", "9 kB"), writes=100
            )
        )
        echo = lab.start(tn.apps.ping("h1", "h2", gap=distributions.exponential("5 ms"), count=100))
        assert lab.wait([writes, echo], until="20 s")
        source, asked = writes.reports()[0].flows[0], echo.report()
        assert writes.report().bytes == source.bytes
    assert source.pacing is not None and source.pacing.requested_packets_per_second == pytest.approx(200)
    assert (asked.packets, asked.lost) == (100, 0)
    assert asked.pacing is not None and asked.pacing.gap_error is not None and asked.pacing.gap_error.count == 99


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: tn.apps.tcp_source("h1", "h2", duration="1 s", payload="100 B"), "'payload' belongs to a schedule"),
        (
            lambda: tn.apps.tcp_source("h1", "h2", duration="1 s", size=distributions.constant("1 kB")),
            "'size' belongs to a schedule",
        ),
        (lambda: tn.apps.tcp("h1", "h2", duration="1 s"), "a flow of TCP has a rate"),
        (lambda: tn.apps.tcp("h1", "h2", rate="1 Mbit"), "a duration, a size or a number of writes"),
        (
            lambda: tn.apps.tcp("h1", "h2", rate="1 Mbit", size=distributions.constant("1 kB"), writes=3),
            "a rate needs one payload",
        ),
        (lambda: tn.apps.tcp("h1", "h2", rate="1 Mbit", gap=distributions.constant("1 s"), writes=3), "one of them"),
        (lambda: tn.apps.ping("h1", "h2", interval="1 s", gap=distributions.constant("1 s")), "an 'interval' or"),
        (lambda: tn.apps.ping("h1", "h2", payload="1 B", size=distributions.constant("1 B")), "a 'payload' or"),
        (lambda: tn.apps.ping("h1", "h2", dscp=64), "dscp is 64"),
    ],
)
def test_what_no_source_can_do_is_refused(make: Any, problem: str) -> None:
    with pytest.raises(BadValue) as caught:
        make()
    assert problem in str(caught.value)
