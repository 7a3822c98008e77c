"""What ``tc -p filter show`` prints of the keys of ``u32``: fields by their names, in the words of iproute2 6.1.

It takes the words of an IPv6 header for those of IPv4, begins no line before some ports, and leaves out what it has no
name for.
"""

from __future__ import annotations

import ipaddress

from twinnet.mininet.tc_u32 import Key

__all__ = ["pretty_key"]

_IPV4, _IPV6 = 0x0800, 0x86DD


def pretty_key(key: Key, protocol: int) -> str:
    """Return what is printed of a key, behind what is before it in the line."""
    if protocol not in (_IPV4, _IPV6):
        return f"\n{key.shown()}".rstrip("\n")
    if key.at == 20:
        return _ports(key, protocol == _IPV6)
    gaps = key.mask ^ 0xFFFFFFFF
    if key.at in (12, 16) and not gaps & gaps + 1:
        address, bits = ipaddress.IPv4Address(key.value), 32 - gaps.bit_length()
        return f"\n  match IP {'src' if key.at == 12 else 'dst'} {address}/{bits}"
    named = {
        (0, 0x0F000000): f"ihl {key.value >> 24}",
        (0, 0x00FF0000): f"dsfield {key.value >> 16:#x}" if key.value else "dsfield 0",
        (8, 0x00FF0000): f"protocol {key.value >> 16}",
    }
    return f"\n  match IP {named[key.at, key.mask]}" if (key.at, key.mask) in named else ""


def _ports(key: Key, six: bool) -> str:
    high, low = key.value >> 16, key.value & 0xFFFF
    first, second = ("sport", "dport") if six else ("dport", "sport")
    if key.mask == 0xFFFFFFFF:
        return f"\n  match {first} {low}, match {second} {high}"
    if key.mask == 0xFFFF:
        return f"\n  match sport {low}" if six else f"match dport {low}"
    if key.mask == 0xFFFF0000:
        return f"match dport {high}" if six else f"\n  match sport {high}"
    return ""
