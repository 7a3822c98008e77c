"""Filters of ``tc``: how they are written, and the rules of the lab protocol that they become.

``u32`` compares words of the network header, as :class:`twinnet.qos.Classify` does. ``flower`` and ``matchall`` become
the same.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from twinnet.mininet.tc_words import LineRefused, after

__all__ = ["Filter", "read_filter"]

_ETHER_TYPES = {"ip": 0x0800, "ipv4": 0x0800, "ipv6": 0x86DD, "arp": 0x0806, "all": None}
_PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "icmp6": 58, "sctp": 132}
_SPELLINGS = {
    "parent": "parent",
    "handle": "handle",
    "protocol": "protocol",
    "proto": "protocol",
    **dict.fromkeys(("prio", "pref", "preference", "priority"), "prio"),
}
_PRIORITY_STEP, _FIRST_PRIORITY = 1, 49152
"""A filter without a priority goes before all that are there (``tcf_auto_prio`` in Linux ``net/sched/cls_api.c``)."""


@dataclass(frozen=True)
class Filter:
    """A filter of a discipline.

    Parameters
    ----------
    parent
        The discipline or class that it belongs to.
    protocol
        ``ip``, ``ipv6``, ``arp`` or ``all``.
    priority
        Filters of lower numbers are tried first, those of one number in the order of their making.
    kind
        ``u32``, ``flower`` or ``matchall``.
    flowid
        The class that it chooses.
    header
        Words of the network header, as in the lab protocol.
    number
        The number of its handle.
    """

    parent: str
    protocol: str
    priority: int
    kind: str
    flowid: str
    header: tuple[dict[str, int], ...] = field(default=())
    number: int = 0x800

    def rule(self, number: int) -> dict[str, Any]:
        """Return the rule of the lab protocol that gives what matches the queue number `number`."""
        return {"number": number, "ether_type": _ETHER_TYPES[self.protocol], "header": list(self.header)}

    def shown(self) -> str:
        """Return what ``tc filter show`` prints of it."""
        parent = self.parent.removesuffix("0") if self.parent.endswith(":0") else self.parent
        head = f"filter parent {parent} protocol {self.protocol} pref {self.priority} {self.kind} chain 0 "
        if self.kind != "u32":
            return f"{head}\n{head}handle 0x{self.number - 0x7FF:x} classid {self.flowid} \n"
        text = f"{head}\n{head}fh 800: ht divisor 1 \n"
        text += f"{head}fh 800::{self.number:x} order {self.number} key ht 800 bkt 0 *flowid {self.flowid} not_in_hw \n"
        for one in self.header or ({"at": 0, "mask": 0, "value": 0},):
            text += f"  match {one['value']:08x}/{one['mask']:08x} at {one['at']}\n"
        return text


def read_filter(words: list[str], there: list[Filter]) -> Filter:
    """Return the filter that the words after ``tc filter add dev NAME`` describe; `there` are those of the interface.

    Raises
    ------
    LineRefused
        What our filters do not have, or what is missing.
    """
    given = list(words)
    settings = {"parent": "", "protocol": "all", "prio": ""}
    while given and (given[0] in _SPELLINGS or given[0] == "root"):
        word = given.pop(0)
        if word != "root" and given:
            settings[_SPELLINGS[word]] = given.pop(0)
    kind = given.pop(0) if given else ""
    protocol = settings["protocol"].lower()
    if protocol not in _ETHER_TYPES:
        raise LineRefused(f"filters of protocol {protocol} are not there; our lines have {', '.join(_ETHER_TYPES)}")
    if kind not in ("u32", "flower", "matchall"):
        what = f'Unknown filter "{kind}"' if kind else "give the kind of filter"
        marks = " (marks of iptables do not reach our lines)" if kind == "fw" else ""
        raise LineRefused(f"{what}; our lines have u32, flower and matchall{marks}")
    if any(word in ("action", "police") for word in given):
        raise LineRefused("actions of filters are not there; our filters choose classes (flowid)")
    flowid = after(given, "flowid", "classid")
    if flowid is None:
        raise LineRefused("a filter needs flowid")
    header = _u32(given) if kind == "u32" else _flower(given, protocol) if kind == "flower" else []
    lowest = min((one.priority for one in there), default=_FIRST_PRIORITY + _PRIORITY_STEP)
    priority = int(settings["prio"], 0) if settings["prio"] else lowest - _PRIORITY_STEP
    number = max((one.number for one in there if one.priority == priority), default=0x7FF) + 1
    return Filter(settings["parent"], protocol, priority, kind, flowid, tuple(header), number)


def _u32(words: list[str]) -> list[dict[str, int]]:
    """The words of the header that the selectors of ``u32`` compare."""
    found: list[dict[str, int]] = []
    given = list(words)
    while given:
        word = given.pop(0)
        if word == "match":
            found.append(_selector(given))
        elif word in ("flowid", "classid"):
            given.pop(0)
        else:
            raise LineRefused(f"u32 {word} is not there; our filters have match and flowid")
    if not found:
        raise LineRefused('u32 needs "match"; match u32 0 0 takes all')
    return found


def _selector(given: list[str]) -> dict[str, int]:
    """Read one selector, and take its words out of `given`."""
    kind = given.pop(0)
    if kind in ("u32", "u16", "u8"):
        bits = int(kind[1:])
        value, mask = int(given.pop(0), 0), int(given.pop(0), 0)
        place = given.pop(1) if given[:1] == ["at"] else "0"
        if given[:1] == ["at"]:
            given.pop(0)
        if not place.isdigit() and not place.lower().startswith("0x"):
            raise LineRefused(f"u32 at {place} is not there; give the distance from the begin of the IP header")
        return _word(int(place, 0), bits, value, mask)
    if kind not in ("ip", "ip6"):
        raise LineRefused(f"u32 match {kind} is not there; our filters have ip, ip6, u32, u16 and u8")
    name = given.pop(0)
    if name in ("src", "dst"):
        return _address(given, kind, name)
    fields = _FIELDS[kind]
    if name not in fields:
        raise LineRefused(f'Illegal "match": {kind} {name}; our filters have src, dst, {", ".join(fields)}')
    at, bits = fields[name]
    text = given.pop(0)
    value = _PROTOCOLS.get(text) if name == "protocol" else None
    return _word(at, bits, int(text, 0) if value is None else value, int(given.pop(0), 0))


_FIELDS = {
    "ip": {"tos": (1, 8), "dsfield": (1, 8), "protocol": (9, 8), "sport": (20, 16), "dport": (22, 16)},
    "ip6": {"protocol": (6, 8), "sport": (40, 16), "dport": (42, 16)},
}


def _address(given: list[str], kind: str, name: str) -> dict[str, int]:
    text = given.pop(0)
    try:
        if kind == "ip6":
            raise LineRefused("u32 match ip6 src and dst are not there; use flower with src_ip and dst_ip")
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        raise LineRefused(f'Illegal "match": {text} is no address of IPv4') from None
    mask = int(network.netmask)
    return {"at": 12 if name == "src" else 16, "mask": mask, "value": int(network.network_address)}


def _word(at: int, bits: int, value: int, mask: int) -> dict[str, int]:
    """The word of 32 bits that has the value of `bits` bits at the byte `at`."""
    most = (1 << bits) - 1
    if not (0 <= value <= most and 0 <= mask <= most):
        raise LineRefused(f'Illegal "match": {value:#x} {mask:#x} is more than {bits} bits')
    if at % 4 * 8 + bits > 32:
        raise LineRefused(f'Illegal "match": {bits} bits at {at} lie across two words; give a multiple of {bits // 8}')
    shift = 32 - bits - at % 4 * 8
    if at - at % 4 > 252:
        raise LineRefused(f"u32 at {at} is not there; our filters see the first 256 bytes")
    return {"at": at - at % 4, "mask": mask << shift, "value": (value & mask) << shift}


def _flower(words: list[str], protocol: str) -> list[dict[str, int]]:
    """The words of the header that the keys of ``flower`` compare."""
    found: list[dict[str, int]] = []
    if protocol not in ("ip", "ipv4", "ipv6"):
        raise LineRefused("flower needs protocol ip or ipv6")
    six = protocol == "ipv6"
    ports = 40 if six else 20
    keys: dict[str, Callable[[str], list[dict[str, int]]]] = {
        "ip_proto": lambda text: [_word(6 if six else 9, 8, _PROTOCOLS.get(text) or int(text, 0), 0xFF)],
        "src_port": lambda text: [_word(ports, 16, int(text, 0), 0xFFFF)],
        "dst_port": lambda text: [_word(ports + 2, 16, int(text, 0), 0xFFFF)],
        "src_ip": lambda text: _words_of_address(text, 8 if six else 12),
        "dst_ip": lambda text: _words_of_address(text, 24 if six else 16),
    }
    given = [word for word in words if word not in ("skip_hw", "skip_sw")]
    while given:
        word = given.pop(0)
        text = given.pop(0) if given else ""
        if word in ("flowid", "classid"):
            continue
        if word not in keys:
            raise LineRefused(f"flower {word} is not there; our filters have {', '.join(keys)}")
        found += keys[word](text)
    return found


def _words_of_address(text: str, at: int) -> list[dict[str, int]]:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise LineRefused(f"flower: {text} is no address") from None
    mask, value = network.netmask.packed, network.network_address.packed
    words = [
        {
            "at": at + place,
            "mask": int.from_bytes(mask[place : place + 4]),
            "value": int.from_bytes(value[place : place + 4]),
        }
        for place in range(0, len(mask), 4)
    ]
    return [word for word in words if word["mask"]]
