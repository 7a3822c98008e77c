"""The load that the traffic of a study offers to its network: the sender, packet rate and packet size of each flow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from twinnet.study.traffic import Traffic
from twinnet.traffic.app import Flow

__all__ = ["FRAMING_BYTES", "Offer", "busy_moments_s", "offers", "wire_bytes"]

_PS_PER_SECOND = 1e12
_IP_BYTES, _UDP_BYTES, _ICMP_BYTES, _TCP_BYTES = 20, 8, 8, 32
"""TCP's with the timestamps that Linux sends in each segment."""
FRAMING_BYTES = 38
"""Ethernet header 14, FCS 4, preamble and delimiter 8, gap 12 (IEEE 802.3)."""
_LEAST_WIRE_BYTES = 84
_SEGMENT_BYTES = 1448.0
_RTP_PAYLOAD_BYTES = 1328.0
"""Seven packets of a transport stream, 1316 bytes, and RTP's header."""
_CODED_BYTES = 7 * 184
"""The bytes of coded video in these seven packets, without their own headers of 4 bytes."""
_INTERVAL_PS = 10**12
_MOST_LOOKS = 8
"""Moments at which the flows of one entry are looked at."""
_GATHERED_ABOVE, _GATHERED_S = 5000.0, 200e-6
"""A built-in source that is faster gathers its datagrams for so long, unless it is set to be exact."""


@dataclass(frozen=True)
class Offer:
    """One flow.

    Parameters
    ----------
    sender, receiver
        The hosts; of HTTP and video the server sends.
    kind
        ``datagrams``; ``stream``, TCP whose receiver acknowledges every second segment; or ``echo``, of which each
        comes back.
    packets_per_second
        The mean; ``None`` for as many as there is room for.
    payload_bytes
        The mean of the payload in each.
    train
        How many leave together, at most.
    start_s, end_s
        When, from the beginning of traffic; without end when that is not known beforehand.
    """

    sender: str
    receiver: str
    kind: str
    packets_per_second: float | None
    payload_bytes: float
    train: float = 1.0
    start_s: float = 0.0
    end_s: float = math.inf


def wire_bytes(offer: Offer, mtu: int) -> tuple[int, float]:
    """Return the frames that carry one packet of `offer` where links have this MTU in bytes, and what all of them take
    of a line, in bytes.

    Fragments carry multiples of 8 bytes (RFC 791).
    """
    if offer.kind == "stream":
        carried = min(offer.payload_bytes + _TCP_BYTES, mtu - _IP_BYTES)
    else:
        carried = offer.payload_bytes + (_ICMP_BYTES if offer.kind == "echo" else _UDP_BYTES)
    if carried + _IP_BYTES <= mtu:
        return 1, max(carried + _IP_BYTES + FRAMING_BYTES, _LEAST_WIRE_BYTES)
    frames = math.ceil(carried / max(8, (mtu - _IP_BYTES) // 8 * 8))
    return frames, carried + frames * (_IP_BYTES + FRAMING_BYTES)


def offers(entry: Traffic) -> Iterator[Offer]:
    """Yield the flows of `entry`, one for each of its sources; none for an estimator of available bandwidth, whose
    probes are few, for an own application, whose code decides, and for what stays in its host."""
    if entry.app in ("bandwidth", "own", "own_tcp") or entry.to in entry.sources:
        return
    # All flows of an entry have the same settings, here as the apps get them: with every default put in.
    made = entry.between(entry.sources[0], _INTERVAL_PS)
    fields = made.sender.fields if isinstance(made, Flow) else made.fields
    rate, payload, train = _sent(entry.app, fields)
    kind = {"tcp": "stream", "icmp": "echo", "udp": "datagrams"}[entry.kind.transport]
    lasts_s = math.inf
    if fields.get("duration_ps") is not None:
        lasts_s = fields["duration_ps"] / _PS_PER_SECOND
    elif entry.app == "ping" and rate:
        lasts_s = fields["count"] / rate
    for source, start_ps in entry.starts_ps.items():
        start_s = start_ps / _PS_PER_SECOND
        # A client asks, and what the server sends is the load; of an echo both ways are.
        answered = entry.kind.asked_for and kind == "stream"
        sender, receiver = (entry.to, source) if answered else (source, entry.to)
        yield Offer(sender, receiver, kind, rate, payload, train, start_s, start_s + lasts_s)


def busy_moments_s(entry: Traffic) -> list[float]:
    """The moments at which the flows of `entry` may load the network most, in seconds: when the last source of each
    second begins, at most eight of them."""
    starts = list(entry.starts_ps.values())
    looks = min(_MOST_LOOKS, len(starts), 1 + int((starts[-1] - starts[0]) / _PS_PER_SECOND))
    places = {round((look + 1) * len(starts) / looks) - 1 for look in range(looks)}
    return [starts[place] / _PS_PER_SECOND for place in sorted(places)]


def _sent(app: str, fields: Mapping[str, Any]) -> tuple[float | None, float, float]:
    """Packets a second, the payload of each, and how many leave together."""
    match app:
        case "tcp":
            return (*_writes(fields), math.inf)
        case "http":
            return None, _SEGMENT_BYTES, math.inf
        case "video":
            return max(fields["ladder_bps"]) / (8 * _SEGMENT_BYTES), _SEGMENT_BYTES, math.inf
        case "rtp":
            sizes = fields.get("frame_bytes")
            coded_bps = (
                8 * fields["frames_per_second"] * sum(sizes) / len(sizes) if sizes else fields["model"]["rate_bps"]
            )
            return coded_bps / (8 * _CODED_BYTES), _RTP_PAYLOAD_BYTES, 1.0
        case "ping":
            gap_ps = _mean_gap_ps(fields["gap_ps"]) if "gap_ps" in fields else fields["interval_ps"]
            return _PS_PER_SECOND / gap_ps, _payload(fields), 1.0
        case _:
            return _datagrams(fields)


def _datagrams(fields: Mapping[str, Any]) -> tuple[float | None, float, float]:
    if "trace" in fields:
        trace = fields["trace"]
        gap_ps = sum(gap for gap, _ in trace) / len(trace)
        size = sum(size for _, size in trace) / len(trace)
        return (_PS_PER_SECOND / gap_ps if gap_ps else None), size, 1.0
    rate, payload = _rate(fields), _payload(fields)
    if rate is None:
        return None, payload, math.inf
    gathers = fields.get("process") == "constant" and not fields.get("exact") and rate > _GATHERED_ABOVE
    return rate * _talk_share(fields), payload, rate * _GATHERED_S if gathers else 1.0


def _writes(fields: Mapping[str, Any]) -> tuple[float | None, float]:
    """The segments of TCP that sends by a schedule; all that there is room for without one."""
    rate = _rate(fields)
    if rate is None:
        return None, _SEGMENT_BYTES
    payload = _payload(fields)
    # A write of more than a segment travels in several.
    segments = max(1.0, payload / _SEGMENT_BYTES)
    return rate * segments * _talk_share(fields), payload / segments


def _rate(fields: Mapping[str, Any]) -> float | None:
    """Packets or writes a second while the source talks; ``None`` for as many as go."""
    if fields.get("rate_bps") is not None:
        return fields["rate_bps"] / (8 * _payload(fields))
    if fields.get("packets_per_second") is not None:
        return float(fields["packets_per_second"])
    return _PS_PER_SECOND / _mean_gap_ps(fields["gap_ps"]) if fields.get("gap_ps") is not None else None


def _payload(fields: Mapping[str, Any]) -> float:
    if fields.get("size_bytes") is not None:
        return max(1.0, _mean(fields["size_bytes"]))
    payload = fields.get("payload_bytes")
    return _SEGMENT_BYTES if payload is None else float(payload)


def _mean_gap_ps(spec: Mapping[str, Any]) -> float:
    # Not below a nanosecond: nothing sends faster.
    return max(1000.0, _mean(spec))


def _talk_share(fields: Mapping[str, Any]) -> float:
    """The share of the time in which a source with periods of talk and silence talks."""
    if fields.get("on_off") is None:
        return 1.0
    on, off = (_mean(fields["on_off"][name]) for name in ("on_ps", "off_ps"))
    return on / (on + off) if on + off else 1.0


def _mean(spec: Mapping[str, Any]) -> float:
    """The mean of a distribution in the form of the lab protocol, moved to its bounds where it lies outside of them; of
    one without a mean (Cauchy, Pareto with a shape of 1 or less) the median."""
    match spec["distribution"]:
        case "constant":
            mean = spec["value"]
        case "uniform":
            mean = (spec["low"] + spec["high"]) / 2
        case "gamma":
            mean = spec["shape"] * spec["scale"]
        case "weibull":
            mean = spec["scale"] * math.gamma(1 + 1 / spec["shape"])
        case "pareto" if spec["shape"] > 1:
            mean = spec["shape"] * spec["scale"] / (spec["shape"] - 1)
        case "pareto":
            mean = spec["scale"] * 2 ** (1 / spec["shape"])
        case "cauchy":
            mean = spec["location"]
        case _:
            mean = spec["mean"]
    return float(min(max(mean, spec.get("least", -math.inf)), spec.get("most", math.inf)))
