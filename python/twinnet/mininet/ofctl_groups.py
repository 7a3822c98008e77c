"""Groups in our own ``ovs-ofctl``: written as messages of OpenFlow 1.3, and told as the switch tells them."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from twinnet.mininet.ofctl_call import Call, Command, duration, items, number, of_file
from twinnet.mininet.ofctl_flow_messages import match_and_rest
from twinnet.mininet.tool_connection import OPENFLOW_10, OPENFLOW_13, codec_of
from twinnet.ovsdb.qos_rows import Refused

__all__ = ["GROUP_COMMANDS"]

_GROUP_MOD = 15
_ADD, _MODIFY, _DELETE = 0, 1, 2
_GROUP_STATISTICS, _GROUP_FEATURES = 6, 8
_KINDS = {"all": 0, "select": 1, "indirect": 2, "ff": 3, "fast_failover": 3}
_TITLES = ("all", "select", "indirect", "fast failover")
_MOST, _ALL, _NOTHING = 0xFFFF_FF00, 0xFFFF_FFFC, 0xFFFF_FFFF
_NO_BUFFER = 0xFFFF_FFFF
_ACTIONS_OF_PACKET_OUT, _APPLY_ACTIONS = 24, 4
_PROTOCOLS = ("ip", "ipv6", "tcp", "udp", "sctp", "icmp", "arp", "tcp6", "udp6", "sctp6", "icmp6", "mpls", "dl_vlan=1")
_BUCKET = struct.Struct("!HHII4x")
_COUNTERS = struct.Struct("!H2xII4xQQII")
"""OpenFlow 1.3, sections 7.3.4.2 and 7.3.5.6."""
_FEATURES = {
    "output": 0,
    "group": 22,
    "set_field": 25,
    "strip_vlan": 18,
    "push_vlan": 17,
    "mod_nw_ttl": 23,
    "dec_ttl": 24,
    "set_mpls_ttl": 15,
    "dec_mpls_ttl": 16,
    "push_mpls": 19,
    "pop_mpls": 20,
    "set_queue": 21,
}
"""Actions in the order in which ``dump-group-features`` names them, and their types in the specification."""


@dataclass(frozen=True)
class _Group:
    """A group as it is written."""

    number: int
    kind: int
    buckets: bytes

    @classmethod
    def of(cls, text: str) -> _Group:
        head, *buckets = re.split(r"(?:^|[,\s])\s*buckets?=", text.strip())
        given = _properties(head)
        for name in given:
            if name not in ("group_id", "type"):
                raise Refused(f"unknown keyword {name} (write group_id=N,type=KIND,bucket=...)")
        if "group_id" not in given:
            raise Refused("must specify a group_id")
        if given.get("type") not in _KINDS:
            said = f"invalid group type {given['type']}" if "type" in given else "must specify a type"
            raise Refused(f"{said} ({', '.join(_KINDS)})")
        kind = _KINDS[given["type"]]
        written = b"".join(_bucket(one, kind) for one in buckets)
        return cls(number(given["group_id"], "group_id", _MOST), kind, written)

    def message(self, command: int) -> bytes:
        return struct.pack("!HBxI", command, self.kind, self.number) + self.buckets


def _properties(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (one.partition("=") for one in items(text))}


def _bucket(text: str, kind: int) -> bytes:
    """A bucket on the wire: its actions stand after its other words, or among them."""
    is_select = kind == _KINDS["select"]
    said = {"weight": 1 if is_select else 0, "watch_port": _NOTHING, "watch_group": _NOTHING}
    actions: list[str] = []
    for item in items(text):
        found = re.fullmatch(r"(weight|watch_port|watch_group|bucket_id)[:=](.*)", item)
        if not found:
            actions.append(re.sub(r"^actions?=", "", item))
        elif found[1] != "bucket_id":
            # Version 1.3 numbers no buckets.
            said[found[1]] = number(found[2], found[1], 0xFFFF if found[1] == "weight" else _NOTHING)
        if found and found[1] == "weight" and not is_select:
            raise Refused("a weight is for buckets of a group of the type select")
    if not any(actions):
        raise Refused("a bucket needs actions, such as output:1 or drop")
    written = _actions(",".join(one for one in actions if one))
    return _BUCKET.pack(_BUCKET.size + len(written), *said.values()) + written


def _actions(text: str) -> bytes:
    """Actions on the wire, which the switches' parser writes: as those of a frame that is sent, or of a flow whose
    match has the headers that they change. Which frames come to a group, its buckets do not know."""
    if text == "drop":
        return b""
    codec = codec_of(OPENFLOW_13)
    try:
        return codec.packet_out(1, text, b"", _NO_BUFFER, 1)[_ACTIONS_OF_PACKET_OUT:]
    except ValueError as refused:
        for protocol in _PROTOCOLS:
            with suppress(ValueError):
                instruction = match_and_rest(codec.flow("add", f"{protocol},actions={text}", False, _NO_BUFFER, 1))[1]
                kind, length = struct.unpack_from("!HH", instruction)
                if (kind, length) == (_APPLY_ACTIONS, len(instruction)):
                    return instruction[8:]
        raise Refused(f"{text}: {refused}") from None


def _change(call: Call, command: int, lines: Sequence[str]) -> str:
    groups = [_Group.of(text) for text in lines]
    call.need_13("groups")
    with call.connection() as connection:
        known = {row["group"] for row in call.fabric.groups(call.plan.name)["groups"]}
        for group in groups:
            creates = "--may-create" in call.options and command == _MODIFY and group.number not in known
            connection.say(_GROUP_MOD, group.message(_ADD if creates else command))
        connection.finish()
    return ""


def _wanted(call: Call) -> int:
    """The group that the words select."""
    given = _properties(",".join(call.words))
    for name in given:
        if name != "group_id":
            raise Refused(f"{name} selects no groups: write group_id=N, or nothing for all")
    text = given.get("group_id", "all")
    return _ALL if text == "all" else number(text, "group_id", _MOST)


def _delete_groups(call: Call) -> str:
    wanted = _wanted(call)
    call.need_13("groups")
    with call.connection() as connection:
        connection.say(_GROUP_MOD, _Group(wanted, 0, b"").message(_DELETE))
        connection.finish()
    return ""


def _dump_groups(call: Call) -> str:
    call.need_13("groups")
    said = f"{call.head('GROUP_DESC', 2, 'NXST')}\n"
    rows = call.fabric.groups(call.plan.name)["groups"]
    # The question of version 1.3 names no group: its answer has all of them.
    if call.words and call.version == OPENFLOW_10:
        wanted = number(call.words[0].removeprefix("group_id="), "a group", _MOST)
        rows = [row for row in rows if row["group"] == wanted]
    for row in rows:
        kind = "ff" if row["kind"] == "fast_failover" else row["kind"]
        said += f" group_id={row['group']},type={kind}"
        for place, bucket in enumerate(row["buckets"]):
            words = [f"bucket_id:{place}"] if call.version == OPENFLOW_10 else []
            words += [f"weight:{bucket['weight']}"] if kind == "select" and bucket["weight"] != 1 else []
            words += [f"{name}:{bucket.get(name)}" for name in ("watch_port", "watch_group") if name in bucket]
            said += call.told(f",bucket={','.join([*words, 'actions=' + bucket['actions']])}")
        said += "\n"
    return said


def _group_statistics(call: Call) -> str:
    said = f"{call.head('GROUP', 6, 'NXST')}\n"
    call.need_13("groups")
    with call.connection() as connection:
        told = connection.statistics(_GROUP_STATISTICS, struct.pack("!I4x", _wanted(call)))
    while told:
        length, group, references, frames, size, seconds, nanoseconds = _COUNTERS.unpack_from(told)
        said += f" group_id={group},duration={duration(seconds, nanoseconds)},ref_count={references}"
        said += f",packet_count={frames},byte_count={size}"
        for place, (carried, bytes_carried) in enumerate(struct.iter_unpack("!QQ", told[_COUNTERS.size : length])):
            said += f",bucket{place}:packet_count={carried},byte_count={bytes_carried}"
        said, told = said + "\n", told[length:]
    return said


def _group_features(call: Call) -> str:
    said = f"{call.head('GROUP_FEATURES', 2, 'NXST')}\n Group table:\n"
    call.need_13("groups")
    with call.connection() as connection:
        told = connection.statistics(_GROUP_FEATURES)
    kinds, capabilities, *rest = struct.unpack_from("!10I", told)
    said += f"    Types:  {kinds:#x}\n    Capabilities:  {capabilities:#x}\n"
    for title, most, actions in zip(_TITLES, rest[:4], rest[4:], strict=True):
        names = " ".join(name for name, bit in _FEATURES.items() if actions >> bit & 1)
        said += f"    {title} group:\n       max_groups={most:#x}\n       actions: {names}\n"
    return said


GROUP_COMMANDS = {
    "add-group": Command(lambda call: _change(call, _ADD, call.words), 2, 2),
    "add-groups": of_file(lambda call, lines: _change(call, _ADD, lines)),
    "mod-group": Command(lambda call: _change(call, _MODIFY, call.words), 2, 2),
    "del-groups": Command(_delete_groups, 2),
    "dump-groups": Command(_dump_groups, 2),
    "dump-group-stats": Command(_group_statistics, 2),
    "dump-group-features": Command(_group_features, 1),
}
