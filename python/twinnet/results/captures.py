"""Captures read: conversations, throughput, RTP streams, TCP, and packets matched between captures, as tables.

Reading is done in Rust, in memory that does not grow with the file. docs/reference/capture-columns.md defines every
column. What is wrong with a file is said in `notes` beside the numbers.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from twinnet import _core
from twinnet.errors import BadFile, BadValue
from twinnet.results.shown import ShownInUnits, html_section
from twinnet.units import duration_ps

__all__ = ["LAYERS", "CaptureAnalysis", "CaptureLayer", "MatchedCaptures", "analyze_capture", "match_captures"]

CaptureLayer = Literal["payload", "network", "link", "wire"]
LAYERS: tuple[CaptureLayer, ...] = ("payload", "network", "link", "wire")
"""The layers at which bytes are counted: payload of the transport protocol, IP packets, frames as captured, frames
on the wire."""

MOST_CONVERSATIONS = 262_144
MOST_LISTED_PACKETS = 1_000_000
_MISSING = np.iinfo(np.int64).min
_PS_PER_NS = 1000
_FLAGS = ("whole", "marker", "sequence_error")
_TABLES = ("capture", "conversations", "host_pairs", "rtp_streams", "rtp_packets", "tcp", "packet_list")


@dataclass(frozen=True, repr=False)
class CaptureAnalysis(ShownInUnits):
    """The analysis of one capture.

    Attributes
    ----------
    path
        The file.
    capture
        One row: packets, bytes, begin and duration of the file.
    conversations, host_pairs
        A row for each pair of ports and protocol, and for each pair of addresses; `a` is who sent the first packet.
    intervals
        A row for each interval: packets, and bytes at every layer.
    rtp_streams
        A row for each RTP stream, with the columns of Wireshark's stream analysis.
    rtp_packets
        A row for each packet of RTP, when they were asked for.
    tcp
        A row for each direction of a TCP connection.
    packet_list
        A row for each of the first packets, when they were asked for: time, ends, protocol, length and what it says.
    notes
        What must be known to judge the numbers, such as a file that is cut off; empty when all is well.
    interval_s
        Length of an interval.
    """

    path: Path
    capture: pl.DataFrame
    conversations: pl.DataFrame
    host_pairs: pl.DataFrame
    intervals: pl.DataFrame
    rtp_streams: pl.DataFrame
    rtp_packets: pl.DataFrame
    tcp: pl.DataFrame
    packet_list: pl.DataFrame
    notes: tuple[str, ...]
    interval_s: float

    def throughput(self, layer: CaptureLayer = "link") -> pl.DataFrame:
        """Return `time_s` (begin of the interval) and `throughput_bps` at `layer`.

        The last interval is left out unless it is the only one: the capture ends somewhere within it.
        """
        if layer not in LAYERS:
            raise BadValue(f"there is no layer {layer!r}; allowed are {', '.join(LAYERS)}")
        rate = (pl.col(f"{layer}_bytes") * 8 / self.interval_s).alias("throughput_bps")
        whole = self.intervals.head(self.intervals.height - 1) if self.intervals.height > 1 else self.intervals
        return whole.select("time_s", rate)

    def __str__(self) -> str:
        """Return what the capture holds in one line, with what must be known to judge it."""
        whole = self.capture.to_dicts()[0]
        seconds = (whole["duration_ns"] or 0) / 1e9
        held = f"{whole['packets']} packets, {whole['bytes']} B in {seconds:.6g} s"
        return "; ".join([f"{self.path}: {held}, {self.conversations.height} conversations", *self.notes])

    def _repr_html_(self) -> str:
        tables = (self.conversations, self.rtp_streams, self.tcp)
        return html_section(str(self), [one.head(20) for one in tables if not one.is_empty()])


@dataclass(frozen=True, repr=False)
class MatchedCaptures(ShownInUnits):
    """The comparison of several captures of the same traffic.

    Attributes
    ----------
    paths
        The files, in the order given; segment 1 is between the first and the second.
    segments
        A row for each segment and direction of a conversation: packets sent, received and lost, and their delays.
    packets
        A row for each packet found in both captures of a segment, when they were asked for.
    notes
        What must be known to judge the numbers.
    """

    paths: tuple[Path, ...]
    segments: pl.DataFrame
    packets: pl.DataFrame
    notes: tuple[str, ...]

    def __str__(self) -> str:
        """Return what was matched in one line."""
        sent, lost = self.segments["sent"].sum(), self.segments["lost"].sum()
        names = ", ".join(str(path) for path in self.paths)
        return "; ".join([f"{names}: {sent} packets sent, {lost} lost", *self.notes])


def analyze_capture(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    interval: str = "1 s",
    rtp_ports: Iterable[int] = (),
    find_rtp: bool = True,
    clock_rates: Mapping[int, int] | None = None,
    every_packet: bool = False,
    most_conversations: int = MOST_CONVERSATIONS,
    list_packets: int = 0,
) -> CaptureAnalysis:
    """Read a capture: pcap or pcapng, either perhaps compressed with gzip.

    Parameters
    ----------
    path
        The file; or several that follow each other in time, such as those of a ring, to be read as one.
    interval
        Length of an interval of the throughput, such as ``"100 ms"``; at least 1 us.
    rtp_ports
        UDP ports whose payload is taken for RTP from the first packet on.
    find_rtp
        Whether RTP is looked for on other ports too: five packets of one source in a row that could be RTP.
    clock_rates
        Hertz by payload type, for dynamic payload types (96 to 127), or instead of those of RFC 3551.
    every_packet
        Whether `rtp_packets` is filled; that takes memory in proportion to the packets.
    most_conversations
        Packets of further conversations are counted in a note only.
    list_packets
        How many packets, from the first on, `packet_list` holds; at most 1,000,000.

    Raises
    ------
    BadFile
        The file cannot be read, is no capture, or has only link layers that are not looked into.
    BadValue
        An option out of range.

    Examples
    --------
    >>> analyze_capture("no such file")
    Traceback (most recent call last):
    ...
    twinnet.errors.BadFile: no such file: No such file or directory (name a capture that can be read)
    """
    interval_ns = duration_ps(interval, "interval") // _PS_PER_NS
    if interval_ns < 1000:
        raise BadValue(f"an interval is at least 1 us, not {interval}", "choose a longer one")
    ports, rates = _checked_ports(rtp_ports), _checked_rates(clock_rates or {})
    if not 1 <= most_conversations <= 2**31:
        raise BadValue(f"conversations to keep are at least 1, not {most_conversations}")
    if not 0 <= list_packets <= MOST_LISTED_PACKETS:
        raise BadValue(f"packets to list are 0 to {MOST_LISTED_PACKETS}, not {list_packets}")
    paths = [Path(path)] if isinstance(path, (str, os.PathLike)) else [Path(one) for one in path]
    if not paths:
        raise BadValue("there is no capture to read", "name at least one file")
    with _reading(paths):
        found = _core.analyze_capture(
            paths,
            rtp_ports=ports,
            find_rtp=find_rtp,
            clock_rates=rates,
            interval_ns=interval_ns,
            every_packet=every_packet,
            most_conversations=most_conversations,
            most_packets=list_packets,
        )
    tables = {name: _frame(found[name]) for name in _TABLES}
    return CaptureAnalysis(
        path=paths[0],
        intervals=_frame(found["throughput"]),
        notes=tuple(found["notes"]),
        interval_s=interval_ns / 1e9,
        **tables,
    )


def _checked_ports(given: Iterable[int]) -> list[int]:
    ports = sorted(set(given))
    if bad := [port for port in ports if not 0 < port < 65536]:
        raise BadValue(f"a port is between 1 and 65535; {bad[0]} is not")
    return ports


def _checked_rates(given: Mapping[int, int]) -> list[tuple[int, int]]:
    for payload, rate in given.items():
        if not (0 <= payload <= 127 and 1 <= rate < 2**32):
            raise BadValue(f"a payload type is 0 to 127 and its clock rate at least 1 Hz; {payload}={rate} is not")
    return list(given.items())


def match_captures(
    paths: Sequence[str | os.PathLike[str]], *, match_bytes: int = 64, every_packet: bool = False
) -> MatchedCaptures:
    """Match captures of the same traffic packet by packet, in the order in which packets pass them.

    A packet is known again by what routers, tunnels and VLANs leave as it is: addresses, identification, ports,
    sequence numbers and the first `match_bytes` of its payload.

    Raises
    ------
    BadFile
        A file cannot be read, or is no capture.
    BadValue
        Fewer than two files, or an option out of range.
    """
    files = [Path(path) for path in paths]
    if len(files) < 2:
        raise BadValue(f"matching takes at least two captures, not {len(files)}")
    if not 0 <= match_bytes <= 65535:
        raise BadValue(f"bytes of payload to compare are 0 to 65535, not {match_bytes}")
    with _reading(files):
        found = _core.match_captures(files, payload_bytes=match_bytes, every_packet=every_packet)
    return MatchedCaptures(tuple(files), _frame(found["segments"]), _frame(found["packets"]), tuple(found["notes"]))


@contextlib.contextmanager
def _reading(paths: Sequence[Path]) -> Generator[None]:
    """Raise `BadFile` for what the core finds wrong with one of the files."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error.strerror or str(error)
        raise BadFile(f"{error.filename or paths[0]}: {why}", "name a capture that can be read") from error
    except ValueError as error:
        index, message = error.args if len(error.args) == 2 else (0, str(error))
        raise BadFile(f"{paths[index]}: {message}") from error


def _frame(columns: Mapping[str, tuple[str, Any]]) -> pl.DataFrame:
    series: list[pl.Series] = []
    for name, (kind, values) in columns.items():
        if kind == "s":
            series.append(pl.Series(name, values, dtype=pl.String))
            continue
        array = np.frombuffer(values, dtype="<i8" if kind == "i" else "<f8")
        one = pl.Series(name, array)
        if name in _FLAGS:
            one = one.cast(pl.Boolean)
        elif kind == "f":
            one = one.fill_nan(None)
        elif array.size and array.min() == _MISSING:
            one = one.set(one == _MISSING, None)
        series.append(one)
    return pl.DataFrame(series)
