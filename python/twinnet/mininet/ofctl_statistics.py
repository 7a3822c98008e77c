"""What our own ``ovs-ofctl`` asks of a switch as a whole: tables, queues, description, fragments; and whether it
answers."""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from twinnet.control.framing import ECHO_REQUEST
from twinnet.mininet.ofctl_call import FRAGMENTS, Call, Command, duration, number
from twinnet.mininet.tool_connection import OPENFLOW_10, SwitchRefused
from twinnet.ovsdb.qos_rows import Refused

__all__ = ["STATISTICS_COMMANDS"]

_DESCRIPTION, _TABLES, _QUEUES = 0, 3, 5
_GET_CONFIG, _SET_CONFIG = 7, 9
_TITLES = {
    "Manufacturer": 256,
    "Hardware": 256,
    "Software": 256,
    "Serial Num": 32,
    "DP Description": 256,
}
"""Of the description, with their lengths (OpenFlow 1.3, section 7.3.5.1)."""
_MATCHES_OF_10 = "in_port eth_{src,dst,type} vlan_{vid,pcp} ip_{src,dst} nw_{proto,tos} tcp_{src,dst}"
_ALL_PORTS_10, _ANY_PORT_13, _ALL_QUEUES = 0xFFFC, 0xFFFF_FFFF, 0xFFFF_FFFF
_RATE_PROPERTIES = {1: "min_rate", 2: "max_rate"}
_WHOLE_RATE = 1000
_PINGS, _MOST_BYTES = 10, 65_527


def _describe(call: Call) -> str:
    with call.said_connection() as connection:
        told = connection.statistics(_DESCRIPTION)
    said = f"{call.head('DESC')}\n"
    for title, length in _TITLES.items():
        text, told = told[:length].partition(b"\0")[0], told[length:]
        said += f"{title}: {text.decode(errors='replace')}\n"
    return said


def _tables(call: Call) -> str:
    with call.said_connection() as connection:
        told = connection.statistics(_TABLES)
    head = f"{call.head('TABLE')}\n"
    return head + (_tables_of_10(told) if call.version == OPENFLOW_10 else _tables_of_13(told))


def _tables_of_13(told: bytes) -> str:
    return "\n".join(_blocks(struct.iter_unpack("!B3xIQQ", told), lambda counts, _: _counts(counts)))


def _tables_of_10(told: bytes) -> str:
    def described(row: tuple[Any, ...], first: bool) -> str:
        most, *counts = row
        features = f"max_entries={most}\n    matching:\n      exact match or wildcard: {_MATCHES_OF_10}"
        return f"{_counts(counts)}    {features if first else '(same features)'}\n"

    rows = ((table, *told) for table, _, _, *told in struct.iter_unpack("!B3x32sIIIQQ", told))
    return "\n".join(_blocks(rows, described))


def _counts(counts: Sequence[int]) -> str:
    return f"    active={counts[0]}, lookup={counts[1]}, matched={counts[2]}\n"


def _blocks(rows: Iterable[tuple[Any, ...]], described: Callable[[tuple[Any, ...], bool], str]) -> list[str]:
    """The texts of tables, `rows` of a number and what is told of it; those with the same as the one before them are
    told together."""
    blocks: list[str] = []
    for told, group in itertools.groupby(rows, key=lambda row: row[1:]):
        first, *others = (row[0] for row in group)
        blocks.append(f"  table {first}:\n{described(told, not blocks)}")
        if others:
            names = f"tables {others[0]}...{others[-1]}" if len(others) > 1 else f"table {others[0]}"
            blocks.append(f"  {names}: ditto\n")
    return blocks


def _queues(call: Call) -> str:
    port, queue = ("ALL" if text.upper() == "ALL" else text for text in [*call.words, "ALL", "ALL"][:2])
    if port != "ALL":
        port = str(call.asked_port(port))
    wanted = _ALL_QUEUES if queue == "ALL" else number(queue, "a queue")
    if call.version == OPENFLOW_10:
        asked = struct.pack("!H2xI", _ALL_PORTS_10 if port == "ALL" else number(port, "a port", 0xFFFF), wanted)
    else:
        asked = struct.pack("!II", _ANY_PORT_13 if port == "ALL" else number(port, "a port"), wanted)
    with call.said_connection() as connection:
        try:
            rows = list(_queue_rows(call, connection.statistics(_QUEUES, asked)))
        except SwitchRefused as refused:
            return call.error(refused.code, "QUEUE", f"port={port} queue={queue}")
    return f"{call.head('QUEUE')} {len(rows)} queues\n" + "".join(rows)


def _queue_rows(call: Call, told: bytes) -> Iterator[str]:
    form = struct.Struct("!H2xIQQQ" if call.version == OPENFLOW_10 else "!IIQQQII")
    for port, queue, size, frames, errors, *lived in form.iter_unpack(told):
        since = duration(*lived) if lived else "?"
        counts = f"bytes={size}, pkts={frames}, errors={errors}, duration={since}"
        yield f"  port {call.port(port)} queue {queue}: {counts}\n"


def _fragments(call: Call) -> str:
    with call.said_connection() as connection:
        flags, _ = struct.unpack("!HH", connection.ask(_GET_CONFIG))
    return f"{FRAGMENTS[flags & 3]}\n"


def _set_fragments(call: Call) -> str:
    if call.words[0] not in FRAGMENTS:
        raise Refused(f"there is no way {call.words[0]} to handle fragments; there are {', '.join(FRAGMENTS)}")
    with call.said_connection() as connection:
        _, length = struct.unpack("!HH", connection.ask(_GET_CONFIG))
        connection.say(_SET_CONFIG, struct.pack("!HH", FRAGMENTS.index(call.words[0]), length))
        connection.finish()
    return ""


def _ping(call: Call) -> str:
    size = number(call.words[0], "the payload in bytes", _MOST_BYTES) if call.words else 64
    said = ""
    with call.said_connection() as connection:
        for place in range(_PINGS):
            before = time.monotonic()
            connection.ask(ECHO_REQUEST, bytes(size))
            took = (time.monotonic() - before) * 1000
            said += f"{size} bytes from {call.plan.name}: xid={place + 2:08x} time={took:.1f} ms\n"
    return said


def _probe(call: Call) -> str:
    with call.said_connection() as connection:
        connection.ask(ECHO_REQUEST)
    return ""


def _queue_configurations(call: Call) -> str:
    words = [one.upper() for one in call.words]
    is_10 = call.version == OPENFLOW_10
    if not words or words[0] == "ANY":
        # Version 1.0 has no word for all ports: they are asked one by one.
        asked = sorted(call.plan.ports) if is_10 else [_ANY_PORT_13]
    else:
        asked = [call.asked_port(call.words[0])]
    said = ""
    with call.said_connection() as connection:
        for port in asked:
            shown = "ANY" if port == _ANY_PORT_13 else call.port(port)
            try:
                told = connection.ask(*_queue_question(is_10, port))
            except SwitchRefused as refused:
                question = call.title("OFPT_QUEUE_GET_CONFIG_REQUEST")
                return f"{call.title('OFPT_ERROR')} {refused.code}\n{question} port={shown}\n"
            said += f"{call.title('OFPT_QUEUE_GET_CONFIG_REPLY')} port={shown}\n"
            rows = sorted(_configured(is_10, told[8:]))
            said += "".join(f"queue {queue}:{rates}\n" for queue, rates in rows)
    return said


def _queue_question(is_10: bool, port: int) -> tuple[int, bytes]:
    return (20, struct.pack("!H2x", port & 0xFFFF)) if is_10 else (22, struct.pack("!I4x", port))


def _configured(is_10: bool, told: bytes) -> Iterator[tuple[int, str]]:
    """The number of each queue, and its rates in tenths of per cent (OpenFlow 1.0.0, 5.2.2; 1.3, 7.2.2)."""
    form = struct.Struct("!IH2x" if is_10 else "!I4xH6x")
    while told:
        queue, length = form.unpack_from(told)
        rates, properties = "", told[form.size : length]
        while properties:
            kind, size, rate = struct.unpack_from("!HH4xH", properties)
            if kind in _RATE_PROPERTIES and rate <= _WHOLE_RATE:
                rates += f" {_RATE_PROPERTIES[kind]}:{rate // 10}.{rate % 10}%"
            properties = properties[size:]
        yield queue, rates
        told = told[length:]


STATISTICS_COMMANDS = {
    "dump-desc": Command(_describe, 1),
    "dump-tables": Command(_tables, 1),
    "queue-stats": Command(_queues, 3),
    "queue-get-config": Command(_queue_configurations, 3),
    "get-frags": Command(_fragments, 1),
    "set-frags": Command(_set_fragments, 2, 2),
    "ping": Command(_ping, 2),
    "probe": Command(_probe, 1),
}
