"""OpenFlow in a capture: messages by type, requests with their answers, and how long these took.

Messages are told apart by the eight bytes of their header, which all versions share (OpenFlow 1.3.5, 7.1). An answer
has the transaction of its request. A packet-in has none: its answer is the first packet-out or flow-mod that names its
buffer, or the first packet-out with its frame.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from twinnet.control.framing import HEADER, HEADER_BYTES, Framing, NotOpenFlow
from twinnet.results.capture_frames import End, Segment, segments

__all__ = ["OpenflowCapture", "analyze_openflow"]

_PORTS = (6633, 6653)
_COMMON = (
    "hello",
    "error",
    "echo_request",
    "echo_reply",
    "experimenter",
    "features_request",
    "features_reply",
    "get_config_request",
    "get_config_reply",
    "set_config",
    "packet_in",
    "flow_removed",
    "port_status",
    "packet_out",
    "flow_mod",
)
_VERSION_10 = (
    *_COMMON,
    "port_mod",
    "stats_request",
    "stats_reply",
    "barrier_request",
    "barrier_reply",
    "queue_get_config_request",
    "queue_get_config_reply",
)
_LATER = (
    *_COMMON,
    "group_mod",
    "port_mod",
    "table_mod",
    "multipart_request",
    "multipart_reply",
    "barrier_request",
    "barrier_reply",
    "queue_get_config_request",
    "queue_get_config_reply",
    "role_request",
    "role_reply",
    "get_async_request",
    "get_async_reply",
    "set_async",
    "meter_mod",
)
_VERSIONS = {1: "1.0", 2: "1.1", 3: "1.2", 4: "1.3", 5: "1.4", 6: "1.5"}
_OF_CONTROLLERS = frozenset({"features_request", "set_config", "packet_out", "flow_mod"})
_NO_BUFFER = 0xFFFFFFFF
_MOST_WAITING = 256
"""Segments that wait for one before them; then the capture has lost it."""
_MESSAGES = {
    "connection": pl.String,
    "version": pl.String,
    "sender": pl.String,
    "type": pl.String,
    "messages": pl.Int64,
    "bytes": pl.Int64,
    "first_s": pl.Float64,
    "last_s": pl.Float64,
}
_ROUND_TRIPS = {
    "connection": pl.String,
    "request": pl.String,
    "answer": pl.String,
    "asked": pl.Int64,
    "answered": pl.Int64,
    "mean_ms": pl.Float64,
    "median_ms": pl.Float64,
    "p99_ms": pl.Float64,
    "max_ms": pl.Float64,
}


@dataclass(frozen=True)
class OpenflowCapture:
    """What switches and controllers said in a capture.

    Attributes
    ----------
    messages
        A row for each connection (`controller - switch`), version, sender (`controller` or `switch`) and type: the
        messages and their bytes, and the time of the first and the last in seconds from the capture's first segment of
        TCP.
    round_trips
        A row for each connection, type of request and type of answer: how many were asked and answered, and the time
        from the last byte of a request to that of the first part of its answer, in milliseconds.
    notes
        What must be known to judge the numbers.
    """

    messages: pl.DataFrame
    round_trips: pl.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Message:
    time_ns: int
    source: End
    version: int
    kind: str
    xid: int
    content: bytes


class _Direction:
    """The bytes that one end sent, put in order and cut into messages."""

    def __init__(self) -> None:
        self.expected: int | None = None
        self.waiting: dict[int, Segment] = {}
        self.framing = Framing()
        self.lost = 0

    def take(self, segment: Segment) -> Iterator[tuple[int, bytes]]:
        """Add a segment; yield each message that is whole now, with the moment at which it was."""
        if segment.starts:
            self.waiting.clear()
            self.framing = Framing()
            self.expected = (segment.sequence + 1) & 0xFFFFFFFF
        if not segment.payload:
            return
        if self.expected is None:
            # The capture began later than the connection: at a segment that begins as a message does.
            if not _begins(segment.payload):
                return
            self.expected = segment.sequence
        self.waiting.setdefault(segment.sequence, segment)
        if len(self.waiting) > _MOST_WAITING:
            self.lost += 1
            self.framing = Framing()
            self.expected = min(self.waiting, key=lambda one: (one - (self.expected or 0)) & 0xFFFFFFFF)
        for message in self._in_order():
            yield segment.time_ns, message

    def _in_order(self) -> Iterator[bytes]:
        while self.expected is not None:
            here = self.expected
            one = next((start for start in self.waiting if (here - start) & 0xFFFFFFFF < 1 << 31), None)
            if one is None:
                return
            fresh = self.waiting.pop(one).payload[(here - one) & 0xFFFFFFFF :]
            self.expected = (here + len(fresh)) & 0xFFFFFFFF
            try:
                yield from self.framing.push(fresh)
            except NotOpenFlow:
                self.lost += 1
                self.framing, self.expected = Framing(), None
                self.waiting.clear()


@dataclass
class _Connection:
    """Both directions between two ends, and what they said."""

    directions: dict[End, _Direction] = field(default_factory=dict[End, _Direction])
    messages: list[_Message] = field(default_factory=list[_Message])
    is_openflow: bool | None = None


def analyze_openflow(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> OpenflowCapture:
    """Read the OpenFlow in a capture: on the ports 6633 and 6653, and of connections that begin with a Hello.

    Parameters
    ----------
    path
        The file; or several that follow each other in time, to be read as one.

    Raises
    ------
    BadFile
        A file cannot be read, or is no capture.
    """
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    connections: dict[frozenset[End], _Connection] = {}
    start_ns: int | None = None
    for segment in (one for each in paths for one in segments(Path(each))):
        start_ns = segment.time_ns if start_ns is None else start_ns
        found = connections.setdefault(frozenset((segment.source, segment.destination)), _Connection())
        if found.is_openflow is None and segment.payload:
            known = segment.source[1] in _PORTS or segment.destination[1] in _PORTS
            found.is_openflow = known or (_begins(segment.payload) and segment.payload[1] == 0)
        if found.is_openflow is False:
            continue
        direction = found.directions.setdefault(segment.source, _Direction())
        for time_ns, message in direction.take(segment):
            version, kind, _, xid = (int(one) for one in HEADER.unpack_from(message))
            if version not in _VERSIONS:
                found.is_openflow = False  # Such as TLS.
                break
            names = _VERSION_10 if version == 1 else _LATER
            word = names[kind] if kind < len(names) else f"type {kind}"
            found.messages.append(_Message(time_ns, segment.source, version, word, xid, message))
    spoken = [(ends, one) for ends, one in connections.items() if one.messages]
    counted: list[Mapping[str, object]] = []
    timed: list[Mapping[str, object]] = []
    for ends, one in spoken:
        controller = _controller(one.messages)
        name = " - ".join(_text(end) for end in sorted(ends, key=lambda end: end != controller))
        counted += _counted(name, controller, one.messages, start_ns or 0)
        timed += _timed(name, one.messages)
    lost = sum(direction.lost for _, one in spoken for direction in one.directions.values())
    notes = [] if spoken else ["there is no OpenFlow in it"]
    notes += [f"OpenFlow was cut {lost} times by segments that the capture lost"] if lost else []
    return OpenflowCapture(pl.DataFrame(counted, _MESSAGES), pl.DataFrame(timed, _ROUND_TRIPS), tuple(notes))


def _begins(payload: bytes) -> bool:
    """True if a message of OpenFlow may begin so."""
    if len(payload) < HEADER_BYTES:
        return False
    version, kind, length, _ = HEADER.unpack_from(payload)
    return version in _VERSIONS and kind < 36 and length >= HEADER_BYTES and (kind != 0 or length <= 64)


def _controller(messages: Sequence[_Message]) -> End:
    """The end that says what only controllers say, or else the one with a known port."""
    sure = [one.source for one in messages if one.kind in _OF_CONTROLLERS]
    return sure[0] if sure else min((one.source for one in messages), key=lambda end: end[1])


def _text(end: End) -> str:
    return f"[{end[0]}]:{end[1]}" if ":" in end[0] else f"{end[0]}:{end[1]}"


def _counted(name: str, controller: End, messages: Sequence[_Message], start_ns: int) -> Iterator[Mapping[str, object]]:
    groups: dict[tuple[str, str, str], list[_Message]] = {}
    for one in messages:
        sender = "controller" if one.source == controller else "switch"
        version = _VERSIONS.get(one.version, str(one.version))
        groups.setdefault((version, sender, one.kind), []).append(one)
    for (version, sender, kind), group in groups.items():
        first, last = ((one.time_ns - start_ns) / 1e9 for one in (group[0], group[-1]))
        yield {"connection": name, "version": version, "sender": sender, "type": kind, "messages": len(group)} | {
            "bytes": sum(len(one.content) for one in group), "first_s": first, "last_s": last
        }  # fmt: skip


def _timed(name: str, messages: Sequence[_Message]) -> Iterator[Mapping[str, object]]:
    asked: dict[str, int] = {}
    took: dict[tuple[str, str], list[int]] = {}
    open_requests: dict[tuple[End, int], _Message] = {}
    packet_ins: list[_Message] = []
    ends = {one.source for one in messages}
    for one in messages:
        if one.kind.endswith("_request"):
            asked[one.kind] = asked.get(one.kind, 0) + 1
            open_requests[one.source, one.xid] = one
        elif one.kind.endswith("_reply") or one.kind == "error":
            others = (open_requests.pop((end, one.xid), None) for end in ends if end != one.source)
            request = next(others, None)
            if request is not None:
                took.setdefault((request.kind, one.kind), []).append(one.time_ns - request.time_ns)
        elif one.kind == "packet_in":
            asked[one.kind] = asked.get(one.kind, 0) + 1
            packet_ins = [*packet_ins[1 - _MOST_WAITING :], one]
        elif one.kind in ("packet_out", "flow_mod"):
            cause = next((two for two in packet_ins if _answers(one, two)), None)
            if cause is not None:
                packet_ins.remove(cause)
                took.setdefault(("packet_in", one.kind), []).append(one.time_ns - cause.time_ns)
    for request, number in asked.items():
        answers = {answer: times for (kind, answer), times in took.items() if kind == request}
        for answer, times in (answers or {"": []}).items():
            ms = np.array(times, dtype=np.float64) / 1e6
            found = (ms.mean(), np.median(ms), np.quantile(ms, 0.99), ms.max()) if ms.size else ()
            values = [float(one) for one in found] or [None] * 4
            yield {
                "connection": name,
                "request": request,
                "answer": answer,
                "asked": number,
                "answered": ms.size,
            } | dict(zip(("mean_ms", "median_ms", "p99_ms", "max_ms"), values, strict=True))


def _answers(answer: _Message, packet_in: _Message) -> bool:
    """True if a packet-out or a flow-mod is about the frame of `packet_in`."""
    try:
        (buffer,) = struct.unpack_from("!I", packet_in.content, HEADER_BYTES)
        is_old = answer.version == 1
        place = HEADER_BYTES if answer.kind == "packet_out" else 64 if is_old else 32
        if buffer != _NO_BUFFER:
            return struct.unpack_from("!I", answer.content, place)[0] == buffer
        if answer.kind == "flow_mod":
            return False
        (length,) = struct.unpack_from("!H", answer.content, 14 if is_old else 16)
        sent = answer.content[(16 if is_old else 24) + length :]
    except struct.error:
        return False
    return bool(sent) and packet_in.content.endswith(sent)
