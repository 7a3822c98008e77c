"""Frames of the Link Layer Discovery Protocol (IEEE 802.1AB), as much as tells the port of a switch."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from twinnet.control.frames import mac_bytes

__all__ = ["LLDP", "NEAREST_BRIDGE", "PortAdvertisement"]

LLDP = 0x88CC
NEAREST_BRIDGE = "01:80:c2:00:00:0e"
"""The group that bridges do not forward (IEEE 802.1AB, 7.1)."""
_END, _CHASSIS, _PORT, _TIME_TO_LIVE = 0, 1, 2, 3
_LOCALLY_ASSIGNED = 7
_MOST_TLVS = 64


@dataclass(frozen=True)
class PortAdvertisement:
    """The port that a frame of LLDP names.

    Parameters
    ----------
    dpid
        The datapath number of its switch, from the chassis ID.
    port
        Its OpenFlow number, from the port ID.
    time_to_live_s
        How long that is true; 0: no longer.
    """

    dpid: int
    port: int
    time_to_live_s: int

    def frame(self, mac: str) -> bytes:
        """Return the frame that a port of the hardware address `mac` sends."""
        body = b"".join(
            (
                _tlv(_CHASSIS, bytes([_LOCALLY_ASSIGNED]) + f"dpid:{self.dpid:016x}".encode()),
                _tlv(_PORT, bytes([_LOCALLY_ASSIGNED]) + f"{self.port}".encode()),
                _tlv(_TIME_TO_LIVE, struct.pack("!H", self.time_to_live_s)),
                _tlv(_END, b""),
            )
        )
        return (mac_bytes(NEAREST_BRIDGE) + mac_bytes(mac) + LLDP.to_bytes(2, "big") + body).ljust(60, b"\0")

    @classmethod
    def parse(cls, frame: bytes) -> PortAdvertisement | None:
        """Return what `frame` names; ``None`` when it is no frame of LLDP that :meth:`frame` could have made."""
        if frame[12:14] != LLDP.to_bytes(2, "big"):
            return None
        found: dict[int, bytes] = {}
        at = 14
        for _ in range(_MOST_TLVS):
            if len(frame) < at + 2:
                return None
            kind, length = frame[at] >> 1, (frame[at] & 1) << 8 | frame[at + 1]
            value = frame[at + 2 : at + 2 + length]
            if len(value) < length or kind in found:
                return None
            if kind == _END:
                break
            found[kind] = value
            at += 2 + length
        try:
            chassis, port = (found[kind] for kind in (_CHASSIS, _PORT))
            if chassis[0] != _LOCALLY_ASSIGNED or port[0] != _LOCALLY_ASSIGNED or chassis[1:6] != b"dpid:":
                return None
            (seconds,) = struct.unpack("!H", found[_TIME_TO_LIVE])
            return cls(int(chassis[6:].decode("ascii"), 16), int(port[1:].decode("ascii")), seconds)
        except (KeyError, IndexError, ValueError, struct.error):
            return None


def _tlv(kind: int, value: bytes) -> bytes:
    return struct.pack("!H", kind << 9 | len(value)) + value
