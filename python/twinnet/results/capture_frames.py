"""The frames of a capture one by one, for questions that need their contents: pcap and pcapng, plain or by gzip, and
the TCP segments in them."""

from __future__ import annotations

import gzip
import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from twinnet.errors import BadFile
from twinnet.given_files import open_given

__all__ = ["Segment", "segments"]

_PCAP = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}
"""Magic numbers, and how many nanoseconds a unit of time is."""
_SECTION, _INTERFACE, _ENHANCED = 0x0A0D0D0A, 1, 6
_BYTE_ORDER = 0x1A2B3C4D
_RESOLUTION = 9
_USUAL_INTERFACE = 1, 1_000_000
_LARGEST_BLOCK = 1 << 24
_ETHERNET, _RAW, _COOKED, _COOKED_2 = 1, (12, 101), 113, 276
_VLAN = (0x8100, 0x88A8)
_IPV4, _IPV6, _TCP = 0x0800, 0x86DD, 6

End = tuple[str, int]
"""Address and port."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of TCP.

    Attributes
    ----------
    time_ns
        When it passed, in nanoseconds since 1970, or since the beginning of a virtual clock.
    source, destination
        Its ends.
    sequence
        Its sequence number.
    starts
        Whether it has SYN.
    payload
        What was kept of its payload.
    """

    time_ns: int
    source: End
    destination: End
    sequence: int
    starts: bool
    payload: bytes


def segments(path: Path) -> Iterator[Segment]:
    """The TCP segments of the capture at `path`, in the file's order; of a file that is cut off, those before that.

    Raises
    ------
    BadFile
        It cannot be read, or is no capture.
    """
    try:
        with open_given(path) as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            with cast("IO[bytes]", gzip.open(raw)) if packed else raw as file:
                for time_ns, link, frame in _frames(path, file):
                    found = _segment(time_ns, link, frame)
                    if found is not None:
                        yield found
    except (EOFError, struct.error):
        return
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror or error}", "name a capture that can be read") from error


def _frames(path: Path, file: IO[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Time in nanoseconds, link layer and bytes of each frame."""
    first = file.read(4)
    for order in "<>":
        (magic,) = struct.unpack(order + "I", first)
        if magic in _PCAP:
            yield from _pcap(file, order, _PCAP[magic])
            return
    if struct.unpack("<I", first)[0] != _SECTION:
        raise BadFile(f"{path}: it is neither pcap nor pcapng")
    yield from _pcapng(file)


def _pcap(file: IO[bytes], order: str, unit_ns: int) -> Iterator[tuple[int, int, bytes]]:
    link = struct.unpack(order + "HHiIII", file.read(20))[5] & 0xFFFF
    while header := file.read(16):
        seconds, rest, kept, _ = struct.unpack(order + "IIII", header)
        if kept > _LARGEST_BLOCK:
            return
        yield seconds * 1_000_000_000 + rest * unit_ns, link, file.read(kept)


def _pcapng(file: IO[bytes]) -> Iterator[tuple[int, int, bytes]]:
    order, kind = "<", _SECTION
    interfaces: list[tuple[int, int]] = []
    while True:
        length_bytes = file.read(4)
        if kind == _SECTION:
            start = file.read(4)
            order = "<" if struct.unpack("<I", start)[0] == _BYTE_ORDER else ">"
            interfaces = []
            file.read(_length(order, length_bytes) - 12)
        else:
            body = file.read(_length(order, length_bytes) - 8)[:-4]
            if kind == _INTERFACE:
                interfaces.append(
                    (int.from_bytes(body[:2], "little" if order == "<" else "big"), _units_per_second(order, body[8:]))
                )
            elif kind == _ENHANCED:
                number, high, low, kept = struct.unpack_from(order + "IIII", body)
                link, units = interfaces[int(number)] if number < len(interfaces) else _USUAL_INTERFACE
                yield (high << 32 | low) * 1_000_000_000 // units, link, body[20 : 20 + kept]
        (kind,) = struct.unpack(order + "I", file.read(4))


def _length(order: str, given: bytes) -> int:
    (length,) = struct.unpack(order + "I", given)
    if not 12 <= length <= _LARGEST_BLOCK:
        raise EOFError
    return length


def _units_per_second(order: str, options: bytes) -> int:
    place = 0
    while place + 4 <= len(options):
        code, length = struct.unpack_from(order + "HH", options, place)
        if code == _RESOLUTION and length:
            said = options[place + 4]
            return 1 << (said & 0x7F) if said & 0x80 else 10**said
        if code == 0:
            break
        place += 4 + length + -length % 4
    return 1_000_000


def _segment(time_ns: int, link: int, frame: bytes) -> Segment | None:
    """The TCP segment in `frame`; `None` where there is none, or too little was kept of it."""
    try:
        ip = _packet(link, frame)
        if ip is None:
            return None
        if ip[0] >> 4 == 4:
            header, whole, protocol = (ip[0] & 15) * 4, int.from_bytes(ip[2:4]) or len(ip), ip[9]
            ends, fragment = (ip[12:16], ip[16:20]), int.from_bytes(ip[6:8]) & 0x3FFF
        else:
            header, whole, protocol = 40, 40 + int.from_bytes(ip[4:6]), ip[6]
            ends, fragment = (ip[8:24], ip[24:40]), 0
        if protocol != _TCP or fragment:
            return None
        tcp = ip[header:whole]
        source_port, destination_port, sequence, _, offset, flags = struct.unpack_from("!HHIIBB", tcp)
    except (IndexError, struct.error):
        return None
    source, destination = (str(ipaddress.ip_address(one)) for one in ends)
    return Segment(
        time_ns,
        (source, source_port),
        (destination, destination_port),
        sequence,
        bool(flags & 2),
        tcp[(offset >> 4) * 4 :],
    )


def _packet(link: int, frame: bytes) -> bytes | None:
    """The IP packet in a frame of the link layer `link`."""
    if link in _RAW:
        return frame
    place = {_ETHERNET: 12, _COOKED: 14, _COOKED_2: 0}.get(link)
    if place is None:
        return None
    kind = int.from_bytes(frame[place : place + 2])
    place = 20 if link == _COOKED_2 else place + 2
    while kind in _VLAN:
        kind = int.from_bytes(frame[place + 2 : place + 4])
        place += 4
    return frame[place:] if kind in (_IPV4, _IPV6) and len(frame) > place else None
