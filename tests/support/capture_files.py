"""Captures written by tests: pcap files of packets that the test describes."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterable
from pathlib import Path

__all__ = ["Stamped", "frame", "noisy_rtp", "rtp", "udp", "write_pcap"]

Stamped = tuple[int, bytes]
"""Nanoseconds since 1970, and a frame."""


def write_pcap(path: Path, packets: Iterable[Stamped], *, order: str = "<", nanoseconds: bool = True) -> Path:
    """Write `packets` in the byte order `order`."""
    magic, unit = (0xA1B23C4D, 1) if nanoseconds else (0xA1B2C3D4, 1000)
    with path.open("wb") as file:
        file.write(struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, 1))
        for time_ns, packet in packets:
            seconds, rest = divmod(time_ns, 1_000_000_000)
            file.write(struct.pack(order + "IIII", seconds, rest // unit, len(packet), len(packet)) + packet)
    return path


def frame(source: str, destination: str, protocol: int, payload: bytes, *, ttl: int = 64, number: int = 0) -> bytes:
    """Return an Ethernet frame with an IPv4 packet; `number` is its identification."""
    ends = socket.inet_aton(source) + socket.inet_aton(destination)
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), number & 0xFFFF, 0, ttl, protocol, 0) + ends
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    header = header[:10] + struct.pack("!H", 0xFFFF - total) + header[12:]
    return bytes(12) + b"\x08\x00" + header + payload


def udp(
    source: tuple[str, int], destination: tuple[str, int], payload: bytes, *, ttl: int = 64, number: int = 0
) -> bytes:
    """Return a frame with a UDP datagram."""
    datagram = struct.pack("!HHHH", source[1], destination[1], 8 + len(payload), 0) + payload
    return frame(source[0], destination[0], 17, datagram, ttl=ttl, number=number)


def rtp(sequence: int, timestamp: int, *, payload_type: int = 33, source: int = 0xDECAF, marker: bool = False) -> bytes:
    """Return an RTP header with seven transport-stream packets' worth of payload."""
    second = payload_type | (0x80 if marker else 0)
    return struct.pack("!BBHII", 0x80, second, sequence & 0xFFFF, timestamp & 0xFFFFFFFF, source) + bytes(1316)


def noisy_rtp(
    packets: int, *, seed: int, payload_type: int = 33, rate_hz: int = 90_000, loss: float = 0.02, swap: float = 0.01
) -> list[Stamped]:
    """Return an RTP stream with jitter, loss and reordering whose sequence numbers and time stamps wrap."""
    chance = random.Random(seed)
    ends = ("10.0.0.1", 40_000), ("10.0.0.2", 5004)
    time_ns = 1_700_000_000_000_000_000
    sent: list[Stamped] = []
    for index in range(packets):
        time_ns += chance.randrange(500_000, 3_500_000)
        if 0 < index < packets - 3 and chance.random() < loss:
            continue
        stamp = 0xFFFF0000 + index * rate_hz // 500
        payload = rtp(65_000 + index, stamp, payload_type=payload_type, marker=chance.random() < 0.05)
        sent.append((time_ns, udp(*ends, payload, number=index)))
        if 2 < len(sent) < packets - 3 and chance.random() < swap:
            sent[-1], sent[-2] = (sent[-1][0], sent[-2][1]), (sent[-2][0], sent[-1][1])
    return sent
