"""The match fields of OpenFlow 1.3.5 (7.2.3.7, table 12), each with frames that have one value of it or another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinnet_conformance.frames import ICMP, ICMPV6, SCTP, TCP, UDP

__all__ = ["BASIC", "FIELDS", "NUMBERS", "PRESENT", "Field", "conditions", "oxm"]

BASIC = 0x8000
"""``OFPXMC_OPENFLOW_BASIC``."""
PRESENT = 0x1000
"""``OFPVID_PRESENT``."""

IPV4 = {"eth_type": 0x0800}
IPV6 = {"eth_type": 0x86DD}
ARP = {"eth_type": 0x0806}
MPLS = {"eth_type": 0x8847}


@dataclass(frozen=True)
class Field:
    """A match field."""

    name: str
    number: int
    bits: int
    maskable: bool = False
    needs: Mapping[str, int] = field(default_factory=dict[str, int])
    """Conditions that must stand before it, and that its frames meet."""
    first: int = 1
    """A value."""
    second: int = 2
    """Another one."""
    settable: bool = True
    in_frame: bool = True
    """Whether a frame's bytes have it."""
    required: bool = False
    """Whether every switch must support it (table 11)."""

    @property
    def bytes(self) -> int:
        """Length of a value on the wire: values of 20 bits take four bytes."""
        return 4 if self.bits == 20 else (self.bits + 7) // 8

    @property
    def maximum(self) -> int:
        """The highest value."""
        return (1 << self.bits) - 1


def _transport(name: str, number: int, protocol: int) -> list[Field]:
    needs = {**IPV4, "ip_proto": protocol}
    return [
        Field(f"{name}_src", number, 16, needs=needs, first=1234, second=4321, required=name != "sctp"),
        Field(f"{name}_dst", number + 1, 16, needs=needs, first=80, second=443, required=name != "sctp"),
    ]


_ICMPV4 = {**IPV4, "ip_proto": ICMP}
_ICMPV6 = {**IPV6, "ip_proto": ICMPV6}
_SOLICITATION = {**_ICMPV6, "icmpv6_type": 135}
_ADVERTISEMENT = {**_ICMPV6, "icmpv6_type": 136}
_FIRST_6, _SECOND_6 = 0x20010DB8_00010000_00000000_00000005, 0x20010DB8_00020000_00000000_00000006


def _address(name: str, number: int) -> Field:
    return Field(name, number, 32, maskable=True, needs=IPV4, first=0x0A010203, second=0x0A020304, required=True)


def _address_6(name: str, number: int) -> Field:
    return Field(name, number, 128, maskable=True, needs=IPV6, first=_FIRST_6, second=_SECOND_6, required=True)


_ALL: list[Field] = [
    Field("in_port", 0, 32, first=1, second=3, settable=False, in_frame=False, required=True),
    Field("in_phy_port", 1, 32, needs={"in_port": 1}, first=1, second=3, settable=False, in_frame=False),
    Field("metadata", 2, 64, maskable=True, first=0x1122334455667788, second=0x99, settable=False, in_frame=False),
    Field("eth_dst", 3, 48, maskable=True, first=0x0A1122334455, second=0x0A5544332211, required=True),
    Field("eth_src", 4, 48, maskable=True, first=0x0A1122334456, second=0x0A5544332212, required=True),
    Field("eth_type", 5, 16, first=0x88B5, second=0x88B6, required=True),
    Field("vlan_vid", 6, 13, maskable=True, first=PRESENT | 100, second=PRESENT | 200),
    Field("vlan_pcp", 7, 3, needs={"vlan_vid": PRESENT | 5}, first=3, second=6),
    Field("ip_dscp", 8, 6, needs=IPV4, first=10, second=46),
    Field("ip_ecn", 9, 2, needs=IPV4, first=1, second=2),
    Field("ip_proto", 10, 8, needs=IPV4, first=200, second=201, required=True),
    _address("ipv4_src", 11),
    _address("ipv4_dst", 12),
    *_transport("tcp", 13, TCP),
    *_transport("udp", 15, UDP),
    *_transport("sctp", 17, SCTP),
    Field("icmpv4_type", 19, 8, needs=_ICMPV4, first=8, second=0),
    Field("icmpv4_code", 20, 8, needs=_ICMPV4, first=3, second=1),
    Field("arp_op", 21, 16, needs=ARP, first=1, second=2),
    Field("arp_spa", 22, 32, maskable=True, needs=ARP, first=0x0A010203, second=0x0A020304),
    Field("arp_tpa", 23, 32, maskable=True, needs=ARP, first=0x0A010203, second=0x0A020304),
    Field("arp_sha", 24, 48, maskable=True, needs=ARP, first=0x0A1122334455, second=0x0A5544332211),
    Field("arp_tha", 25, 48, maskable=True, needs=ARP, first=0x0A1122334455, second=0x0A5544332211),
    _address_6("ipv6_src", 26),
    _address_6("ipv6_dst", 27),
    Field("ipv6_flabel", 28, 20, maskable=True, needs=IPV6, first=0x12345, second=0x54321),
    Field("icmpv6_type", 29, 8, needs=_ICMPV6, first=128, second=129),
    Field("icmpv6_code", 30, 8, needs=_ICMPV6, first=3, second=1),
    Field("ipv6_nd_target", 31, 128, needs=_SOLICITATION, first=_FIRST_6, second=_SECOND_6),
    Field("ipv6_nd_sll", 32, 48, needs=_SOLICITATION, first=0x0A1122334455, second=0x0A5544332211),
    Field("ipv6_nd_tll", 33, 48, needs=_ADVERTISEMENT, first=0x0A1122334455, second=0x0A5544332211),
    Field("mpls_label", 34, 20, needs=MPLS, first=0x12345, second=0x54321),
    Field("mpls_tc", 35, 3, needs=MPLS, first=3, second=6),
    Field("mpls_bos", 36, 1, needs=MPLS, first=1, second=0, settable=True),
    Field("pbb_isid", 37, 24, maskable=True, needs={"eth_type": 0x88E7}, first=0x123456, second=0x654321),
    Field("tunnel_id", 38, 64, maskable=True, first=0x1234, second=0x4321, in_frame=False),
    Field("ipv6_exthdr", 39, 9, maskable=True, needs=IPV6, first=64, second=8, settable=False),
]

FIELDS: dict[str, Field] = {one.name: one for one in _ALL}
"""By name."""
NUMBERS: dict[int, Field] = {one.number: one for one in _ALL}
"""By ``oxm_field``."""


def oxm(name: str, value: int, mask: int | None = None) -> bytes:
    """Return a field as a TLV (OpenFlow 1.3.5, 7.2.3.2)."""
    about = FIELDS[name]
    length = about.bytes * (1 if mask is None else 2)
    header = (BASIC << 16 | about.number << 9 | (mask is not None) << 8 | length).to_bytes(4)
    return header + value.to_bytes(about.bytes) + (b"" if mask is None else mask.to_bytes(about.bytes))


def conditions(values: Mapping[str, int | tuple[int, int]]) -> bytes:
    """Return the TLVs of `values`, each a value or a value with its mask."""
    return b"".join(
        oxm(name, *value) if isinstance(value, tuple) else oxm(name, value) for name, value in values.items()
    )
