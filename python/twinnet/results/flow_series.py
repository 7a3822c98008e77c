"""Time series in reports of flows: counts per interval, the state of TCP, single packets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinnet.results.read_fields import ReportedIfAny

__all__ = ["Intervals", "Samples", "TcpInfo"]


@dataclass(frozen=True)
class Intervals:
    """Counts per interval of the lab's clock: number `i` covers [first + i, first + i + 1) times the length.

    Parameters
    ----------
    interval_ps
        The length of an interval.
    first
        The number of the first one.
    bytes
        Payload in each.
    packets
        Packets in each; empty where they are not counted.
    delays_ps, delays_min_ps, delays_max_ps
        Mean, least and greatest one-way delay in each; ``None`` where nothing arrived, empty where packets do not say.
    jitters_rfc4689_ps, jitters_rfc3550_ps
        The mean of RFC 4689's jitter in each, and RFC 3550's at its end.
    last_ps
        When the last packet of each arrived, 0 where there was none; empty where packets are not counted.
    frames, network_bytes, wire_bytes
        IP packets that carried the datagrams of each, their bytes with IP's headers, and those on an Ethernet wire;
        empty where the receiver does not know the path's MTU.
    lost, reordered, duplicates
        Numbers that arrivals of each passed over, less those that came late in it; arrivals out of order; arrivals of a
        number that had arrived. Empty where packets have no numbers.
    delay_variations_ps, delay_variations_min_ps, delay_variations_max_ps
        Mean, least and greatest delay variation (RFC 3393) in each, with its sign.
    rtts_ps, rtts_min_ps, rtts_max_ps
        Mean, shortest and longest round trip whose reply came in each.
    """

    interval_ps: int
    first: int
    bytes: tuple[int, ...]
    packets: tuple[int, ...] = ()
    delays_ps: tuple[float | None, ...] = ()
    delays_min_ps: tuple[int | None, ...] = ()
    delays_max_ps: tuple[int | None, ...] = ()
    jitters_rfc4689_ps: tuple[float | None, ...] = ()
    jitters_rfc3550_ps: tuple[float | None, ...] = ()
    last_ps: tuple[int, ...] = ()
    frames: tuple[int, ...] = ()
    network_bytes: tuple[int, ...] = ()
    wire_bytes: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    reordered: tuple[int, ...] = ()
    duplicates: tuple[int, ...] = ()
    delay_variations_ps: tuple[float | None, ...] = ()
    delay_variations_min_ps: tuple[float | None, ...] = ()
    delay_variations_max_ps: tuple[float | None, ...] = ()
    rtts_ps: tuple[float | None, ...] = ()
    rtts_min_ps: tuple[int | None, ...] = ()
    rtts_max_ps: tuple[int | None, ...] = ()

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> Intervals | None:
        """Return the counts in the form of the lab protocol, ``None`` when there are none."""
        if not spec:
            return None
        times: Mapping[str, Any] = spec.get("times_ps") or {}
        carried: Mapping[str, Any] = spec.get("carried") or {}
        orders: Mapping[str, Any] = spec.get("orders") or {}
        trips: Mapping[str, Any] = spec.get("round_trips_ps") or {}
        parts = {"": "mean", "_min": "min", "_max": "max"}
        names = ("delay_mean", "delay_min", "delay_max", "jitter_rfc4689_mean", "jitter_rfc3550")
        return cls(
            int(spec["interval_ps"]),
            int(spec.get("first", 0)),
            tuple(spec.get("bytes") or ()),
            tuple(spec.get("packets") or ()),
            *(tuple(times.get(name) or ()) for name in names),
            last_ps=tuple(spec.get("last_ps") or ()),
            **{name: tuple(carried.get(name) or ()) for name in ("frames", "network_bytes", "wire_bytes")},
            **{name: tuple(orders.get(name) or ()) for name in ("lost", "reordered", "duplicates")},
            **{
                f"delay_variations{end}_ps": tuple(times.get(f"delay_variation_{part}") or ())
                for end, part in parts.items()
            },
            **{f"rtts{end}_ps": tuple(trips.get(part) or ()) for end, part in parts.items()},
        )

    @property
    def rates_bps(self) -> tuple[float, ...]:
        """Payload bits per second in each interval."""
        return tuple(count * 8e12 / self.interval_ps for count in self.bytes)

    @property
    def starts_s(self) -> tuple[float, ...]:
        """The start of each interval, in seconds of the lab's clock."""
        return tuple((self.first + i) * self.interval_ps / 1e12 for i in range(len(self.bytes)))


@dataclass(frozen=True)
class TcpInfo:
    """The course of a sender's TCP: one entry of each series for each sample.

    Parameters
    ----------
    interval_ps
        The interval that was asked for.
    at_ps
        When each sample was taken, on the lab's clock.
    congestion_windows
        In segments.
    slow_start_thresholds
        In segments; ``None`` before there is one.
    smoothed_rtts_ps
        Smoothed round-trip times; 0 before the first was measured.
    retransmits
        Segments retransmitted since the connection began.
    """

    interval_ps: int
    at_ps: tuple[int, ...]
    congestion_windows: tuple[int, ...]
    slow_start_thresholds: tuple[int | None, ...]
    smoothed_rtts_ps: tuple[int, ...]
    retransmits: tuple[int, ...]

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> TcpInfo | None:
        """Return the series in the form of the lab protocol, ``None`` when none was asked for."""
        if spec is None:
            return None
        names = ("at_ps", "cwnd_segments", "ssthresh_segments", "srtt_ps", "retransmits")
        return cls(int(spec["interval_ps"]), *(tuple(spec[name]) for name in names))

    @property
    def at_s(self) -> tuple[float, ...]:
        """The time of each sample, in seconds of the lab's clock."""
        return tuple(at / 1e12 for at in self.at_ps)


@dataclass(frozen=True)
class Samples(ReportedIfAny):
    """Every packet of a flow in the order of arrival, duplicates included.

    Parameters
    ----------
    sequence, arrived_ps, sent_ps, bytes
        One entry for each packet; ``None`` where it does not say when it was sent. `bytes` is empty for programs.
    more
        Packets that came after so many as were asked for.
    jitter_ps, bandwidth_bps
        Of RTP: jitter by RFC 3550, and bits of IP in the second that ends with the packet; ``None`` for duplicates, and
        empty for other flows.
    """

    sequence: tuple[int, ...]
    arrived_ps: tuple[int, ...]
    sent_ps: tuple[int | None, ...]
    bytes: tuple[int, ...]
    more: int
    jitter_ps: tuple[float | None, ...] = ()
    bandwidth_bps: tuple[float | None, ...] = ()
