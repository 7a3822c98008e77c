"""When frames left a link, as the receiving kernel stamped them, and what that says of the link's rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.machine import BARE
from bench.sites import Site

__all__ = ["Arrivals", "lone_frames", "offered"]

_SECOND_NS = 1_000_000_000
_HEADERS = 42
"""Ethernet, IPv4 and UDP."""


@dataclass(frozen=True)
class Arrivals:
    """Frames of one size in the order they arrived.

    Parameters
    ----------
    sent_ns, arrived_ns
        The moments of sending, by the sender's clock, and of arrival; one clock.
    frame_bytes
        What each takes of the link's rate.
    rate_bps
        The link's.
    """

    sent_ns: NDArray[np.int64]
    arrived_ns: NDArray[np.int64]
    frame_bytes: int
    rate_bps: float

    @property
    def frame_ns(self) -> float:
        """How long the link takes for one frame."""
        return self.frame_bytes * 8 * _SECOND_NS / self.rate_bps

    def largest_excess_frames(self, window_ns: int = 10_000_000) -> float:
        """Return by how many frames the fullest window exceeds what the rate allows in it, plus one frame.

        Every window that matters begins with an arrival. At most 0 is right.
        """
        times = self.arrived_ns
        in_window = np.searchsorted(times, times + window_ns, side="left") - np.arange(len(times))
        return float(in_window.max() - window_ns / self.frame_ns - 1)

    def rate_error_percent(self) -> float:
        """Return how far the long-run rate is off."""
        span = float(self.arrived_ns[-1] - self.arrived_ns[0])
        return abs((len(self.arrived_ns) - 1) * self.frame_ns / span - 1) * 100

    def even_gaps_percent(self, tolerance: float = 0.1) -> float:
        """Return the share of gaps between frames that are within `tolerance` of the ideal."""
        gaps = np.diff(self.arrived_ns)
        return float(np.mean(np.abs(gaps - self.frame_ns) <= tolerance * self.frame_ns)) * 100

    def late_us(self) -> NDArray[np.float64]:
        """Return by how much each took longer than one frame's time."""
        return (self.arrived_ns - self.sent_ns - self.frame_ns) / 1000


def offered(site: Site, rate_bps: float, seconds: int, payload: int, overhead: int) -> Arrivals:
    """Offer datagrams of `payload` bytes at twice the link's rate, from idle, for `seconds`.

    `overhead` is what the link counts of a frame beyond its Ethernet header and payload.
    """
    frame_bytes = payload + _HEADERS + overhead
    offer_bps = round(2 * rate_bps * payload / frame_bytes)
    return _record(
        site, ["offer", str(seconds), site.target, str(payload), str(offer_bps)], seconds, frame_bytes, rate_bps
    )


def lone_frames(site: Site, rate_bps: float, count: int, payload: int, overhead: int, apart_ms: int) -> Arrivals:
    """Send `count` single datagrams, far enough apart that each finds the link idle."""
    command = ["lone", str(count), site.target, str(payload), str(apart_ms)]
    return _record(site, command, 1 + count * apart_ms // 1000, payload + _HEADERS + overhead, rate_bps)


def _record(site: Site, command: list[str], seconds: int, frame_bytes: int, rate_bps: float) -> Arrivals:
    recorder = site.start_ready(2, [str(BARE), "record", str(seconds)])
    sender = site.start(1, [str(BARE), *command])
    found = np.frombuffer(recorder.communicate()[0], dtype="<u8").astype(np.int64).reshape(-1, 3)
    sender.communicate()
    if len(found) < 3:
        raise OSError(f"{site.name}: {len(found)} of the frames arrived")
    return Arrivals(found[:, 1], found[:, 2], frame_bytes, rate_bps)
