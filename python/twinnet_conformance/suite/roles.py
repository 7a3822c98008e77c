"""Several controllers and their roles (6.3.4, 7.3.9)."""

from __future__ import annotations

import struct

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, Channel, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

ROLES = "Roles"
NOCHANGE, EQUAL, MASTER, SLAVE = range(4)


def _role(channel: Channel, role: int, generation: int = 0) -> tuple[int, int]:
    body = channel.ask(of.role_request(role, generation), of.ROLE_REPLY).body
    found, reported = struct.unpack("!I4xQ", body)
    return found, reported


@case("7.3.9", ROLES, "a controller begins as equal")
def _(bench: Bench) -> None:
    check(_role(bench, NOCHANGE)[0] == EQUAL, "another role")


for _wanted, _name in ((EQUAL, "equal"), (MASTER, "master"), (SLAVE, "slave")):

    @case("7.3.9", ROLES, f"a controller becomes {_name}, and is reported so")
    def _(bench: Bench, wanted: int = _wanted) -> None:
        check(_role(bench, wanted, 5)[0] == wanted, "another role")
        check(_role(bench, NOCHANGE)[0] == wanted, "another role when asked")


@case("7.3.9", ROLES, "the reply reports the generation")
def _(bench: Bench) -> None:
    check(_role(bench, MASTER, 77) == (MASTER, 77), "another one")


@case("6.3.4", ROLES, "when another becomes master, the old one becomes slave")
def _(bench: Bench) -> None:
    other = bench.controller()
    _role(bench, MASTER, 1)
    _role(other, MASTER, 2)
    check(_role(bench, NOCHANGE)[0] == SLAVE, "it is not")


@case("6.3.4", ROLES, "an equal one stays equal when another becomes master")
def _(bench: Bench) -> None:
    other = bench.controller()
    _role(other, MASTER, 2)
    check(_role(bench, NOCHANGE)[0] == EQUAL, "it does not")


for _wanted, _name in ((MASTER, "master"), (SLAVE, "slave")):

    @case("6.3.4", ROLES, f"to become {_name} with an old generation is OFPRRFC_STALE")
    def _(bench: Bench, wanted: int = _wanted) -> None:
        _role(bench, MASTER, 10)
        bench.refused(of.role_request(wanted, 9), of.ROLE_REQUEST_FAILED, 0)

    @case("6.3.4", ROLES, f"to become {_name} with the same generation is allowed")
    def _(bench: Bench, wanted: int = _wanted) -> None:
        _role(bench, MASTER, 10)
        check(_role(bench, wanted, 10)[0] == wanted, "another role")


@case("6.3.4", ROLES, "generations go round: what is less than 2^63 behind is old")
def _(bench: Bench) -> None:
    _role(bench, MASTER, 0xFFFFFFFFFFFFFFFF)
    check(_role(bench, MASTER, 3)[0] == MASTER, "3 does not follow 2^64 - 1")
    bench.refused(of.role_request(MASTER, 0xFFFFFFFFFFFFFFFE), of.ROLE_REQUEST_FAILED, 0)


@case("6.3.4", ROLES, "generations are one for all controllers")
def _(bench: Bench) -> None:
    other = bench.controller()
    _role(other, MASTER, 10)
    bench.refused(of.role_request(SLAVE, 5), of.ROLE_REQUEST_FAILED, 0)


@case("6.3.4", ROLES, "to become equal takes no notice of generations")
def _(bench: Bench) -> None:
    _role(bench, MASTER, 10)
    check(_role(bench, EQUAL, 3)[0] == EQUAL, "another role")


@case("7.3.9", ROLES, "a role that does not exist is OFPRRFC_BAD_ROLE")
def _(bench: Bench) -> None:
    bench.refused(of.role_request(9, 1), of.ROLE_REQUEST_FAILED, 2)


for _message, _name in (
    (of.flow_mod(), "flow-mods"),
    (of.group_mod(1), "group-mods"),
    (of.meter_mod(1, of.KBPS), "meter-mods"),
    (of.table_mod(0, 0), "table-mods"),
    (of.packet_out(build(), of.output(2)), "packet-outs"),
    (of.set_config(0, 5), "configurations"),
):

    @case("6.3.4", ROLES, f"{_name} of a slave are OFPBRC_IS_SLAVE")
    def _(bench: Bench, message: of.Message = _message) -> None:
        _role(bench, SLAVE, 1)
        bench.refused(message, of.BAD_REQUEST, 10)


@case("6.3.4", ROLES, "port-mods of a slave are OFPBRC_IS_SLAVE")
def _(bench: Bench) -> None:
    address = bench.port_descriptions()[bench.p1].address
    _role(bench, SLAVE, 1)
    bench.refused(of.port_mod(bench.p1, address, 0, 0), of.BAD_REQUEST, 10)


@case("6.3.4", ROLES, "a slave may ask for everything")
def _(bench: Bench) -> None:
    _role(bench, SLAVE, 1)
    bench.flows()
    bench.port_descriptions()
    bench.ask(of.Message(of.FEATURES_REQUEST), of.FEATURES_REPLY)
    bench.ask(of.Message(of.GET_CONFIG_REQUEST), of.GET_CONFIG_REPLY)


@case("6.3.4", ROLES, "a slave gets no packet-ins and no flow-removed")
def _(bench: Bench) -> None:
    other = bench.controller()
    other.obeyed(of.flow_mod({}, of.apply_actions(of.output(of.CONTROLLER)), flags=of.SEND_FLOW_REM))
    _role(bench, SLAVE, 1)
    bench.frame(build())
    other.wait_for(of.PACKET_IN)
    other.obeyed(of.flow_mod({}, command=of.DELETE))
    other.wait_for(of.FLOW_REMOVED)
    check(not bench.packet_ins() and not bench.removals(), "it got some")


@case("6.3.4", ROLES, "a slave is reported of ports")
def _(bench: Bench) -> None:
    other = bench.controller()
    address = bench.port_descriptions()[bench.p2].address
    _role(bench, SLAVE, 1)
    other.obeyed(of.port_mod(bench.p2, address, 32, 32))
    bench.wait_for(of.PORT_STATUS)


@case("6.3.4", ROLES, "what one controller asks, it alone is answered")
def _(bench: Bench) -> None:
    other = bench.controller()
    bench.flows()
    other.barrier()
    check(not other.take(of.MULTIPART_REPLY), "the other was answered")


@case("6.3.4", ROLES, "flows of one controller are seen by the other")
def _(bench: Bench) -> None:
    other = bench.controller()
    other.obeyed(of.flow_mod({}, cookie=9))
    check(bench.one_flow().cookie == 9, "another flow")


for _written, _name in (
    (of.flow_mod({}, command=9), "a flow-mod with a command that does not exist"),
    (of.group_mod(of.MAX_GROUP + 1), "a group-mod with a number that cannot be"),
    (of.Message(of.METER_MOD, bytes(4)), "a meter-mod that is too short"),
    (of.multipart(of.MP_TABLE_FEATURES, bytes(64)), "table features that cannot be"),
    (of.packet_out(b"", of.output(2)), "a packet-out without a frame"),
    (of.Message(of.PACKET_OUT), "a packet-out that is too short"),
    (of.Message(of.PORT_MOD, bytes(8)), "a port-mod that is too short"),
    (of.Message(of.SET_CONFIG), "a configuration that is too short"),
):

    @case("6.3.4", ROLES, f"the role comes before the content: {_name} of a slave is OFPBRC_IS_SLAVE")
    def _(bench: Bench, message: of.Message = _written) -> None:
        _role(bench, SLAVE, 1)
        bench.refused(message, of.BAD_REQUEST, 10)
