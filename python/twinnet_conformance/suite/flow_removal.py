"""Timeouts, and what is reported when a flow goes (5.5, 7.4.2)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

TIMEOUTS = "Flow removal: timeouts"
TOLD = "Flow removal: flow-removed"

IP = {"eth_type": 0x0800}
IDLE_TIMEOUT, HARD_TIMEOUT, DELETED, GROUP_DELETED = range(4)


@case("5.5", TIMEOUTS, "a flow goes when its hard timeout is over, and not before")
def _(bench: Bench) -> None:
    bench.forward(IP, hard=3)
    bench.advance(2.5)
    bench.passes(build())
    bench.advance(1)
    bench.drops(build())
    check(not bench.flows(), "the flow is there")


@case("5.5", TIMEOUTS, "traffic does not delay a hard timeout")
def _(bench: Bench) -> None:
    bench.forward(IP, hard=3)
    for _ in range(3):
        bench.frame(build())
        bench.advance(0.9)
    bench.advance(0.6)
    bench.drops(build())


@case("5.5", TIMEOUTS, "a flow goes when it has been idle for its idle timeout")
def _(bench: Bench) -> None:
    bench.forward(IP, idle=3)
    bench.advance(2)
    bench.passes(build())
    bench.advance(4)
    bench.drops(build())


@case("5.5", TIMEOUTS, "traffic delays an idle timeout")
def _(bench: Bench) -> None:
    bench.forward(IP, idle=4)
    for _ in range(6):
        bench.advance(2)
        bench.passes(build())


@case("5.5", TIMEOUTS, "of both timeouts the first ends the flow")
def _(bench: Bench) -> None:
    bench.forward(IP, idle=2, hard=20)
    bench.forward({"eth_type": 0x0806}, idle=20, hard=2)
    bench.advance(5)
    check(not bench.flows(), "flows are there")


@case("5.5", TIMEOUTS, "without timeouts a flow stays")
def _(bench: Bench) -> None:
    bench.forward(IP)
    bench.advance(600)
    bench.passes(build())


@case("5.5", TIMEOUTS, "a timeout of 65535 s is kept")
def _(bench: Bench) -> None:
    bench.forward(IP, idle=65535, hard=65535)
    bench.advance(60)
    flow = bench.one_flow()
    check((flow.idle, flow.hard) == (65535, 65535), f"{flow.idle} s, {flow.hard} s")


@case("5.5", TIMEOUTS, "asking for a flow's counters does not keep it from idling out")
def _(bench: Bench) -> None:
    bench.forward(IP, idle=3)
    for _ in range(4):
        bench.advance(1)
        bench.flows()
    bench.advance(1)
    check(not bench.flows(), "the flow is there")


def _one_removal(bench: Bench) -> of.FlowRemoved:
    first = of.read_flow_removed(bench.wait_for(of.FLOW_REMOVED))
    check(not bench.removals(), "more than one flow-removed came")
    return first


@case("7.4.2", TOLD, "a hard timeout is reported as OFPRR_HARD_TIMEOUT")
def _(bench: Bench) -> None:
    bench.forward(IP, hard=2, flags=of.SEND_FLOW_REM)
    bench.advance(4)
    check(_one_removal(bench).reason == HARD_TIMEOUT, "another reason")


@case("7.4.2", TOLD, "an idle timeout is reported as OFPRR_IDLE_TIMEOUT")
def _(bench: Bench) -> None:
    bench.forward(IP, idle=2, flags=of.SEND_FLOW_REM)
    bench.advance(4)
    check(_one_removal(bench).reason == IDLE_TIMEOUT, "another reason")


for _command in (of.DELETE, of.DELETE_STRICT):

    @case("7.4.2", TOLD, f"a flow that is deleted (command {_command}) is reported as OFPRR_DELETE")
    def _(bench: Bench, command: int = _command) -> None:
        bench.forward(IP, flags=of.SEND_FLOW_REM)
        bench.obeyed(of.flow_mod(IP, command=command))
        check(_one_removal(bench).reason == DELETED, "another reason")


@case("7.4.2", TOLD, "a flow that goes with its group is reported as OFPRR_GROUP_DELETE")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_ALL))
    bench.flow(IP, of.apply_actions(of.group(1)), flags=of.SEND_FLOW_REM)
    bench.obeyed(of.group_mod(1, command=2))
    check(_one_removal(bench).reason == GROUP_DELETED, "another reason")


@case("7.4.2", TOLD, "a flow that goes with its meter is reported as OFPRR_DELETE")
def _(bench: Bench) -> None:
    bench.obeyed(of.meter_mod(1, of.KBPS, of.drop_band(1000)))
    bench.flow(IP, of.use_meter(1), of.apply_actions(of.output(bench.p2)), flags=of.SEND_FLOW_REM)
    bench.obeyed(of.meter_mod(1, command=2))
    check(_one_removal(bench).reason == DELETED, "another reason")


@case("7.4.2", TOLD, "the message reports all that the flow was")
def _(bench: Bench) -> None:
    wanted = {"cookie": 0x1234567890, "priority": 321, "table": 4, "idle": 30, "hard": 40}
    bench.forward({"eth_type": 0x0800, "ip_proto": 6}, flags=of.SEND_FLOW_REM, **wanted)
    bench.obeyed(of.flow_mod({}, command=of.DELETE, table=of.ALL_TABLES))
    reported = _one_removal(bench)
    found = {name: getattr(reported, name) for name in wanted}
    check(found == wanted, f"reported {found}")
    check(reported.conditions == {"eth_type": (0x0800, None), "ip_proto": (6, None)}, f"{reported.conditions}")


@case("7.4.2", TOLD, "the message reports the flow's counters")
def _(bench: Bench) -> None:
    bench.forward(IP, flags=of.SEND_FLOW_REM)
    frame = build()
    for _ in range(3):
        bench.frame(frame)
    bench.obeyed(of.flow_mod({}, command=of.DELETE))
    reported = _one_removal(bench)
    check(
        (reported.packets, reported.bytes) == (3, 3 * len(frame)), f"{reported.packets} packets, {reported.bytes} bytes"
    )


@case("7.4.2", TOLD, "the message reports how long the flow lived")
def _(bench: Bench) -> None:
    bench.forward(IP, flags=of.SEND_FLOW_REM)
    bench.advance(2.5)
    bench.obeyed(of.flow_mod({}, command=of.DELETE))
    reported = _one_removal(bench)
    lived = reported.seconds + reported.nanoseconds / 1e9
    check(2.45 <= lived <= 2.75, f"{lived} s")


@case("7.4.2", TOLD, "without OFPFF_SEND_FLOW_REM nothing is reported")
def _(bench: Bench) -> None:
    bench.forward(IP, hard=1)
    bench.forward({"eth_type": 0x0806})
    bench.advance(3)
    bench.obeyed(of.flow_mod({}, command=of.DELETE))
    check(not bench.removals(), "a flow-removed came")


@case("7.4.2", TOLD, "every flow that one message deletes is reported")
def _(bench: Bench) -> None:
    for priority in range(10):
        bench.forward(IP, priority=priority, flags=of.SEND_FLOW_REM)
    bench.obeyed(of.flow_mod({}, command=of.DELETE))
    reported = [of.read_flow_removed(bench.wait_for(of.FLOW_REMOVED)).priority for _ in range(10)]
    check(sorted(reported) == list(range(10)), "others were reported")
