"""Match fields: values, masks, prerequisites, and what is refused (7.2.3)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.fields import FIELDS, PRESENT, Field, conditions, oxm
from twinnet_conformance.frames import ETH_DST, ETH_SRC, EXTENSION_HEADERS, build, ethernet, vlan
from twinnet_conformance.suite.carriers import install_for, unlike_bit

__all__: list[str] = []

EXACT = "Match fields: values"
MASKS = "Match fields: masks"
PREREQUISITES = "Match fields: prerequisites"
REFUSALS = "Match fields: what is refused"
SHOWN = "Match fields: read back as written"
LACKING = (of.BAD_MATCH, 6)
"""``OFPBMC_BAD_FIELD``: what a switch says of an optional field that it does not have."""


def _exact(about: Field) -> None:
    @case("7.2.3.7", EXACT, f"{about.name} with its value is met by that value and by no other")
    def _(bench: Bench) -> None:
        send = install_for(bench, about, about.first)
        check(send(about.first), "a frame with the value was not matched")
        check(not send(about.second), "a frame with another value was matched")

    @case("7.2.3.7", SHOWN, f"a flow with {about.name} is reported with the value")
    def _(bench: Bench) -> None:
        bench.flow({**about.needs, about.name: about.first}, of.apply_actions(of.output(bench.p2)))
        found = bench.one_flow().conditions
        due = {**about.needs, about.name: about.first}
        check({name: value for name, (value, _) in found.items()} == due, f"reported {found}, added {due}")


def _masked(about: Field) -> None:
    bits = [0, about.bits // 2, about.bits - 1]
    if about.name == "vlan_vid":
        bits = [0, 6, 11]
    if about.name == "ipv6_exthdr":
        bits = [3, 6]
    for bit in bits:

        @case("7.2.3.5", MASKS, f"{about.name} with a mask of bit {bit} is met by that bit alone")
        def _(bench: Bench, bit: int = bit) -> None:
            mask = 1 << bit | (PRESENT if about.name == "vlan_vid" else 0)
            send = install_for(bench, about, about.first & mask, mask)
            check(send(about.first), "a frame with the value was not matched")
            check(not send(unlike_bit(about, bit)), "a frame whose bit is another was matched")
            for other in range(about.bits):
                if other in (bit, bit ^ 1) or other % 7 or (about.name in ("vlan_vid", "ipv6_exthdr")):
                    continue
                check(send(about.first ^ 1 << other), f"a frame that differs in bit {other} was not matched")

    @case("7.2.3.5", MASKS, f"{about.name} with a mask of all its bits is as without a mask")
    def _(bench: Bench) -> None:
        send = install_for(bench, about, about.first, about.maximum)
        check(send(about.first), "a frame with the value was not matched")
        check(not send(about.second), "a frame with another value was matched")

    @case("7.2.3.5", MASKS, f"{about.name} with a mask of zeros is met by every value")
    def _(bench: Bench) -> None:
        send = install_for(bench, about, 0, 0)
        check(send(about.first) and send(about.second), "a value was not matched")

    @case("7.2.3.5", REFUSALS, f"{about.name} with a bit outside its mask is OFPBMC_BAD_WILDCARDS")
    def _(bench: Bench) -> None:
        mask = about.maximum & ~1
        tlvs = conditions(about.needs) + oxm(about.name, about.first | 1, mask)
        bench.refused(of.flow_mod(tlvs), of.BAD_MATCH, 5, lacking=LACKING)

    @case("7.2.3.5", SHOWN, f"a flow with {about.name} under a mask is reported with the mask")
    def _(bench: Bench) -> None:
        mask = about.maximum & ~1 if about.name != "ipv6_exthdr" else 72
        bench.flow({**about.needs, about.name: (about.first & mask, mask)}, of.apply_actions(of.output(bench.p2)))
        found = bench.one_flow().conditions.get(about.name)
        check(found == (about.first & mask, mask), f"reported {found}")


def _without_mask(about: Field) -> None:
    @case("7.2.3.5", REFUSALS, f"{about.name}, which has no masks, with one is OFPBMC_BAD_MASK")
    def _(bench: Bench) -> None:
        # Not a mask of all ones, which some take for none.
        mask = about.maximum & ~1
        tlvs = conditions(about.needs) + oxm(about.name, about.first & mask, mask)
        bench.refused(of.flow_mod(tlvs), of.BAD_MATCH, 8, lacking=LACKING)


def _needing(about: Field) -> None:
    @case("7.2.3.6", PREREQUISITES, f"{about.name} without what it needs is OFPBMC_BAD_PREREQ")
    def _(bench: Bench) -> None:
        bench.refused(of.flow_mod({about.name: about.first}), of.BAD_MATCH, 9, lacking=LACKING)

    last = list(about.needs)[-1]
    other = {"eth_type": 0x88B5, "ip_proto": 250, "icmpv6_type": 1, "vlan_vid": 0}.get(last)
    if other is not None:

        @case("7.2.3.6", PREREQUISITES, f"{about.name} behind {last} with an unfit value is OFPBMC_BAD_PREREQ")
        def _(bench: Bench) -> None:
            needs = {**about.needs, last: other, about.name: about.first}
            bench.refused(of.flow_mod(needs), of.BAD_MATCH, 9, lacking=LACKING)

    @case("7.2.3.6", PREREQUISITES, f"{about.name} before what it needs is OFPBMC_BAD_PREREQ")
    def _(bench: Bench) -> None:
        tlvs = oxm(about.name, about.first) + conditions(about.needs)
        bench.refused(of.flow_mod(tlvs), of.BAD_MATCH, 9, lacking=LACKING)


def _any_field(about: Field) -> None:
    @case("7.2.3.3", REFUSALS, f"{about.name} twice is OFPBMC_DUP_FIELD")
    def _(bench: Bench) -> None:
        tlvs = conditions(about.needs) + oxm(about.name, about.first) * 2
        bench.refused(of.flow_mod(tlvs), of.BAD_MATCH, 10, lacking=LACKING)

    @case("7.2.3.2", REFUSALS, f"{about.name} one byte too short is OFPBMC_BAD_LEN")
    def _(bench: Bench) -> None:
        tlv = oxm(about.name, about.first)
        short = tlv[:3] + bytes([tlv[3] - 1]) + tlv[4:-1]
        # A length that a field cannot have may as well be taken for another field's.
        bench.refused(of.flow_mod(conditions(about.needs) + short), of.BAD_MATCH, 1, 6, lacking=LACKING)

    if about.bits % 8:

        @case("7.2.3.7", REFUSALS, f"{about.name} beyond its {about.bits} bits is OFPBMC_BAD_VALUE")
        def _(bench: Bench) -> None:
            tlvs = conditions(about.needs) + oxm(about.name, about.maximum + 1 | about.first)
            bench.refused(of.flow_mod(tlvs), of.BAD_MATCH, 7, lacking=LACKING)


for _one in FIELDS.values():
    if _one.name != "in_phy_port":
        _exact(_one)
    _any_field(_one)
    if _one.maskable:
        _masked(_one)
    else:
        _without_mask(_one)
    if _one.needs:
        _needing(_one)


@case("7.2.3.7", SHOWN, "a flow with in_phy_port is reported with the value")
def _(bench: Bench) -> None:
    bench.flow({"in_port": bench.p1, "in_phy_port": bench.p1}, of.apply_actions(of.output(bench.p2)))
    check("in_phy_port" in bench.one_flow().conditions, "in_phy_port is missing")


@case("7.2.3.7", EXACT, "in_phy_port of a physical port is the port")
def _(bench: Bench) -> None:
    bench.forward({"in_port": bench.p1, "in_phy_port": bench.p1})
    bench.passes(build())


@case("7.2.3.7", EXACT, "tunnel_id of a frame that came by no tunnel is 0")
def _(bench: Bench) -> None:
    bench.forward({"tunnel_id": 0})
    bench.passes(build())


@case("7.2.3.2", REFUSALS, "a field that does not exist is OFPBMC_BAD_FIELD")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod((0x8000 << 16 | 99 << 9 | 4).to_bytes(4) + bytes(4)), of.BAD_MATCH, 6)


@case("7.2.3.2", REFUSALS, "a field of an unknown class is OFPBMC_BAD_FIELD")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod((0x7777 << 16 | 3 << 9 | 4).to_bytes(4) + bytes(4)), of.BAD_MATCH, 6)


@case("7.2.3.8", REFUSALS, "a field of an unknown experimenter is OFPBMC_BAD_FIELD")
def _(bench: Bench) -> None:
    bench.refused(
        of.flow_mod((0xFFFF << 16 | 8).to_bytes(4) + bytes([0, 0x55, 0x66, 0x77]) + bytes(4)), of.BAD_MATCH, 6
    )


@case("7.2.3.1", REFUSALS, "a match of the deprecated standard type is OFPBMC_BAD_TYPE")
def _(bench: Bench) -> None:
    message = of.flow_mod()
    at = 40
    bench.refused(message._replace(body=message.body[:at] + b"\0\0" + message.body[at + 2 :]), of.BAD_MATCH, 0)


@case("7.2.3.1", REFUSALS, "a match shorter than its own head is OFPBMC_BAD_LEN")
def _(bench: Bench) -> None:
    message = of.flow_mod()
    at = 42
    wrong = message.body[:at] + b"\0\3" + message.body[at + 2 :]
    bench.refused(message._replace(body=wrong), of.BAD_MATCH, 1)


@case("7.2.3.1", REFUSALS, "a match longer than its message is OFPBMC_BAD_LEN")
def _(bench: Bench) -> None:
    message = of.flow_mod()
    at = 42
    wrong = message.body[:at] + b"\1\0" + message.body[at + 2 :]
    bench.refused(message._replace(body=wrong), of.BAD_MATCH, 1)


@case("7.2.3.3", EXACT, "a match without fields is met by every frame")
def _(bench: Bench) -> None:
    bench.forward({})
    for frame in (build(), build(eth_type=0x88B5), build(arp_op=1), build(vlan_vid=7)):
        bench.passes(frame)


@case("7.2.3.7", EXACT, "vlan_vid OFPVID_NONE is met by untagged frames alone")
def _(bench: Bench) -> None:
    bench.forward({"vlan_vid": 0})
    bench.passes(build())
    bench.drops(build(vlan_vid=100))
    bench.drops(build(vlan_vid=0, vlan_pcp=3))


@case("7.2.3.7", EXACT, "vlan_vid OFPVID_PRESENT under its own mask is met by tagged frames alone")
def _(bench: Bench) -> None:
    bench.forward({"vlan_vid": (PRESENT, PRESENT)})
    bench.drops(build())
    bench.passes(build(vlan_vid=100))
    bench.passes(build(vlan_vid=0, vlan_pcp=3))


@case("7.2.3.7", EXACT, "vlan_vid 0 with OFPVID_PRESENT is met by frames with a priority tag alone")
def _(bench: Bench) -> None:
    bench.forward({"vlan_vid": PRESENT})
    bench.drops(build())
    bench.drops(build(vlan_vid=100))
    bench.passes(build(vlan_vid=0, vlan_pcp=3))


@case("7.2.3.7", EXACT, "vlan_vid is that of the outer of two tags")
def _(bench: Bench) -> None:
    bench.forward({"vlan_vid": PRESENT | 100})
    inner = vlan(200, 0, 0x0800, build()[14:])
    bench.passes(ethernet(ETH_DST, ETH_SRC, 0x88A8, vlan(100, 0, 0x8100, inner)))
    inner = vlan(100, 0, 0x0800, build()[14:])
    bench.drops(ethernet(ETH_DST, ETH_SRC, 0x88A8, vlan(200, 0, 0x8100, inner)))


@case("7.2.3.7", EXACT, "eth_type behind a tag is that of what is tagged")
def _(bench: Bench) -> None:
    bench.forward({"eth_type": 0x0800, "ipv4_dst": 0x0A000002})
    bench.passes(build(vlan_vid=100))


@case("7.2.3.7", EXACT, "fields of IP are not looked for behind a label")
def _(bench: Bench) -> None:
    bench.forward({"eth_type": 0x0800, "ipv4_dst": 0x0A000002})
    bench.drops(build(mpls_label=16))


@case("7.2.3.7", EXACT, "an Ethernet frame with a length field matches by the type of its LLC/SNAP header")
def _(bench: Bench) -> None:
    bench.forward({"eth_type": 0x0800})
    packet = build()[14:]
    snap = bytes([0xAA, 0xAA, 3, 0, 0, 0, 8, 0]) + packet
    bench.passes(ethernet(ETH_DST, ETH_SRC, len(snap), snap))


for _arp in (1, 2, 3, 4):

    @case("7.2.3.7", EXACT, f"arp_op {_arp} is distinguished from the next")
    def _(bench: Bench, operation: int = _arp) -> None:
        bench.forward({"eth_type": 0x0806, "arp_op": operation})
        bench.passes(build(arp_op=operation))
        bench.drops(build(arp_op=operation + 1))


for _name in ("ip_dscp", "ip_ecn", "ip_proto"):

    @case("7.2.3.7", EXACT, f"{_name} of IPv6 is met by its value and by no other")
    def _(bench: Bench, name: str = _name) -> None:
        about = FIELDS[name]
        bench.forward({"eth_type": 0x86DD, name: about.first})
        bench.passes(build(**{"eth_type": 0x86DD, name: about.first}))
        bench.drops(build(**{"eth_type": 0x86DD, name: about.second}))


for _protocol, _names in ((6, ("tcp_src", "tcp_dst")), (17, ("udp_src", "udp_dst")), (132, ("sctp_src", "sctp_dst"))):
    for _name in _names:

        @case("7.2.3.7", EXACT, f"{_name} over IPv6 is met by its value and by no other")
        def _(bench: Bench, name: str = _name, protocol: int = _protocol) -> None:
            about = FIELDS[name]
            needs = {"eth_type": 0x86DD, "ip_proto": protocol}
            bench.forward({**needs, name: about.first})
            bench.passes(build(**needs, **{name: about.first}))
            bench.drops(build(**needs, **{name: about.second}))

        @case("7.2.3.7", EXACT, f"{_name} behind options of IPv4 is met by its value")
        def _(bench: Bench, name: str = _name, protocol: int = _protocol) -> None:
            about = FIELDS[name]
            needs = {"eth_type": 0x0800, "ip_proto": protocol}
            bench.forward({**needs, name: about.first})
            bench.passes(build(**needs, ip_options=3, **{name: about.first}))


for _header in ("hop", "dest", "router", "auth"):

    @case("7.2.3.7", EXACT, f"ip_proto of IPv6 is found behind the extension header {_header}")
    def _(bench: Bench, header: str = _header) -> None:
        bench.forward({"eth_type": 0x86DD, "ip_proto": 17, "udp_dst": 53})
        bench.passes(build(eth_type=0x86DD, ip_proto=17, udp_dst=53, ipv6_exthdr=EXTENSION_HEADERS[header]))


for _header, _bit in {"none": 1, "esp": 2, "auth": 4, "dest": 8, "frag": 16, "router": 32, "hop": 64}.items():

    @case("7.2.3.8", EXACT, f"ipv6_exthdr reports the header {_header}")
    def _(bench: Bench, bit: int = _bit) -> None:
        bench.forward({"eth_type": 0x86DD, "ipv6_exthdr": (bit, bit)})
        bench.passes(build(eth_type=0x86DD, ip_proto=17, ipv6_exthdr=bit))
        bench.drops(build(eth_type=0x86DD, ip_proto=17))


@case("7.2.3.8", EXACT, "ipv6_exthdr reports a header that occurs twice (OFPIEH_UNREP)")
def _(bench: Bench) -> None:
    bench.forward({"eth_type": 0x86DD, "ipv6_exthdr": (128, 128)})
    bench.passes(_chained(43, 43))
    bench.drops(_chained(0, 43))


@case("7.2.3.8", EXACT, "ipv6_exthdr reports headers in another order than the recommended (OFPIEH_UNSEQ)")
def _(bench: Bench) -> None:
    bench.forward({"eth_type": 0x86DD, "ipv6_exthdr": (256, 256)})
    bench.passes(_chained(43, 0))
    bench.drops(_chained(0, 43))


def _chained(*headers: int) -> bytes:
    """Return a datagram behind headers of eight bytes, in this order."""
    plain = build(eth_type=0x86DD, ip_proto=17)
    packet = plain[14:]
    after = [*headers[1:], 17]
    content = {43: bytes([253, 0, 0, 0, 0, 0]), 0: bytes([1, 4, 0, 0, 0, 0])}
    chain = b"".join(bytes([number, 0]) + content[this] for this, number in zip(headers, after, strict=True))
    payload = chain + packet[40:]
    return plain[:14] + packet[:4] + len(payload).to_bytes(2) + bytes([headers[0]]) + packet[7:40] + payload
