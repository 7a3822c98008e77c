"""What single disciplines of ``tc`` mean for a line: queues and impairments in the form of the lab protocol."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from twinnet.mininet.tc_words import LineRefused, Settings, red_weight

__all__ = [
    "SHALLOWEST_BURST_BYTES",
    "USUAL_LIMIT",
    "bucket_queue",
    "delay_queue",
    "impairments",
    "plain_queue",
    "red_probability",
    "tbf_queue",
]

USUAL_LIMIT = 1000
"""Frames that a discipline keeps where nothing else is said: the length of an interface's queue."""
SHALLOWEST_BURST_BYTES = 1518
"""One frame."""
_TBF_LEAST_BYTES = 1600
_RED_PROBABILITY = 0.02
_MOST_PROBABILITY = 2**32 - 1
_MOST_VALUES = 1000


def tbf_queue(settings: Settings) -> dict[str, Any]:
    """Return the queue behind the bucket of a ``tbf``: the bytes that its limit or its latency allows for."""
    waiting = settings.get("limit", 0)
    if "latency" in settings:
        waiting = round(settings["latency"] * settings["rate"] / 8e12) + settings["burst"]
    return {"kind": "fifo", "limit_bytes": max(waiting, _TBF_LEAST_BYTES)}


def bucket_queue(rate_bps: float, burst_bytes: int, queue: dict[str, Any] | None) -> dict[str, Any]:
    """Return a token bucket before `queue`: what waited lets `burst_bytes` pass at the speed of what follows."""
    return {
        "kind": "tbf",
        "rate_bps": round(rate_bps),
        "burst_bytes": max(burst_bytes, SHALLOWEST_BURST_BYTES),
        "queue": queue or {"kind": "fifo", "limit_frames": USUAL_LIMIT},
    }


def impairments(netem: Settings) -> dict[str, Any] | None:
    """Return what a ``netem`` sets beside delay, jitter and loss, as the settings of a direction."""
    said: dict[str, Any] = {name: netem[name] for name in ("duplicate", "corrupt") if netem.get(name)}
    if netem.get("distribution", "uniform") != "uniform" and netem.get("jitter"):
        shape = netem["distribution"].replace("paretonormal", "pareto_normal")
        said |= {"jitter": {"distribution": shape, "scale_ps": netem["jitter"]}, "reorder": True}
    if netem.get("reorder"):
        # Each value is as likely as another: so many of them take the delay away.
        part = Fraction(netem["reorder"]).limit_denominator(_MOST_VALUES)
        early = [-netem["delay"]] * part.numerator
        values = early + [0] * (part.denominator - part.numerator)
        said |= {"jitter": {"distribution": "table", "values_ps": values}, "reorder": True}
    if "state" in netem:
        p13, p31, *_ = netem["state"]
        said["loss"] = {"model": "gilbert_elliott", "to_bad": p13, "to_good": p31}
    if "gemodel" in netem:
        p, r, good_in_bad, loss_good = netem["gemodel"]
        # tc's 1-h is the loss in the bad state.
        chain = {"to_bad": p, "to_good": r, "loss_good": loss_good, "loss_bad": good_in_bad}
        said["loss"] = {"model": "gilbert_elliott", **chain}
    return said or None


def delay_queue(netem: Settings) -> dict[str, Any]:
    """Return the queue that a ``netem`` in one of several classes is."""
    if netem.get("rate") or impairments(netem):
        raise LineRefused("netem in one of several classes has delay, jitter, loss and limit; put others at the root")
    settings = {"delay_ps": netem.get("delay", 0), "jitter_ps": netem.get("jitter", 0), "loss": netem.get("loss", 0)}
    return {"kind": "delay", **settings, "limit_frames": netem.get("limit", USUAL_LIMIT)}


def red_probability(settings: Settings) -> float:
    """Return the greatest probability of a ``red``. ``tc`` sends it in 32 bits, where 1 has no place (on x86 it becomes
    0); the kernel then goes by the slope that ``tc`` sends too, a power of one half (Linux ``include/net/red.h``,
    `red_set_parms`)."""
    asked, span = settings.get("probability", _RED_PROBABILITY), settings["max"] - settings["min"]
    if asked < 1 or not span:
        return asked
    slope = next(power for power in range(32) if 2**power > span)
    return (_MOST_PROBABILITY >> slope) * span / 2**32


def plain_queue(kind: str, settings: Settings) -> dict[str, Any]:
    """Return the queue of a discipline without classes."""
    said = dict(_USUAL_SETTINGS[kind])
    said |= {_NAMES.get((kind, name)) or _NAMES["", name]: value for name, value in settings.items()}
    if kind == "red":
        frame, burst = said["average_frame_bytes"], said.pop("burst", None) or None
        said["weight"] = red_weight(said["min_bytes"], said["max_bytes"], frame, burst)
        said |= {"rate_bps": round(said["rate_bps"]), "max_probability": red_probability(settings)}
    return said


_NAMES = {
    ("bfifo", "limit"): "limit_bytes",
    ("red", "limit"): "limit_bytes",
    ("", "limit"): "limit_frames",
    ("", "quantum"): "quantum_bytes",
    ("", "perturb"): "perturb_ps",
    ("", "divisor"): "buckets",
    ("", "target"): "target_ps",
    ("", "interval"): "interval_ps",
    ("", "ecn"): "ecn",
    ("", "flows"): "flows",
    ("", "memory_limit"): "limit_bytes",
    ("", "min"): "min_bytes",
    ("", "max"): "max_bytes",
    ("", "avpkt"): "average_frame_bytes",
    # Not of the lab protocol: the weight of the average follows from it.
    ("", "burst"): "burst",
    ("", "bandwidth"): "rate_bps",
    ("", "probability"): "max_probability",
}
_USUAL_SETTINGS: dict[str, dict[str, Any]] = {
    "pfifo": {"kind": "fifo", "limit_frames": USUAL_LIMIT},
    "bfifo": {"kind": "fifo", "limit_bytes": 1_500_000},
    "sfq": {"kind": "sfq", "perturb_ps": 0},
    "codel": {"kind": "codel"},
    "fq_codel": {"kind": "fq_codel"},
    "red": {
        "kind": "red",
        "gentle": False,
        "ecn": False,
    },
}
