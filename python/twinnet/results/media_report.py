"""Media measurements in reports of flows: RTP streams, received video, watched video."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinnet.results.distributions import Spread
from twinnet.results.read_fields import read_fields

__all__ = ["Rtp", "Video", "Viewing"]


@dataclass(frozen=True)
class Rtp:
    """The statistics of an RTP stream, as Wireshark shows them.

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
        return read_fields(
            cls,
            spec,
            jitter=Spread.from_spec(spec.get("jitter_ps")),
            bandwidth=Spread.from_spec(spec.get("bandwidth_bps")),
            **{f"frames_{name}": frames.get(name) for name in ("complete", "damaged", "lost")},
        )


@dataclass(frozen=True)
class Video:
    """The quality of a video that a program received, compared with what was sent.

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
    """The experience of one viewer of video in segments.

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
