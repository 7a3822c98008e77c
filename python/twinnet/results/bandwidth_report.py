"""An estimate of available bandwidth as typed objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinnet.results.read_fields import ReportedIfAny

__all__ = ["Bandwidth", "HopBandwidth", "TrainRates"]


@dataclass(frozen=True)
class HopBandwidth:
    """The bandwidths up to one hop, as found by a method that locates the tight link.

    Parameters
    ----------
    hop
        The hop, counted from 1.
    estimate_bps
        Available bandwidth of the links up to it, ``None`` when nothing was found.
    interval_bps
        Half of its 95 % interval.
    thin
        How probable it is that the link to this hop has less than all before it, 0 to 1. The last thin link is the
        tight one.
    """

    hop: int
    estimate_bps: float | None
    interval_bps: float | None
    thin: float


@dataclass(frozen=True)
class TrainRates:
    """The rates of one train of probes in bit/s; ``None`` where it has none.

    Parameters
    ----------
    at_ps
        When its first packet was sent.
    requested_bps, generated_bps, received_bps
        The rate that was asked for, at which it was sent, and at which it arrived.
    """

    at_ps: int
    requested_bps: float | None
    generated_bps: float | None
    received_bps: float | None


@dataclass(frozen=True)
class Bandwidth(ReportedIfAny):
    """An estimate of the available bandwidth of a path, and what it took.

    Parameters
    ----------
    method
        Its name.
    layer
        ``wire``: all that an Ethernet line spends on a frame, preamble and gap included. ``network``: packets with the
        headers of IP. All rates and probe bytes are at this layer.
    estimate_bps
        The estimate, or the middle of the range; ``None`` when there is none.
    low_bps, high_bps
        The interval, or the range.
    confidence
        The probability with which the interval is to cover the truth; ``None`` for Pathload's range of variation.
    capacity_bps
        Capacity of the tight link, where the method finds or needs it.
    gave_up
        Why it stopped before it had an answer, or what keeps the answer from being one.
    notes
        What else is to be known.
    window_start_ps, window_end_ps
        The averaging window: from the first probe to the answer about the last, on the prober's clock.
    probe_packets, probe_bytes, probe_lost
        What was sent, and packets that did not arrive.
    control_bytes
        What was sent to ask for stamps.
    trains
        Trains that were sent.
    kernel_stamped_trains
        Of these, trains whose times of sending are the kernel's stamps of when packets went to the interface. Of others
        the time is used at which packets were handed to the kernel. 0 on the virtual clock, which is exact.
    generated_share, least_generated_share
        Rates at which trains were sent over the rates that were asked for: mean and least.
    interruptions
        Gaps in which the sender lost its processor.
    batched_trains
        Trains of which more than a fifth arrived in batches (interrupt coalescence, offload).
    overflowed
        Datagrams that the listener's host threw away.
    clock_steps
        Trains during which a clock was set.
    rates
        Each train's rates, up to the first thousand.
    hops
        Of methods that locate the tight link.
    record
        Stamps of each train, where they were asked for; what ``twinnet.bandwidth.replay`` takes.
    """

    method: str
    layer: str
    estimate_bps: float | None
    low_bps: float | None
    high_bps: float | None
    confidence: float | None
    capacity_bps: float | None
    gave_up: str | None
    notes: tuple[str, ...]
    window_start_ps: int | None = None
    window_end_ps: int | None = None
    probe_packets: int = 0
    probe_bytes: int = 0
    probe_lost: int = 0
    control_bytes: int = 0
    trains: int = 0
    kernel_stamped_trains: int = 0
    generated_share: float | None = None
    least_generated_share: float | None = None
    interruptions: int = 0
    batched_trains: int = 0
    overflowed: int = 0
    clock_steps: int = 0
    rates: tuple[TrainRates, ...] = ()
    hops: tuple[HopBandwidth, ...] = ()
    record: Sequence[Mapping[str, Any]] = field(default=(), repr=False)

    @property
    def window_s(self) -> float:
        """The length of the averaging window in seconds; 0 before the first probe."""
        if self.window_start_ps is None or self.window_end_ps is None:
            return 0.0
        return (self.window_end_ps - self.window_start_ps) / 1e12

    @property
    def tight_hop(self) -> int | None:
        """The hop of the tight link, where the method locates it: the last that is more likely thin than not."""
        return max((one.hop for one in self.hops if one.thin > 0.5), default=None)
