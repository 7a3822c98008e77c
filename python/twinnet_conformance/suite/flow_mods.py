"""Adding, changing and deleting flows (6.4)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

ADD = "Flow-mod: add"
OVERLAP = "Flow-mod: overlap check"
MODIFY = "Flow-mod: modify"
DELETE = "Flow-mod: delete"
COOKIES = "Flow-mod: cookies"
BARRIERS = "Barriers"

IP = {"eth_type": 0x0800}
UDP = {"eth_type": 0x0800, "ip_proto": 17}


@case("6.4", ADD, "a flow is reported with all that it was added with")
def _(bench: Bench) -> None:
    # Bytes for a controller mean nothing at a port, and need not be kept.
    sent = of.apply_actions(of.output(bench.p2, 0))
    instructions = sent + of.goto_table(9)
    rest = {"table": 3, "priority": 1234, "cookie": 0x1122334455667788, "idle": 100, "hard": 200}
    bench.flow(UDP, sent, of.goto_table(9), flags=of.SEND_FLOW_REM, **rest)
    flow = bench.one_flow()
    reported = {
        "table": flow.table,
        "priority": flow.priority,
        "cookie": flow.cookie,
        "idle": flow.idle,
        "hard": flow.hard,
    }
    check(reported == rest, f"reported {reported}")
    check(flow.flags == of.SEND_FLOW_REM, f"flags {flow.flags}")
    check(sorted(_split(flow.instructions)) == sorted(_split(instructions)), "other instructions")


def _split(instructions: bytes) -> list[bytes]:
    found: list[bytes] = []
    while instructions:
        length = int.from_bytes(instructions[2:4])
        check(length >= 4, "an instruction without length")
        found.append(instructions[:length])
        instructions = instructions[length:]
    return found


@case("6.4", ADD, "instructions are reported bit for bit: their order, and max_len of an output to a port")
def _(bench: Bench) -> None:
    sent = of.goto_table(9) + of.apply_actions(of.output(bench.p2, 17), of.output(bench.p3))
    bench.obeyed(of.flow_mod(UDP, sent))
    check(bench.one_flow().instructions == sent, f"reported {bench.one_flow().instructions.hex()}, sent {sent.hex()}")


@case("6.4", ADD, "a flow with the same match and priority takes the place of the old one")
def _(bench: Bench) -> None:
    bench.forward(IP, out=bench.p3, cookie=1)
    bench.forward(IP, cookie=2)
    check(bench.one_flow().cookie == 2, "the cookie is the old one")
    bench.passes(build())


@case("6.4", ADD, "the order of a match's fields is no difference")
def _(bench: Bench) -> None:
    bench.forward({"in_port": bench.p1, "eth_type": 0x0800}, out=bench.p3)
    bench.forward({"eth_type": 0x0800, "in_port": bench.p1})
    bench.one_flow()


@case("6.4", ADD, "the same match in another priority or table is another flow")
def _(bench: Bench) -> None:
    bench.forward(IP)
    bench.forward(IP, priority=101)
    bench.forward(IP, table=1)
    check(len(bench.flows()) == 3, "not three flows")


@case("6.4", ADD, "a flow that takes another's place keeps its counters")
def _(bench: Bench) -> None:
    bench.forward(IP)
    bench.passes(build())
    bench.forward(IP)
    check(bench.one_flow().packets == 1, f"{bench.one_flow().packets} packets")


@case("6.4", ADD, "with OFPFF_RESET_COUNTS the counters begin at 0")
def _(bench: Bench) -> None:
    bench.forward(IP)
    bench.passes(build())
    bench.forward(IP, flags=of.RESET_COUNTS)
    flow = bench.one_flow()
    check((flow.packets, flow.bytes) == (0, 0), f"{flow.packets} packets, {flow.bytes} bytes")


@case("6.4", ADD, "the flow whose place is taken is not reported as removed")
def _(bench: Bench) -> None:
    bench.forward(IP, flags=of.SEND_FLOW_REM)
    bench.forward(IP, flags=of.SEND_FLOW_REM)
    check(not bench.removals(), "a flow-removed came")


@case("6.4", ADD, "a refused flow leaves the one in its place as it was")
def _(bench: Bench) -> None:
    bench.forward(IP)
    bench.refused(of.flow_mod(IP, of.apply_actions(of.group(99))), of.BAD_ACTION, 9)
    bench.passes(build())


@case("6.4", ADD, "a thousand flows are taken, and each is obeyed")
def _(bench: Bench) -> None:
    for number in range(1000):
        message = of.flow_mod({**UDP, "udp_dst": 1000 + number}, of.apply_actions(of.output(bench.p2)))
        bench.send(message)
    bench.barrier()
    check(not bench.take(of.ERROR), "an error came")
    check(len(bench.flows()) == 1000, "not as many flows")
    for number in (0, 1, 500, 999):
        bench.passes(build(**UDP, udp_dst=1000 + number))
    bench.drops(build(**UDP, udp_dst=2000))


@case("6.4", OVERLAP, "the same match is an overlap: OFPFMFC_OVERLAP")
def _(bench: Bench) -> None:
    bench.forward(IP)
    bench.refused(of.flow_mod(IP, flags=of.CHECK_OVERLAP), of.FLOW_MOD_FAILED, 3)


@case("6.4", OVERLAP, "a wider match is an overlap")
def _(bench: Bench) -> None:
    bench.forward(UDP)
    bench.refused(of.flow_mod(IP, flags=of.CHECK_OVERLAP), of.FLOW_MOD_FAILED, 3)


@case("6.4", OVERLAP, "a narrower match is an overlap")
def _(bench: Bench) -> None:
    bench.forward(IP)
    bench.refused(of.flow_mod(UDP, flags=of.CHECK_OVERLAP), of.FLOW_MOD_FAILED, 3)


@case("6.4", OVERLAP, "a match of other fields that a frame can meet as well is an overlap")
def _(bench: Bench) -> None:
    bench.forward({"in_port": bench.p1})
    bench.refused(of.flow_mod(IP, flags=of.CHECK_OVERLAP), of.FLOW_MOD_FAILED, 3)


@case("6.4", OVERLAP, "masks that leave a common value are an overlap")
def _(bench: Bench) -> None:
    bench.forward({**IP, "ipv4_dst": (0x0A000000, 0xFF000000)})
    wanted = {**IP, "ipv4_dst": (0x00000005, 0x000000FF)}
    bench.refused(of.flow_mod(wanted, flags=of.CHECK_OVERLAP), of.FLOW_MOD_FAILED, 3)


@case("6.4", OVERLAP, "values that exclude each other are none")
def _(bench: Bench) -> None:
    bench.forward({**UDP, "udp_dst": 53})
    bench.flow({**UDP, "udp_dst": 54}, flags=of.CHECK_OVERLAP)
    bench.flow({"eth_type": 0x0806}, flags=of.CHECK_OVERLAP)


@case("6.4", OVERLAP, "another priority is none")
def _(bench: Bench) -> None:
    bench.forward(IP)
    bench.flow(IP, priority=101, flags=of.CHECK_OVERLAP)


@case("6.4", OVERLAP, "another table is none")
def _(bench: Bench) -> None:
    bench.forward(IP)
    bench.flow(IP, table=1, flags=of.CHECK_OVERLAP)


@case("6.4", OVERLAP, "without the flag nothing is checked")
def _(bench: Bench) -> None:
    bench.forward(IP)
    bench.forward(UDP)
    check(len(bench.flows()) == 2, "not two flows")


@case("6.4", OVERLAP, "a refused flow is not there")
def _(bench: Bench) -> None:
    bench.forward(IP)
    bench.refused(of.flow_mod(UDP, flags=of.CHECK_OVERLAP), of.FLOW_MOD_FAILED, 3)
    bench.one_flow()


def _modified(bench: Bench, command: int, **rest: int) -> None:
    message = of.flow_mod(IP, of.apply_actions(of.output(bench.p2)), command=command, **rest)
    bench.obeyed(message)


@case("6.4", MODIFY, "modify changes the instructions of every flow within its match, of any priority")
def _(bench: Bench) -> None:
    bench.forward({**UDP, "udp_dst": 5}, out=bench.p3, priority=7)
    bench.forward({**UDP, "udp_dst": 6}, out=bench.p3, priority=8)
    _modified(bench, of.MODIFY)
    for port in (5, 6):
        bench.passes(build(**UDP, udp_dst=port))


@case("6.4", MODIFY, "modify leaves flows beyond its match alone")
def _(bench: Bench) -> None:
    bench.forward({}, out=bench.p3, priority=1)
    bench.forward({"eth_type": 0x0806}, out=bench.p3)
    _modified(bench, of.MODIFY)
    for frame in (build(), build(arp_op=1)):
        bench.expect(frame, (bench.p3, frame))


@case("6.4", MODIFY, "modify-strict changes the flow of the same match and priority alone")
def _(bench: Bench) -> None:
    bench.forward(IP, out=bench.p3, priority=8)
    bench.forward(UDP, out=bench.p3, priority=100)
    bench.forward(IP, out=bench.p3, priority=100)
    _modified(bench, of.MODIFY_STRICT, priority=100)
    frame = build(**UDP)
    bench.expect(frame, (bench.p3, frame))
    bench.passes(build())


for _command, _name in ((of.MODIFY, "modify"), (of.MODIFY_STRICT, "modify-strict")):

    @case("6.4", MODIFY, f"{_name} that meets no flow is no error, and adds none")
    def _(bench: Bench, command: int = _command) -> None:
        _modified(bench, command)
        check(not bench.flows(), "a flow was added")

    @case("6.4", MODIFY, f"{_name} keeps cookie, timeouts, flags, counters and duration")
    def _(bench: Bench, command: int = _command) -> None:
        bench.forward(IP, out=bench.p3, cookie=5, idle=50, hard=60, flags=of.SEND_FLOW_REM)
        bench.frame(build())
        bench.advance(2)
        _modified(bench, command, cookie=9, idle=1, hard=2)
        flow = bench.one_flow()
        kept = (flow.cookie, flow.idle, flow.hard, flow.flags, flow.packets)
        check(kept == (5, 50, 60, of.SEND_FLOW_REM, 1), f"{flow}")
        check(flow.seconds >= 2, f"{flow.seconds} s old")

    @case("6.4", MODIFY, f"{_name} with OFPFF_RESET_COUNTS begins the counters at 0")
    def _(bench: Bench, command: int = _command) -> None:
        bench.forward(IP, out=bench.p3)
        bench.frame(build())
        _modified(bench, command, flags=of.RESET_COUNTS)
        flow = bench.one_flow()
        check((flow.packets, flow.bytes) == (0, 0), f"{flow.packets} packets, {flow.bytes} bytes")

    @case("6.4", MODIFY, f"{_name} is taken up by frames of flows that are on their way already")
    def _(bench: Bench, command: int = _command) -> None:
        bench.forward(IP, out=bench.p3)
        for _ in range(3):
            bench.frame(build())
        _modified(bench, command)
        bench.passes(build())

    @case("6.2", BARRIERS, f"a frame behind the answer to a barrier meets what {_name} has changed")
    def _(bench: Bench, command: int = _command) -> None:
        bench.forward(IP, out=bench.p3)
        for _ in range(3):
            bench.frame(build())
        _modified(bench, command)
        came = bench.frame(build(), settled=False)
        check([port for port, _ in came] == [bench.p2], "it met the state before")

    @case("6.4", MODIFY, f"{_name} takes no notice of out_port")
    def _(bench: Bench, command: int = _command) -> None:
        bench.forward(IP, out=bench.p3)
        _modified(bench, command, out_port=bench.p4)
        bench.passes(build())

    @case("6.4", COOKIES, f"{_name} with a cookie's mask changes the flows of that cookie alone")
    def _(bench: Bench, command: int = _command) -> None:
        bench.forward(IP, out=bench.p3, cookie=0x12)
        _modified(bench, command, cookie=0x20, cookie_mask=0xF0)
        bench.expect(build(), (bench.p3, build()))
        _modified(bench, command, cookie=0x10, cookie_mask=0xF0)
        bench.passes(build())

    @case("6.4", MODIFY, f"{_name} is refused as an add would be when its actions are wrong")
    def _(bench: Bench, command: int = _command) -> None:
        bench.forward(IP)
        bench.refused(of.flow_mod(IP, of.apply_actions(of.group(99)), command=command), of.BAD_ACTION, 9)
        bench.passes(build())


@case("6.4", DELETE, "delete takes every flow within its match, of any priority")
def _(bench: Bench) -> None:
    bench.forward(UDP, priority=3)
    bench.forward({**IP, "ipv4_dst": 5}, priority=4)
    bench.forward({"eth_type": 0x0806})
    bench.obeyed(of.flow_mod(IP, command=of.DELETE, priority=9))
    check("eth_type" in bench.one_flow().conditions, "another flow is left")


@case("6.4", DELETE, "delete by a masked value takes flows whose values lie within")
def _(bench: Bench) -> None:
    bench.forward({**IP, "ipv4_dst": 0x0A010203})
    bench.forward({**IP, "ipv4_dst": (0x0A020000, 0xFFFF0000)})
    bench.forward({**IP, "ipv4_dst": (0x08000000, 0xF8000000)})
    bench.obeyed(of.flow_mod({**IP, "ipv4_dst": (0x0A000000, 0xFF000000)}, command=of.DELETE))
    check(bench.one_flow().conditions["ipv4_dst"][0] == 0x08000000, "another flow is left")


@case("6.4", DELETE, "delete-strict takes the flow of the same match and priority alone")
def _(bench: Bench) -> None:
    bench.forward(IP, priority=5)
    bench.forward(IP, priority=6)
    bench.forward(UDP, priority=5)
    bench.obeyed(of.flow_mod(IP, command=of.DELETE_STRICT, priority=5))
    left = sorted((flow.priority, len(flow.conditions)) for flow in bench.flows())
    check(left == [(5, 2), (6, 1)], f"left are {left}")


@case("6.4", DELETE, "delete in one table leaves the others")
def _(bench: Bench) -> None:
    for table in (0, 1, 2):
        bench.forward(IP, table=table)
    bench.obeyed(of.flow_mod({}, command=of.DELETE, table=1))
    check(sorted(flow.table for flow in bench.flows()) == [0, 2], "other tables have flows")


@case("6.4", DELETE, "delete in OFPTT_ALL is for every table")
def _(bench: Bench) -> None:
    for table in (0, 1, 20):
        bench.forward(IP, table=table)
    bench.obeyed(of.flow_mod({}, command=of.DELETE, table=of.ALL_TABLES))
    check(not bench.flows(), "flows are left")


@case("6.4", DELETE, "delete-strict in OFPTT_ALL is for every table")
def _(bench: Bench) -> None:
    for table in (0, 1):
        bench.forward(IP, table=table)
    bench.obeyed(of.flow_mod(IP, command=of.DELETE_STRICT, table=of.ALL_TABLES))
    check(not bench.flows(), "flows are left")


for _strict in (of.DELETE, of.DELETE_STRICT):
    _name = "delete" if _strict == of.DELETE else "delete-strict"

    @case("6.4", DELETE, f"{_name} with out_port takes flows that output there alone")
    def _(bench: Bench, command: int = _strict) -> None:
        bench.forward(IP, out=bench.p3)
        bench.obeyed(of.flow_mod(IP, command=command, out_port=bench.p2))
        bench.one_flow()
        bench.obeyed(of.flow_mod(IP, command=command, out_port=bench.p3))
        check(not bench.flows(), "the flow is left")

    @case("6.4", DELETE, f"{_name} with out_port finds outputs of the action set too")
    def _(bench: Bench, command: int = _strict) -> None:
        bench.flow(IP, of.write_actions(of.output(bench.p3)))
        bench.obeyed(of.flow_mod(IP, command=command, out_port=bench.p3))
        check(not bench.flows(), "the flow is left")

    @case("6.4", DELETE, f"{_name} with out_group takes flows that use the group alone")
    def _(bench: Bench, command: int = _strict) -> None:
        bench.obeyed(of.group_mod(7, of.GROUP_ALL, of.bucket(of.output(bench.p2))))
        bench.flow(IP, of.apply_actions(of.group(7)))
        bench.obeyed(of.flow_mod(IP, command=command, out_group=8))
        bench.one_flow()
        bench.obeyed(of.flow_mod(IP, command=command, out_group=7))
        check(not bench.flows(), "the flow is left")

    @case("6.4", COOKIES, f"{_name} with a cookie's mask takes flows of that cookie alone")
    def _(bench: Bench, command: int = _strict) -> None:
        bench.forward(IP, cookie=0x1200)
        bench.obeyed(of.flow_mod(IP, command=command, cookie=0x2200, cookie_mask=0xF000))
        bench.one_flow()
        bench.obeyed(of.flow_mod(IP, command=command, cookie=0x1F00, cookie_mask=0xF000))
        check(not bench.flows(), "the flow is left")

    @case("6.4", DELETE, f"{_name} that meets no flow is no error")
    def _(bench: Bench, command: int = _strict) -> None:
        bench.obeyed(of.flow_mod(IP, command=command))

    @case("6.4", DELETE, f"{_name} takes no notice of its instructions and buffer")
    def _(bench: Bench, command: int = _strict) -> None:
        bench.forward(IP)
        bench.obeyed(of.flow_mod(IP, of.apply_actions(of.output(bench.p3)), command=command, buffer=1234))
        check(not bench.flows(), "the flow is left")


@case("6.4", COOKIES, "a mask of 0 restricts nothing")
def _(bench: Bench) -> None:
    bench.forward(IP, cookie=5)
    bench.obeyed(of.flow_mod(IP, command=of.DELETE, cookie=6, cookie_mask=0))
    check(not bench.flows(), "the flow is left")


@case("6.4", COOKIES, "cookies do not distinguish flows when one is added")
def _(bench: Bench) -> None:
    bench.forward(IP, cookie=5)
    bench.forward(IP, cookie=6, cookie_mask=0xFFFFFFFFFFFFFFFF)
    check(bench.one_flow().cookie == 6, "the cookie is the old one")


for _command in (of.DELETE, of.DELETE_STRICT):

    @case("6.2", BARRIERS, f"a frame behind the answer to a barrier does not meet a deleted flow (command {_command})")
    def _(bench: Bench, command: int = _command) -> None:
        bench.forward(IP)
        for _ in range(3):
            bench.passes(build())
        bench.obeyed(of.flow_mod(IP, command=command))
        check(not bench.frame(build(), settled=False), "the deleted flow was met")


@case("6.2", BARRIERS, "a frame behind the answer to a barrier meets an added flow")
def _(bench: Bench) -> None:
    bench.forward({}, out=bench.p3, priority=1)
    for _ in range(3):
        bench.frame(build())
    bench.forward(IP)
    came = bench.frame(build(), settled=False)
    check([port for port, _ in came] == [bench.p2], "it met the state before")


@case("6.2", BARRIERS, "a frame behind the answer to a barrier meets a changed group")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_INDIRECT, of.bucket(of.output(bench.p3))))
    bench.flow(IP, of.apply_actions(of.group(1)))
    for _ in range(3):
        bench.frame(build())
    bench.obeyed(of.group_mod(1, of.GROUP_INDIRECT, of.bucket(of.output(bench.p2)), command=1))
    came = bench.frame(build(), settled=False)
    check([port for port, _ in came] == [bench.p2], "it met the state before")


@case("6.2", BARRIERS, "a thousand messages before a barrier have taken effect when it is answered")
def _(bench: Bench) -> None:
    for number in range(1000):
        bench.send(of.flow_mod({"eth_type": 0x0800, "ipv4_dst": number}, of.apply_actions(of.output(bench.p2))))
    bench.barrier()
    for number in (0, 500, 999):
        frame = build(ipv4_dst=number)
        check(bench.frame(frame, settled=False) == [(bench.p2, frame)], f"flow {number} was not met")


@case("6.2", BARRIERS, "answers before a barrier come before its own")
def _(bench: Bench) -> None:
    first = bench.send(of.Message(of.ECHO_REQUEST, b"1"))
    refused = bench.send(of.flow_mod({}, table=255))
    barrier = bench.send(of.Message(of.BARRIER_REQUEST))
    last = bench.send(of.Message(of.ECHO_REQUEST, b"2"))
    bench.wait_for(of.ECHO_REPLY, last)
    at = {one.xid: place for place, one in enumerate(bench.unread)}
    check(at[first] < at[barrier] and at[refused] < at[barrier], "the barrier's answer came first")
