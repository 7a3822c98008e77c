"""OpenFlow 1.0: actions (3.3 and 5.2.4 of 1.0.2)."""

from __future__ import annotations

from twinnet_conformance import openflow10 as ten
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

ACTIONS = "1.0: actions"
REFUSED = "1.0: what is refused"
UDP = {"ip_proto": 17}


def _rewrites(title: str, action: bytes, before: bytes, after: bytes) -> None:
    @case("5.2.4", ACTIONS, title, "1.0")
    def _(bench: Bench) -> None:
        bench.obeyed(ten.flow_mod(ten.flow_match(), action, ten.output(bench.p2)))
        bench.passes(before, after)


_rewrites("set-dl-src", ten.set_dl(4, 9), build(), build(eth_src=9))
_rewrites("set-dl-dst", ten.set_dl(5, 9), build(), build(eth_dst=9))
_rewrites("set-nw-src before UDP", ten.set_nw(6, 9), build(**UDP), build(**UDP, ipv4_src=9))
_rewrites("set-nw-dst before TCP", ten.set_nw(7, 9), build(ip_proto=6), build(ip_proto=6, ipv4_dst=9))
_rewrites("set-nw-tos leaves ECN", ten.set_tos(40), build(ip_ecn=1), build(ip_ecn=1, ip_dscp=10))
_rewrites("set-tp-src of UDP", ten.set_tp(9, 7), build(**UDP), build(**UDP, udp_src=7))
_rewrites("set-tp-dst of TCP", ten.set_tp(10, 7), build(ip_proto=6), build(ip_proto=6, tcp_dst=7))
_rewrites("set-vlan-vid tags an untagged frame", ten.set_vlan_vid(9), build(), build(vlan_vid=9))
_rewrites(
    "set-vlan-vid changes a tag, not its priority",
    ten.set_vlan_vid(9),
    build(vlan_vid=5, vlan_pcp=3),
    build(vlan_vid=9, vlan_pcp=3),
)
_rewrites(
    "set-vlan-pcp tags an untagged frame with identifier 0", ten.set_vlan_pcp(3), build(), build(vlan_vid=0, vlan_pcp=3)
)
_rewrites(
    "set-vlan-pcp changes a tag, not its identifier",
    ten.set_vlan_pcp(3),
    build(vlan_vid=5, vlan_pcp=1),
    build(vlan_vid=5, vlan_pcp=3),
)
_rewrites("strip-vlan", ten.strip_vlan(), build(vlan_vid=5), build())
_rewrites("strip-vlan of an untagged frame is without effect", ten.strip_vlan(), build(), build())
_rewrites(
    "set-nw-dst of a frame that is not IP is without effect",
    ten.set_nw(7, 9),
    build(eth_type=0x88B5),
    build(eth_type=0x88B5),
)


for _name, _port in (("ALL", ten.ALL_PORTS), ("FLOOD", ten.FLOOD), ("NORMAL", ten.NORMAL)):

    @case("3.3.1", ACTIONS, f"output to {_name}", "1.0")
    def _(bench: Bench, port: int = _port) -> None:
        bench.obeyed(ten.flow_mod(ten.flow_match(), ten.output(port)))
        bench.expect(build(), *((one, build()) for one in (bench.p2, bench.p3, bench.p4)))


@case("3.3.1", ACTIONS, "output to IN_PORT", "1.0")
def _(bench: Bench) -> None:
    bench.obeyed(ten.flow_mod(ten.flow_match(), ten.output(ten.IN_PORT)))
    bench.expect(build(), (bench.p1, build()))


@case("3.3", ACTIONS, "no actions: the frame is dropped", "1.0")
def _(bench: Bench) -> None:
    bench.obeyed(ten.flow_mod(ten.flow_match()))
    bench.drops(build())
    check(not bench.take(ten.PACKET_IN), "the controller was told")


@case("3.3", ACTIONS, "actions take effect in their order", "1.0")
def _(bench: Bench) -> None:
    actions = (ten.output(bench.p2), ten.set_dl(5, 9), ten.output(bench.p3))
    bench.obeyed(ten.flow_mod(ten.flow_match(), *actions))
    bench.expect(build(), (bench.p2, build()), (bench.p3, build(eth_dst=9)))


@case("3.3.2", ACTIONS, "enqueue sends by the port and counts in its queue", "1.0")
def _(bench: Bench) -> None:
    bench.target.set_queues(bench.p2, ((100_000_000, 400_000_000), (200_000_000, 500_000_000)))
    bench.obeyed(ten.flow_mod(ten.flow_match(), ten.enqueue(bench.p2, 1)))
    bench.passes(build())
    body = bench.ask(ten.stats(5, bench.p2.to_bytes(2) + bytes(2) + (1).to_bytes(4)), ten.STATS_REPLY).body[4:]
    check(int.from_bytes(body[16:24]) == 1, f"{body.hex()}")


@case("3.3.2", ACTIONS, "enqueue by a port without queues sends", "1.0")
def _(bench: Bench) -> None:
    bench.obeyed(ten.flow_mod(ten.flow_match(), ten.enqueue(bench.p2, 0)))
    bench.passes(build())


def _refused(title: str, codes: tuple[int, ...], action: bytes) -> None:
    @case("5.4.4", REFUSED, title, "1.0")
    def _(bench: Bench) -> None:
        bench.refused(ten.flow_mod(ten.flow_match(), action), ten.BAD_ACTION, *codes)


_refused("an action that does not exist: OFPBAC_BAD_TYPE", (0,), ten.action(77, bytes(4)))
_refused("an action of another length: OFPBAC_BAD_LEN", (1,), ten.action(0, bytes(12)))
_refused("an action without length: OFPBAC_BAD_LEN", (1,), bytes(8))
_refused("an unknown vendor's action: OFPBAC_BAD_VENDOR", (2,), ten.action(0xFFFF, bytes([0, 0x55, 0x66, 0x77])))
_refused("output to port 0: OFPBAC_BAD_OUT_PORT", (4,), ten.output(0))
_refused("output to NONE: OFPBAC_BAD_OUT_PORT", (4,), ten.output(ten.NONE))
_refused("a VLAN beyond 12 bits: OFPBAC_BAD_ARGUMENT", (5,), ten.set_vlan_vid(0x1FFF))
_refused("a priority beyond 3 bits: OFPBAC_BAD_ARGUMENT", (5,), ten.set_vlan_pcp(9))
_refused("a type of service with bits of ECN: OFPBAC_BAD_ARGUMENT", (5,), ten.set_tos(41))
