"""A program that runs a receiver and stamps what arrives for it: ``observed.py PORT PAYLOAD GAP_NS [RECEIVER ...]``.

It runs in the hosts of a lab by its path, so it imports nothing of the package. A packet socket, which knows none of
the generators, has the kernel stamp every UDP datagram of IPv4 that arrives for PORT. At SIGTERM the receiver is ended,
and one line of JSON has of each sender, by its address, what arrived and how far its gaps were from GAP_NS (0: they
are random, or nobody paced them). PAYLOAD is the size of a datagram: what the sender let the kernel cut may arrive as
one message of several; smaller ones are no data of it.

The socket's ring (``packet(7)``, TPACKET_V2) holds 2^17 frames, of which only the headers are kept: it overflows only
when this process does not run for longer than that many datagrams take, and then says so.
"""

from __future__ import annotations

import json
import mmap
import signal
import socket
import struct
import subprocess
import sys
import time
from types import FrameType

import numpy as np
import numpy.typing as npt

_PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION, _PACKET_IGNORE_OUTGOING = 5, 6, 10, 23
_SOL_PACKET = 263
_TPACKET_V2 = 1
_ETH_P_IP = 0x0800
_FRAME_BYTES = 128
"""Room for the kernel's own header (80 bytes) and those of IP and UDP."""
_FRAMES = 1 << 17
_BLOCK_BYTES = 1 << 16
_IP_OFFSET = 80
"""TPACKET2_HDRLEN and room for a link's header, aligned to 16 (``tpacket_rcv`` in the kernel)."""
_LOOK_S = 0.01
_MOST = 8_000_000
"""Datagrams of which stamps are kept: 128 MB."""
_FRAME = np.dtype(
    {
        "names": ["status", "length", "second", "nanosecond", "protocol", "source", "target_port", "udp_length"],
        "formats": ["<u4", "<u4", "<u4", "<u4", "u1", ">u4", ">u2", ">u2"],
        "offsets": [0, 4, 16, 20, _IP_OFFSET + 9, _IP_OFFSET + 12, _IP_OFFSET + 22, _IP_OFFSET + 24],
        "itemsize": _FRAME_BYTES,
    }
)


class Observer:
    """Stamps what arrives for a port, until it is read."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ETH_P_IP))
        self._socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
        # On the loopback device every packet would be seen twice.
        self._socket.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        size = _FRAMES * _FRAME_BYTES
        ring = struct.pack("IIII", _BLOCK_BYTES, size // _BLOCK_BYTES, _FRAME_BYTES, _FRAMES)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, ring)
        self._frames = np.frombuffer(mmap.mmap(self._socket.fileno(), size), dtype=_FRAME)
        self._next = 0
        self._kept: list[np.ndarray] = []
        self._count = 0

    def look(self) -> None:
        """Take what has arrived since the last look, and give its room back to the kernel."""
        while True:
            ahead = self._frames[self._next :]
            waiting = (ahead["status"] & 1) == 0
            ready = int(waiting.argmax()) if waiting.any() else len(ahead)
            taken = ahead[:ready]
            mine = taken[(taken["protocol"] == socket.IPPROTO_UDP) & (taken["target_port"] == self._port)]
            if self._count + len(mine) <= _MOST:
                self._kept.append(mine.copy())
            self._count += len(mine)
            taken["status"] = 0
            self._next = (self._next + ready) % _FRAMES
            if ready < len(ahead):
                return

    def report(self, payload: int, gap_ns: float) -> dict[str, object]:
        """Return what arrived from each sender, and what was missed."""
        self.look()
        _, missed = struct.unpack("II", self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
        kept = np.concatenate(self._kept) if self._kept else np.empty(0, _FRAME)
        # Some greet with a short datagram before they send.
        kept = kept[kept["udp_length"] >= payload + 8]
        stamps: npt.NDArray[np.int64] = kept["second"].astype(np.int64) * 1_000_000_000 + kept["nanosecond"]
        sizes = kept["udp_length"].astype(np.int64) - 8
        sources: list[int] = np.unique(kept["source"]).tolist()
        senders = {
            socket.inet_ntoa(source.to_bytes(4, "big")): _sender(
                stamps[kept["source"] == source], sizes[kept["source"] == source], payload, gap_ns
            )
            for source in sources
        }
        return {"senders": senders, "missed": int(missed) + max(0, self._count - _MOST)}


def _sender(
    stamps: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], payload: int, gap_ns: float
) -> dict[str, object]:
    """Return what is reported of one sender's datagrams."""
    each: npt.NDArray[np.int64] = np.repeat(stamps, np.maximum(1, sizes // payload))
    gaps = np.diff(each).astype(np.float64)
    return {
        "packets": len(each),
        "bytes": int(sizes.sum()),
        "first_ns": int(each[0]),
        "last_ns": int(each[-1]),
        "gap_ps": _summary(gaps),
        "gap_error_ps": _summary(np.abs(gaps - gap_ns)) if gap_ns > 0 else None,
        "together": 1 - np.count_nonzero(gaps) / len(gaps) if len(gaps) else None,
    }


def _summary(values_ns: npt.NDArray[np.float64]) -> dict[str, float] | None:
    """Return a distribution of times in picoseconds, as reports of flows have it."""
    if len(values_ns) == 0:
        return None
    values = values_ns * 1000.0
    parts = {"mean": values.mean(), "min": values.min(), "max": values.max(), "std": values.std()}
    parts |= dict(zip(("p50", "p90", "p99"), np.percentile(values, (50, 90, 99)), strict=True))
    return {"count": len(values), **{name: float(value) for name, value in parts.items()}}


def main(arguments: list[str]) -> int:
    """Observe the port that `arguments` name until SIGTERM or SIGINT, with the receiver at work beside."""
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, ask)
    port, payload, gap_ns, command = int(arguments[0]), int(arguments[1]), float(arguments[2]), arguments[3:]
    observer = Observer(port)
    receiver = None
    discarding = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if not command:
        # Somebody must own the port, or the sender hears that nobody listens. What fills its room is discarded.
        discarding.bind(("", port))
    else:
        receiver = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    while not asked:
        time.sleep(_LOOK_S)
        observer.look()
    if receiver is not None and receiver.poll() is None:
        receiver.terminate()
        try:
            receiver.wait(1)
        except subprocess.TimeoutExpired:
            receiver.kill()
    print(json.dumps(observer.report(payload, gap_ns)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
