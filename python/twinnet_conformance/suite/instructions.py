"""Instructions and the action set (5.9, 5.10)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

INSTRUCTIONS = "Instructions"
SET = "Action set"
LIST = "Action list"

UDP = {"eth_type": 0x0800, "ip_proto": 17}


@case("5.9", INSTRUCTIONS, "apply-actions takes effect in the order of its list")
def _(bench: Bench) -> None:
    first, second = of.set_field("udp_dst", 7), of.set_field("udp_dst", 8)
    actions = (first, of.output(bench.p2), second, of.output(bench.p3))
    bench.flow(UDP, of.apply_actions(*actions))
    bench.expect(build(**UDP), (bench.p2, build(**UDP, udp_dst=7)), (bench.p3, build(**UDP, udp_dst=8)))


@case("5.9", INSTRUCTIONS, "apply-actions of an empty list is without effect")
def _(bench: Bench) -> None:
    bench.flow(UDP, of.apply_actions(), of.write_actions(of.output(bench.p2)))
    bench.passes(build(**UDP))


@case("5.9", INSTRUCTIONS, "the action set is carried out when no table is left")
def _(bench: Bench) -> None:
    bench.flow({}, of.write_actions(of.output(bench.p2)), of.goto_table(1))
    bench.flow({}, table=1)
    bench.passes(build())


@case("5.9", INSTRUCTIONS, "apply-actions comes before the action set, and the action set sees what it made")
def _(bench: Bench) -> None:
    bench.flow(UDP, of.write_actions(of.output(bench.p2)), of.apply_actions(of.set_field("udp_dst", 7)))
    bench.passes(build(**UDP), build(**UDP, udp_dst=7))


@case("5.9", INSTRUCTIONS, "clear-actions empties the action set of the tables before")
def _(bench: Bench) -> None:
    bench.flow({}, of.write_actions(of.output(bench.p2)), of.goto_table(1))
    bench.flow({}, of.clear_actions(), table=1)
    bench.drops(build())


@case("5.9", INSTRUCTIONS, "clear-actions comes before write-actions of the same flow")
def _(bench: Bench) -> None:
    bench.flow({}, of.write_actions(of.output(bench.p3), of.set_field("eth_dst", 5)), of.goto_table(1))
    bench.flow({}, of.write_actions(of.output(bench.p2)), of.clear_actions(), table=1)
    bench.passes(build())


@case("5.9", INSTRUCTIONS, "the order in which a flow's instructions are sent is no difference")
def _(bench: Bench) -> None:
    metadata = {"metadata": 5}
    bench.flow({}, of.goto_table(1), of.write_metadata(5), of.apply_actions(of.set_field("eth_dst", 5)))
    bench.forward({**metadata, "eth_dst": 5}, table=1)
    bench.passes(build(), build(eth_dst=5))


@case("5.9", INSTRUCTIONS, "a flow without instructions drops")
def _(bench: Bench) -> None:
    bench.forward({}, priority=1)
    bench.flow(UDP)
    bench.drops(build(**UDP))


@case("5.9", INSTRUCTIONS, "all six kinds of instruction work in one flow")
def _(bench: Bench) -> None:
    bench.obeyed(of.meter_mod(1, of.PKTPS, of.drop_band(1_000_000)))
    bench.flow(
        UDP,
        of.use_meter(1),
        of.apply_actions(of.set_field("udp_src", 9)),
        of.clear_actions(),
        of.write_actions(of.output(bench.p2)),
        of.write_metadata(6),
        of.goto_table(1),
    )
    bench.flow({"metadata": 6}, table=1)
    bench.passes(build(**UDP), build(**UDP, udp_src=9))


@case("5.9", INSTRUCTIONS, "an instruction twice in one flow is refused")
def _(bench: Bench) -> None:
    once = of.apply_actions(of.output(bench.p2))
    # 1.3 has no code for it.
    check(bench.refusal(of.flow_mod({}, once, once)) is not None, "obeyed")


@case("5.10", SET, "an action of a type takes the place of an earlier one of that type")
def _(bench: Bench) -> None:
    bench.flow({}, of.write_actions(of.output(bench.p3)), of.goto_table(1))
    bench.flow({}, of.write_actions(of.output(bench.p2)), table=1)
    bench.passes(build())


@case("5.10", SET, "set-fields of different fields stand beside each other")
def _(bench: Bench) -> None:
    bench.flow(UDP, of.write_actions(of.set_field("udp_dst", 7), of.output(bench.p2)), of.goto_table(1))
    bench.flow(UDP, of.write_actions(of.set_field("udp_src", 8)), table=1)
    bench.passes(build(**UDP), build(**UDP, udp_dst=7, udp_src=8))


@case("5.10", SET, "a set-field takes the place of an earlier one of the same field")
def _(bench: Bench) -> None:
    bench.flow(UDP, of.write_actions(of.set_field("udp_dst", 7), of.output(bench.p2)), of.goto_table(1))
    bench.flow(UDP, of.write_actions(of.set_field("udp_dst", 8)), table=1)
    bench.passes(build(**UDP), build(**UDP, udp_dst=8))


@case("5.10", SET, "output comes last, wherever it was written")
def _(bench: Bench) -> None:
    bench.flow(UDP, of.write_actions(of.output(bench.p2), of.set_field("udp_dst", 7), of.dec_nw_ttl()))
    bench.passes(build(**UDP), build(**UDP, udp_dst=7, ip_ttl=63))


@case("5.10", SET, "a group is carried out, and output beside it left out")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, of.bucket(of.output(bench.p2))))
    bench.flow({}, of.write_actions(of.output(bench.p3), of.group(1)))
    bench.passes(build())


@case("5.10", SET, "set-field comes before the group")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_INDIRECT, of.bucket(of.output(bench.p2))))
    bench.flow(UDP, of.write_actions(of.group(1), of.set_field("udp_dst", 7)))
    bench.passes(build(**UDP), build(**UDP, udp_dst=7))


@case("5.10", SET, "pop comes before push: a tag is replaced")
def _(bench: Bench) -> None:
    vid = of.set_field("vlan_vid", 0x1000 | 20)
    bench.flow(
        {"vlan_vid": (0x1000, 0x1000)}, of.write_actions(vid, of.push_vlan(0x8100), of.pop_vlan(), of.output(bench.p2))
    )
    bench.passes(build(vlan_vid=10), build(vlan_vid=20))


@case("5.10", SET, "push-MPLS comes before push-VLAN: the tag is outside")
def _(bench: Bench) -> None:
    bench.flow({"eth_type": 0x0800}, of.write_actions(of.push_vlan(0x8100), of.push_mpls(0x8847), of.output(bench.p2)))
    came = bench.frame(build())
    check(len(came) == 1 and came[0][1][12:14] == b"\x81\x00" and came[0][1][16:18] == b"\x88\x47", f"{came}")


@case("5.10", SET, "TTL is decremented before it is set")
def _(bench: Bench) -> None:
    bench.flow(UDP, of.write_actions(of.set_nw_ttl(9), of.dec_nw_ttl(), of.output(bench.p2)))
    bench.passes(build(**UDP), build(**UDP, ip_ttl=9))


@case("5.10", SET, "without output and group the frame is dropped")
def _(bench: Bench) -> None:
    bench.flow(UDP, of.write_actions(of.set_field("udp_dst", 7)))
    bench.drops(build(**UDP))


@case("5.10", SET, "a frame begins with an empty action set")
def _(bench: Bench) -> None:
    bench.flow({"eth_type": 0x0800}, of.write_actions(of.output(bench.p2)))
    bench.flow({"eth_type": 0x0806})
    bench.passes(build())
    bench.drops(build(arp_op=1))


@case("5.11", LIST, "each output is of the frame as it is then")
def _(bench: Bench) -> None:
    actions = (of.output(bench.p2), of.set_field("eth_dst", 5), of.output(bench.p3), of.set_field("eth_dst", 6))
    bench.flow({}, of.apply_actions(*actions, of.output(bench.p4)))
    bench.expect(build(), (bench.p2, build()), (bench.p3, build(eth_dst=5)), (bench.p4, build(eth_dst=6)))


@case("5.11", LIST, "two outputs to one port are two frames")
def _(bench: Bench) -> None:
    bench.forward({}, of.output(bench.p2))
    bench.expect(build(), (bench.p2, build()), (bench.p2, build()))


@case("5.11", LIST, "an action may stand twice: two tags are pushed")
def _(bench: Bench) -> None:
    outer = of.set_field("vlan_vid", 0x1000 | 7)
    bench.forward({}, of.push_vlan(0x8100), of.push_vlan(0x88A8), outer)
    came = bench.frame(build())
    tags = came[0][1][12:20] if came else b""
    check(tags == bytes.fromhex("88a8000781000000"), f"tags {tags.hex()}")


@case("5.11", LIST, "a group in the list is carried out there, and the list goes on with the frame as it was")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, of.bucket(of.set_field("eth_dst", 5), of.output(bench.p3))))
    bench.forward({}, of.group(1))
    bench.expect(build(), (bench.p3, build(eth_dst=5)), (bench.p2, build()))


@case("5.11", LIST, "a list of a hundred actions is carried out")
def _(bench: Bench) -> None:
    bench.forward({}, *(of.set_field("eth_dst", number) for number in range(1, 101)))
    bench.passes(build(), build(eth_dst=100))
