"""Reads the frames of a capture of the fabric's: pcapng with nanosecond stamps."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CapturedFrame", "captured_ip"]

_ENHANCED_PACKET = 6
_IPV4, _IPV6 = 0x0800, 0x86DD


@dataclass(frozen=True)
class CapturedFrame:
    """An IP packet: when it passed, and what its headers tell.

    Attributes
    ----------
    payload
        Bytes after the IP header, whether they were stored or not.
    head
        What was stored of them.
    """

    time_ns: int
    protocol: int
    traffic_class: int
    source: bytes
    payload: int
    head: bytes


def captured_ip(path: Path) -> list[CapturedFrame]:
    """The IP packets of the capture in their order."""
    data, place = path.read_bytes(), 0
    found: list[CapturedFrame] = []
    while place + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, place)
        if kind == _ENHANCED_PACKET:
            high, low, stored, _ = struct.unpack_from("<IIII", data, place + 12)
            one = _ip(high << 32 | low, data[place + 28 : place + 28 + stored])
            found += [one] if one is not None else []
        place += length
    return found


def _ip(time_ns: int, frame: bytes) -> CapturedFrame | None:
    kind = int.from_bytes(frame[12:14])
    ip = frame[14:]
    if kind == _IPV4:
        header, whole = (ip[0] & 15) * 4, int.from_bytes(ip[2:4])
        return CapturedFrame(time_ns, ip[9], ip[1], ip[12:16], whole - header, ip[header:])
    if kind == _IPV6:
        traffic_class = (ip[0] & 15) << 4 | ip[1] >> 4
        return CapturedFrame(time_ns, ip[6], traffic_class, ip[8:24], int.from_bytes(ip[4:6]), ip[40:])
    return None
