"""The words of the filter ``u32`` of ``tc``: what they compare, in words of 32 bits of the network header.

As in the kernel, ``nexthdr+N`` is counted from the header that a ``link`` with an ``offset`` has found. Without one, as
here, that is the network header (Linux ``net/sched/cls_u32.c``, `u32_classify`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from twinnet.mininet.tc_words import LineRefused, class_id, matching, number, prefix, taken

__all__ = ["U32", "Key", "hash_id", "read_u32"]

_MOST_KEYS = 128
_LAST_WORD = 252
"""Our filters see the first 256 bytes."""


@dataclass
class Key:
    """A word of the header that is compared: where it begins in bytes, whether behind ``nexthdr+``, and its bits."""

    at: int
    next_header: bool
    mask: int
    value: int

    def shown(self) -> str:
        """Return what ``tc filter show`` prints of it."""
        return f"  match {self.value:08x}/{self.mask:08x} at {'nexthdr+' if self.next_header else ''}{self.at}\n"


@dataclass
class U32:
    """What the words of a ``u32`` say.

    Parameters
    ----------
    keys
        What is compared; ``None`` without any ``match``.
    flowid
        The class that is chosen.
    order
        The number of the filter within its table; 0: the next one.
    table
        The table that the filter is for; 0x800: that of its priority.
    link
        The table that it leads to.
    flags
        ``skip_hw`` and ``skip_sw``.
    refused
        What ``tc`` reads and our filters do not have: the first such word, and the reason.
    """

    keys: list[Key] | None = None
    flowid: str = ""
    order: int = 0
    table: int = 0x800
    link: bool = False
    flags: list[str] = field(default_factory=list[str])
    refused: str = ""

    def refuse(self, said: str) -> None:
        """Keep what our filters do not have."""
        self.refused = self.refused or said


def hash_id(text: str) -> tuple[int, int, int]:
    """Return table, bucket and number of the handle of a ``u32``, ``800::801``; raises `ValueError`."""
    if ":" not in text:
        if not text.startswith("0x"):
            raise ValueError(text)
        whole = number(text, 16)
        return whole >> 20, whole >> 12 & 0xFF, whole & 0xFFF
    parts = [number(part, 16) if part else 0 for part in text.split(":", 2)]
    table, bucket, node = (*parts, 0)[:3]
    if table > 0xFFF or bucket > 0xFF or node > 0xFFF:
        raise ValueError(text)
    return table, bucket, node


def read_u32(words: list[str]) -> U32:
    """Return what the words after ``u32`` say; raises :class:`LineRefused` for what ``tc`` does not read."""
    found = U32()
    given = list(words)
    while given:
        word = given.pop(0)
        name = word if word in _EXACT else matching(word, _NAMES)
        if name is None:
            raise LineRefused(f'What is "{word}"?', 1)
        if name in ("action", "police", "sample", "indev"):
            raise LineRefused(f"u32 {name} is not there: our filters compare the header and choose classes (flowid)")
        if name in ("skip_hw", "skip_sw"):
            found.flags.append(name)
            continue
        if not given:
            taken(given)
        try:
            _READERS[name](found, given)
        except ValueError:
            raise LineRefused(f'Illegal "{"classid" if name == "flowid" else name}"', 1) from None
    if len(set(found.flags)) > 1:
        raise LineRefused("skip_hw and skip_sw are mutually exclusive", 1)
    if "skip_sw" in found.flags:
        found.refuse("skip_sw is not there: no hardware does it instead")
    for key in found.keys or ():
        if not 0 <= key.at <= _LAST_WORD:
            found.refuse(f"at {key.at} is not there: our filters see the first 256 bytes of the network header")
    return found


def _flowid(found: U32, given: list[str]) -> None:
    found.flowid = class_id(given.pop(0))


def _order(found: U32, given: list[str]) -> None:
    found.order = number(given.pop(0))


def _divisor(found: U32, given: list[str]) -> None:
    divisor = number(given.pop(0), most=256)
    if divisor == 0 or divisor & divisor - 1:
        raise ValueError(divisor)
    found.refuse("divisor is not there: our filters have the one table of their priority")


def _link(found: U32, given: list[str]) -> None:
    if hash_id(given.pop(0))[2]:
        raise LineRefused('"link" must be a hash table.', 1)
    found.link = True


def _table(found: U32, given: list[str]) -> None:
    found.table = hash_id(given.pop(0))[0]


def _offset(found: U32, given: list[str]) -> None:
    while given and (name := matching(given[0], ("plus", "at", "mask", "shift", "eat"))):
        given.pop(0)
        if name == "eat":
            continue
        value = number(taken(given), 16, 0xFFFF) if name == "mask" else _signed(taken(given))
        if name == "at" and value % 2:
            raise LineRefused('offset "at" must be even\nIllegal "offset"', 1)
    found.refuse("offset is not there: it is for a link to another table")


def _hash_key(found: U32, given: list[str]) -> None:
    while given and (name := matching(given[0], ("mask", "at"))):
        given.pop(0)
        if name == "mask":
            number(taken(given), 16)
        elif _signed(taken(given)) % 4:
            raise ValueError(name)
    found.refuse("hashkey is not there: it is for a link to another table")


def _signed(text: str) -> int:
    return -number(text[1:], most=2**31) if text.startswith("-") else number(text, most=2**31 - 1)


def _match(found: U32, given: list[str]) -> None:
    found.keys = found.keys or []
    kind = matching(given.pop(0), ("u32", "u16", "u8", "ip", "ip6", "udp", "tcp", "icmp", "mark", "ether"))
    if kind is None:
        raise ValueError(kind)
    if not given:
        taken(given)
    if kind in ("u32", "u16", "u8"):
        _value(found.keys, given, int(kind[1:]), 0)
    elif len(given) < 2:
        raise ValueError(kind)
    elif kind == "mark":
        _mark(given)
        found.refuse("match mark is not there: marks of iptables do not reach our lines")
    elif kind == "ether":
        _ether(given)
        found.refuse("match ether is not there: our filters see the network header; write match ip")
    else:
        _field(found.keys, kind, given)


def _field(keys: list[Key], kind: str, given: list[str]) -> None:
    name = given.pop(0)
    if kind == "ip":
        name = next((full for full in ("dsfield", "precedence") if full.startswith(name)), name)
    if kind in ("ip", "ip6") and name in ("src", "dst"):
        _address(keys, kind == "ip6", name, given)
    elif kind == "ip" and name in _FRAGMENTS:
        value, mask = _FRAGMENTS[name]
        _pack(keys, value, mask, 4, False)
    elif (kind, name) == ("ip6", "priority"):
        value, mask = number(taken(given), most=0xFF), number(taken(given) if given else "", 16, 0xFF)
        _pack(keys, value << 20, mask << 20, 0, False)
    elif (kind, name) in _FIELDS:
        bits, at, next_header = _FIELDS[kind, name]
        _value(keys, given, bits, at, next_header)
    else:
        raise ValueError(name)


def _value(keys: list[Key], given: list[str], bits: int, at: int, next_header: bool = False) -> None:
    """Read value, mask (hexadecimal) and place."""
    if len(given) < 2:
        raise ValueError(given)
    most = (1 << bits) - 1
    value, mask = number(given.pop(0), most=most), number(given.pop(0), 16, most)
    at, next_header = _at(given, at, next_header)
    if bits == 32:
        _pack(keys, value, mask, at, next_header)
        return
    # As iproute2 has it, 16 bits that begin anywhere but at a word are its second half.
    shift = 24 - at % 4 * 8 if bits == 8 else 0 if at % 4 else 16
    _pack(keys, value << shift, mask << shift, at - at % 4, next_header)


def _at(given: list[str], at: int, next_header: bool) -> tuple[int, bool]:
    if given[:1] != ["at"]:
        return at, next_header
    given.pop(0)
    text = taken(given)
    ahead = "nexthdr+"
    if text.startswith(ahead) and text != ahead:
        return _signed(text.removeprefix(ahead)), True
    if ahead.startswith(text):
        return _signed(taken(given)), True
    return _signed(text), next_header


def _pack(keys: list[Key], value: int, mask: int, at: int, next_header: bool) -> None:
    """Add a word to `keys`, or its bits to those of the word that is there."""
    value &= mask
    for key in keys:
        if (key.at, key.next_header) == (at, next_header):
            if (key.value ^ value) & key.mask & mask:
                raise ValueError(value)
            key.value, key.mask = key.value | value, key.mask | mask
            return
    if at % 4 or len(keys) >= _MOST_KEYS:
        raise ValueError(at)
    keys.append(Key(at, next_header, mask, value))


def _address(keys: list[Key], six: bool, name: str, given: list[str]) -> None:
    address, mask = prefix(given.pop(0), six)
    first = (8 if name == "src" else 24) if six else 12 if name == "src" else 16
    at, next_header = _at(given, first, False)
    for place in range(0, 16 if six else 4, 4):
        shift = (12 if six else 0) * 8 - place * 8
        part = mask >> shift & 0xFFFFFFFF
        if part or not six:
            _pack(keys, address >> shift & 0xFFFFFFFF, part, at + place, next_header)


def _mark(given: list[str]) -> None:
    for what in ("value", "mask"):
        try:
            number(given.pop(0))
        except ValueError:
            raise LineRefused(f'Illegal "mark" {what}\nIllegal "match"', 1) from None


def _ether(given: list[str]) -> None:
    name, address = given.pop(0), given.pop(0)
    if name not in ("src", "dst"):
        raise LineRefused(f'Unknown match: ether {name}\nIllegal "match"', 1)
    if re.match("[0-9a-f]{1,2}(:[0-9a-f]{1,2}){5}", address, re.IGNORECASE) is None:
        said = f"parse_ether_addr: improperly formed address '{address}'"
        raise LineRefused(f'{said}\nIllegal "match"', 1)
    _at(given, 0, False)


_READERS: dict[str, Callable[[U32, list[str]], None]] = {
    "match": _match,
    "offset": _offset,
    "hashkey": _hash_key,
    "classid": _flowid,
    "flowid": _flowid,
    "divisor": _divisor,
    "order": _order,
    "link": _link,
    "ht": _table,
}
_EXACT = ("flowid", "link", "ht", "sample", "indev", "skip_hw", "skip_sw")
_NAMES = ("match", "offset", "hashkey", "classid", "divisor", "order", "action", "police")
_FRAGMENTS = {"nofrag": (0, 0x3FFF), "firstfrag": (0x2000, 0x3FFF), "df": (0x4000, 0x4000), "mf": (0x2000, 0x2000)}
_FIELDS: dict[tuple[str, str], tuple[int, int, bool]] = {
    **dict.fromkeys((("ip", "tos"), ("ip", "dsfield"), ("ip", "precedence")), (8, 1, False)),
    ("ip", "ihl"): (8, 0, False),
    ("ip", "protocol"): (8, 9, False),
    ("ip", "sport"): (16, 20, False),
    ("ip", "dport"): (16, 22, False),
    ("ip", "icmp_type"): (8, 20, False),
    ("ip", "icmp_code"): (8, 21, False),
    ("ip6", "protocol"): (8, 6, False),
    ("ip6", "flowlabel"): (32, 0, False),
    ("ip6", "sport"): (16, 40, False),
    ("ip6", "dport"): (16, 42, False),
    ("ip6", "icmp_type"): (8, 40, False),
    # Shown as behind nexthdr+ by iproute2 6.1, and compared here as there.
    ("ip6", "icmp_code"): (8, 41, True),
    **{(kind, name): (16, at, True) for kind in ("udp", "tcp") for name, at in (("src", 0), ("dst", 2))},
    **{("icmp", name): (8, at, True) for name, at in (("type", 0), ("code", 1))},
}
