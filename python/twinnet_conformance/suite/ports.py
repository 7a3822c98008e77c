"""Ports: description, configuration, status (4, 7.3.4.3, 7.4.3)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

TOLD = "Ports: description"
MODIFIED = "Ports: port-mod"
STATUS = "Ports: port-status"
PORT_DOWN, NO_RECV, NO_FWD, NO_PACKET_IN = 1, 4, 32, 64
LINK_DOWN, LIVE = 1, 4


def _configure(bench: Bench, port: int, config: int, mask: int) -> None:
    bench.obeyed(of.port_mod(port, bench.port_descriptions()[port].address, config, mask))
    bench.advance(0.1)


@case("7.3.5.7", TOLD, "every port is reported with a name and an address of its own")
def _(bench: Bench) -> None:
    ports = bench.port_descriptions()
    ours = [ports[port] for port in bench.target.ports]
    check(all(port.name for port in ours), "a port without name")
    check(len({port.address for port in ours}) == len(ours), "two ports with one address")


@case("7.2.1", TOLD, "a port that is up is not LINK_DOWN, and not PORT_DOWN")
def _(bench: Bench) -> None:
    port = bench.port_descriptions()[bench.p1]
    check(not port.state & LINK_DOWN and not port.config & PORT_DOWN, f"{port}")


@case("7.2.1", TOLD, "a port whose line is down is LINK_DOWN")
def _(bench: Bench) -> None:
    bench.target.set_link(bench.p2, False)
    check(bench.port_descriptions()[bench.p2].state & LINK_DOWN == LINK_DOWN, "it is not reported")


@case("7.2.1", TOLD, "a port that is up is LIVE for fast failover")
def _(bench: Bench) -> None:
    check(bench.port_descriptions()[bench.p1].state & LIVE == LIVE, "it is not reported")


@case("7.3.4.3", MODIFIED, "PORT_DOWN stops both ways")
def _(bench: Bench) -> None:
    bench.needs_devices()
    bench.forward({})
    _configure(bench, bench.p2, PORT_DOWN, PORT_DOWN)
    bench.drops(build())
    bench.drops(build(), port=bench.p2)


@case("7.3.4.3", MODIFIED, "a port that was taken down is reported, and comes up again")
def _(bench: Bench) -> None:
    bench.forward({})
    _configure(bench, bench.p2, PORT_DOWN, PORT_DOWN)
    check(bench.port_descriptions()[bench.p2].config & PORT_DOWN == PORT_DOWN, "it is not reported")
    _configure(bench, bench.p2, 0, PORT_DOWN)
    bench.passes(build())


@case("7.3.4.3", MODIFIED, "NO_RECV drops what comes in, and lets out")
def _(bench: Bench) -> None:
    bench.forward({"in_port": bench.p1})
    bench.flow({"in_port": bench.p2}, of.apply_actions(of.output(bench.p1)))
    _configure(bench, bench.p2, NO_RECV, NO_RECV)
    bench.passes(build())
    bench.drops(build(), port=bench.p2)


@case("7.3.4.3", MODIFIED, "NO_FWD drops what goes out, and lets in")
def _(bench: Bench) -> None:
    bench.forward({"in_port": bench.p1})
    bench.flow({"in_port": bench.p2}, of.apply_actions(of.output(bench.p1)))
    _configure(bench, bench.p2, NO_FWD, NO_FWD)
    bench.drops(build())
    bench.expect(build(), (bench.p1, build()), port=bench.p2)


@case("7.3.4.3", MODIFIED, "NO_FWD takes a port out of FLOOD and ALL")
def _(bench: Bench) -> None:
    bench.flow({}, of.apply_actions(of.output(of.FLOOD)))
    _configure(bench, bench.p3, NO_FWD, NO_FWD)
    bench.expect(build(), *((port, build()) for port in (bench.p2, bench.p4)))


@case("7.3.4.3", MODIFIED, "NO_PACKET_IN keeps frames of the port from the controller's table-miss")
def _(bench: Bench) -> None:
    bench.flow({}, of.apply_actions(of.output(of.CONTROLLER)), priority=0)
    _configure(bench, bench.p1, NO_PACKET_IN, NO_PACKET_IN)
    bench.frame(build())
    check(not bench.packet_ins(), "a packet-in came")
    bench.frame(build(), bench.p3)
    bench.packet_in()


@case("7.3.4.3", MODIFIED, "bits outside the mask stay as they are")
def _(bench: Bench) -> None:
    _configure(bench, bench.p2, NO_FWD, NO_FWD)
    _configure(bench, bench.p2, NO_RECV, NO_RECV)
    check(bench.port_descriptions()[bench.p2].config == NO_FWD | NO_RECV, "a bit was changed")


@case("7.3.4.3", MODIFIED, "a port that is not there is OFPPMFC_BAD_PORT")
def _(bench: Bench) -> None:
    bench.refused(of.port_mod(77, bytes(6), 0, 0), of.PORT_MOD_FAILED, 0)


@case("7.3.4.3", MODIFIED, "another address than the port's is OFPPMFC_BAD_HW_ADDR")
def _(bench: Bench) -> None:
    bench.refused(of.port_mod(bench.p1, bytes([2, 9, 9, 9, 9, 9]), 0, 0), of.PORT_MOD_FAILED, 1)


@case("7.3.4.3", MODIFIED, "bits that do not exist are OFPPMFC_BAD_CONFIG")
def _(bench: Bench) -> None:
    address = bench.port_descriptions()[bench.p1].address
    bench.refused(of.port_mod(bench.p1, address, 0x80000000, 0x80000000), of.PORT_MOD_FAILED, 2)


@case("7.3.4.3", MODIFIED, "features to be advertised that the port does not have are OFPPMFC_BAD_ADVERTISE")
def _(bench: Bench) -> None:
    address = bench.port_descriptions()[bench.p1].address
    # 1 Tbit/s in full duplex.
    bench.refused(of.port_mod(bench.p1, address, 0, 0, 1 << 9), of.PORT_MOD_FAILED, 3)


def _status(bench: Bench) -> list[tuple[int, of.Port]]:
    bench.barrier()
    bench.barrier()
    return [(one.body[0], of.read_port(one.body[8:])) for one in bench.take(of.PORT_STATUS)]


@case("7.4.3", STATUS, "a port that is taken down is reported as OFPPR_MODIFY")
def _(bench: Bench) -> None:
    _configure(bench, bench.p2, PORT_DOWN, PORT_DOWN)
    reported = [(reason, port.number) for reason, port in _status(bench) if port.config & PORT_DOWN]
    check((2, bench.p2) in reported, f"reported {reported}")


@case("7.4.3", STATUS, "a line that goes down, and up again, is reported as OFPPR_MODIFY")
def _(bench: Bench) -> None:
    bench.target.set_link(bench.p2, False)
    bench.target.set_link(bench.p2, True)
    states = [(reason, port.number, port.state & LINK_DOWN) for reason, port in _status(bench)]
    check(states == [(2, bench.p2, 1), (2, bench.p2, 0)], f"reported {states}")


@case("7.4.3", STATUS, "every controller is told")
def _(bench: Bench) -> None:
    other = bench.controller()
    _configure(bench, bench.p2, PORT_DOWN, PORT_DOWN)
    bench.wait_for(of.PORT_STATUS)
    other.wait_for(of.PORT_STATUS)


@case("7.4.3", STATUS, "a change that is no port's end is reported too")
def _(bench: Bench) -> None:
    _configure(bench, bench.p2, NO_FWD, NO_FWD)
    reported = of.read_port(bench.wait_for(of.PORT_STATUS).body[8:])
    check(reported.config == NO_FWD, f"{reported}")
