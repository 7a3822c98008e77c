"""Traffic of known applications: settings of :class:`twinnet.traffic.udp.Datagrams` by name, each with its source.

Sizes are those of the UDP payload. RTP's header of 12 bytes (RFC 3550) is in those of voice.
"""

from __future__ import annotations

from typing import Any

from twinnet.traffic import distributions
from twinnet.units import Bytes, Picoseconds

__all__ = ["PRESETS", "VOICE_CODECS", "voice_settings"]

_RTP_HEADER_BYTES = 12

VOICE_CODECS: dict[str, tuple[int, int]] = {
    "G.711": (20, 160),
    "G.723.1": (30, 24),
    "G.729": (20, 20),
}
"""Codec: milliseconds of speech in a packet, and bytes that they take. G.711 has 64 kbit/s; G.723.1 frames of 30 ms at
6.3 kbit/s; G.729 frames of 10 ms at 8 kbit/s, two in a packet (RFC 3551, 4.5 and table 1)."""

_TALKSPURT, _PAUSE = "1004 ms", "1587 ms"


def voice_settings(codec: str, silence_suppression: bool) -> dict[str, Any]:
    """Return the settings of one direction of a call.

    With `silence_suppression` talkspurts and pauses alternate with the mean lengths that ITU-T P.59 (03/93) gives for
    one talker of a conversation: 1.004 s and 1.587 s, not checked against its text. That both are exponential is ours:
    the recommendation draws the states of two talkers (one talks, both, none), and what one of them does follows.
    """
    frame_ms, size = VOICE_CODECS[codec]
    settings: dict[str, Any] = {
        "gap": distributions.constant(Picoseconds(frame_ms * 10**9)),
        "payload": Bytes(size + _RTP_HEADER_BYTES),
    }
    if silence_suppression:
        settings["on_off"] = distributions.on_off(
            distributions.exponential(_TALKSPURT), distributions.exponential(_PAUSE)
        )
    return settings


PRESETS: dict[str, dict[str, Any]] = {
    # Poisson arrivals of queries, one a second in the mean, which is ours; a query is a header of 12 bytes, a name
    # and 4 bytes (RFC 1035, 4.1): names of 16 to 46 bytes.
    "dns": {
        "gap": distributions.exponential("1 s"),
        "size": distributions.uniform("32 B", "62 B"),
    },
    # After Paxson and Floyd, Wide-area traffic: the failure of Poisson modeling (IEEE/ACM ToN 3(3), 1995): the gaps
    # between packets of a user that types are not exponential; Tcplib's measured distribution keeps their burstiness.
    # That Pareto with shape 0.9 is near it was not checked there. Where it begins and is cut is ours: 100 ms, as fast
    # typing is, and 100 s. One character travels; the datagram is filled up to the header that tells its delay.
    "telnet": {
        "gap": distributions.pareto(0.9, "100 ms", most="100 s"),
        "payload": "16 B",
    },
    # After Faerber, Network game traffic modelling (NetGames 2002), Counter-Strike: clients every 40 ms with sizes
    # Ext(80, 5.7), servers per client Ext(55 ms, 6 ms) with Ext(120, 36), extreme value distributions of location and
    # scale. Not checked against the paper. The server's numbers also stand in the gaming model of Vienna's LTE
    # simulator; the client's 40 ms and scale in NGMN's, as ns-3 has it, but with 45 where 80 is here.
    # Here normal with the same mean (location + 0.577 scale) and deviation (1.283 scale).
    "game-client": {
        "gap": distributions.constant("40 ms"),
        "size": distributions.normal("83 B", "7 B"),
    },
    "game-server": {
        "gap": distributions.normal("58463 us", "7695 us"),
        "size": distributions.normal("141 B", "46 B"),
    },
}
"""Settings of :class:`twinnet.traffic.udp.Datagrams` by the name of the preset."""
