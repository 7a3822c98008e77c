"""The headers of one frame in words, and which field of them stands where."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["FrameFields", "frame_fields"]

_VLAN = (0x8100, 0x88A8)
_TCP_FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")
_Field = tuple[str, int]
"""A field's name, and how many bytes it has."""

_ETHERNET: Sequence[_Field] = (("destination address", 6), ("source address", 6), ("EtherType", 2))
_IPV4: Sequence[_Field] = (
    ("version", 1), ("traffic class", 1), ("length", 2), ("identification", 2), ("fragment", 2), ("time to live", 1),
    ("protocol", 1), ("checksum", 2), ("source", 4), ("destination", 4),
)  # fmt: skip
_IPV6: Sequence[_Field] = (
    ("flow label", 4), ("length", 2), ("next header", 1), ("hop limit", 1), ("source", 16), ("destination", 16),
)  # fmt: skip
_TCP: Sequence[_Field] = (
    ("source port", 2), ("destination port", 2), ("sequence number", 4), ("acknowledgment", 4), ("flags", 2),
    ("window", 2), ("checksum", 2), ("urgent pointer", 2),
)  # fmt: skip
_UDP: Sequence[_Field] = (("source port", 2), ("destination port", 2), ("length", 2), ("checksum", 2))
_ICMP: Sequence[_Field] = (("type", 1), ("code", 1), ("checksum", 2))


@dataclass
class FrameFields:
    """A frame as far as its first bytes tell.

    Parameters
    ----------
    words
        What it is, such as ``IPv4 10.0.0.1 > 10.0.0.2``.
    places
        The fields in order: first byte, the byte behind the last, and name.
    """

    words: list[str] = field(default_factory=list[str])
    places: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])

    def __str__(self) -> str:
        return " ".join(self.words)

    def differences(self, one: bytes, other: bytes) -> list[str]:
        """Return the names of the fields in which `one` and `other` differ, of which this describes the first."""
        named = [name for begin, end, name in self.places if one[begin:end] != other[begin:end]]
        behind = self.places[-1][1] if self.places else 0
        return named + (["content"] if one[behind:] != other[behind:] else [])

    def add(self, header: str, fields: Sequence[tuple[str, int]], at: int) -> int:
        """Note the `fields` of `header`, by name and length, from byte `at`; return the byte behind them."""
        for name, length in fields:
            self.places.append((at, at + length, f"{header} {name}"))
            at += length
        return at


def frame_fields(frame: bytes) -> FrameFields:
    """Return the headers of an Ethernet frame, of which the first bytes are given.

    Examples
    --------
    >>> str(frame_fields(bytes(12) + bytes([0x88, 0xB5])))
    'EtherType 88b5'
    """
    found = FrameFields()
    at = found.add("Ethernet", _ETHERNET, 0)
    kind = int.from_bytes(frame[12:14], "big")
    while kind in _VLAN and len(frame) >= at + 4:
        found.words.append(f"VLAN {int.from_bytes(frame[at : at + 2], 'big') & 0xFFF}")
        kind = int.from_bytes(frame[at + 2 : at + 4], "big")
        at = found.add("VLAN", (("tag", 2), ("EtherType", 2)), at)
    if kind == 0x0800 and len(frame) >= at + 20:
        source, destination = (ipaddress.IPv4Address(frame[at + place : at + place + 4]) for place in (12, 16))
        found.words += ["IPv4", f"{source} > {destination}"]
        protocol, length = frame[at + 9], (frame[at] & 15) * 4
        end = found.add("IPv4", _IPV4, at)
        _transport(found, frame, found.add("IPv4", (("options", max(length - 20, 0)),), end), protocol)
    elif kind == 0x86DD and len(frame) >= at + 40:
        source, destination = (ipaddress.IPv6Address(frame[at + place : at + place + 16]) for place in (8, 24))
        found.words += ["IPv6", f"{source} > {destination}"]
        protocol = frame[at + 6]
        _transport(found, frame, found.add("IPv6", _IPV6, at), protocol)
    elif kind == 0x0806 and len(frame) >= at + 28:
        asks = int.from_bytes(frame[at + 6 : at + 8], "big") == 1
        found.words += [
            "ARP",
            "request for" if asks else "reply to",
            str(ipaddress.IPv4Address(frame[at + 24 : at + 28])),
        ]
    else:
        found.words.append(f"EtherType {kind:04x}")
    return found


def _transport(found: FrameFields, frame: bytes, at: int, protocol: int) -> None:
    header = frame[at:]
    ports = [int.from_bytes(header[place : place + 2], "big") for place in (0, 2)]
    if protocol == 6 and len(header) >= 20:
        flags = [name for bit, name in enumerate(_TCP_FLAGS) if header[13] >> bit & 1]
        sequence, acknowledged = (int.from_bytes(header[place : place + 4], "big") for place in (4, 8))
        found.words += [f"TCP {ports[0]} > {ports[1]}", ",".join(flags), f"seq {sequence}", f"ack {acknowledged}"]
        end = found.add("TCP", _TCP, at)
        found.add("TCP", (("options", max((header[12] >> 4) * 4 - 20, 0)),), end)
    elif protocol == 17 and len(header) >= 8:
        found.words.append(f"UDP {ports[0]} > {ports[1]}")
        found.add("UDP", _UDP, at)
    elif protocol in (1, 58) and len(header) >= 4:
        found.words.append(f"ICMP type {header[0]} code {header[1]}")
        found.add("ICMP", _ICMP, at)
    else:
        found.words.append(f"protocol {protocol}")
