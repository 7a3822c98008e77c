"""Frames that the controller sends (7.3.7)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

SENT = "Packet-out"
REFUSED = "Packet-out: what is refused"


def _sent(bench: Bench, message: of.Message) -> list[tuple[int, bytes]]:
    bench.target.settle()
    bench.target.arrived()
    bench.obeyed(message)
    return sorted(bench.target.arrived())


@case("7.3.7", SENT, "by a port")
def _(bench: Bench) -> None:
    check(_sent(bench, of.packet_out(build(), of.output(bench.p2))) == [(bench.p2, build())], "another frame")


@case("7.3.7", SENT, "by several ports")
def _(bench: Bench) -> None:
    came = _sent(bench, of.packet_out(build(), of.output(bench.p2), of.output(bench.p3)))
    check(came == [(bench.p2, build()), (bench.p3, build())], f"{came}")


for _name, _port in (("FLOOD", of.FLOOD), ("ALL", of.ALL_PORTS)):

    @case("7.3.7", SENT, f"by {_name}, from the controller: every port")
    def _(bench: Bench, port: int = _port) -> None:
        came = _sent(bench, of.packet_out(build(), of.output(port)))
        check([one for one, _ in came] == list(bench.target.ports), f"{came}")

    @case("7.3.7", SENT, f"by {_name}, as if from a port: every other port")
    def _(bench: Bench, port: int = _port) -> None:
        came = _sent(bench, of.packet_out(build(), of.output(port), in_port=bench.p1))
        check([one for one, _ in came] == [bench.p2, bench.p3, bench.p4], f"{came}")


@case("7.3.7", SENT, "by IN_PORT")
def _(bench: Bench) -> None:
    came = _sent(bench, of.packet_out(build(), of.output(of.IN_PORT), in_port=bench.p3))
    check(came == [(bench.p3, build())], f"{came}")


@case("7.3.7", SENT, "by NORMAL")
def _(bench: Bench) -> None:
    came = _sent(bench, of.packet_out(build(), of.output(of.NORMAL), in_port=bench.p1))
    check([one for one, _ in came] == [bench.p2, bench.p3, bench.p4], f"{came}")


@case("7.3.7", SENT, "by TABLE: the flows of table 0 are met")
def _(bench: Bench) -> None:
    bench.forward({"in_port": bench.p3, "eth_type": 0x0800}, of.set_field("eth_dst", 5))
    came = _sent(bench, of.packet_out(build(), of.output(of.TABLE), in_port=bench.p3))
    check(came == [(bench.p2, build(eth_dst=5))], f"{came}")
    check(bench.one_flow().packets == 1, "the flow has not counted it")


@case("7.3.7", SENT, "by TABLE, from the controller: in_port is OFPP_CONTROLLER")
def _(bench: Bench) -> None:
    bench.forward({"in_port": of.CONTROLLER})
    came = _sent(bench, of.packet_out(build(), of.output(of.TABLE)))
    check(came == [(bench.p2, build())], f"{came}")


@case("7.3.7", SENT, "rewritten first, then by TABLE")
def _(bench: Bench) -> None:
    bench.forward({"eth_dst": 5})
    message = of.packet_out(build(), of.set_field("eth_dst", 5), of.output(of.TABLE), in_port=bench.p3)
    check(_sent(bench, message) == [(bench.p2, build(eth_dst=5))], "another frame")


@case("7.3.7", SENT, "to a group")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, of.bucket(of.output(bench.p2)), of.bucket(of.output(bench.p3))))
    came = _sent(bench, of.packet_out(build(), of.group(1)))
    check(came == [(bench.p2, build()), (bench.p3, build())], f"{came}")


@case("7.3.7", SENT, "to the controller: it comes back")
def _(bench: Bench) -> None:
    bench.obeyed(of.packet_out(build(), of.output(of.CONTROLLER), in_port=bench.p1))
    check(bench.packet_in().data == build(), "another frame")


@case("7.3.7", SENT, "without actions it is dropped")
def _(bench: Bench) -> None:
    check(not _sent(bench, of.packet_out(build())), "something came")


@case("7.3.7", SENT, "actions in their order")
def _(bench: Bench) -> None:
    actions = (of.output(bench.p2), of.push_vlan(0x8100), of.set_field("vlan_vid", 0x1000 | 9), of.output(bench.p3))
    came = _sent(bench, of.packet_out(build(), *actions))
    check(came == [(bench.p2, build()), (bench.p3, build(vlan_vid=9))], f"{came}")


@case("7.3.7", SENT, "a frame of 1514 bytes")
def _(bench: Bench) -> None:
    frame = build().ljust(1514, b"\3")
    check(_sent(bench, of.packet_out(frame, of.output(bench.p2))) == [(bench.p2, frame)], "another frame")


@case("7.3.7", SENT, "a packet-out by TABLE behind a flow-mod meets the new flow")
def _(bench: Bench) -> None:
    bench.forward({}, out=bench.p3)
    _sent(bench, of.packet_out(build(), of.output(of.TABLE), in_port=bench.p1))
    bench.send(of.flow_mod({}, of.apply_actions(of.output(bench.p2)), command=of.MODIFY))
    bench.obeyed(of.packet_out(build(), of.output(of.TABLE), in_port=bench.p1))
    came = bench.target.arrived()
    check(came == [(bench.p2, build())], f"{came}")


def _refused(title: str, kind: int, codes: tuple[int, ...], message: of.Message) -> None:
    @case("7.3.7", REFUSED, title)
    def _(bench: Bench) -> None:
        bench.refused(message, kind, *codes)


_refused("output to ANY: OFPBAC_BAD_OUT_PORT", of.BAD_ACTION, (4,), of.packet_out(build(), of.output(of.ANY)))
_refused("output to port 0: OFPBAC_BAD_OUT_PORT", of.BAD_ACTION, (4,), of.packet_out(build(), of.output(0)))
_refused("a group that is not there: OFPBAC_BAD_OUT_GROUP", of.BAD_ACTION, (9,), of.packet_out(build(), of.group(9)))
_refused(
    "an action that does not exist: OFPBAC_BAD_TYPE",
    of.BAD_ACTION,
    (0,),
    of.packet_out(build(), of.action(99, bytes(4))),
)
_refused(
    "from a port that is not there: OFPBRC_BAD_PORT",
    of.BAD_REQUEST,
    (11,),
    of.packet_out(build(), of.output(2), in_port=77),
)
_refused(
    "no frame and no buffer: OFPBRC_BAD_PACKET",
    of.BAD_REQUEST,
    (12,),
    of.packet_out(b"", of.output(2)),
)
_refused(
    "actions longer than the message: OFPBRC_BAD_LEN or OFPBAC_BAD_LEN",
    of.BAD_REQUEST,
    (6,),
    of.Message(of.PACKET_OUT, of.packet_out(b"").body[:8] + (800).to_bytes(2) + bytes(6)),
)
