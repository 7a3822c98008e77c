"""How fast captures are read, beside tshark: RTP and conversation statistics, and what memory that takes."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.figure import Figure
from bench.quiet import Quiet

TITLE = "Analysis of captures"
MEASURES = ("bench/analysis.py", "crates/capture", "python/twinnet/results/captures.py")

PACKETS = 2_000_000
PEER_PACKETS = 200_000
"""tshark's time beyond its start is in proportion to the packets."""
FEW_PACKETS = 1000
TARGET_RATIO = 20.0
TARGET_GROWTH_MB = 16.0
_STREAMS = 16
_BLOCK = 50_000
_OURS = """
import resource, sys
from time import perf_counter
from twinnet.results.captures import analyze_capture
begin = perf_counter()
found = analyze_capture(sys.argv[1], rtp_ports=[5004])
taken = perf_counter() - begin
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(taken, most, found.rtp_streams["packets"].sum(), found.rtp_streams["lost"].sum())
"""


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures."""
    repetitions = 3 if quick else 7
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder) / "large.pcap", Path(folder) / "small.pcap"
        write_streams(large, PACKETS)
        write_streams(small, PEER_PACKETS)
        write_streams(few := Path(folder) / "few.pcap", FEW_PACKETS)
        quiet.wait()
        peers: list[float] = []
        runs: list[tuple[float, float]] = []
        small_mb: list[float] = []
        # In turns, so that what else the machine does meets both.
        for _ in range(repetitions):
            if shutil.which("tshark") is not None:
                # Without its start, which is none of the packets' doing.
                peers.append((PEER_PACKETS - FEW_PACKETS) / (_tshark_s(small) - _tshark_s(few)) / 1e6)
            runs.append(_ours(large, PACKETS))
            small_mb.append(_ours(small, PEER_PACKETS)[1])
        rates = [PACKETS / taken / 1e6 for taken, _ in runs]
        ratio = median(rates) / median(peers) if peers else None
        yield Figure(
            f"RTP and conversations of {PACKETS / 1e6:g} million packets",
            "million packets/s",
            rates,
            {"tshark": peers} if peers else {},
            f"{TARGET_RATIO:g} times tshark",
            None if ratio is None else ratio >= TARGET_RATIO,
            note=f"{_STREAMS} streams of 214-byte frames; tshark: {PEER_PACKETS / 1e6:g} million, its start left out",
            strain=None if ratio is None else TARGET_RATIO / ratio,
        )
        growth = [most - least for (_, most), least in zip(runs, small_mb, strict=True)]
        yield Figure(
            f"memory for {PACKETS // PEER_PACKETS} times the packets",
            "MB more",
            growth,
            note=f"the greatest memory of the process, {median(most for _, most in runs):.0f} MB with the interpreter",
            summary="worst",
        ).at_most(TARGET_GROWTH_MB)


def write_streams(path: Path, packets: int) -> None:
    """Write a capture of RTP streams, 2 microseconds from packet to packet."""
    frames = [bytearray(_frame(index)) for index in range(_STREAMS)]
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
        for begin in range(0, packets, _BLOCK):
            block = bytearray()
            for index in range(begin, min(begin + _BLOCK, packets)):
                frame = frames[index % _STREAMS]
                number = index // _STREAMS
                struct.pack_into("!HI", frame, 44, number & 0xFFFF, number * 3 & 0xFFFFFFFF)
                seconds, rest = divmod(index * 2000, 1_000_000_000)
                block += struct.pack("<IIII", 1_700_000_000 + seconds, rest, len(frame), len(frame))
                block += frame
            file.write(block)


def _frame(stream: int) -> bytes:
    payload = struct.pack("!BBHII", 0x80, 33, 0, 0, 0xABC000 + stream) + bytes(160)
    datagram = struct.pack("!HHHH", 20_000 + 2 * stream, 5004, 8 + len(payload), 0) + payload
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(datagram), 0, 0x4000, 64, 17, 0)
    return bytes(12) + b"\x08\x00" + header + bytes([10, 0, 0, 1 + stream, 10, 0, 1, 1]) + datagram


def _ours(path: Path, packets: int) -> tuple[float, float]:
    """Seconds and megabytes of a process of its own."""
    done = subprocess.run([sys.executable, "-c", _OURS, str(path)], capture_output=True, text=True, check=True)
    taken, most, counted, lost = done.stdout.split()
    if (int(counted), int(lost)) != (packets, 0):
        raise OSError(f"{counted} packets of RTP were counted and {lost} lost, of {packets} in the file")
    return float(taken), float(most) / 1024


def _tshark_s(path: Path) -> float:
    begin = perf_counter()
    argv = ["tshark", "-n", "-r", str(path), "-q", "-d", "udp.port==5004,rtp", "-z", "rtp,streams", "-z", "conv,udp"]
    subprocess.run(argv, capture_output=True, check=True)
    return perf_counter() - begin
