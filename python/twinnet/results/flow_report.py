"""What apps and programs measured, in one form: the columns of the lab protocol as typed objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from twinnet.results.shown import ShownInUnits, html_section, rate, size, span

if TYPE_CHECKING:
    import polars as pl

from twinnet.results.bandwidth_report import Bandwidth

__all__ = [
    "AppReport",
    "FlowReport",
    "Intervals",
    "Lengths",
    "Pacing",
    "ReorderDensity",
    "Rtp",
    "Samples",
    "Spread",
    "Summary",
    "TcpInfo",
    "Video",
    "Viewing",
]


@dataclass(frozen=True, repr=False)
class Summary(ShownInUnits):
    """The distribution of a time, in picoseconds; ``None`` where a program does not tell.

    Parameters
    ----------
    count
        How many values.
    mean, min, max, std, p50, p90, p99
        What is said of them.
    """

    count: int
    mean: float
    min: float
    max: float
    std: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> Summary | None:
        """Return the summary in the form of the lab protocol, ``None`` when nothing was measured."""
        if not spec or not spec.get("count"):
            return None
        return cls(**{name: spec.get(name) for name in cls.__dataclass_fields__})  # type: ignore[arg-type]

    def __str__(self) -> str:
        """Return mean, least and greatest with their unit: ``1.31 ms (0.9 to 2.2)``."""
        return span(self.mean, self.min, self.max)


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
        Mean, least and greatest one-way delay in each; ``None`` where nothing arrived, empty where packets do not tell.
    jitters_rfc4689_ps, jitters_rfc3550_ps
        The mean of RFC 4689's jitter in each, and RFC 3550's at its end.
    last_ps
        When the last packet of each arrived, 0 where there was none; empty where packets are not counted.
    frames, network_bytes, wire_bytes
        IP packets that carried the datagrams of each, their bytes with IP's headers, and those on an Ethernet wire;
        empty where the receiver was not told the path's MTU.
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
        """When each interval begins, in seconds of the lab's clock."""
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
        """When each sample was taken, in seconds of the lab's clock."""
        return tuple(at / 1e12 for at in self.at_ps)


@dataclass(frozen=True)
class Spread:
    """The distribution of a value that has a sign, or of a rate.

    Parameters
    ----------
    count, mean, min, max, std
        What is said of it.
    """

    count: int
    mean: float
    min: float
    max: float
    std: float

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> Spread | None:
        """Return the spread in the form of the lab protocol, ``None`` when nothing was measured."""
        return None if spec is None else cls(**{name: spec[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Lengths:
    """How often lengths occurred, in packets.

    Parameters
    ----------
    count, mean, max
        How many, and of which lengths.
    histogram
        Pairs: a length, and how many are no longer than it but longer than the one before. Up to 8 each has its own.
    """

    count: int
    mean: float
    max: int
    histogram: tuple[tuple[int, int], ...]

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> Lengths | None:
        """Return the lengths in the form of the lab protocol, ``None`` where they have no meaning."""
        if spec is None:
            return None
        pairs = tuple((int(length), int(number)) for length, number in spec["histogram"])
        return cls(int(spec["count"]), float(spec["mean"]), int(spec["max"]), pairs)


@dataclass(frozen=True)
class ReorderDensity:
    """How far from their places packets arrived (reorder density, RFC 5236).

    Parameters
    ----------
    threshold
        The displacement threshold in packets: one that is later than that counts as lost.
    packets
        How many the density is of.
    beyond
        How many were displaced by more than the threshold.
    histogram
        Pairs: a displacement in packets, negative for early ones, and how many packets had it.
    """

    threshold: int
    packets: int
    beyond: int
    histogram: tuple[tuple[int, int], ...]

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> ReorderDensity | None:
        """Return it in the form of the lab protocol, ``None`` where it has no meaning."""
        if spec is None:
            return None
        pairs = tuple((int(displacement), int(number)) for displacement, number in spec["histogram"])
        return cls(int(spec["threshold"]), int(spec["packets"]), int(spec["beyond"]), pairs)

    @property
    def shares(self) -> dict[int, float]:
        """RD: the share of packets by displacement; empty before the first packet."""
        return {displacement: number / self.packets for displacement, number in self.histogram}


@dataclass(frozen=True)
class Samples:
    """Every packet of a flow in the order of arrival, duplicates included.

    Parameters
    ----------
    sequence, arrived_ps, sent_ps, bytes
        One entry for each packet; ``None`` where it does not tell when it was sent. `bytes` is empty for programs.
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

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> Samples | None:
        """Return the packets in the form of the lab protocol, ``None`` when they were not asked for."""
        if spec is None:
            return None
        return cls(
            tuple(spec["sequence"]),
            tuple(spec["arrived_ps"]),
            tuple(spec["sent_ps"]),
            tuple(spec["bytes"]),
            int(spec["more"]),
            tuple(spec.get("jitter_ps") or ()),
            tuple(spec.get("bandwidth_bps") or ()),
        )


@dataclass(frozen=True)
class Pacing:
    """How well a source kept its schedule.

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
        return cls(
            Summary.from_spec(spec.get("gap_error_ps")),
            Summary.from_spec(spec.get("lateness_ps")),
            spec["requested_packets_per_second"],
            spec["achieved_packets_per_second"],
            spec["requested_rate_bps"],
            spec["achieved_rate_bps"],
            bool(spec["kept_up"]),
        )


@dataclass(frozen=True)
class Rtp:
    """What RTP tells of a stream, as Wireshark shows it.

    Parameters
    ----------
    ssrc, payload_type
        Of its first packet.
    expected
        Packets from the first sequence number to the highest.
    jitter
        RFC 3550's jitter after each packet, in picoseconds.
    bandwidth
        Bits of IP in the second that ends with each packet.
    frames_complete, frames_damaged, frames_lost
        Frames of which all, some or no parts arrived; ``None`` for foreign streams.
    """

    ssrc: int
    payload_type: int
    expected: int
    jitter: Spread | None
    bandwidth: Spread | None
    frames_complete: int | None = None
    frames_damaged: int | None = None
    frames_lost: int | None = None

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> Rtp | None:
        """Return it in the form of the lab protocol, ``None`` for other flows."""
        if spec is None:
            return None
        frames: Mapping[str, Any] = spec.get("frames") or {}
        return cls(
            int(spec["ssrc"]),
            int(spec["payload_type"]),
            int(spec["expected"]),
            Spread.from_spec(spec.get("jitter_ps")),
            Spread.from_spec(spec.get("bandwidth_bps")),
            *(frames.get(name) for name in ("complete", "damaged", "lost")),
        )


@dataclass(frozen=True)
class Video:
    """What was seen of a video that a program received, beside what was sent.

    Parameters
    ----------
    frames_sent
        Frames of the clip.
    frames_complete, frames_damaged, frames_lost
        Of these, how many were decoded as they were sent, otherwise, or not at all.
    psnr_db, ssim
        Over all frames from the first that came, a lost one judged by what was shown in its place: peak signal-to-noise
        ratio, infinite for equal videos, and structural similarity; ``None`` when nothing was seen.
    """

    frames_sent: int
    frames_complete: int
    frames_damaged: int
    frames_lost: int
    psnr_db: float | None
    ssim: float | None


@dataclass(frozen=True)
class Viewing:
    """What a viewer of video in segments had.

    Parameters
    ----------
    played_s
        Media that was played, in seconds.
    startup_s
        From the beginning to the first picture, in seconds; ``None`` when there was none.
    stalls, stalled_s
        How often and how long in all it stood still after it had begun.
    switches
        Changes of quality.
    rate_bps
        The mean rate of what was played, in bits per second; ``None`` when nothing was.
    played_at
        Seconds that were played at each rate of the ladder, by rate in bits per second.
    """

    played_s: float
    startup_s: float | None
    stalls: int
    stalled_s: float
    switches: int
    rate_bps: float | None
    played_at: Mapping[int, float]

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> Viewing | None:
        """Return it in the form of the lab protocol, ``None`` for other flows."""
        if spec is None:
            return None
        startup_ps = spec["startup_ps"]
        return cls(
            spec["played_ps"] / 1e12,
            None if startup_ps is None else startup_ps / 1e12,
            int(spec["stalls"]),
            spec["stalled_ps"] / 1e12,
            int(spec["switches"]),
            spec["rate_bps"],
            {int(one["rate_bps"]): one["played_ps"] / 1e12 for one in spec["played_at"]},
        )


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
    frames_sent
        Video frames of which an RTP source sent a part.
    rtp
        What RTP tells.
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
        plain = (
            "start_ps", "end_ps", "packets", "bytes", "lost", "reordered", "duplicates", "first_number",
            "sequence_jumps", "delays_below_zero", "frames_sent", "jitter_rfc3550_ps",
        )  # fmt: skip
        return cls(
            flow=spec.get("flow"),
            protocol=str(spec.get("protocol", "")),
            role=str(spec.get("role", "")),
            source=spec.get("from"),
            target=spec.get("to"),
            errors=tuple(spec.get("errors") or ()),
            rtt=Summary.from_spec(spec.get("rtt_ps")),
            delay=Summary.from_spec(spec.get("delay_ps")),
            jitter_rfc4689=Summary.from_spec(spec.get("jitter_rfc4689_ps")),
            delay_variation_rfc3393=Spread.from_spec(spec.get("delay_variation_rfc3393_ps")),
            gap=Summary.from_spec(spec.get("gap_ps")),
            loss_bursts=Lengths.from_spec(spec.get("loss_bursts")),
            reordering_extents=Lengths.from_spec(spec.get("reordering_extents")),
            reordering_density=ReorderDensity.from_spec(spec.get("reordering_density")),
            samples=Samples.from_spec(spec.get("samples")),
            pacing=Pacing.from_spec(spec.get("pacing")),
            rtp=Rtp.from_spec(spec.get("rtp")),
            viewing=Viewing.from_spec(spec.get("video")),
            latency_percentiles_ms=_percentiles_ms(spec.get("latency_percentiles_ps")),
            intervals=Intervals.from_spec(spec.get("intervals")),
            tcp_info=TcpInfo.from_spec(spec.get("tcp_info")),
            bandwidth=Bandwidth.from_spec(spec.get("bandwidth")),
            raw=dict(spec),
            **{name: spec.get(name) for name in plain},
        )

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
            parts.append(f"{self.packets} packets")
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


def _percentiles_ms(told: Mapping[str, int] | None) -> dict[float, float]:
    return {float(name): value / 1e9 for name, value in sorted((told or {}).items(), key=lambda one: float(one[0]))}


@dataclass(frozen=True, repr=False)
class AppReport(ShownInUnits):
    """What one app measured so far.

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
