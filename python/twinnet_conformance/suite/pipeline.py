"""Tables, priorities, table-miss, metadata, goto (5.1 to 5.4)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

TABLES = "Pipeline: tables and goto"
METADATA = "Pipeline: metadata"
PRIORITIES = "Pipeline: priorities"
MISS = "Pipeline: table-miss"


def _tables(bench: Bench) -> int:
    return bench.ask(of.Message(of.FEATURES_REQUEST), of.FEATURES_REPLY).body[12]


for _table in (1, 2, 63, 253):

    @case("5.1", TABLES, f"a flow leads to table {_table}, and its flow there is carried out")
    def _(bench: Bench, table: int = _table) -> None:
        bench.flow({}, of.goto_table(table))
        bench.forward({"eth_type": 0x0800}, table=table)
        bench.passes(build())
        bench.drops(build(arp_op=1))


@case("5.1", TABLES, "frames begin in table 0, whatever is in the others")
def _(bench: Bench) -> None:
    bench.forward({}, table=1)
    bench.drops(build())


@case("5.1", TABLES, "a frame passes a chain of twenty tables")
def _(bench: Bench) -> None:
    for table in range(20):
        bench.flow({}, of.goto_table(table + 1), table=table)
    bench.forward({}, table=20)
    bench.passes(build())


@case("5.1", TABLES, "tables may be left out on the way")
def _(bench: Bench) -> None:
    bench.flow({}, of.goto_table(5))
    bench.flow({}, of.goto_table(17), table=5)
    bench.forward({}, table=17)
    bench.passes(build())


for _table, _to in ((1, 1), (5, 3), (2, 0)):

    @case("5.9", TABLES, f"goto from table {_table} to {_to} is OFPBIC_BAD_TABLE_ID")
    def _(bench: Bench, table: int = _table, to: int = _to) -> None:
        bench.refused(of.flow_mod({}, of.goto_table(to), table=table), of.BAD_INSTRUCTION, 2)


@case("5.9", TABLES, "goto to a table that the switch does not have is OFPBIC_BAD_TABLE_ID")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod({}, of.goto_table(255)), of.BAD_INSTRUCTION, 2)


@case("5.1", TABLES, "a flow of the last table that leads on is OFPBIC_BAD_TABLE_ID")
def _(bench: Bench) -> None:
    last = _tables(bench) - 1
    bench.refused(of.flow_mod({}, of.goto_table(last), table=last), of.BAD_INSTRUCTION, 2)


@case("5.1", TABLES, "the last table takes flows")
def _(bench: Bench) -> None:
    last = _tables(bench) - 1
    if last:
        bench.flow({}, of.goto_table(last))
    bench.forward({}, table=last)
    bench.passes(build())


@case("7.3.4.1", TABLES, "a flow for a table that the switch does not have is OFPFMFC_BAD_TABLE_ID")
def _(bench: Bench) -> None:
    tables = _tables(bench)
    if tables == 255:
        bench.refused(of.flow_mod({}, table=255), of.FLOW_MOD_FAILED, 2)
    else:
        bench.refused(of.flow_mod({}, table=tables), of.FLOW_MOD_FAILED, 2)


@case("7.3.4.1", TABLES, "adding a flow to OFPTT_ALL is OFPFMFC_BAD_TABLE_ID")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod({}, table=of.ALL_TABLES), of.FLOW_MOD_FAILED, 2)


@case("5.3", TABLES, "the next table matches what the actions applied before have made of the frame")
def _(bench: Bench) -> None:
    needs = {"eth_type": 0x0800, "ip_proto": 17}
    bench.flow(needs, of.apply_actions(of.set_field("udp_dst", 7)), of.goto_table(1))
    bench.forward({**needs, "udp_dst": 7}, table=1)
    bench.passes(build(**needs, udp_dst=9), build(**needs, udp_dst=7))


@case("5.3", TABLES, "the next table matches without what waits in the action set")
def _(bench: Bench) -> None:
    needs = {"eth_type": 0x0800, "ip_proto": 17}
    bench.flow(needs, of.write_actions(of.set_field("udp_dst", 7)), of.goto_table(1))
    bench.forward({**needs, "udp_dst": 9}, table=1)
    bench.passes(build(**needs, udp_dst=9), build(**needs, udp_dst=9))


@case("5.1", TABLES, "a miss in a later table drops the frame and its action set")
def _(bench: Bench) -> None:
    bench.flow({}, of.write_actions(of.output(bench.p2)), of.goto_table(1))
    bench.drops(build())


@case("5.9", METADATA, "metadata is 0 at the beginning")
def _(bench: Bench) -> None:
    bench.forward({"metadata": 0})
    bench.passes(build())


@case("5.9", METADATA, "metadata goes with the frame to a later table")
def _(bench: Bench) -> None:
    bench.flow({}, of.write_metadata(0xDEADBEEF01020304), of.goto_table(1))
    bench.flow({}, of.goto_table(2), table=1)
    bench.forward({"metadata": 0xDEADBEEF01020304}, table=2)
    bench.passes(build())


@case("5.9", METADATA, "write-metadata leaves the bits outside its mask as they were")
def _(bench: Bench) -> None:
    bench.flow({}, of.write_metadata(0xAAAA), of.goto_table(1))
    bench.flow({}, of.write_metadata(0x55_00, 0xFF00), of.goto_table(2), table=1)
    bench.forward({"metadata": 0x55AA}, table=2)
    bench.passes(build())


@case("5.9", METADATA, "write-metadata in the last table of a frame's way is without effect")
def _(bench: Bench) -> None:
    bench.flow({}, of.apply_actions(of.output(bench.p2)), of.write_metadata(1))
    bench.passes(build())


@case("5.9", METADATA, "metadata of one frame is not seen by the next")
def _(bench: Bench) -> None:
    bench.flow({"eth_type": 0x0800}, of.write_metadata(1), of.goto_table(1))
    bench.flow({"eth_type": 0x0806}, of.goto_table(1))
    bench.forward({"metadata": 1}, table=1)
    bench.passes(build())
    bench.drops(build(arp_op=1))


@case("5.3", PRIORITIES, "of two flows that match, the one of higher priority is taken")
def _(bench: Bench) -> None:
    bench.forward({"eth_type": 0x0800}, priority=10, out=bench.p3)
    bench.forward({}, priority=20)
    bench.passes(build())


@case("5.3", PRIORITIES, "priority counts more than how exact a match is")
def _(bench: Bench) -> None:
    exact = {"in_port": bench.p1, "eth_type": 0x0800, "ipv4_src": 0x0A000001, "ipv4_dst": 0x0A000002}
    bench.forward(exact, priority=10, out=bench.p3)
    bench.forward({"eth_type": 0x0800}, priority=11)
    bench.passes(build())


@case("5.3", PRIORITIES, "priorities of 0, 1, 65534 and 65535 are reported apart")
def _(bench: Bench) -> None:
    for priority, protocol in ((0, 0x0800), (1, 0x0806), (65534, 0x86DD)):
        bench.forward({"eth_type": protocol}, priority=priority, out=bench.p3)
    bench.forward({"eth_type": 0x86DD}, priority=65535)
    bench.passes(build(eth_type=0x86DD))
    bench.obeyed(of.flow_mod({"eth_type": 0x86DD}, priority=65535, command=of.DELETE_STRICT))
    frame = build(eth_type=0x86DD)
    bench.expect(frame, (bench.p3, frame))


@case("5.3", PRIORITIES, "a flow of higher priority that is added later takes over at once")
def _(bench: Bench) -> None:
    frame = build()
    bench.forward({}, priority=10, out=bench.p3)
    for _ in range(3):
        bench.expect(frame, (bench.p3, frame))
    bench.forward({"eth_type": 0x0800}, priority=20)
    bench.passes(frame)


@case("5.3", PRIORITIES, "when a flow goes, the next lower one takes over at once")
def _(bench: Bench) -> None:
    frame = build()
    bench.forward({}, priority=10, out=bench.p3)
    bench.forward({"eth_type": 0x0800}, priority=20)
    for _ in range(3):
        bench.passes(frame)
    bench.obeyed(of.flow_mod({"eth_type": 0x0800}, priority=20, command=of.DELETE_STRICT))
    bench.expect(frame, (bench.p3, frame))


@case("5.4", MISS, "without a table-miss flow the frame is dropped, and the controller not reported")
def _(bench: Bench) -> None:
    bench.drops(build())
    check(not bench.packet_ins(), "a packet-in came")


@case("5.4", MISS, "a table-miss flow to the controller says OFPR_NO_MATCH")
def _(bench: Bench) -> None:
    bench.flow({}, of.apply_actions(of.output(of.CONTROLLER)), priority=0)
    bench.drops(build())
    check(bench.packet_in().reason == 0, "the reason is another")


@case("5.4", MISS, "a flow of priority 0 with conditions is no table-miss: OFPR_ACTION")
def _(bench: Bench) -> None:
    bench.flow({"eth_type": 0x0800}, of.apply_actions(of.output(of.CONTROLLER)), priority=0)
    bench.drops(build())
    check(bench.packet_in().reason == 1, "the reason is another")


@case("5.4", MISS, "a flow without conditions of another priority is no table-miss: OFPR_ACTION")
def _(bench: Bench) -> None:
    bench.flow({}, of.apply_actions(of.output(of.CONTROLLER)), priority=1)
    bench.drops(build())
    check(bench.packet_in().reason == 1, "the reason is another")


@case("5.4", MISS, "a table-miss flow of a later table says OFPR_NO_MATCH and its table")
def _(bench: Bench) -> None:
    bench.flow({}, of.goto_table(3))
    bench.flow({}, of.apply_actions(of.output(of.CONTROLLER)), priority=0, table=3)
    bench.drops(build())
    reported = bench.packet_in()
    check((reported.reason, reported.table) == (0, 3), f"reported reason {reported.reason}, table {reported.table}")


@case("5.4", MISS, "a table-miss flow may lead to the next table")
def _(bench: Bench) -> None:
    bench.flow({}, of.goto_table(1), priority=0)
    bench.forward({}, table=1)
    bench.passes(build())


@case("5.4", MISS, "a table-miss flow may drop")
def _(bench: Bench) -> None:
    bench.flow({}, priority=0)
    bench.drops(build())


@case("5.4", MISS, "a table-miss flow is added, reported and deleted as any other")
def _(bench: Bench) -> None:
    bench.flow({}, of.goto_table(1), priority=0, cookie=77)
    flow = bench.one_flow()
    check((flow.priority, flow.cookie, flow.conditions) == (0, 77, {}), f"{flow}")
    bench.obeyed(of.flow_mod({}, command=of.DELETE_STRICT, priority=0))
    check(not bench.flows(), "it is still there")


@case("5.4", MISS, "a table-miss flow may time out")
def _(bench: Bench) -> None:
    bench.forward({}, priority=0, hard=2)
    bench.passes(build())
    bench.advance(3)
    bench.drops(build())
