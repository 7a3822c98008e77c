"""Output to ports and to the reserved ones (4.5, 5.12)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

PORTS = "Output: ports"
RESERVED = "Output: reserved ports"
REFUSED = "Output: what is refused"


@case("5.12", PORTS, "to several ports")
def _(bench: Bench) -> None:
    bench.forward({}, of.output(bench.p3), of.output(bench.p4))
    bench.expect(build(), *((port, build()) for port in (bench.p2, bench.p3, bench.p4)))


@case("4.5", PORTS, "to the port by which it came, by its number: dropped")
def _(bench: Bench) -> None:
    bench.forward({}, of.output(bench.p1))
    bench.passes(build())


@case("4.5", RESERVED, "IN_PORT sends back")
def _(bench: Bench) -> None:
    bench.flow({}, of.apply_actions(of.output(of.IN_PORT)))
    bench.expect(build(), (bench.p1, build()))
    bench.expect(build(), (bench.p3, build()), port=bench.p3)


@case("4.5", RESERVED, "IN_PORT beside another port")
def _(bench: Bench) -> None:
    bench.forward({}, of.output(of.IN_PORT))
    bench.expect(build(), (bench.p1, build()), (bench.p2, build()))


@case("4.5", RESERVED, "ALL is every port but the one by which it came")
def _(bench: Bench) -> None:
    bench.flow({}, of.apply_actions(of.output(of.ALL_PORTS)))
    bench.expect(build(), *((port, build()) for port in (bench.p2, bench.p3, bench.p4)))


@case("4.5", RESERVED, "FLOOD is every port but the one by which it came")
def _(bench: Bench) -> None:
    bench.flow({}, of.apply_actions(of.output(of.FLOOD)))
    bench.expect(build(), *((port, build()) for port in (bench.p2, bench.p3, bench.p4)))


@case("4.5", RESERVED, "CONTROLLER is a packet-in")
def _(bench: Bench) -> None:
    bench.flow({}, of.apply_actions(of.output(of.CONTROLLER)))
    bench.drops(build())
    check(bench.packet_in().data == build(), "another frame")


@case("4.5", RESERVED, "NORMAL floods what it does not know, and learns")
def _(bench: Bench) -> None:
    bench.flow({}, of.apply_actions(of.output(of.NORMAL)))
    there = build(eth_src=0x020000000001, eth_dst=0x020000000002)
    back = build(eth_src=0x020000000002, eth_dst=0x020000000001)
    bench.expect(there, *((port, there) for port in (bench.p2, bench.p3, bench.p4)))
    bench.expect(back, (bench.p1, back), port=bench.p3)
    bench.expect(there, (bench.p3, there))


@case("4.5", RESERVED, "LOCAL is taken as a port")
def _(bench: Bench) -> None:
    bench.forward({}, of.output(of.LOCAL))
    bench.passes(build())


@case("4.5", RESERVED, "FLOOD in the action set")
def _(bench: Bench) -> None:
    bench.flow({}, of.write_actions(of.output(of.FLOOD)))
    bench.expect(build(), *((port, build()) for port in (bench.p2, bench.p3, bench.p4)))


@case("4.5", RESERVED, "IN_PORT in the action set")
def _(bench: Bench) -> None:
    bench.flow({}, of.write_actions(of.output(of.IN_PORT)))
    bench.expect(build(), (bench.p1, build()))


@case("4.5", RESERVED, "CONTROLLER in the action set")
def _(bench: Bench) -> None:
    bench.flow({}, of.write_actions(of.output(of.CONTROLLER)))
    bench.drops(build())
    bench.packet_in()


for _name, _port in (("0", 0), ("ANY", of.ANY), ("MAX + 1, which is no port", of.MAX_PORT + 1)):

    @case("7.2.5", REFUSED, f"output to {_name} is OFPBAC_BAD_OUT_PORT")
    def _(bench: Bench, port: int = _port) -> None:
        bench.refused(of.flow_mod({}, of.apply_actions(of.output(port))), of.BAD_ACTION, 4)


@case("4.5", REFUSED, "output to TABLE in a flow is OFPBAC_BAD_OUT_PORT")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod({}, of.apply_actions(of.output(of.TABLE))), of.BAD_ACTION, 4)


@case("7.2.5", REFUSED, "output to a group that is not there is OFPBAC_BAD_OUT_GROUP")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod({}, of.apply_actions(of.group(5))), of.BAD_ACTION, 9)


@case("7.2.5", REFUSED, "a group in the action set that is not there is OFPBAC_BAD_OUT_GROUP")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod({}, of.write_actions(of.group(5))), of.BAD_ACTION, 9)


@case("7.2.5", REFUSED, "a meter that is not there is refused")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod({}, of.use_meter(9)), of.METER_MOD_FAILED, 2, 3)
