"""Which messages a controller gets unasked (7.3.10)."""

from __future__ import annotations

import struct

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

ASYNC = "Asynchronous configuration"
ALL = ((7, 7), (7, 7), (15, 15))


@case("7.3.10", ASYNC, "what was set is reported")
def _(bench: Bench) -> None:
    bench.obeyed(of.set_async((1, 2), (3, 4), (5, 6)))
    body = bench.ask(of.Message(of.GET_ASYNC_REQUEST), of.GET_ASYNC_REPLY).body
    check(struct.unpack("!6I", body) == (1, 2, 3, 4, 5, 6), f"{struct.unpack('!6I', body)}")


@case("7.3.10", ASYNC, "it is one's own: another controller's is not changed")
def _(bench: Bench) -> None:
    other = bench.controller()
    before = other.ask(of.Message(of.GET_ASYNC_REQUEST), of.GET_ASYNC_REPLY).body
    bench.obeyed(of.set_async((0, 0), (0, 0), (0, 0)))
    check(other.ask(of.Message(of.GET_ASYNC_REQUEST), of.GET_ASYNC_REPLY).body == before, "it is")


for _reason, _name in ((0, "OFPR_NO_MATCH"), (1, "OFPR_ACTION"), (2, "OFPR_INVALID_TTL")):

    @case("7.3.10", ASYNC, f"packet-ins of {_name} can be switched off and on")
    def _(bench: Bench, reason: int = _reason) -> None:
        if reason == 2:
            bench.forward({"eth_type": 0x0800}, of.dec_nw_ttl())
        else:
            bench.flow({}, of.apply_actions(of.output(of.CONTROLLER)), priority=reason)
        bench.obeyed(of.set_async((7 & ~(1 << reason), 0), (0, 0), (0, 0)))
        bench.frame(build(ip_ttl=1))
        check(not bench.packet_ins(), "one came")
        bench.obeyed(of.set_async((1 << reason, 0), (0, 0), (0, 0)))
        bench.frame(build(ip_ttl=1))
        check(bench.packet_in().reason == reason, "of another reason")


for _reason, _name in ((0, "IDLE_TIMEOUT"), (1, "HARD_TIMEOUT"), (2, "DELETE"), (3, "GROUP_DELETE")):

    @case("7.3.10", ASYNC, f"flow-removed of OFPRR_{_name} can be switched off and on")
    def _(bench: Bench, reason: int = _reason) -> None:
        for masks, due in (((15 & ~(1 << reason), 0), 0), ((1 << reason, 0), 1)):
            bench.obeyed(of.set_async((0, 0), (0, 0), masks), of.group_mod(1))
            timeouts = {0: {"idle": 1}, 1: {"hard": 1}}.get(reason, {})
            bench.flow({}, of.apply_actions(of.group(1)), flags=of.SEND_FLOW_REM, **timeouts)
            if reason == 2:
                bench.obeyed(of.flow_mod({}, command=of.DELETE))
            bench.advance(3)
            bench.obeyed(of.group_mod(1, command=2))
            if due:
                bench.wait_for(of.FLOW_REMOVED)
            check(not bench.removals(), "one came")


@case("7.3.10", ASYNC, "port-status can be switched off and on")
def _(bench: Bench) -> None:
    address = bench.port_descriptions()[bench.p2].address
    bench.obeyed(of.set_async((0, 0), (3, 0), (0, 0)), of.port_mod(bench.p2, address, 1, 1))
    bench.advance(0.1)
    bench.barrier()
    check(not bench.take(of.PORT_STATUS), "one came")
    bench.obeyed(of.set_async((0, 0), (4, 0), (0, 0)), of.port_mod(bench.p2, address, 0, 1))
    bench.wait_for(of.PORT_STATUS)


@case("7.3.10", ASYNC, "a slave gets what its own masks say")
def _(bench: Bench) -> None:
    other = bench.controller()
    other.obeyed(of.flow_mod({}, of.apply_actions(of.output(of.CONTROLLER))))
    bench.obeyed(of.set_async((0, 7), (0, 0), (0, 0)), of.role_request(of.SLAVE, 1))
    bench.frame(build())
    bench.packet_in()


@case("7.3.10", ASYNC, "masks with bits that do not exist are no reason to end the connection")
def _(bench: Bench) -> None:
    bench.answers(of.set_async((0xFFFFFFFF, 0), (0, 0), (0, 0)))
    bench.ask(of.Message(of.ECHO_REQUEST), of.ECHO_REPLY)
