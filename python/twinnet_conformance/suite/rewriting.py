"""Rewritten headers wherever they stand: checksums of every protocol, behind tags, options and extension headers."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

SUMS = "Checksums after rewriting"

NAMES = {6: "TCP", 17: "UDP", 132: "SCTP", 1: "ICMP", 58: "ICMPv6", 253: "another protocol"}
SIX = 0x20010DB8_00110022_00330044_00550066


def _pair(title: str, match: dict[str, int], name: str, value: int, **more: int) -> None:
    @case("5.12", SUMS, title)
    def _(bench: Bench) -> None:
        bench.forward(match, of.set_field(name, value))
        bench.passes(build(**match, **more), build(**{**match, **more, name: value}))


for _protocol in (6, 17, 132, 1, 253):
    for _name in ("ipv4_src", "ipv4_dst"):
        _pair(f"{_name} before {NAMES[_protocol]}", {"eth_type": 0x0800, "ip_proto": _protocol}, _name, 0xC0A80163)

for _protocol in (6, 17, 132, 58, 253):
    for _name in ("ipv6_src", "ipv6_dst"):
        _pair(f"{_name} before {NAMES[_protocol]}", {"eth_type": 0x86DD, "ip_proto": _protocol}, _name, SIX)

for _protocol, _name in ((6, "tcp"), (17, "udp"), (132, "sctp")):
    for _end in ("src", "dst"):
        _pair(f"{_name}_{_end} over IPv6", {"eth_type": 0x86DD, "ip_proto": _protocol}, f"{_name}_{_end}", 7777)
        _pair(
            f"{_name}_{_end} behind options of IPv4",
            {"eth_type": 0x0800, "ip_proto": _protocol},
            f"{_name}_{_end}",
            7777,
            ip_options=2,
        )

for _name, _value in (("ip_dscp", 46), ("ip_ecn", 3)):
    _pair(f"{_name} of IPv4", {"eth_type": 0x0800}, _name, _value)
    _pair(f"{_name} of IPv6", {"eth_type": 0x86DD}, _name, _value)
    _pair(f"{_name} before TCP", {"eth_type": 0x0800, "ip_proto": 6}, _name, _value)

for _name, _value in (("ipv4_dst", 0x01020304), ("ip_dscp", 12)):

    @case("5.12", SUMS, f"{_name} behind a tag")
    def _(bench: Bench, name: str = _name, value: int = _value) -> None:
        match = {"eth_type": 0x0800, "ip_proto": 17}
        bench.forward(match, of.set_field(name, value))
        bench.passes(build(**match, vlan_vid=5), build(**match, vlan_vid=5, **{name: value}))


for _header, _bit in (("hop", 64), ("dest", 8)):

    @case("5.12", SUMS, f"udp_dst behind the extension header {_header}")
    def _(bench: Bench, bit: int = _bit) -> None:
        match = {"eth_type": 0x86DD, "ip_proto": 17}
        bench.forward(match, of.set_field("udp_dst", 7))
        bench.passes(build(**match, ipv6_exthdr=bit), build(**match, ipv6_exthdr=bit, udp_dst=7))


@case("5.12", SUMS, "a UDP datagram without a checksum stays without one")
def _(bench: Bench) -> None:
    match = {"eth_type": 0x0800, "ip_proto": 17}
    bench.forward(match, of.set_field("ipv4_dst", 0x01020304), of.set_field("udp_dst", 7))

    def unsummed(frame: bytes) -> bytes:
        return frame[:40] + b"\0\0" + frame[42:]

    bench.passes(unsummed(build(**match)), unsummed(build(**match, ipv4_dst=0x01020304, udp_dst=7)))


@case("5.12", SUMS, "a UDP checksum that becomes 0 is written as 0xffff")
def _(bench: Bench) -> None:
    match = {"eth_type": 0x0800, "ip_proto": 17}
    # Among all ports one gives a sum of zero.
    port = next(port for port in range(1, 65536) if build(**match, udp_dst=port)[40:42] == b"\xff\xff")
    bench.forward(match, of.set_field("udp_dst", port))
    bench.passes(build(**match), build(**match, udp_dst=port))


@case("5.12", SUMS, "several fields of one frame in one list")
def _(bench: Bench) -> None:
    match = {"eth_type": 0x0800, "ip_proto": 6}
    new = {"eth_src": 9, "eth_dst": 8, "ipv4_src": 7, "ipv4_dst": 6, "tcp_src": 5, "tcp_dst": 4, "ip_dscp": 3}
    bench.forward(match, *(of.set_field(name, value) for name, value in new.items()))
    bench.passes(build(**match), build(**match, **new))


@case("5.12", SUMS, "a wrong checksum does not become right by rewriting")
def _(bench: Bench) -> None:
    match = {"eth_type": 0x0800, "ip_proto": 6}
    bench.forward(match, of.set_field("tcp_dst", 7))
    frame = build(**match)
    wrong = frame[:50] + bytes([frame[50] ^ 0x5A]) + frame[51:]
    came = bench.frame(wrong)
    check(len(came) == 1 and came[0][1] != build(**match, tcp_dst=7), "the damage is hidden")


@case("5.12", SUMS, "the fragments behind the first have no ports, and their payload is left alone")
def _(bench: Bench) -> None:
    bench.forward({"eth_type": 0x0800}, of.set_field("ip_dscp", 9))
    frame = build(ip_fragment=0x2000 | 5)
    bench.passes(frame, build(ip_fragment=0x2000 | 5, ip_dscp=9))


@case(
    "5.12", SUMS, "addresses of the first fragment change its checksum, those of a later one nothing behind the header"
)
def _(bench: Bench) -> None:
    match = {"eth_type": 0x0800, "ip_proto": 17}
    bench.forward(match, of.set_field("ipv4_dst", 0x01020304))
    bench.passes(build(**match, ip_fragment=0x2000), build(**match, ip_fragment=0x2000, ipv4_dst=0x01020304))
    before = build(**match, ip_fragment=5)
    rewritten = build(**match, ip_fragment=5, ipv4_dst=0x01020304)[:34] + before[34:]
    bench.passes(before, rewritten)
