"""Captures that the page starts: bounded in size, time and number, analysed by twinnet's own analysis.

Their files have no names, so that none is left however the server ends. A capture whose server was killed stops at its
limit, and ends with the lab.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_interface
from typing import IO, TYPE_CHECKING, Any

from twinnet.errors import BadValue, LabError

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.lab.parts import Capture

__all__ = ["LIMIT", "LONGEST_S", "MOST_CAPTURES", "Captures"]

LIMIT = "20 MB"
LONGEST_S = 300.0
MOST_CAPTURES = 8
_FOLLOWED = {"TCP": "tcp", "UDP": "udp", "ICMP": "icmp", "ICMPv6": "icmp"}
"""The packets that can be followed, as packet lists and :meth:`twinnet.Lab.follow` call them."""
_LISTED = 500
"""Packets that are shown one by one."""


@dataclass
class _One:
    """A capture and its file."""

    port: str
    capture: Capture
    file: IO[bytes]
    ends: threading.Timer
    began_s: float = field(default_factory=time.monotonic)
    tables: dict[str, Any] | None = None


class Captures:
    """The captures of the page of `lab`. Any thread may use it."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._lock = threading.Lock()
        self._all: dict[int, _One] = {}
        self._next = 1

    def start(self, port: str) -> int:
        """Capture at `port` until it is stopped, for five minutes at most, and return the number of the capture.

        Raises
        ------
        BadValue
            There are as many captures as may be, or `port` is captured already.
        """
        with self._lock:
            if len(self._all) >= MOST_CAPTURES:
                raise BadValue(f"this page has {MOST_CAPTURES} captures", "discard one")
            if any(one.port == port and not one.capture.stopped for one in self._all.values()):
                raise BadValue(f"{port} is captured already", "stop that capture first")
            with contextlib.ExitStack() as until_started:
                file = until_started.enter_context(tempfile.TemporaryFile())
                capture = self._lab.capture(port, file, limit=LIMIT)
                until_started.pop_all()
            number, self._next = self._next, self._next + 1
            ends = threading.Timer(LONGEST_S, self._end, (number,))
            ends.daemon = True
            ends.start()
            self._all[number] = _One(port, capture, file, ends)
            return number

    def stop(self, number: int) -> str:
        """Stop a capture, and return its port."""
        one = self._one(number)
        one.ends.cancel()
        one.capture.stop()
        return one.port

    def discard(self, number: int) -> str:
        """Stop a capture, forget what it holds, and return its port."""
        port = self.stop(number)
        with self._lock:
            self._all.pop(number).file.close()
        return port

    def close(self) -> None:
        """Stop all captures and forget what they hold."""
        for number in list(self._all):
            with contextlib.suppress(LabError, TimeoutError):
                self.stop(number)
            self._all.pop(number).file.close()

    def rows(self) -> list[dict[str, Any]]:
        """Return the captures: ``capture`` (number), ``port``, ``bytes``, ``seconds`` since it began, ``running``, and
        of a stopped one ``frames``, ``dropped`` and ``failure``."""
        return [
            {
                "capture": number,
                "port": one.port,
                "bytes": os.fstat(one.file.fileno()).st_size,
                "seconds": round(time.monotonic() - one.began_s),
                "running": not one.capture.stopped,
                "frames": one.capture.frames,
                "dropped": one.capture.dropped,
                "failure": one.capture.failure,
            }
            for number, one in list(self._all.items())
        ]

    def content(self, number: int) -> tuple[str, bytes]:
        """Return the port of a stopped capture and its pcapng."""
        one = self._stopped(number)
        descriptor = one.file.fileno()
        return one.port, os.pread(descriptor, os.fstat(descriptor).st_size, 0)

    def tables(self, number: int) -> dict[str, Any]:
        """Return what ``twinnet analyze --packets`` shows of a stopped capture: ``port``, ``notes``, and ``tables``
        with ``title``, ``columns``, ``rows`` and ``more``, the number of rows that are left out. Of packets there is
        ``follow``, too: for each what is asked for to follow one like it (``/follow``), or ``None``."""
        one = self._stopped(number)
        with self._lock:
            if one.tables is None:
                one.tables = _analysed(one, host_addresses(self._lab.layout.nodes))
            return one.tables

    def _end(self, number: int) -> None:
        with contextlib.suppress(BadValue, LabError, TimeoutError):
            self.stop(number)

    def _one(self, number: int) -> _One:
        if number not in self._all:
            raise BadValue(f"there is no capture {number}", "start one")
        return self._all[number]

    def _stopped(self, number: int) -> _One:
        one = self._one(number)
        if not one.capture.stopped:
            raise BadValue(f"the capture at {one.port} runs", "stop it first")
        return one


def host_addresses(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the host that has each address, of `nodes` by name in the form of the lab protocol."""
    return {
        str(ip_interface(address).ip): name
        for name, node in nodes.items()
        if node["kind"] == "host"
        for port in node["ports"]
        for address in port.get("addresses") or ()
    }


def followed_like(packet: Mapping[str, Any], hosts: Mapping[str, str]) -> dict[str, str | int] | None:
    """Return what is asked for to follow a packet like a row of a packet list; ``None`` where none can be: it is none
    of TCP, UDP or ICMP, or no host of the lab has sent it."""
    protocol = _FOLLOWED.get(packet["protocol"])
    if protocol is None or packet["source"] not in hosts:
        return None
    ports = {"port": packet["destination_port"], "source_port": packet["source_port"]}
    asked = {"from": hosts[packet["source"]], "to": packet["destination"], "protocol": protocol}
    return asked | {name: number for name, number in ports.items() if number is not None}


def _analysed(one: _One, hosts: Mapping[str, str]) -> dict[str, Any]:
    # What they import takes a second, which only those wait for who ask.
    from twinnet.report.capture_tables import SHOWN, capture_parts
    from twinnet.report.frame_rows import shown_rows
    from twinnet.report.packet_list import PACKET_COLUMNS
    from twinnet.results.captures import analyze_capture

    found = analyze_capture(f"/proc/self/fd/{one.file.fileno()}", list_packets=_LISTED)
    parts = [(*part, SHOWN, part[1].height) for part in capture_parts(found)]
    parts.append(("Packets", found.packet_list, PACKET_COLUMNS, _LISTED, int(found.capture["packets"][0])))
    tables = [
        {
            "title": title,
            "columns": list(columns),
            "rows": [[str(cell) for cell in row] for row in shown_rows(frame, columns, most)],
            "more": max(0, whole - most),
        }
        | ({"follow": [followed_like(row, hosts) for row in frame.to_dicts()]} if frame is found.packet_list else {})
        for title, frame, columns, most, whole in parts
        if not frame.is_empty()
    ]
    return {"port": one.port, "notes": list(found.notes), "tables": tables}
