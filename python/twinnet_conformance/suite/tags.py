"""Pushing and popping tags of VLAN, MPLS and PBB (5.12)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.fields import PRESENT
from twinnet_conformance.frames import ETH_DST, ETH_SRC, build, ethernet, mpls, vlan

__all__: list[str] = []

VLAN = "Push and pop: VLAN"
MPLS = "Push and pop: MPLS"
PBB = "Push and pop: PBB"

IP = {"eth_type": 0x0800}
TAGGED = {"vlan_vid": (PRESENT, PRESENT)}
PACKET = build()[14:]


def _frame(ethertype: int, rest: bytes) -> bytes:
    return ethernet(ETH_DST, ETH_SRC, ethertype, rest)


for _type in (0x8100, 0x88A8):

    @case("5.12", VLAN, f"push-VLAN {_type:#x} on an untagged frame gives a tag of zeros")
    def _(bench: Bench, ethertype: int = _type) -> None:
        bench.forward({}, of.push_vlan(ethertype))
        bench.passes(build(), _frame(ethertype, vlan(0, 0, 0x0800, PACKET)))

    @case("5.12", VLAN, f"push-VLAN {_type:#x} on a tagged frame copies identifier and priority")
    def _(bench: Bench, ethertype: int = _type) -> None:
        bench.forward({}, of.push_vlan(ethertype))
        inner = vlan(100, 5, 0x0800, PACKET)
        bench.passes(build(vlan_vid=100, vlan_pcp=5), _frame(ethertype, vlan(100, 5, 0x8100, inner)))

    @case("5.12", VLAN, f"push-VLAN {_type:#x}, identifier and priority in one list")
    def _(bench: Bench, ethertype: int = _type) -> None:
        fields = (of.set_field("vlan_vid", PRESENT | 9), of.set_field("vlan_pcp", 3))
        bench.forward({}, of.push_vlan(ethertype), *fields)
        bench.passes(build(), build(vlan_vid=9, vlan_pcp=3, vlan_tpid=ethertype))

    @case("5.12", VLAN, f"pop-VLAN takes a tag of {_type:#x} off")
    def _(bench: Bench, ethertype: int = _type) -> None:
        bench.forward(TAGGED, of.pop_vlan())
        bench.passes(build(vlan_vid=100, vlan_tpid=ethertype), build())


@case("5.12", VLAN, "pop-VLAN takes the outer of two tags off, and the next table sees the inner one")
def _(bench: Bench) -> None:
    bench.flow(TAGGED, of.apply_actions(of.pop_vlan()), of.goto_table(1))
    bench.forward({"vlan_vid": PRESENT | 7}, table=1)
    inner = vlan(7, 2, 0x0800, PACKET)
    bench.passes(_frame(0x88A8, vlan(100, 5, 0x8100, inner)), _frame(0x8100, inner))


@case("5.12", VLAN, "the next table sees a pushed tag")
def _(bench: Bench) -> None:
    bench.flow({}, of.apply_actions(of.push_vlan(0x8100), of.set_field("vlan_vid", PRESENT | 8)), of.goto_table(1))
    bench.forward({"vlan_vid": PRESENT | 8, "eth_type": 0x0800}, table=1)
    bench.passes(build(), build(vlan_vid=8))


@case("5.12", VLAN, "both tags of two are popped by two actions")
def _(bench: Bench) -> None:
    bench.flow(TAGGED, of.apply_actions(of.pop_vlan()), of.goto_table(1))
    bench.forward(TAGGED, of.pop_vlan(), table=1)
    bench.passes(_frame(0x88A8, vlan(100, 5, 0x8100, vlan(7, 2, 0x0800, PACKET))), build())


@case("5.12", VLAN, "three tags are pushed")
def _(bench: Bench) -> None:
    bench.forward({}, of.push_vlan(0x8100), of.push_vlan(0x88A8), of.push_vlan(0x88A8))
    tags = vlan(0, 0, 0x88A8, vlan(0, 0, 0x8100, vlan(0, 0, 0x0800, PACKET)))
    bench.passes(build(), _frame(0x88A8, tags))


@case("5.12", VLAN, "push-VLAN of another Ethernet type is OFPBAC_BAD_ARGUMENT")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod({}, of.apply_actions(of.push_vlan(0x0800))), of.BAD_ACTION, 5)


@case("5.12", VLAN, "pop-VLAN under a match without a tag is OFPBAC_MATCH_INCONSISTENT")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod({"vlan_vid": 0}, of.apply_actions(of.pop_vlan())), of.BAD_ACTION, 10)


@case("5.12", VLAN, "set vlan_vid leaves the priority, and vlan_pcp the identifier")
def _(bench: Bench) -> None:
    bench.forward(TAGGED, of.set_field("vlan_vid", PRESENT | 9), of.output(bench.p3), of.set_field("vlan_pcp", 1))
    bench.expect(
        build(vlan_vid=5, vlan_pcp=6),
        (bench.p3, build(vlan_vid=9, vlan_pcp=6)),
        (bench.p2, build(vlan_vid=9, vlan_pcp=1)),
    )


for _type in (0x8847, 0x8848):

    @case("5.12", MPLS, f"push-MPLS {_type:#x} before IPv4: label and class 0, TTL of IP, bottom of the stack")
    def _(bench: Bench, ethertype: int = _type) -> None:
        bench.forward(IP, of.push_mpls(ethertype))
        packet = build(ip_ttl=33)[14:]
        bench.passes(build(ip_ttl=33), _frame(ethertype, mpls(0, 0, 1, 33, packet)))

    @case("5.12", MPLS, f"push-MPLS {_type:#x} before a label copies label, class and TTL")
    def _(bench: Bench, ethertype: int = _type) -> None:
        bench.forward({"eth_type": 0x8847}, of.push_mpls(ethertype))
        inner = mpls(77, 3, 1, 44, PACKET)
        bench.passes(_frame(0x8847, inner), _frame(ethertype, mpls(77, 3, 0, 44, inner)))

    @case("5.12", MPLS, f"pop-MPLS gives the last of the labels' ({_type:#x}) content its Ethernet type")
    def _(bench: Bench, ethertype: int = _type) -> None:
        bench.forward({"eth_type": ethertype}, of.pop_mpls(0x0800))
        bench.passes(_frame(ethertype, mpls(77, 3, 1, 44, PACKET)), build())

    @case("5.12", MPLS, f"pop-MPLS of one of two labels ({_type:#x})")
    def _(bench: Bench, ethertype: int = _type) -> None:
        bench.forward({"eth_type": ethertype}, of.pop_mpls(ethertype))
        inner = mpls(78, 2, 1, 40, PACKET)
        bench.passes(_frame(ethertype, mpls(77, 3, 0, 44, inner)), _frame(ethertype, inner))


@case("5.12", MPLS, "push-MPLS before IPv6: label and class 0, TTL of the hop limit")
def _(bench: Bench) -> None:
    bench.forward({"eth_type": 0x86DD}, of.push_mpls(0x8847))
    frame = build(eth_type=0x86DD, ip_ttl=33, ip_dscp=46)
    bench.passes(frame, _frame(0x8847, mpls(0, 0, 1, 33, frame[14:])))


@case("5.12", MPLS, "push-MPLS before IPv4 with a DSCP: the class is 0")
def _(bench: Bench) -> None:
    bench.forward(IP, of.push_mpls(0x8847))
    frame = build(ip_dscp=46)
    bench.passes(frame, _frame(0x8847, mpls(0, 0, 1, 64, frame[14:])))


@case("5.12", MPLS, "push-MPLS before ARP: there is no TTL to copy, and it is 0")
def _(bench: Bench) -> None:
    bench.forward({"eth_type": 0x0806}, of.push_mpls(0x8847))
    frame = build(arp_op=1)
    bench.passes(frame, _frame(0x8847, mpls(0, 0, 1, 0, frame[14:])))


@case("5.12", MPLS, "push-MPLS, label, class and TTL in one list")
def _(bench: Bench) -> None:
    bench.forward(
        IP, of.push_mpls(0x8847), of.set_field("mpls_label", 99), of.set_field("mpls_tc", 5), of.set_mpls_ttl(7)
    )
    bench.passes(build(), _frame(0x8847, mpls(99, 5, 1, 7, PACKET)))


@case("5.12", MPLS, "two labels are pushed")
def _(bench: Bench) -> None:
    first, second = of.set_field("mpls_label", 1000), of.set_field("mpls_label", 2000)
    bench.forward(IP, of.push_mpls(0x8847), first, of.push_mpls(0x8847), second)
    bench.passes(build(), _frame(0x8847, mpls(2000, 0, 0, 64, mpls(1000, 0, 1, 64, PACKET))))


@case("5.12", MPLS, "the next table sees a pushed label")
def _(bench: Bench) -> None:
    bench.flow(IP, of.apply_actions(of.push_mpls(0x8847), of.set_field("mpls_label", 55)), of.goto_table(1))
    bench.forward({"eth_type": 0x8847, "mpls_label": 55, "mpls_bos": 1}, table=1)
    bench.passes(build(), _frame(0x8847, mpls(55, 0, 1, 64, PACKET)))


@case("5.12", MPLS, "the next table sees what a popped label covered")
def _(bench: Bench) -> None:
    bench.flow({"eth_type": 0x8847}, of.apply_actions(of.pop_mpls(0x0800)), of.goto_table(1))
    bench.forward({"eth_type": 0x0800, "ipv4_dst": 0x0A000002}, table=1)
    bench.passes(_frame(0x8847, mpls(5, 0, 1, 9, PACKET)), build())


@case("5.12", MPLS, "pop-MPLS, then a field of what it covered, in one flow and the next")
def _(bench: Bench) -> None:
    bench.flow({"eth_type": 0x8847}, of.apply_actions(of.pop_mpls(0x0800)), of.goto_table(1))
    bench.forward(IP, of.set_field("ipv4_dst", 0x01020304), table=1)
    bench.passes(_frame(0x8847, mpls(5, 0, 1, 9, PACKET)), build(ipv4_dst=0x01020304))


@case("5.12", MPLS, "a label is pushed on a tagged frame right behind the Ethernet header")
def _(bench: Bench) -> None:
    bench.forward({**TAGGED, "eth_type": 0x0800}, of.push_mpls(0x8847))
    came = bench.frame(build(vlan_vid=6))
    check(len(came) == 1 and came[0][1][12:14] == b"\x88\x47", f"{came}")


@case("5.12", MPLS, "push-MPLS of another Ethernet type is OFPBAC_BAD_ARGUMENT")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod(IP, of.apply_actions(of.push_mpls(0x0800))), of.BAD_ACTION, 5)


@case("5.12", MPLS, "pop-MPLS under a match without labels is OFPBAC_MATCH_INCONSISTENT")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod(IP, of.apply_actions(of.pop_mpls(0x0800))), of.BAD_ACTION, 10)


@case("5.12", MPLS, "the second label of three is reported when the first is popped")
def _(bench: Bench) -> None:
    bench.flow({"eth_type": 0x8847}, of.apply_actions(of.pop_mpls(0x8847)), of.goto_table(1))
    bench.forward({"eth_type": 0x8847, "mpls_label": 2, "mpls_bos": 0}, table=1)
    inner = mpls(2, 0, 0, 9, mpls(3, 0, 1, 9, PACKET))
    bench.passes(_frame(0x8847, mpls(1, 0, 0, 9, inner)), _frame(0x8847, inner))


@case("5.12", PBB, "push-PBB puts an I-TAG before the frame and copies its addresses")
def _(bench: Bench) -> None:
    bench.forward({}, of.push_pbb(), of.set_field("pbb_isid", 0x123456))
    came = bench.frame(build())
    check(len(came) == 1, "nothing came")
    frame = came[0][1]
    check(frame[:14] == build()[:12] + b"\x88\xe7", "other addresses or type outside")
    check(frame[15:18] == bytes.fromhex("123456"), f"service {frame[15:18].hex()}")
    check(frame[18:] == build(), "the frame inside is another")


@case("5.12", PBB, "push-PBB copies the priority of a tag")
def _(bench: Bench) -> None:
    bench.forward({}, of.push_pbb())
    came = bench.frame(build(vlan_vid=7, vlan_pcp=5))
    check(len(came) == 1 and came[0][1][12:14] == b"\x88\xe7", "no I-TAG right behind the addresses")
    check(came[0][1][14] >> 5 == 5, f"priority {came[0][1][14] >> 5}")


@case("5.12", PBB, "push-PBB before an I-TAG copies its service")
def _(bench: Bench) -> None:
    bench.forward({"eth_type": 0x88E7}, of.push_pbb())
    came = bench.frame(build(pbb_isid=0x010203))
    check(len(came) == 1 and came[0][1][15:18] == bytes.fromhex("010203"), f"{came}")


@case("5.12", PBB, "pop-PBB leaves the frame inside")
def _(bench: Bench) -> None:
    bench.forward({"eth_type": 0x88E7}, of.pop_pbb())
    outside = ethernet(5, 6, 0x88E7, bytes([0, 1, 2, 3]) + build())
    bench.passes(outside, build())


@case("5.12", PBB, "the next table sees the frame inside")
def _(bench: Bench) -> None:
    bench.flow({"eth_type": 0x88E7}, of.apply_actions(of.pop_pbb()), of.goto_table(1))
    bench.forward({"eth_dst": ETH_DST, "eth_type": 0x0800}, table=1)
    bench.passes(ethernet(5, 6, 0x88E7, bytes([0, 1, 2, 3]) + build()), build())


@case("5.12", PBB, "addresses that are set after push-PBB are those outside")
def _(bench: Bench) -> None:
    bench.forward({}, of.push_pbb(), of.set_field("eth_dst", 9))
    came = bench.frame(build())
    check(len(came) == 1 and came[0][1][:6] == bytes([0, 0, 0, 0, 0, 9]) and came[0][1][18:] == build(), f"{came}")


@case("5.12", PBB, "push-PBB of another Ethernet type is OFPBAC_BAD_ARGUMENT")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod({}, of.apply_actions(of.push_pbb(0x0800))), of.BAD_ACTION, 5, lacking=(of.BAD_ACTION, 0))


@case("5.12", PBB, "pop-PBB under a match without an I-TAG is OFPBAC_MATCH_INCONSISTENT")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod(IP, of.apply_actions(of.pop_pbb())), of.BAD_ACTION, 10, lacking=(of.BAD_ACTION, 0))


for _name, _outer in (("VLAN", "tag"), ("MPLS", "label"), ("PBB", "I-TAG")):

    @case(
        "5.12",
        {"VLAN": VLAN, "MPLS": MPLS, "PBB": PBB}[_name],
        f"an {_outer} that is pushed and popped leaves the frame as it was",
    )
    def _(bench: Bench, name: str = _name) -> None:
        push, pop = {
            "VLAN": (of.push_vlan(0x8100), of.pop_vlan()),
            "MPLS": (of.push_mpls(0x8847), of.pop_mpls(0x0800)),
            "PBB": (of.push_pbb(), of.pop_pbb()),
        }[name]
        bench.forward(IP, push, pop)
        bench.passes(build())
