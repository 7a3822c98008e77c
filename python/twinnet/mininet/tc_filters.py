"""Filters of ``tc``: the words that all kinds have, how they are shown, and the rules that they become.

All become comparisons of words of the network header, as :class:`twinnet.qos.Classify` does them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from twinnet.mininet.tc_flower import ETHER_ALL, Flower, read_flower, read_match_all
from twinnet.mininet.tc_pretty import pretty_key
from twinnet.mininet.tc_u32 import U32, Key, hash_id, read_u32
from twinnet.mininet.tc_words import LineRefused, class_id, kernel_refuses, matching, number, taken

__all__ = ["KINDS", "Filter", "FilterWords", "protocol_name", "read_filter"]

KINDS = ("u32", "flower", "matchall")
_KINDS_OF_TC = ("basic", "bpf", "cgroup", "flow", "fw", "route", "rsvp", "rsvp6", "tcindex")
_PROTOCOLS = (
    {"loop": 0x60, "pup": 0x200, "pupat": 0x201, "ip": 0x800, "x25": 0x805, "arp": 0x806, "bpq": 0x8FF}
    | {"ieeepup": 0xA00, "ieeepupat": 0xA01, "dec": 0x6000, "dna_dl": 0x6001, "dna_rc": 0x6002, "dna_rt": 0x6003}
    | {"lat": 0x6004, "diag": 0x6005, "cust": 0x6006, "sca": 0x6007, "rarp": 0x8035, "atalk": 0x809B}
    | {"aarp": 0x80F3, "ipx": 0x8137, "ipv6": 0x86DD, "ppp_disc": 0x8863, "ppp_ses": 0x8864, "atmmpoa": 0x884C}
    | {"atmfate": 0x8884, "802_3": 1, "ax25": 2, "all": ETHER_ALL, "802_2": 4, "snap": 5, "ddcmp": 6, "wan_ppp": 7}
    | {"ppp_mp": 8, "localtalk": 9, "can": 0xC, "ppptalk": 0x10, "tr_802_2": 0x11, "mobitex": 0x15}
    | {"control": 0x16, "irda": 0x17, "econet": 0x18, "tipc": 0x88CA, "profinet": 0x8892, "aoe": 0x88A2}
    | {"ethercat": 0x88A4, "802.1Q": 0x8100, "802.1ad": 0x88A8, "mpls_uc": 0x8847, "mpls_mc": 0x8848, "teb": 0x6558}
    | {"LLDP": 0x88CC, "ipv4": 0x800}
)
_LEAST_ETHER_TYPE = 0x600
_TAGS = (0x8100, 0x88A8)
_MOST_WORDS = 16
"""Words of the header that one rule of the lab protocol compares."""


@dataclass(frozen=True)
class Filter:
    """A filter of a discipline.

    Parameters
    ----------
    parent
        The discipline that it belongs to, by its handle.
    protocol
        The EtherType, or 3 for all.
    priority
        Filters of lower numbers are tried first, those of one number in the order of their handles. Those of one number
        have one kind and one protocol.
    kind
        ``u32``, ``flower`` or ``matchall``.
    flowid
        The class that it chooses.
    keys
        What is compared.
    number
        The number of its handle.
    table
        The table of its priority, of a ``u32``.
    lines
        What is shown of it, of a ``flower`` and ``matchall``.
    skip_hardware
        Whether ``skip_hw`` is shown, of a ``u32``.
    """

    parent: str
    protocol: int
    priority: int
    kind: str
    flowid: str
    keys: tuple[Key, ...]
    number: int
    table: int = 0x800
    lines: tuple[str, ...] = ()
    skip_hardware: bool = False

    def rule(self, number: int) -> dict[str, Any]:
        """Return the rule of the lab protocol that gives what matches the queue number `number`."""
        ether_type = None if self.protocol == ETHER_ALL else self.protocol
        header = [{"at": key.at, "mask": key.mask, "value": key.value} for key in self.keys]
        return {"number": number, "ether_type": ether_type, "header": header}

    def shown(self, pretty: bool) -> str:
        """Return what ``tc filter show`` prints of it, behind what it prints of its priority; `pretty`: with ``-p``."""
        if self.kind != "u32":
            name = "classid" if self.kind == "flower" else "flowid"
            return f"handle 0x{self.number:x} {name} {self.flowid} \n{''.join(self.lines)}"
        flags = "skip_hw " if self.skip_hardware else ""
        head = f"fh {self.table:x}::{self.number:x} order {self.number} key ht {self.table:x} bkt 0 "
        line = f"{head}*flowid {self.flowid} {flags}not_in_hw "
        if pretty:
            return line + "".join(pretty_key(key, self.protocol) for key in self.keys) + "\n"
        return f"{line}\n" + "".join(key.shown() for key in self.keys)


@dataclass
class FilterWords:
    """What a line of ``tc filter`` says; the numbers are 0 and the texts are empty where it says nothing."""

    parent: str = ""
    protocol: int = 0
    priority: int = 0
    kind: str = ""
    handle: tuple[int, int] = (0, 0)
    options: U32 | Flower | None = None
    bare: bool = True
    handle_text: str = ""
    protocol_said: bool = False

    def check(self) -> None:
        """Refuse what ``tc`` and the kernel take and our filters do not have."""
        options = self.options
        if options is not None and options.refused:
            raise LineRefused(f"{self.kind} {options.refused}")
        if options is None or not options.flowid:
            raise LineRefused(f"{self.kind} without flowid is not there: our filters choose classes")
        if (self.protocol != ETHER_ALL and self.protocol < _LEAST_ETHER_TYPE) or self.protocol in _TAGS:
            name = protocol_name(self.protocol)
            raise LineRefused(
                f"filters of protocol {name} are not there: ours see what is behind Ethernet and VLAN tags"
            )
        if len(self.keys()) > _MOST_WORDS:
            raise LineRefused(f"{self.kind} with more than {_MOST_WORDS} words of the header is not there")

    def keys(self) -> tuple[Key, ...]:
        """Return the words of the header that are compared."""
        if isinstance(self.options, Flower):
            return tuple(key for keys in self.options.keys.values() for key in keys)
        return tuple(self.options.keys or ()) if self.options else ()


def protocol_name(protocol: int) -> str:
    """Return the protocol as ``tc`` shows it."""
    return next((name for name, value in _PROTOCOLS.items() if value == protocol), f"[{protocol}]")


def read_filter(words: list[str], action: str) -> FilterWords:
    """Return what the words after ``tc filter add dev NAME`` say, or those of another action; raises
    :class:`LineRefused` for what ``tc`` does not read."""
    said = FilterWords(protocol=ETHER_ALL if action in ("add", "replace") else 0)
    given = list(words)
    while given:
        word = given.pop(0)
        name = word if word in _EXACT else matching(word, _NAMES)
        if name is None and action == "show":
            raise LineRefused(f' What is "{word}"? Try "tc filter help"', 255)
        if name is None:
            said.kind = word
            break
        if name in _REFUSED:
            raise LineRefused(f"{_REFUSED[name]} are not there at the ends of our lines")
        name = "priority" if name == "preference" else name
        if name == "block":
            raise LineRefused('Error: "dev" and "block" are mutually exclusive', 255)
        _read_common(said, name, given, action)
    if action != "show":
        _read_kind(said, given)
    return said


def _read_common(said: FilterWords, name: str, given: list[str], action: str) -> None:
    if name == "root":
        if said.parent:
            raise LineRefused('Error: "root" is duplicate parent ID', 255)
        said.parent = "root"
        return
    text = taken(given)
    before = {"parent": said.parent, "handle": said.handle_text, "priority": said.priority}
    if before.get(name, name == "protocol" and said.protocol_said):
        raise LineRefused(f'Error: duplicate "{name}": "{text}" is the second value.', 255)
    try:
        if name == "parent":
            said.parent = class_id(text)
        elif name == "handle":
            said.handle_text = text
        elif name == "priority":
            said.priority = number(text, most=2**32 - 1 if action == "show" else 0xFFFF)
        elif name == "protocol":
            said.protocol, said.protocol_said = _protocol(text), True
        elif number(text):
            raise LineRefused(f"chain {text} is not there: our filters have chain 0")
    except ValueError:
        what = _WRONG[name]
        if action == "show" and name in ("parent", "priority"):
            what = "invalid parent ID" if name == "parent" else "invalid preference"
        raise LineRefused(f'Error: argument "{text}" is wrong: {what}', 255) from None


def _protocol(text: str) -> int:
    named = next((value for name, value in _PROTOCOLS.items() if name.lower() == text.lower()), None)
    return number(text, most=0xFFFF) if named is None else named


def _read_kind(said: FilterWords, given: Sequence[str]) -> None:
    """Read the handle and the words of the kind."""
    kind, handle, words = said.kind, said.handle_text, list(given)
    said.bare = not words
    if not kind:
        if handle:
            raise LineRefused('Must specify filter type when using "handle"', 255)
        return
    if kind in _KINDS_OF_TC:
        marks = " (marks of iptables do not reach our lines)" if kind == "fw" else ""
        raise LineRefused(f"filters of the kind {kind} are not there; our lines have {', '.join(KINDS)}{marks}")
    if kind not in KINDS:
        if words:
            said_of = f'Unknown filter "{kind}", hence option "{words[0]}" is unparsable'
            raise LineRefused(f"{said_of}\nOur lines have {', '.join(KINDS)}.", 1)
        raise kernel_refuses("Error: TC classifier not found.")
    try:
        if kind == "u32" and handle:
            table, _, node = hash_id(handle)
            said.handle = (table, node)
        elif kind == "flower" and handle:
            said.handle = (0, number(handle))
        elif digits := re.match(r"0x[0-9a-f]+|[1-9][0-9]*|0[0-7]+", handle, re.IGNORECASE):
            # As strtol, which stops where the number does.
            said.handle = (0, number(digits[0]))
    except ValueError:
        raise LineRefused("Illegal filter ID" if kind == "u32" else 'Illegal "handle"', 1) from None
    if kind == "u32":
        options = read_u32(words)
        table, node = said.handle
        if options.order and node not in (0, options.order):
            raise LineRefused('"order" contradicts "handle"', 1)
        said.options, said.handle = options, (table, node or options.order)
    else:
        said.options = (read_flower if kind == "flower" else read_match_all)(words, said.protocol)


_EXACT = ("root", "ingress", "egress", "parent", "handle")
_NAMES = ("block", "priority", "preference", "protocol", "chain", "estimator")
_REFUSED = {"ingress": "ingress and egress", "egress": "ingress and egress", "estimator": "estimators"}
_WRONG = {
    "parent": "Invalid parent ID",
    "priority": "invalid priority value",
    "protocol": "invalid protocol",
    "chain": "invalid chain index value",
}
