"""Counters and durations (5.8)."""

from __future__ import annotations

import struct

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

FLOWS = "Counters: flows"
AGGREGATE = "Counters: aggregates"
TABLES = "Counters: tables"
PORTS = "Counters: ports"
GROUPS = "Counters: groups"

IP = {"eth_type": 0x0800}


def _aggregate(table: int = of.ALL_TABLES, out_port: int = of.ANY, cookie: int = 0, cookie_mask: int = 0) -> of.Message:
    return of.flow_request(of.MP_AGGREGATE, table=table, out_port=out_port, cookie=cookie, cookie_mask=cookie_mask)


@case("5.8", FLOWS, "frames and bytes of a flow, without the check sequence")
def _(bench: Bench) -> None:
    bench.forward(IP)
    sizes = (60, 100, 1514)
    for size in sizes:
        bench.frame(build().ljust(size, b"\0"))
    flow = bench.one_flow()
    short = len(build())
    due = sum(max(size, short) for size in sizes)
    check((flow.packets, flow.bytes) == (3, due), f"{flow.packets} frames, {flow.bytes} bytes; due 3, {due}")


@case("5.8", FLOWS, "a flow that drops counts")
def _(bench: Bench) -> None:
    bench.flow(IP)
    bench.frame(build())
    check(bench.one_flow().packets == 1, f"{bench.one_flow().packets} frames")


@case("5.8", FLOWS, "every flow on a frame's way counts")
def _(bench: Bench) -> None:
    for table in range(3):
        bench.flow({}, of.goto_table(table + 1), table=table)
    bench.forward({}, table=3)
    bench.frame(build())
    check([flow.packets for flow in bench.flows()] == [1, 1, 1, 1], "not each counted one")


@case("5.8", FLOWS, "bytes are those of the frame as it came in, whatever is made of it")
def _(bench: Bench) -> None:
    bench.forward(IP, of.push_vlan(0x8100))
    bench.frame(build())
    check(bench.one_flow().bytes == len(build()), f"{bench.one_flow().bytes} bytes")


@case("5.8", FLOWS, "the age of a flow in seconds and nanoseconds")
def _(bench: Bench) -> None:
    bench.forward(IP)
    bench.advance(3.25)
    flow = bench.one_flow()
    age = flow.seconds + flow.nanoseconds / 1e9
    check(3.2 <= age <= 3.35 and flow.nanoseconds < 1_000_000_000, f"{age} s")


@case("7.3.4.1", FLOWS, "OFPFF_NO_PKT_COUNTS and NO_BYT_COUNTS are reported back")
def _(bench: Bench) -> None:
    bench.forward(IP, flags=of.NO_PKT_COUNTS | of.NO_BYT_COUNTS)
    check(bench.one_flow().flags == of.NO_PKT_COUNTS | of.NO_BYT_COUNTS, f"flags {bench.one_flow().flags}")


for _title, _filter, _due in (
    ("a table", {"table": 1}, 1),
    ("an output port", {"out_port": 3}, 1),
    ("a cookie", {"cookie": 0x10, "cookie_mask": 0xF0}, 1),
    ("no restriction", {}, 3),
):
    for _kind in (of.MP_FLOW, of.MP_AGGREGATE):
        _feature = FLOWS if _kind == of.MP_FLOW else AGGREGATE

        @case("7.3.5.2" if _kind == of.MP_FLOW else "7.3.5.3", _feature, f"asked for by {_title}")
        def _(bench: Bench, wanted: dict[str, int] = _filter, due: int = _due, kind: int = _kind) -> None:
            chosen = dict(wanted)
            if "out_port" in chosen:
                chosen["out_port"] = bench.p3
            bench.forward(IP, cookie=0x11)
            bench.forward({"eth_type": 0x0806}, out=bench.p3)
            bench.forward(IP, table=1)
            if kind == of.MP_FLOW:
                found = len(bench.flows(**chosen))
            else:
                body = bench.ask(_aggregate(**chosen), of.MULTIPART_REPLY).body[8:]
                found = int.from_bytes(body[16:20])
            check(found == due, f"{found} flows, where {due} are due")


@case("7.3.5.2", FLOWS, "asked for by a match: flows within it")
def _(bench: Bench) -> None:
    bench.forward({**IP, "ip_proto": 6})
    bench.forward({**IP, "ip_proto": 17}, priority=7)
    bench.forward({"eth_type": 0x0806})
    bodies = bench.parts(of.flow_request(conditions=IP))
    found = [flow for body in bodies for flow in of.read_flow_stats(body)]
    check(len(found) == 2, f"{len(found)} flows")


@case("7.3.5.2", FLOWS, "asked for by a group")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_ALL))
    bench.flow(IP, of.apply_actions(of.group(1)))
    bench.forward({"eth_type": 0x0806})
    check(len(bench.flows(out_group=1)) == 1, f"{len(bench.flows(out_group=1))} flows")


@case("7.3.5.3", AGGREGATE, "frames, bytes and number of flows")
def _(bench: Bench) -> None:
    bench.forward(IP)
    bench.forward({"eth_type": 0x0806})
    for frame in (build(), build(), build(arp_op=1)):
        bench.frame(frame)
    body = bench.ask(of.flow_request(of.MP_AGGREGATE), of.MULTIPART_REPLY).body[8:]
    frames, count, flows = struct.unpack_from("!QQI", body)
    due = 2 * len(build()) + len(build(arp_op=1))
    check((frames, count, flows) == (3, due, 2), f"{frames} frames, {count} bytes, {flows} flows")


def _table_stats(bench: Bench) -> dict[int, tuple[int, int, int]]:
    body = bench.multipart(of.MP_TABLE)
    found: dict[int, tuple[int, int, int]] = {}
    for at in range(0, len(body), 24):
        table, active, looked, matched = struct.unpack_from("!B3xIQQ", body, at)
        found[table] = (active, looked, matched)
    return found


@case("7.3.5.4", TABLES, "flows, look-ups and matches of each table")
def _(bench: Bench) -> None:
    bench.flow(IP, of.goto_table(1))
    bench.flow({"eth_type": 0x0806}, of.goto_table(1))
    bench.forward({"eth_type": 0x0806}, table=1)
    before = _table_stats(bench)
    for frame in (build(), build(arp_op=1), build(eth_type=0x88B5)):
        bench.frame(frame)
    after = _table_stats(bench)
    change = {table: tuple(b - a for a, b in zip(before[table][1:], after[table][1:], strict=True)) for table in (0, 1)}
    check((after[0][0], after[1][0]) == (2, 1), f"flows {after[0][0]}, {after[1][0]}")
    check(change == {0: (3, 2), 1: (2, 1)}, f"look-ups and matches {change}")


@case("7.3.5.4", TABLES, "every table is reported")
def _(bench: Bench) -> None:
    tables = bench.ask(of.Message(of.FEATURES_REQUEST), of.FEATURES_REPLY).body[12]
    check(sorted(_table_stats(bench)) == list(range(tables)), f"{len(_table_stats(bench))} of {tables} tables")


@case("7.3.5.6", PORTS, "frames and bytes received and sent")
def _(bench: Bench) -> None:
    bench.forward(IP)
    before = [bench.port_stats(port) for port in (bench.p1, bench.p2)]
    frame = build().ljust(200, b"\0")
    for _ in range(4):
        bench.frame(frame)
    after = [bench.port_stats(port) for port in (bench.p1, bench.p2)]
    came = (after[0].rx_packets - before[0].rx_packets, after[0].rx_bytes - before[0].rx_bytes)
    left = (after[1].tx_packets - before[1].tx_packets, after[1].tx_bytes - before[1].tx_bytes)
    check(came == left == (4, 800), f"received {came}, sent {left}")


@case("7.3.5.6", PORTS, "a frame that is dropped by the tables is received, and no receive drop of the port")
def _(bench: Bench) -> None:
    before = bench.port_stats(bench.p1)
    bench.frame(build())
    after = bench.port_stats(bench.p1)
    check(after.rx_packets - before.rx_packets == 1, "not counted")
    check(after.rx_dropped == before.rx_dropped, "counted as dropped")


@case("7.3.5.6", PORTS, "OFPP_ANY is every port")
def _(bench: Bench) -> None:
    body = bench.multipart(of.MP_PORT_STATS, of.ANY.to_bytes(4) + bytes(4))
    rows = [of.PortStats(*row) for row in of.PORT_STATS.iter_unpack(body)]
    reported = {row.port for row in rows}
    check({bench.p1, bench.p2, bench.p3, bench.p4} <= reported, f"reported {reported}")


@case("7.3.5.6", PORTS, "how long a port has been there")
def _(bench: Bench) -> None:
    first = bench.port_stats(bench.p1)
    bench.advance(2)
    later = bench.port_stats(bench.p1)
    lived = later.seconds + later.nanoseconds / 1e9 - first.seconds - first.nanoseconds / 1e9
    check(1.9 <= lived <= 2.2, f"{lived} s")


@case("7.3.5.6", PORTS, "a port that is not there is OFPBRC_BAD_PORT")
def _(bench: Bench) -> None:
    bench.refused(of.multipart(of.MP_PORT_STATS, (77).to_bytes(4) + bytes(4)), of.BAD_REQUEST, 11)


def _group_stats(bench: Bench, number: int) -> tuple[int, int, int, int, list[tuple[int, int]]]:
    """Return references, frames, bytes and age of a group, and frames and bytes of its buckets."""
    body = bench.multipart(of.MP_GROUP, number.to_bytes(4) + bytes(4))
    length, found, references, frames, count, seconds, _ = struct.unpack_from("!H2xII4xQQII", body)
    check(found == number and length == len(body), f"group {found}, {length} of {len(body)} bytes")
    buckets = [struct.unpack_from("!QQ", body, at) for at in range(40, length, 16)]
    return references, frames, count, seconds, [(int(one[0]), int(one[1])) for one in buckets]


@case("7.3.5.9", GROUPS, "frames and bytes of a group and of each bucket")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, of.bucket(of.output(bench.p2)), of.bucket(of.output(bench.p3))))
    bench.flow(IP, of.apply_actions(of.group(1)))
    for _ in range(3):
        bench.frame(build())
    bench.advance(1)
    _, frames, count, _, buckets = _group_stats(bench, 1)
    size = len(build())
    check((frames, count) == (3, 3 * size), f"{frames} frames, {count} bytes")
    check(buckets == [(3, 3 * size)] * 2, f"buckets {buckets}")


@case("7.3.5.9", GROUPS, "of a select group the bucket that is taken counts")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_SELECT, of.bucket(of.output(bench.p2), weight=1)))
    bench.flow(IP, of.apply_actions(of.group(1)))
    bench.frame(build())
    bench.advance(1)
    check([frames for frames, _ in _group_stats(bench, 1)[4]] == [1], f"{_group_stats(bench, 1)}")


@case("7.3.5.9", GROUPS, "how many flows and groups refer to a group")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_ALL))
    bench.flow(IP, of.apply_actions(of.group(1)))
    bench.flow({"eth_type": 0x0806}, of.apply_actions(of.group(1)))
    check(_group_stats(bench, 1)[0] == 2, f"{_group_stats(bench, 1)[0]} references")


@case("7.3.5.9", GROUPS, "how long a group has been there")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_ALL))
    bench.advance(3)
    check(_group_stats(bench, 1)[3] == 3, f"{_group_stats(bench, 1)[3]} s")


@case("7.3.5.9", GROUPS, "modify begins the counters anew or keeps them, and the group goes on counting")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, of.bucket(of.output(bench.p2))))
    bench.flow(IP, of.apply_actions(of.group(1)))
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, of.bucket(of.output(bench.p2)), command=1))
    bench.frame(build())
    bench.advance(1)
    check(_group_stats(bench, 1)[1] == 1, f"{_group_stats(bench, 1)[1]} frames")


@case("7.3.5.9", GROUPS, "a group that is not there has no counters: the answer is empty")
def _(bench: Bench) -> None:
    body = bench.multipart(of.MP_GROUP, (7).to_bytes(4) + bytes(4))
    check(body == b"", f"{len(body)} bytes")


@case("7.3.5.9", GROUPS, "OFPG_ALL is every group")
def _(bench: Bench) -> None:
    for number in (1, 2, 3):
        bench.obeyed(of.group_mod(number, of.GROUP_ALL))
    body = bench.multipart(of.MP_GROUP, of.ALL_GROUPS.to_bytes(4) + bytes(4))
    check(len(body) == 3 * 40, f"{len(body)} bytes")
