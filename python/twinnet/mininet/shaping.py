"""What Mininet's parameters of links mean for a line of the fabric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twinnet.mininet.tc_netem import netem_delay_ps
from twinnet.mininet.tc_queues import red_probability
from twinnet.mininet.tc_words import LineRefused, red_weight

__all__ = ["Shaping", "netem_time_ps"]

_TBF_MS_AT_1_MBIT = 15.0 * 8
_RED_MIN_BYTES, _RED_MAX_BYTES = 30_000, 35_000
_RED = {
    "min_bytes": _RED_MIN_BYTES,
    "max_bytes": _RED_MAX_BYTES,
    "limit_bytes": 1_000_000,
    "max_probability": red_probability({"min": _RED_MIN_BYTES, "max": _RED_MAX_BYTES, "probability": 1.0}),
}
_RED_FRAME_BYTES = 1500
_RED_BURST_FRAMES = 20


def netem_time_ps(given: str | float) -> int | None:
    """Return the time that netem reads in `given`, in picoseconds; ``None`` when it would refuse it. A bare number is
    in microseconds."""
    try:
        return netem_delay_ps(str(given))
    except (ValueError, LineRefused):
        return None


@dataclass(frozen=True)
class Shaping:
    """How an interface sends.

    Parameters
    ----------
    bw
        Its rate in Mbit/s; ``None``: as fast as it goes.
    delay, jitter
        As they were given.
    loss
        In per cent.
    queue
        The queue in the form of the lab protocol; ``None``: a FIFO of 1000 frames.
    red
        ``ECN`` or ``RED``, where that is the queue; for :meth:`words`.
    impairments
        What ``netem`` sets beside delay and loss, in the form of the lab protocol: a direction's settings.
    """

    bw: float | None = None
    delay: str | float | None = None
    jitter: str | float | None = None
    loss: float | None = None
    queue: dict[str, Any] | None = None
    red: str = ""
    impairments: dict[str, Any] | None = None

    @classmethod
    def of(
        cls,
        bw: float | None,
        delay: str | float | None,
        jitter: str | float | None,
        loss: float | None,
        max_queue_size: float | None,
        use_tbf: bool = False,
        latency_ms: float | None = None,
        enable_ecn: bool = False,
        enable_red: bool = False,
    ) -> Shaping:
        """Return what these parameters of ``TCIntf.config`` mean."""
        queue: dict[str, Any] | None = None
        red = "ECN" if enable_ecn else "RED" if enable_red else ""
        if max_queue_size is not None:
            queue = {"kind": "fifo", "limit_frames": max(int(max_queue_size), 1)}
        elif bw and red:
            rate: dict[str, float] = {"rate_bps": round(bw * 1e6), "average_frame_bytes": _RED_FRAME_BYTES}
            rate["weight"] = red_weight(_RED_MIN_BYTES, _RED_MAX_BYTES, _RED_FRAME_BYTES, _RED_BURST_FRAMES)
            queue = {"kind": "red", **_RED, **rate, "gentle": False, "ecn": enable_ecn}
        elif bw and use_tbf:
            waiting_ms = latency_ms if latency_ms is not None else _TBF_MS_AT_1_MBIT / bw
            queue = {"kind": "fifo", "limit_bytes": max(round(waiting_ms * bw * 125), 1600)}
        return cls(bw or None, delay, jitter, loss, queue, red)

    def direction(self) -> dict[str, Any]:
        """Return the settings of a link's direction in the form of the lab protocol.

        Rates count frames as ``tc`` does, without preamble, check sequence and gap (framing ``none``).
        """
        said: dict[str, Any] = {"framing": "none"}
        if self.bw:
            said["rate_bps"] = round(self.bw * 1e6)
        delay_ps = netem_time_ps(self.delay) if self.delay else None
        if delay_ps:
            said["delay_ps"] = delay_ps
        jitter_ps = netem_time_ps(self.jitter) if self.jitter else None
        if jitter_ps and delay_ps:
            said["jitter"], said["reorder"] = {"distribution": "uniform", "scale_ps": jitter_ps}, True
        if self.loss and 0 < self.loss <= 100:
            said["loss"] = {"model": "bernoulli", "probability": self.loss / 100}
        return said | (self.impairments or {})

    def words(self) -> str:
        """Return what Mininet says of it: ``10.00Mbit 5ms delay``."""
        said = [f"{self.bw:.2f}Mbit"] if self.bw is not None else []
        said += [f"{self.delay} delay"] if self.delay is not None else []
        said += [f"{self.jitter} jitter"] if self.jitter is not None else []
        said += [f"{self.loss:.5f}% loss"] if self.loss is not None else []
        return " ".join(said + ([self.red] if self.red else []))
