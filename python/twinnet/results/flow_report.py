"""Reports of apps and programs in one form: the columns of the lab protocol as typed objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from twinnet.results.bandwidth_report import Bandwidth
from twinnet.results.distributions import Lengths, ReorderDensity, Spread, Summary
from twinnet.results.flow_series import Intervals, Samples, TcpInfo
from twinnet.results.media_report import Rtp, Video, Viewing
from twinnet.results.read_fields import read_fields
from twinnet.results.shown import ShownInUnits, html_section, rate, size

if TYPE_CHECKING:
    import polars as pl

__all__ = ["AppReport", "FlowReport", "Pacing", "Toll"]


@dataclass(frozen=True)
class Pacing:
    """The accuracy with which a source kept its schedule.

    Parameters
    ----------
    gap_error
        Requested against achieved gaps, without sign.
    lateness
        How long after its time each datagram was handed to the host.
    requested_packets_per_second, achieved_packets_per_second, requested_rate_bps, achieved_rate_bps
        From the first datagram to the last; rates are of payload.
    kept_up
        Whether all that was due was taken by the host, at no less than 99.9 % of the requested rate.
    """

    gap_error: Summary | None
    lateness: Summary | None
    requested_packets_per_second: float | None
    achieved_packets_per_second: float | None
    requested_rate_bps: float | None
    achieved_rate_bps: float | None
    kept_up: bool

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> Pacing | None:
        """Return it in the form of the lab protocol, ``None`` when nothing was sent."""
        if spec is None:
            return None
        gap_error, lateness = (Summary.from_spec(spec.get(name)) for name in ("gap_error_ps", "lateness_ps"))
        return read_fields(cls, spec, gap_error=gap_error, lateness=lateness)


@dataclass(frozen=True)
class Toll:
    """The cost of a program that sends, over its whole life, and how its datagrams came together.

    Parameters
    ----------
    processors
        Processor time over time: 1 is one processor.
    switches_per_second, involuntary_per_second
        Context switches, all and those that it did not ask for.
    together_share
        The share of the gaps between arrivals that are none; ``None`` for fewer than two datagrams.
    """

    processors: float
    switches_per_second: float
    involuntary_per_second: float
    together_share: float | None


@dataclass(frozen=True, repr=False)
class FlowReport(ShownInUnits):
    """One flow as one of its ends saw it.

    Parameters
    ----------
    flow
        Its number.
    protocol
        ``udp``, ``rtp``, ``tcp``, ``http``, ``icmp``, ``bandwidth`` or, of comparisons of clocks, ``clock``.
    role
        ``source``, ``sink``, ``client`` or ``server``.
    source, target
        Addresses.
    start_ps, end_ps
        First and last activity on the lab's clock; ``None`` before.
    packets, bytes
        Sent or received; bytes of payload.
    lost, reordered, duplicates
        Counted by receivers, of what was sent up to the last that arrived; ``None`` where that has no meaning.
    first_number
        The least sequence number that arrived; what was sent before it counts as lost.
    sequence_jumps
        How often the sequence number leapt further than a loss or a late packet explains.
    delays_below_zero
        One-way delays that came out negative, as they can only between two clocks; `delay` has them as zero.
    errors
        What went wrong.
    rtt, delay
        Round-trip and one-way times.
    jitter_rfc3550_ps
        Smoothed interarrival jitter.
    jitter_rfc4689
        Absolute differences of the delays of packets received one after the other.
    delay_variation_rfc3393
        Differences of the delays of packets sent one after the other, with their sign.
    gap
        Distances between arrivals.
    loss_bursts, reordering_extents
        Losses in a row; how far late packets came after those that overtook them (RFC 4737).
    reordering_density
        How far from their places packets arrived (RFC 5236).
    samples
        Every packet, where they were asked for.
    pacing
        How well a source kept its schedule.
    toll
        What a generator cost.
    frames_sent
        Video frames of which an RTP source sent a part.
    rtp
        What RTP says.
    video
        What was seen of a program's video.
    viewing
        What a viewer of video in segments had.
    latency_percentiles_ms
        Latencies of HTTP requests in milliseconds, by percentile from 50 to 99.9.
    intervals
        Counts over time.
    tcp_info
        The sender's TCP over time, where that was asked for.
    bandwidth
        An estimate of available bandwidth.
    raw
        The report as it came.
    """

    flow: int | None
    protocol: str
    role: str
    source: str | None = None
    target: str | None = None
    start_ps: int | None = None
    end_ps: int | None = None
    packets: int | None = None
    bytes: int | None = None
    lost: int | None = None
    reordered: int | None = None
    duplicates: int | None = None
    first_number: int | None = None
    sequence_jumps: int | None = None
    delays_below_zero: int | None = None
    errors: tuple[str, ...] = ()
    rtt: Summary | None = None
    delay: Summary | None = None
    jitter_rfc3550_ps: float | None = None
    jitter_rfc4689: Summary | None = None
    delay_variation_rfc3393: Spread | None = None
    gap: Summary | None = None
    loss_bursts: Lengths | None = None
    reordering_extents: Lengths | None = None
    reordering_density: ReorderDensity | None = None
    samples: Samples | None = None
    pacing: Pacing | None = None
    toll: Toll | None = None
    frames_sent: int | None = None
    rtp: Rtp | None = None
    video: Video | None = None
    viewing: Viewing | None = None
    latency_percentiles_ms: Mapping[float, float] = field(default_factory=dict[float, float])
    intervals: Intervals | None = None
    tcp_info: TcpInfo | None = None
    bandwidth: Bandwidth | None = None
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> FlowReport:
        """Return the report in the form of the lab protocol."""
        return read_fields(
            cls,
            spec,
            flow=spec.get("flow"),
            protocol=str(spec.get("protocol", "")),
            role=str(spec.get("role", "")),
            source=spec.get("from"),
            target=spec.get("to"),
            rtt=Summary.from_spec(spec.get("rtt_ps")),
            delay=Summary.from_spec(spec.get("delay_ps")),
            jitter_rfc4689=Summary.from_spec(spec.get("jitter_rfc4689_ps")),
            delay_variation_rfc3393=Spread.from_spec(spec.get("delay_variation_rfc3393_ps")),
            gap=Summary.from_spec(spec.get("gap_ps")),
            # What the core calls so is what a viewer had; `video` is of programs.
            video=None,
            viewing=Viewing.from_spec(spec.get("video")),
            latency_percentiles_ms=_percentiles_ms(spec.get("latency_percentiles_ps")),
            raw=dict(spec),
        )

    @property
    def source_address(self) -> str | None:
        """The sender's address without its port; ``None`` where no sender is known."""
        if self.source is None:
            return None
        if self.source.startswith("["):
            return self.source[1:].partition("]")[0]
        return self.source.partition(":")[0] if self.source.count(":") == 1 else self.source

    @property
    def duration_s(self) -> float:
        """From first to last activity, in seconds."""
        if self.start_ps is None or self.end_ps is None:
            return 0.0
        return max(self.end_ps - self.start_ps, 0) / 1e12

    @property
    def throughput_bps(self) -> float:
        """Payload bits per second, from first to last activity."""
        return (self.bytes or 0) * 8 / self.duration_s if self.duration_s > 0 else 0.0

    @property
    def table(self) -> pl.DataFrame:
        """The report as a table of one row; units in the columns' names."""
        from twinnet.results.flow_tables import flow_table

        return flow_table([self])

    @property
    def interval_table(self) -> pl.DataFrame:
        """A row for each interval."""
        from twinnet.results.flow_tables import interval_table

        return interval_table([self])

    @property
    def packet_table(self) -> pl.DataFrame:
        """A row for each packet, where they were asked for (`record_packets`)."""
        from twinnet.results.flow_tables import packet_table

        return packet_table([self])

    def __str__(self) -> str:
        """Return what was measured in one line, with units."""
        number = "" if self.flow is None else f" {self.flow}"
        parts = [f"{self.protocol} {self.role}{number}"]
        if self.source and self.target:
            parts[0] += f" {self.source} to {self.target}"
        if self.packets is not None:
            parts.append(f"{self.packets} packet{'' if self.packets == 1 else 's'}")
        if self.bytes is not None:
            parts.append(f"{size(self.bytes)} in {self.duration_s:.3g} s")
        if self.throughput_bps:
            parts.append(rate(self.throughput_bps))
        if self.lost is not None:
            parts.append(f"{self.lost} lost")
        parts += [f"{name} {one}" for name, one in (("rtt", self.rtt), ("delay", self.delay)) if one is not None]
        if self.jitter_rfc3550_ps is not None:
            parts.append(f"jitter (RFC 3550) {round(self.jitter_rfc3550_ps) / 1e9:.3g} ms")
        return ", ".join([*parts, *self.errors])

    def _repr_html_(self) -> str:
        return html_section(str(self), [self.table])


def _percentiles_ms(spec: Mapping[str, int] | None) -> dict[float, float]:
    return {float(name): value / 1e9 for name, value in sorted((spec or {}).items(), key=lambda one: float(one[0]))}


@dataclass(frozen=True, repr=False)
class AppReport(ShownInUnits):
    """The measurements of one app so far.

    Parameters
    ----------
    app
        Its number in the lab.
    host, kind
        Where it runs, and what it is.
    finished
        Whether it has nothing more to do.
    flows
        One report for each flow that it saw.
    """

    app: int
    host: str
    kind: str
    finished: bool
    flows: Sequence[FlowReport]

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> AppReport:
        """Return the report in the form of the lab protocol."""
        report: Mapping[str, Any] = spec.get("report") or {}
        flows = tuple(FlowReport.from_spec(one) for one in report.get("flows") or ())
        host, kind = str(spec.get("host", "")), str(spec.get("kind", ""))
        return cls(int(spec["app"]), host, kind, bool(spec.get("finished")), flows)

    def flow(self, number: int) -> FlowReport | None:
        """Return the report of the flow `number`, ``None`` when it was not seen yet."""
        return next((one for one in self.flows if one.flow == number), None)

    @property
    def table(self) -> pl.DataFrame:
        """A row for each flow; units in the columns' names."""
        from twinnet.results.flow_tables import flow_table

        return flow_table(self.flows)

    @property
    def interval_table(self) -> pl.DataFrame:
        """A row for each flow and interval."""
        from twinnet.results.flow_tables import interval_table

        return interval_table(self.flows)

    def __str__(self) -> str:
        """Return a line for each flow, with units."""
        state = "" if self.finished else ", still running"
        return "\n".join([f"{self.kind} in {self.host}{state}:", *(f"  {one}" for one in self.flows)])

    def _repr_html_(self) -> str:
        return html_section(f"{self.kind} in {self.host}", [*map(str, self.flows), self.table])
