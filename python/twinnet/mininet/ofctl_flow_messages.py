"""Messages of OpenFlow that change flows and ask for them, from lines of flows; and flows as switches tell them.

Lines are read by the switches' own parser. A word of the message that it writes says what is to be done with the flow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from twinnet.control.framing import HEADER
from twinnet.mininet.ofctl_call import items, number
from twinnet.mininet.tool_connection import OPENFLOW_10, OPENFLOW_13, ToolConnection, codec_of
from twinnet.ovsdb.qos_rows import Refused

__all__ = [
    "USUAL_PRIORITY",
    "VERBS",
    "Entry",
    "entries",
    "flow_mod",
    "match_and_rest",
    "meets",
    "rows",
    "strict_deletion",
]

USUAL_PRIORITY = 32768
VERBS = {"add": 0, "modify": 1, "modify_strict": 2, "delete": 3, "delete_strict": 4}
"""The commands of a flow-mod, by the words that begin lines of a file."""
_FLOW_STATISTICS = 1
_FLOW_REMOVED = 11
_NO_BUFFER = 0xFFFF_FFFF
_ALL_TABLES = 255
_COMMAND = {OPENFLOW_10: 57, OPENFLOW_13: 25}
_PRIORITY = {OPENFLOW_10: 62, OPENFLOW_13: 30}
_MATCH = 48
"""Where flow-mods have their command, priority and match (OpenFlow 1.0.0, section 5.3.3; 1.3, section 7.3.4.1)."""
_KEPT_FLAGS = 0b11001
"""What a flow keeps of its flags: to tell when it is removed, and not to count."""


def flow_mod(version: int, verb: str, line: str) -> bytes:
    """Return the message of `version` that does `verb` with the flow `line`; raises :class:`Refused`."""
    priority = None
    if verb.startswith("delete"):
        _check_selection(line, ("priority",) if verb == "delete_strict" else ())
    if verb == "delete_strict":
        # The parser's deletions are by match alone.
        priority, line = _without(line, "priority", str(USUAL_PRIORITY))
    try:
        message = codec_of(version).flow(verb.partition("_")[0], line, False, _NO_BUFFER, 1)
    except (ValueError, NotImplementedError) as refused:
        raise Refused(f"{line}: {refused}") from None
    if not message:
        raise Refused(f"{line}: OpenFlow 1.0 selects no flows by cookies, and the switch speaks no other version")
    changed = bytearray(message)
    changed[_COMMAND[version]] = VERBS[verb]
    if priority is not None:
        struct.pack_into("!H", changed, _PRIORITY[version], number(priority, "priority", 0xFFFF))
    return bytes(changed)


def _check_selection(line: str, allowed: Sequence[str]) -> None:
    for name in ("actions", "action", "priority", "idle_timeout", "hard_timeout"):
        if name not in allowed and any(one.startswith(f"{name}=") for one in items(line)):
            raise Refused(f"{name} selects no flows: write a match, table=N, cookie=VALUE/MASK or out_port=N")


def _without(line: str, name: str, usual: str) -> tuple[str, str]:
    """The value of `name` in a line, and the line without it."""
    words = items(line)
    value = next((one.partition("=")[2] for one in words if one.startswith(f"{name}=")), usual)
    return value, ",".join(one for one in words if not one.startswith(f"{name}="))


def rows(connection: ToolConnection, match: str) -> list[dict[str, Any]]:
    """Ask for the flows that `match` selects and return what the switch tells of each."""
    if connection.version == OPENFLOW_13:
        return _told(connection, _question(flow_mod(OPENFLOW_13, "delete", match)))
    # A flow-mod of 1.0 names no table, but the question does (1.0.0, section 5.3.5).
    table, match = _without(match, "table", str(_ALL_TABLES))
    message = flow_mod(OPENFLOW_10, "delete", match)
    question = message[8:48] + bytes([number(table, "table", _ALL_TABLES), 0]) + message[68:70]
    return _told(connection, question)


def _told(connection: ToolConnection, question: bytes) -> list[dict[str, Any]]:
    codec = codec_of(connection.version)
    messages = list(connection.parts(_FLOW_STATISTICS, question))
    return [row for message in messages for row in codec.decode(message)[2]["rows"]]


def _question(message: bytes) -> bytes:
    """The question of 1.3 for the flows that a flow-mod selects (section 7.3.5.2)."""
    table, ports_and_groups, cookie = message[24:25], message[36:44], message[8:24]
    return table + bytes(3) + ports_and_groups + bytes(4) + cookie + match_and_rest(message)[0]


def match_and_rest(message: bytes) -> tuple[bytes, bytes]:
    """Return the match of a flow-mod of 1.3 or of a flow's statistics with its padding, and the instructions."""
    length = struct.unpack_from("!H", message, _MATCH + 2)[0]
    end = _MATCH + -(-length // 8) * 8
    return message[_MATCH:end], message[end:]


def meets(connection: ToolConnection, message: bytes) -> bool:
    """Return whether a flow-mod of 1.3 that modifies would meet a flow."""
    found = _told(connection, _question(message))
    if message[_COMMAND[OPENFLOW_13]] != VERBS["modify_strict"]:
        return bool(found)
    place = struct.unpack_from("!H", message, _PRIORITY[OPENFLOW_13])[0], _match_text(match_and_rest(message)[0])
    return any((row["priority"], row["match"]) == place for row in found)


def _match_text(match: bytes) -> str:
    """A match of 1.3 as text: as the message that a flow with it is gone, which can be read."""
    body = bytes(40) + match
    head = HEADER.pack(OPENFLOW_13, _FLOW_REMOVED, HEADER.size + len(body), 1)
    return codec_of(OPENFLOW_13).decode(head + body)[2]["match"]


@dataclass(frozen=True)
class _Layout:
    """Where a message of 1.3 has the parts of a flow before its match."""

    table: int
    priority: int
    timeouts: int
    flags: int
    cookie: int


_FLOW_MOD = _Layout(24, 30, 26, 44, 8)
_STATISTICS = _Layout(2, 12, 14, 18, 24)
"""Sections 7.3.4.1 and 7.3.5.2."""


@dataclass(frozen=True)
class Entry:
    """A flow as it is on the wire of 1.3: `place` is table, priority and match, which make it the one that it is;
    `value` is what else it says."""

    place: tuple[int, int, bytes]
    value: tuple[bytes, int, bytes, bytes]

    @classmethod
    def of_line(cls, line: str) -> Entry:
        """Return the flow that `line` adds."""
        return cls._read(flow_mod(OPENFLOW_13, "add", line), _FLOW_MOD)

    @classmethod
    def of_statistics(cls, told: bytes) -> Entry:
        """Return the flow that a switch tells."""
        return cls._read(told, _STATISTICS)

    @classmethod
    def _read(cls, message: bytes, at: _Layout) -> Entry:
        match, instructions = match_and_rest(message)
        priority, flags = (struct.unpack_from("!H", message, place)[0] for place in (at.priority, at.flags))
        timeouts, cookie = message[at.timeouts : at.timeouts + 4], message[at.cookie : at.cookie + 8]
        return cls((message[at.table], priority, match), (timeouts, flags & _KEPT_FLAGS, cookie, instructions))


def entries(connection: ToolConnection) -> Iterator[Entry]:
    """Yield all flows of a switch that speaks 1.3."""
    told = connection.statistics(_FLOW_STATISTICS, _question(flow_mod(OPENFLOW_13, "delete", "")))
    while told:
        length = struct.unpack_from("!H", told)[0]
        yield Entry.of_statistics(told[:length])
        told = told[length:]


def strict_deletion(entry: Entry) -> bytes:
    """Return the message that deletes `entry`."""
    table, priority, match = entry.place
    message = bytearray(flow_mod(OPENFLOW_13, "delete", "")[:_MATCH] + match)
    message[_FLOW_MOD.table], message[_COMMAND[OPENFLOW_13]] = table, VERBS["delete_strict"]
    struct.pack_into("!H", message, _FLOW_MOD.priority, priority)
    struct.pack_into("!H", message, 2, len(message))
    return bytes(message)
