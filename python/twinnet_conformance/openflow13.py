"""Messages of OpenFlow 1.3 as bytes, and the parts of replies that cases look at.

Builders take whatever they are given, so that wrong messages can be built too. Messages are without their transaction:
`Message` is put on the wire by `Channel.send`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from twinnet_conformance.fields import NUMBERS, conditions, oxm

__all__ = ["Message", "Received"]

VERSION = 4
NO_BUFFER = 0xFFFFFFFF

MAX_PORT, IN_PORT, TABLE, NORMAL, FLOOD = 0xFFFFFF00, 0xFFFFFFF8, 0xFFFFFFF9, 0xFFFFFFFA, 0xFFFFFFFB
ALL_PORTS, CONTROLLER, LOCAL, ANY = 0xFFFFFFFC, 0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF
ALL_TABLES = 0xFF
MAX_GROUP, ALL_GROUPS = 0xFFFFFF00, 0xFFFFFFFC
MAX_METER, ALL_METERS = 0xFFFF0000, 0xFFFFFFFF
ALL_QUEUES = 0xFFFFFFFF
WHOLE_FRAME = 0xFFFF

(
    HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, EXPERIMENTER, FEATURES_REQUEST, FEATURES_REPLY, GET_CONFIG_REQUEST,
    GET_CONFIG_REPLY, SET_CONFIG, PACKET_IN, FLOW_REMOVED, PORT_STATUS, PACKET_OUT, FLOW_MOD, GROUP_MOD, PORT_MOD,
    TABLE_MOD, MULTIPART_REQUEST, MULTIPART_REPLY, BARRIER_REQUEST, BARRIER_REPLY, QUEUE_CONFIG_REQUEST,
    QUEUE_CONFIG_REPLY, ROLE_REQUEST, ROLE_REPLY, GET_ASYNC_REQUEST, GET_ASYNC_REPLY, SET_ASYNC, METER_MOD,
) = range(30)  # fmt: skip

HELLO_FAILED, BAD_REQUEST, BAD_ACTION, BAD_INSTRUCTION, BAD_MATCH, FLOW_MOD_FAILED, GROUP_MOD_FAILED = range(7)
PORT_MOD_FAILED, TABLE_MOD_FAILED, QUEUE_OP_FAILED, SWITCH_CONFIG_FAILED, ROLE_REQUEST_FAILED = range(7, 12)
METER_MOD_FAILED, TABLE_FEATURES_FAILED = 12, 13

ADD, MODIFY, MODIFY_STRICT, DELETE, DELETE_STRICT = range(5)
SEND_FLOW_REM, CHECK_OVERLAP, RESET_COUNTS, NO_PKT_COUNTS, NO_BYT_COUNTS = 1, 2, 4, 8, 16
GROUP_ALL, GROUP_SELECT, GROUP_INDIRECT, GROUP_FAST_FAILOVER = range(4)
KBPS, PKTPS, BURST, METER_STATS = 1, 2, 4, 8
EQUAL, MASTER, SLAVE = 1, 2, 3

(
    MP_DESCRIPTION, MP_FLOW, MP_AGGREGATE, MP_TABLE, MP_PORT_STATS, MP_QUEUE, MP_GROUP, MP_GROUP_DESCRIPTION,
    MP_GROUP_FEATURES, MP_METER, MP_METER_CONFIG, MP_METER_FEATURES, MP_TABLE_FEATURES, MP_PORT_DESCRIPTION,
) = range(14)  # fmt: skip


class Message(NamedTuple):
    """A message without its transaction."""

    kind: int
    body: bytes = b""
    version: int = VERSION


class Received(NamedTuple):
    """A message that came from the switch."""

    version: int
    kind: int
    xid: int
    body: bytes


class Refusal(NamedTuple):
    """Type and code of an error message."""

    kind: int
    code: int


Conditions = Mapping[str, int | tuple[int, int]]


def padded(data: bytes) -> bytes:
    """Return `data` with zeros up to a multiple of eight bytes."""
    return data + bytes(-len(data) % 8)


def ofp_match(tlvs: bytes) -> bytes:
    """Return ``ofp_match`` with these TLVs."""
    return padded(struct.pack("!HH", 1, 4 + len(tlvs)) + tlvs)


def match(values: Conditions) -> bytes:
    """Return ``ofp_match`` with these conditions, in their order."""
    return ofp_match(conditions(values))


# Actions


def action(kind: int, rest: bytes = b"") -> bytes:
    """Return an action of `kind`, with zeros up to a multiple of eight bytes."""
    whole = padded(struct.pack("!HH", kind, 0) + rest)
    return whole[:2] + len(whole).to_bytes(2) + whole[4:]


def output(port: int, max_len: int = WHOLE_FRAME) -> bytes:
    """``OFPAT_OUTPUT``."""
    return action(0, struct.pack("!IH6x", port, max_len))


def copy_ttl_out() -> bytes:
    """``OFPAT_COPY_TTL_OUT``."""
    return action(11)


def copy_ttl_in() -> bytes:
    """``OFPAT_COPY_TTL_IN``."""
    return action(12)


def set_mpls_ttl(ttl: int) -> bytes:
    """``OFPAT_SET_MPLS_TTL``."""
    return action(15, bytes([ttl]))


def dec_mpls_ttl() -> bytes:
    """``OFPAT_DEC_MPLS_TTL``."""
    return action(16)


def push_vlan(ethertype: int) -> bytes:
    """``OFPAT_PUSH_VLAN``."""
    return action(17, ethertype.to_bytes(2))


def pop_vlan() -> bytes:
    """``OFPAT_POP_VLAN``."""
    return action(18)


def push_mpls(ethertype: int) -> bytes:
    """``OFPAT_PUSH_MPLS``."""
    return action(19, ethertype.to_bytes(2))


def pop_mpls(ethertype: int) -> bytes:
    """``OFPAT_POP_MPLS``."""
    return action(20, ethertype.to_bytes(2))


def set_queue(queue: int) -> bytes:
    """``OFPAT_SET_QUEUE``."""
    return action(21, queue.to_bytes(4))


def group(number: int) -> bytes:
    """``OFPAT_GROUP``."""
    return action(22, number.to_bytes(4))


def set_nw_ttl(ttl: int) -> bytes:
    """``OFPAT_SET_NW_TTL``."""
    return action(23, bytes([ttl]))


def dec_nw_ttl() -> bytes:
    """``OFPAT_DEC_NW_TTL``."""
    return action(24)


def set_field(name: str, value: int) -> bytes:
    """``OFPAT_SET_FIELD``."""
    return action(25, oxm(name, value))


def push_pbb(ethertype: int = 0x88E7) -> bytes:
    """``OFPAT_PUSH_PBB``."""
    return action(26, ethertype.to_bytes(2))


def pop_pbb() -> bytes:
    """``OFPAT_POP_PBB``."""
    return action(27)


# Instructions


def instruction(kind: int, rest: bytes = b"") -> bytes:
    """Return an instruction of `kind`."""
    return struct.pack("!HH", kind, 4 + len(rest)) + rest


def goto_table(table: int) -> bytes:
    """``OFPIT_GOTO_TABLE``."""
    return instruction(1, struct.pack("!B3x", table))


def write_metadata(value: int, mask: int = (1 << 64) - 1) -> bytes:
    """``OFPIT_WRITE_METADATA``."""
    return instruction(2, struct.pack("!4xQQ", value, mask))


def write_actions(*actions: bytes) -> bytes:
    """``OFPIT_WRITE_ACTIONS``."""
    return instruction(3, bytes(4) + b"".join(actions))


def apply_actions(*actions: bytes) -> bytes:
    """``OFPIT_APPLY_ACTIONS``."""
    return instruction(4, bytes(4) + b"".join(actions))


def clear_actions() -> bytes:
    """``OFPIT_CLEAR_ACTIONS``."""
    return instruction(5, bytes(4))


def use_meter(number: int) -> bytes:
    """``OFPIT_METER``."""
    return instruction(6, number.to_bytes(4))


# Messages


def flow_mod(
    conditions: Conditions | bytes = {},  # noqa: B006 - never changed
    *instructions: bytes,
    command: int = ADD,
    table: int = 0,
    priority: int = 100,
    cookie: int = 0,
    cookie_mask: int = 0,
    idle: int = 0,
    hard: int = 0,
    buffer: int = NO_BUFFER,
    out_port: int = ANY,
    out_group: int = ANY,
    flags: int = 0,
) -> Message:
    """``OFPT_FLOW_MOD``; `conditions` may be TLVs as they are."""
    matching = ofp_match(conditions) if isinstance(conditions, bytes) else match(conditions)
    head = struct.pack(
        "!QQBBHHHIIIH2x",
        cookie,
        cookie_mask,
        table,
        command,
        idle,
        hard,
        priority,
        buffer,
        out_port,
        out_group,
        flags,
    )
    return Message(FLOW_MOD, head + matching + b"".join(instructions))


def bucket(*actions: bytes, weight: int = 0, watch_port: int = ANY, watch_group: int = ANY) -> bytes:
    """``ofp_bucket``."""
    body = struct.pack("!HII4x", weight, watch_port, watch_group) + b"".join(actions)
    return (2 + len(body)).to_bytes(2) + body


def group_mod(number: int, kind: int = GROUP_ALL, *buckets: bytes, command: int = 0) -> Message:
    """``OFPT_GROUP_MOD``: add (0), modify (1) or delete (2)."""
    return Message(GROUP_MOD, struct.pack("!HBxI", command, kind, number) + b"".join(buckets))


def drop_band(rate: int, burst: int = 0) -> bytes:
    """``ofp_meter_band_drop``."""
    return struct.pack("!HHII4x", 1, 16, rate, burst)


def remark_band(rate: int, burst: int = 0, steps: int = 1) -> bytes:
    """``ofp_meter_band_dscp_remark``."""
    return struct.pack("!HHIIB3x", 2, 16, rate, burst, steps)


def meter_mod(number: int, flags: int = KBPS, *bands: bytes, command: int = 0) -> Message:
    """``OFPT_METER_MOD``: add (0), modify (1) or delete (2)."""
    return Message(METER_MOD, struct.pack("!HHI", command, flags, number) + b"".join(bands))


def packet_out(data: bytes, *actions: bytes, in_port: int = CONTROLLER, buffer: int = NO_BUFFER) -> Message:
    """``OFPT_PACKET_OUT``."""
    whole = b"".join(actions)
    return Message(PACKET_OUT, struct.pack("!IIH6x", buffer, in_port, len(whole)) + whole + data)


def port_mod(port: int, address: bytes, config: int, mask: int, advertise: int = 0) -> Message:
    """``OFPT_PORT_MOD``."""
    return Message(PORT_MOD, struct.pack("!I4x6s2xIII4x", port, address, config, mask, advertise))


def table_mod(table: int, config: int) -> Message:
    """``OFPT_TABLE_MOD``."""
    return Message(TABLE_MOD, struct.pack("!B3xI", table, config))


def set_config(flags: int, miss_send_len: int) -> Message:
    """``OFPT_SET_CONFIG``."""
    return Message(SET_CONFIG, struct.pack("!HH", flags, miss_send_len))


def role_request(role: int, generation: int = 0) -> Message:
    """``OFPT_ROLE_REQUEST``."""
    return Message(ROLE_REQUEST, struct.pack("!I4xQ", role, generation))


def set_async(packet_in: Sequence[int], port_status: Sequence[int], flow_removed: Sequence[int]) -> Message:
    """``OFPT_SET_ASYNC``: each a mask as master or equal, and one as slave."""
    return Message(SET_ASYNC, struct.pack("!6I", *packet_in, *port_status, *flow_removed))


def multipart(kind: int, body: bytes = b"", flags: int = 0) -> Message:
    """``OFPT_MULTIPART_REQUEST``."""
    return Message(MULTIPART_REQUEST, struct.pack("!HH4x", kind, flags) + body)


def flow_request(
    kind: int = MP_FLOW,
    *,
    table: int = ALL_TABLES,
    out_port: int = ANY,
    out_group: int = ANY,
    cookie: int = 0,
    cookie_mask: int = 0,
    conditions: Conditions = {},  # noqa: B006 - never changed
) -> Message:
    """``OFPMP_FLOW`` or ``OFPMP_AGGREGATE``."""
    head = struct.pack("!B3xII4xQQ", table, out_port, out_group, cookie, cookie_mask)
    return multipart(kind, head + match(conditions))


# Replies


@dataclass(frozen=True)
class FlowStats:
    """One flow of a reply to ``OFPMP_FLOW``."""

    table: int
    seconds: int
    nanoseconds: int
    priority: int
    idle: int
    hard: int
    flags: int
    cookie: int
    packets: int
    bytes: int
    conditions: dict[str, tuple[int, int | None]]
    instructions: bytes


def read_match(data: bytes) -> tuple[dict[str, tuple[int, int | None]], int]:
    """Return the conditions of ``ofp_match``, by name, and the bytes that it takes."""
    length = int.from_bytes(data[2:4])
    found: dict[str, tuple[int, int | None]] = {}
    at = 4
    while at + 4 <= length:
        header = int.from_bytes(data[at : at + 4])
        size = header & 0xFF
        value = data[at + 4 : at + 4 + size]
        known = NUMBERS.get(header >> 9 & 0x7F) if header >> 16 == 0x8000 else None
        name = known.name if known is not None else f"{header:#x}"
        half = size // 2
        masked = header >> 8 & 1
        found[name] = (
            (int.from_bytes(value[:half]), int.from_bytes(value[half:])) if masked else (int.from_bytes(value), None)
        )
        at += 4 + size
    return found, (length + 7) // 8 * 8


def read_flow_stats(body: bytes) -> Iterator[FlowStats]:
    """Yield the flows of a reply's body."""
    at = 0
    while at < len(body):
        length, table, seconds, nanoseconds, priority, idle, hard, flags, cookie, packets, count = struct.unpack_from(
            "!HBxIIHHHH4xQQQ", body, at
        )
        found, taken = read_match(body[at + 48 :])
        rest = body[at + 48 + taken : at + length]
        yield FlowStats(table, seconds, nanoseconds, priority, idle, hard, flags, cookie, packets, count, found, rest)
        at += length


@dataclass(frozen=True)
class PacketIn:
    """``OFPT_PACKET_IN``."""

    buffer: int
    total: int
    reason: int
    table: int
    cookie: int
    conditions: dict[str, tuple[int, int | None]]
    data: bytes = field(repr=False)


def read_packet_in(message: Received) -> PacketIn:
    """Read a packet-in."""
    buffer, total, reason, table, cookie = struct.unpack_from("!IHBBQ", message.body)
    found, taken = read_match(message.body[16:])
    return PacketIn(buffer, total, reason, table, cookie, found, message.body[16 + taken + 2 :])


@dataclass(frozen=True)
class FlowRemoved:
    """``OFPT_FLOW_REMOVED``."""

    cookie: int
    priority: int
    reason: int
    table: int
    seconds: int
    nanoseconds: int
    idle: int
    hard: int
    packets: int
    bytes: int
    conditions: dict[str, tuple[int, int | None]]


def read_flow_removed(message: Received) -> FlowRemoved:
    """Read a flow-removed."""
    found, _ = read_match(message.body[40:])
    return FlowRemoved(*struct.unpack_from("!QHBBIIHHQQ", message.body), found)


@dataclass(frozen=True)
class Port:
    """``ofp_port``."""

    number: int
    address: bytes
    name: str
    config: int
    state: int
    current: int
    advertised: int
    supported: int
    peer: int
    current_kbps: int
    maximum_kbps: int


PORT_BYTES = 64


def read_port(data: bytes) -> Port:
    """Read ``ofp_port``."""
    number, address, name, *rest = struct.unpack_from("!I4x6s2x16sIIIIIIII", data)
    return Port(number, address, name.split(b"\0")[0].decode(errors="replace"), *rest)


@dataclass(frozen=True)
class PortStats:
    """``ofp_port_stats``."""

    port: int
    rx_packets: int
    tx_packets: int
    rx_bytes: int
    tx_bytes: int
    rx_dropped: int
    tx_dropped: int
    rx_errors: int
    tx_errors: int
    rx_frame_err: int
    rx_over_err: int
    rx_crc_err: int
    collisions: int
    seconds: int
    nanoseconds: int


PORT_STATS = struct.Struct("!I4x12QII")


def read_refusal(message: Received) -> Refusal:
    """Read an error's type and code."""
    return Refusal(*struct.unpack_from("!HH", message.body))
