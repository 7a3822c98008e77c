"""One run of the verdict's campaign: a random small network, measured on the wall clock and on the virtual one.

The traffic is what both clocks have in the same implementation: datagrams at a given rate, and pings. A host's TCP is
the kernel's on one clock and a model on the other, so that a difference would not be the machine's alone.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import twinnet as tn

__all__ = ["DOUBTFUL", "Case", "Measured", "Tolerances", "case", "differences", "kept", "run_on"]

_RATES_MBIT = (2.0, 100.0)
_DELAYS_MS = (0.0, 6.0)
_PAYLOADS = (100, 1472)
_LOADS = ((0.15, 0.9), (1.05, 1.4))
_PING_GAPS_MS = (10, 100)
_LENGTHS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 2.0)
"""Short runs are as usual as long ones: a series of pings, a first look."""
_FRAMING = 66
"""Bytes on the wire around a datagram's payload: UDP 8, IPv4 20, Ethernet 38."""
_MOST_PACKETS_PER_S = 9000.0
_FASTER = 4
"""Times the rate of the other links that senders' links have."""
_PS = 1e12


@dataclass(frozen=True)
class Case:
    """A network and its traffic.

    Parameters
    ----------
    switches, rate_bps, delay_ms
        Switches in a line, and the rate and the delay of each link; senders' links are faster.
    load, payload
        Datagrams of `payload` bytes from one end to the other, at `load` of the links' rate on the wire.
    ping_gap_ms
        The time between pings beside them.
    seconds
        How long the traffic lasts.
    idle_s
        How long the record covers an idle lab before that.
    """

    switches: int
    rate_bps: int
    delay_ms: float
    load: float
    payload: int
    ping_gap_ms: int
    seconds: float
    idle_s: float = 0.0

    @property
    def pings(self) -> int:
        """How many pings there are."""
        return max(round(self.seconds * 1000) // self.ping_gap_ms, 1)

    @property
    def datagrams_bps(self) -> int:
        """The rate of payload."""
        share = self.payload / (self.payload + _FRAMING)
        wanted = min(self.load * self.rate_bps * share, _MOST_PACKETS_PER_S * self.payload * 8)
        return int(wanted)

    @property
    def frame_s(self) -> float:
        """The time of a frame of full size on the slowest line."""
        return 1538 * 8 / self.rate_bps

    def network(self) -> tn.Network:
        """Build the network."""
        network = tn.Network()
        switches = [network.switch(f"s{number}") for number in range(1, self.switches + 1)]
        settings = {"rate": tn.units.BitsPerSecond(self.rate_bps), "delay": f"{self.delay_ms} ms"}
        # What is too much is dropped in the network, and not held back in the sender's own stack, which is the kernel's
        # on one clock and a model on the other.
        senders = {**settings, "rate": tn.units.BitsPerSecond(_FASTER * self.rate_bps)}
        for left, right in pairwise(switches):
            network.link(left, right, **settings)
        for number in (1, 2):
            network.link(network.host(f"a{number}"), switches[0], **senders)
            network.link(network.host(f"b{number}"), switches[-1], **settings)
        return network

    def __str__(self) -> str:
        return (
            f"{self.switches} switches, {self.rate_bps / 1e6:.3g} Mbit/s, {self.delay_ms:g} ms, "
            f"load {self.load:.2f} of {self.payload} bytes, pings each {self.ping_gap_ms} ms, {self.seconds:g} s"
        )


def case(seed: int | str, seconds: float | None = None) -> Case:
    """Return the case of `seed`, which lasts for `seconds` or as drawn. Rates, delays, loads and sizes are drawn from
    ranges, so that no two campaigns have one in common."""
    draw = random.Random(seed)
    rate_bps = round(math.exp(draw.uniform(*map(math.log, _RATES_MBIT))) * 1e6)
    loads = draw.choices(_LOADS, weights=(2, 1))[0]
    drawn = Case(
        switches=draw.randint(1, 4),
        rate_bps=rate_bps,
        delay_ms=round(draw.uniform(*_DELAYS_MS), 3),
        load=draw.uniform(*loads),
        payload=draw.randint(*_PAYLOADS),
        ping_gap_ms=draw.randint(*_PING_GAPS_MS),
        seconds=draw.choice(_LENGTHS_S),
        idle_s=draw.choice((0.0, 0.0, 1.0)),
    )
    return drawn if seconds is None else replace(drawn, seconds=seconds)


@dataclass(frozen=True)
class Measured:
    """What a run gave: rates in bit/s, times in seconds, shares of 1."""

    rates_bps: Sequence[float]
    loss: float
    delay_mean_s: float
    delay_p99_s: float
    round_trip_mean_s: float
    round_trip_max_s: float
    answered: float
    verdict: str = "valid"
    reasons: Sequence[str] = ()
    record: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The record of fidelity, without lists and histograms."""
    covered: bool = True
    """Whether the record began before the traffic: a busy machine may hold up who begins it."""


def kept(record: tn.FidelityRecord) -> dict[str, Any]:
    """Return what is kept of a record: all that the verdict looks at."""
    left_out = {"lines", "interface_drops_by_port", "parts", "histogram"}

    def without(told: Any) -> Any:
        if isinstance(told, Mapping):
            entries: Mapping[str, Any] = told
            return {name: without(one) for name, one in entries.items() if name not in left_out}
        return told

    return without(record.raw)


def run_on(
    of: Case, clock: str, disturbed: Callable[[tn.Lab], AbstractContextManager[object]] | None = None
) -> Measured:
    """Run `of` on `clock`; on the wall clock while `disturbed` holds."""
    network = of.network()
    around = disturbed or (lambda _: nullcontext())
    with network.emulate() if clock == "wall" else network.simulate() as lab:
        # Addresses are resolved first: how many datagrams wait for that is each host's own affair.
        lab.wait([lab.start(tn.apps.ping(f"a{number}", f"b{number}")) for number in (1, 2)])
        begin_s = lab.now_ps() // 10**12 + 1
        if clock == "wall" and begin_s * _PS - lab.now_ps() < 0.2 * _PS:
            begin_s += 1
        if of.idle_s:
            begin_s += math.ceil(of.idle_s)
            lab.fidelity(reset=True)
        begin, length = f"{begin_s} s", f"{of.seconds:g} s"
        datagrams = tn.apps.udp(
            "a1",
            "b1",
            rate=tn.units.BitsPerSecond(of.datagrams_bps),
            payload=tn.units.Bytes(of.payload),
            duration=length,
        )
        pings = tn.apps.ping("a2", "b2", interval=f"{of.ping_gap_ms} ms", count=of.pings)
        flows = [lab.start(datagrams, begin), lab.start(pings, begin)]
        if clock == "wall":
            while lab.now_ps() < (begin_s - 0.02) * _PS:
                time.sleep(0.005)
            if not of.idle_s:
                lab.fidelity(reset=True)
        covered = clock != "wall" or bool(of.idle_s) or lab.now_ps() <= begin_s * _PS
        with around(lab):
            lab.run_until(f"{begin_s + of.seconds:g} s")
        lab.wait(flows, until=f"{begin_s + of.seconds + 5:g} s")
        # What is on its way arrives, from a full queue within a second; the next run waits for this one.
        lab.run_until(f"{begin_s + of.seconds + (0.3 if of.load < 1 else 1.0):g} s")
        record = lab.fidelity()
        verdict = record.verdict()
        # Of both pings of a host the last is the one that counts.
        reports = {report.kind: report.flows for report in lab.reports() if report.flows}
    sink = reports["udp_sink"][0] if "udp_sink" in reports else None
    sent = reports["udp_source"][0].packets
    ping = reports["ping"][0]
    series = sink.intervals if sink is not None else None
    of_second = dict(enumerate(series.bytes, series.first)) if series is not None else {}
    # Of a run that is no whole second the rate is that of all of it.
    rates_bps = [of_second.get(begin_s + second, 0) * 8.0 for second in range(int(of.seconds))]
    delay = sink.delay if sink is not None else None
    return Measured(
        rates_bps=rates_bps or [sum(of_second.values()) * 8.0 / of.seconds],
        loss=1 - (sink.packets if sink is not None else 0) / sent if sent else 0.0,
        delay_mean_s=delay.mean / _PS if delay else 0.0,
        delay_p99_s=delay.p99 / _PS if delay else 0.0,
        round_trip_mean_s=ping.rtt.mean / _PS if ping.rtt else 0.0,
        round_trip_max_s=ping.rtt.max / _PS if ping.rtt else 0.0,
        answered=(ping.packets - (ping.lost or 0)) / of.pings,
        verdict=verdict.state,
        reasons=verdict.reasons,
        record=kept(record),
        covered=covered,
    )


@dataclass(frozen=True)
class Tolerances:
    """How far a valid run may be from its twin: what docs/reference/fidelity.md says of it, and the twin's own 5 %.

    A mean or a 99th percentile may also be 1 ms off, the greatest round trip twice 10 ms: one pause on each way. Each
    may be off by the time that a frame of full size takes on the slowest line: whether a ping finds one of the periodic
    datagrams before it is a matter of the phase between both senders, which no emulation keeps. `answered` is the share
    of the pings that may lack an answer, and `seconds` says whether rates are those of each second or of the run.
    """

    share: float = 0.05
    loss: float = 0.005
    delay_s: float = 1e-3
    greatest_s: float = 20e-3
    answered: float = 0.0
    seconds: bool = True


DOUBTFUL = Tolerances(loss=0.05, delay_s=0.1, greatest_s=0.2, answered=0.05, seconds=False)
"""How far a doubtful run may be (`twinnet.fidelity.PROMISES`); a round trip is two delays."""


def differences(
    wall: Measured,
    virtual: Measured,
    full: bool,
    frame_s: float = 0.0,
    limits: Tolerances | None = None,
    seconds: float = 1.0,
) -> list[str]:
    """What of `wall` is wrong beyond tolerance, in words; `frame_s` is the time of a frame on the slowest line, and
    `seconds` how long the run was. On a line that is `full` the pings' losses and delays are a matter of phase alone,
    and are not compared."""
    limits = limits or Tolerances()
    wrong: list[str] = []
    frame_bps = 2 * 1500 * 8.0 / min(seconds, 1.0)
    rates = {
        f"in second {second}": both
        for second, both in enumerate(zip(wall.rates_bps, virtual.rates_bps, strict=True), 1)
    }
    if not limits.seconds:
        rates = {"over the run": (statistics.fmean(wall.rates_bps), statistics.fmean(virtual.rates_bps))}
    for when, (ours, theirs) in rates.items():
        # A second holds a frame more or less at each end.
        if abs(ours - theirs) > max(limits.share * theirs, frame_bps):
            wrong.append(f"rate {when}: {ours / 1e6:.3f} for {theirs / 1e6:.3f} Mbit/s")
    if abs(wall.loss - virtual.loss) > limits.loss:
        wrong.append(f"loss: {100 * wall.loss:.2f} for {100 * virtual.loss:.2f} %")
    times = [("mean delay", wall.delay_mean_s, virtual.delay_mean_s, limits.delay_s)]
    times.append(("99 % of delays", wall.delay_p99_s, virtual.delay_p99_s, limits.delay_s))
    if not full:
        if wall.answered < virtual.answered - limits.answered:
            wrong.append(f"pings answered: {100 * wall.answered:.1f} for {100 * virtual.answered:.1f} %")
        times.append(("mean round trip", wall.round_trip_mean_s, virtual.round_trip_mean_s, limits.delay_s))
        times.append(("greatest round trip", wall.round_trip_max_s, virtual.round_trip_max_s, limits.greatest_s))
    for name, ours, theirs, allowed in times:
        if abs(ours - theirs) > max(limits.share * theirs, allowed, frame_s):
            wrong.append(f"{name}: {ours * 1e3:.2f} for {theirs * 1e3:.2f} ms")
    return wrong
