"""Runs in a host of a lab: sends malformed frames by a packet socket. Arguments: interface, how many, seed, and whether
the frames carry headers of virtio (`vnet`) that promise segments and checksums that are not there (`plain`: none)."""

from __future__ import annotations

import random
import socket
import struct
import sys

SOL_PACKET = 263
PACKET_VNET_HDR = 15
LONGEST = 9000


def ethernet(draw: random.Random) -> bytes:
    destination = draw.choice(
        [b"\xff" * 6, b"\x00\x00\x00\x00\x00\x02", b"\x33\x33" + draw.randbytes(4), draw.randbytes(6)]
    )
    # Learning: sources that are multicast, all zero, another host's, or new every time.
    source = draw.choice([b"\x00" * 6, b"\xff" * 6, b"\x00\x00\x00\x00\x00\x01", draw.randbytes(6)])
    tags = b"".join(
        struct.pack("!HH", draw.choice([0x8100, 0x88A8, 0x9100]), draw.getrandbits(16))
        for _ in range(draw.choice([0, 0, 1, 2, 9]))
    )
    return destination + source + tags


def ipv4(draw: random.Random) -> bytes:
    protocol = draw.choice([1, 2, 6, 17, 47, 132, 255])
    options = draw.randbytes(4 * draw.choice([0, 0, 1, 10]))
    header = struct.pack(
        "!BBHHHBBH4s4s",
        draw.choice([0x45, 0x40, 0x4F, 0x44, 0x65, 0x45 + len(options) // 4]),
        draw.getrandbits(8),
        draw.choice([0, 20, 19, 65535, draw.getrandbits(16)]),
        draw.getrandbits(16),
        draw.choice([0, 0x2000, 0x1FFF, 0x4000, draw.getrandbits(16)]),
        draw.choice([0, 1, 64]),
        protocol,
        draw.getrandbits(16),
        draw.choice([b"\x0a\x00\x00\x01", draw.randbytes(4)]),
        draw.choice([b"\x0a\x00\x00\x02", b"\x0a\x00\x00\x04", draw.randbytes(4)]),
    )
    return b"\x08\x00" + header + options + draw.randbytes(draw.choice([0, 1, 3, 8, 19, 20, 60]))


def ipv6(draw: random.Random) -> bytes:
    extensions = b"".join(
        bytes([draw.choice([0, 43, 44, 50, 51, 60, 6, 17, 58]), draw.choice([0, 1, 255])]) + draw.randbytes(6)
        for _ in range(draw.choice([0, 1, 3, 40]))
    )
    header = struct.pack(
        "!IHBB16s16s",
        draw.choice([0x60000000, draw.getrandbits(32)]),
        draw.choice([0, len(extensions), 65535]),
        draw.choice([0, 6, 17, 43, 44, 58, 59, 60]),
        draw.getrandbits(8),
        draw.randbytes(16),
        draw.choice([bytes.fromhex("fd000000000000000000000000000002"), draw.randbytes(16)]),
    )
    return b"\x86\xdd" + header + extensions + draw.randbytes(draw.choice([0, 2, 40]))


def arp(draw: random.Random) -> bytes:
    return (
        b"\x08\x06"
        + struct.pack("!HHBBH", 1, 0x0800, draw.choice([6, 0, 255]), draw.choice([4, 0, 255]), 1)
        + draw.randbytes(draw.choice([0, 19, 20, 46]))
    )


def mpls(draw: random.Random) -> bytes:
    return b"\x88\x47" + b"".join(draw.randbytes(2) + b"\x00\x40" for _ in range(draw.choice([0, 1, 20])))


def raw(draw: random.Random) -> bytes:
    return struct.pack("!H", draw.choice([0, 5, 1500, 1535, 1536, 0x88CC, 0xFFFF])) + draw.randbytes(
        draw.randrange(200)
    )


def frame(draw: random.Random) -> bytes:
    whole = ethernet(draw) + draw.choice([ipv4, ipv6, arp, mpls, raw])(draw)
    # The kernel sends no frame shorter than its header.
    return (whole + draw.randbytes(draw.choice([0, 0, 0, 1400])))[
        : draw.choice([LONGEST, LONGEST, len(whole), 60, 15])
    ].ljust(14, b"\0")


def vnet_header(draw: random.Random) -> bytes:
    """struct virtio_net_hdr: flags, segmentation, header length, segment size, checksum start and offset."""
    kind = draw.choice([0, 1, 3, 4, 5, 0x81, 0x84, draw.getrandbits(8)])
    lengths = [draw.choice([0, 1, 14, 34, 54, 1448, 65535, draw.getrandbits(16)]) for _ in range(4)]
    return struct.pack("=BBHHHH", draw.choice([0, 1, 2, 3, 255]), kind, *lengths)


def train(draw: random.Random) -> bytes:
    """A super-segment of TCP or UDP that is well enough for the kernel, with lies about lengths in it."""
    tcp = draw.random() < 0.5
    segment_bytes = draw.choice([1, 7, 536, 1448, 8900, 65535])
    # Not more than a hundred segments: each takes its time on the wire, and the test waits for the line.
    payload = draw.randbytes(min(draw.choice([0, 1, 1000, 9000, 20_000, 40_000]), 100 * segment_bytes))
    if tcp:
        offset = draw.choice([0x50, 0x50, 0x60, 0xF0, 0x00])
        transport = struct.pack("!HHIIBBHHH", 1, draw.choice([80, 81]), 1, 1, offset, draw.getrandbits(8), 9, 0, 0)
    else:
        transport = struct.pack("!HHHH", 1, 2, draw.choice([8 + len(payload) & 0xFFFF, 0, 7, 65535]), 0)
    length = 20 + len(transport) + len(payload)
    told = draw.choice([length & 0xFFFF, length & 0xFFFF, 0, 20, 65535])
    fragment = draw.choice([0, 0, 0, 0x2000, 7])
    ends = (b"\x0a\x00\x00\x01", draw.choice([b"\x0a\x00\x00\x02", b"\x0a\x00\x00\x04"]))
    network = struct.pack("!BBHHHBBH4s4s", 0x45, 0, told, 1, fragment, 64, 6 if tcp else 17, 0, *ends)
    kind = draw.choice([1, 0x81]) if tcp else draw.choice([5, 3])
    header_bytes = draw.choice([34 + len(transport), 0, 14, 200])
    header = struct.pack("=BBHHHH", 1, kind, header_bytes, segment_bytes, 34, 16 if tcp else 6)
    ethernet_header = draw.choice([b"\x00\x00\x00\x00\x00\x02", b"\xff" * 6]) + b"\x00\x00\x00\x00\x00\x01\x08\x00"
    return header + ethernet_header + network + transport + payload


def main() -> None:
    interface, count, seed, vnet = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "vnet"
    draw = random.Random(seed)
    sent = 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        if vnet:
            sender.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        sender.bind((interface, 0))
        for _ in range(count):
            if not vnet:
                packet = frame(draw)
            elif draw.random() < 0.7:
                packet = train(draw)
            else:
                packet = vnet_header(draw) + frame(draw)
            try:
                sender.send(packet)
                sent += 1
            except OSError:
                # The kernel sees through some lies itself, and takes nothing beyond the interface's MTU.
                continue
    print(sent)


if __name__ == "__main__":
    main()
