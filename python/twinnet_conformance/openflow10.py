"""Messages of OpenFlow 1.0 as bytes, and the parts of replies that cases look at."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from twinnet_conformance.openflow13 import Message, Received

__all__ = ["FlowStats", "flow_match", "flow_mod"]

VERSION = 1
NO_BUFFER = 0xFFFFFFFF
MAX_PORT = 0xFF00
IN_PORT, TABLE, NORMAL, FLOOD, ALL_PORTS, CONTROLLER, LOCAL, NONE = range(0xFFF8, 0x10000)

FEATURES_REQUEST, FEATURES_REPLY, GET_CONFIG_REQUEST, GET_CONFIG_REPLY, SET_CONFIG = 5, 6, 7, 8, 9
PACKET_IN, FLOW_REMOVED, PORT_STATUS, PACKET_OUT, FLOW_MOD, PORT_MOD, STATS_REQUEST, STATS_REPLY = range(10, 18)
QUEUE_CONFIG_REQUEST, QUEUE_CONFIG_REPLY = 20, 21
VENDOR = 4

HELLO_FAILED, BAD_REQUEST, BAD_ACTION, FLOW_MOD_FAILED, PORT_MOD_FAILED, QUEUE_OP_FAILED = range(6)
ADD, MODIFY, MODIFY_STRICT, DELETE, DELETE_STRICT = range(5)
SEND_FLOW_REM, CHECK_OVERLAP, EMERGENCY = 1, 2, 4

WILDCARDS = {
    "in_port": 1,
    "dl_vlan": 2,
    "dl_src": 4,
    "dl_dst": 8,
    "dl_type": 16,
    "nw_proto": 32,
    "tp_src": 64,
    "tp_dst": 128,
    "dl_vlan_pcp": 1 << 20,
    "nw_tos": 1 << 21,
}
"""Bits that say that a field is not looked at; those of addresses count the bits that are not."""
ALL_WILDCARDS = 0x3FFFFF
NO_VLAN = 0xFFFF


def flow_match(**fields: int | tuple[int, int]) -> bytes:
    """Return ``ofp_match``; ``nw_src`` and ``nw_dst`` may be an address and the length of its prefix."""
    wildcards = ALL_WILDCARDS
    values: dict[str, int] = {}
    for name, value in fields.items():
        number, prefix = value if isinstance(value, tuple) else (value, 32)
        values[name] = number
        if name in ("nw_src", "nw_dst"):
            shift = 8 if name == "nw_src" else 14
            wildcards = wildcards & ~(0x3F << shift) | (32 - prefix) << shift
        else:
            wildcards &= ~WILDCARDS[name]
    return struct.pack(
        "!IH6s6sHBxHBB2xIIHH",
        wildcards,
        values.get("in_port", 0),
        values.get("dl_src", 0).to_bytes(6),
        values.get("dl_dst", 0).to_bytes(6),
        values.get("dl_vlan", 0),
        values.get("dl_vlan_pcp", 0),
        values.get("dl_type", 0),
        values.get("nw_tos", 0),
        values.get("nw_proto", 0),
        values.get("nw_src", 0),
        values.get("nw_dst", 0),
        values.get("tp_src", 0),
        values.get("tp_dst", 0),
    )


def canonical(match: bytes) -> bytes:
    """Return `match` with 32 for every number of address bits that stands for "all of them"."""
    wildcards = int.from_bytes(match[:4])
    for shift in (8, 14):
        bits = min(wildcards >> shift & 0x3F, 32)
        wildcards = wildcards & ~(0x3F << shift) | bits << shift
    return wildcards.to_bytes(4) + match[4:]


def action(kind: int, rest: bytes) -> bytes:
    """Return an action of `kind`."""
    return struct.pack("!HH", kind, 4 + len(rest)) + rest


def output(port: int, max_len: int = 0xFFFF) -> bytes:
    """``OFPAT_OUTPUT``."""
    return action(0, struct.pack("!HH", port, max_len))


def set_vlan_vid(vid: int) -> bytes:
    """``OFPAT_SET_VLAN_VID``."""
    return action(1, struct.pack("!H2x", vid))


def set_vlan_pcp(pcp: int) -> bytes:
    """``OFPAT_SET_VLAN_PCP``."""
    return action(2, struct.pack("!B3x", pcp))


def strip_vlan() -> bytes:
    """``OFPAT_STRIP_VLAN``."""
    return action(3, bytes(4))


def set_dl(kind: int, address: int) -> bytes:
    """``OFPAT_SET_DL_SRC`` (4) or ``OFPAT_SET_DL_DST`` (5)."""
    return action(kind, address.to_bytes(6) + bytes(6))


def set_nw(kind: int, address: int) -> bytes:
    """``OFPAT_SET_NW_SRC`` (6) or ``OFPAT_SET_NW_DST`` (7)."""
    return action(kind, address.to_bytes(4))


def set_tos(tos: int) -> bytes:
    """``OFPAT_SET_NW_TOS``."""
    return action(8, struct.pack("!B3x", tos))


def set_tp(kind: int, port: int) -> bytes:
    """``OFPAT_SET_TP_SRC`` (9) or ``OFPAT_SET_TP_DST`` (10)."""
    return action(kind, struct.pack("!H2x", port))


def enqueue(port: int, queue: int) -> bytes:
    """``OFPAT_ENQUEUE``."""
    return action(11, struct.pack("!H6xI", port, queue))


def flow_mod(
    match: bytes,
    *actions: bytes,
    command: int = ADD,
    priority: int = 100,
    cookie: int = 0,
    idle: int = 0,
    hard: int = 0,
    buffer: int = NO_BUFFER,
    out_port: int = 0xFFFF,
    flags: int = 0,
) -> Message:
    """``OFPT_FLOW_MOD``."""
    rest = struct.pack("!QHHHHIHH", cookie, command, idle, hard, priority, buffer, out_port, flags)
    return Message(FLOW_MOD, match + rest + b"".join(actions), VERSION)


def packet_out(data: bytes, *actions: bytes, in_port: int = 0xFFFF, buffer: int = NO_BUFFER) -> Message:
    """``OFPT_PACKET_OUT``."""
    whole = b"".join(actions)
    return Message(PACKET_OUT, struct.pack("!IHH", buffer, in_port, len(whole)) + whole + data, VERSION)


def port_mod(port: int, address: bytes, config: int, mask: int) -> Message:
    """``OFPT_PORT_MOD``."""
    return Message(PORT_MOD, struct.pack("!H6sIII4x", port, address, config, mask, 0), VERSION)


def stats(kind: int, body: bytes = b"") -> Message:
    """``OFPT_STATS_REQUEST``."""
    return Message(STATS_REQUEST, struct.pack("!HH", kind, 0) + body, VERSION)


def flow_request(kind: int = 1, match: bytes | None = None, table: int = 0xFF, out_port: int = 0xFFFF) -> Message:
    """``OFPST_FLOW`` (1) or ``OFPST_AGGREGATE`` (2)."""
    return stats(kind, (flow_match() if match is None else match) + struct.pack("!BxH", table, out_port))


@dataclass(frozen=True)
class FlowStats:
    """One flow of a reply to ``OFPST_FLOW``."""

    table: int
    match: bytes
    seconds: int
    nanoseconds: int
    priority: int
    idle: int
    hard: int
    cookie: int
    packets: int
    bytes: int
    actions: bytes


def read_flow_stats(body: bytes) -> Iterator[FlowStats]:
    """Yield the flows of a reply's body."""
    at = 0
    while at < len(body):
        length = int.from_bytes(body[at : at + 2])
        rest = struct.unpack_from("!Bx40sIIHHH6xQQQ", body, at + 2)
        yield FlowStats(*rest, actions=body[at + 88 : at + length])
        at += length


@dataclass(frozen=True)
class PacketIn:
    """``OFPT_PACKET_IN``."""

    buffer: int
    total: int
    in_port: int
    reason: int
    data: bytes


def read_packet_in(message: Received) -> PacketIn:
    """Read a packet-in."""
    return PacketIn(*struct.unpack_from("!IHHBx", message.body), message.body[10:])


@dataclass(frozen=True)
class FlowRemoved:
    """``OFPT_FLOW_REMOVED``."""

    match: bytes
    cookie: int
    priority: int
    reason: int
    seconds: int
    nanoseconds: int
    idle: int
    packets: int
    bytes: int


def read_flow_removed(message: Received) -> FlowRemoved:
    """Read a flow-removed."""
    return FlowRemoved(*struct.unpack_from("!40sQHBxIIH2xQQ", message.body))


@dataclass(frozen=True)
class Port:
    """``ofp_phy_port``."""

    number: int
    address: bytes
    name: bytes
    config: int
    state: int


def read_ports(features: bytes) -> dict[int, Port]:
    """Return the ports of a features reply."""
    ports = [Port(*struct.unpack_from("!H6s16sII", features, at)) for at in range(24, len(features), 48)]
    return {port.number: port for port in ports}
