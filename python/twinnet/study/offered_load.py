"""What the traffic of a study asks of its network: for each flow who sends, how many packets a second, how large."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from twinnet.study.specification import Traffic
from twinnet.traffic.distributions import Distribution, OnOff
from twinnet.traffic.presets import PRESETS, VOICE_CODECS, voice_settings

__all__ = ["FRAMING_BYTES", "Offer", "offers", "wire_bytes"]

_PS_PER_SECOND = 1e12
_IP_BYTES, _UDP_BYTES, _ICMP_BYTES, _TCP_BYTES = 20, 8, 8, 32
"""TCP's with the timestamps that Linux sends in each segment."""
FRAMING_BYTES = 38
"""Ethernet header 14, FCS 4, preamble and delimiter 8, gap 12 (IEEE 802.3)."""
_LEAST_WIRE_BYTES = 84
_USUAL_PAYLOAD = {"udp": 1472, "ping": 56, "tcp": 1448}
_RTP_BYTES = 12
_TRANSPORT_STREAM = 1316
_CODED_BYTES = 7 * 184
"""Of the seven transport stream packets in a datagram of RTP, without their headers of 4 bytes."""
_VIDEO_BPS, _FRAMES_PER_SECOND = 1_026_000, 60
_GATHERED_ABOVE, _GATHERED_S = 5000.0, 200e-6
"""A built-in source that is faster gathers its datagrams for so long, unless it is told to be exact."""


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
    probes are few."""
    if entry.app == "bandwidth":
        return
    rate, payload, train = _sent(entry)
    kind = {"tcp": "stream", "http": "stream", "video": "stream", "ping": "echo"}.get(entry.app, "datagrams")
    start_s = entry.start_ps / _PS_PER_SECOND
    end_s = math.inf
    if entry.duration_ps is not None:
        end_s = start_s + entry.duration_ps / _PS_PER_SECOND
    elif entry.app == "ping" and rate:
        end_s = start_s + (entry.count or 1) / rate
    asked = entry.app in ("http", "video")
    for source in entry.sources:
        sender, receiver = (entry.to, source) if asked else (source, entry.to)
        yield Offer(sender, receiver, kind, rate, payload, train, start_s, end_s)


def _sent(entry: Traffic) -> tuple[float | None, float, float]:
    """Packets a second, the payload of each, and how many leave together."""
    match entry.app:
        case "tcp":
            return (*_by_schedule(entry), math.inf)
        case "http":
            return None, _USUAL_PAYLOAD["tcp"], math.inf
        case "video":
            segment = _USUAL_PAYLOAD["tcp"]
            return max(entry.ladder_bps or [0]) / (8 * segment), segment, math.inf
        case "rtp":
            return (*_rtp(entry), 1.0)
        case "voice":
            gap_ms, size = VOICE_CODECS[entry.codec or "G.711"]
            talks = voice_settings(entry.codec or "G.711", bool(entry.silence_suppression)).get("on_off")
            return 1000 / gap_ms * _talk_share(talks), size + _RTP_BYTES, 1.0
        case "ping":
            gap_ps = _mean_gap_ps(entry.gap) if entry.gap else entry.interval_ps or _PS_PER_SECOND
            return _PS_PER_SECOND / gap_ps, _payload(entry), 1.0
        case _:
            return _datagrams(entry)


def _datagrams(entry: Traffic) -> tuple[float | None, float, float]:
    if entry.trace is not None:
        gap_ps = sum(gap for gap, _ in entry.trace) / len(entry.trace)
        size = sum(size for _, size in entry.trace) / len(entry.trace)
        return (_PS_PER_SECOND / gap_ps if gap_ps else None), size, 1.0
    if entry.preset is not None:
        told = PRESETS[entry.preset]
        size = told["payload"].split()[0] if "payload" in told else _mean(Distribution.of(told["size"], "").size_spec())
        return _PS_PER_SECOND / _mean_gap_ps(told["gap"]), float(size), 1.0
    if entry.unpaced:
        return None, _payload(entry), math.inf
    rate, payload = _by_schedule(entry)
    gathers = entry.process == "constant" and not entry.exact and entry.gap is None and rate is not None
    return rate, payload, rate * _GATHERED_S if gathers and rate is not None and rate > _GATHERED_ABOVE else 1.0


def _by_schedule(entry: Traffic) -> tuple[float | None, float]:
    """Of what has a rate, a number a second or gaps; as many as go without one of them."""
    payload = _payload(entry)
    if entry.rate_bps is not None:
        rate = entry.rate_bps / (8 * payload)
    elif entry.packets_per_second is not None:
        rate = entry.packets_per_second
    elif entry.gap is not None:
        rate = _PS_PER_SECOND / _mean_gap_ps(entry.gap)
    else:
        return None, payload
    segment = _USUAL_PAYLOAD["tcp"]
    if entry.app == "tcp" and payload > segment:
        # A write of more than a segment travels in several.
        rate, payload = rate * payload / segment, segment
    return rate * _talk_share(entry.on_off), payload


def _payload(entry: Traffic) -> float:
    if entry.size is not None:
        return max(1.0, _mean(Distribution.of(entry.size, "size").size_spec()))
    usual = 1470 if entry.using == "programs" and entry.app == "udp" else _USUAL_PAYLOAD[entry.app]
    return float(entry.payload_bytes if entry.payload_bytes is not None else usual)


def _rtp(entry: Traffic) -> tuple[float, float]:
    pictures = entry.frames_per_second or _FRAMES_PER_SECOND
    if entry.frame_sizes is not None:
        bps = 8 * pictures * sum(entry.frame_sizes) / len(entry.frame_sizes)
    else:
        bps = entry.rate_bps or _VIDEO_BPS
    return bps / (8 * _CODED_BYTES), _TRANSPORT_STREAM + _RTP_BYTES


def _mean_gap_ps(given: Distribution | Mapping[str, object]) -> float:
    # Not below a nanosecond: nothing sends faster.
    return max(1000.0, _mean(Distribution.of(given, "gap").gap_spec()))


def _talk_share(given: OnOff | Mapping[str, Any] | None) -> float:
    """The share of the time in which a source with periods of talk and silence talks."""
    if given is None:
        return 1.0
    spec = OnOff.of(given).to_spec()
    on, off = _mean(spec["on_ps"]), _mean(spec["off_ps"])
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
