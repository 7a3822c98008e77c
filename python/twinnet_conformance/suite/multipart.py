"""Multipart messages: descriptions, long replies, and what is refused (7.3.5)."""

from __future__ import annotations

import struct

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case

__all__: list[str] = []

KINDS = "Multipart: kinds"
LONG = "Multipart: long replies"
REFUSED = "Multipart: what is refused"


@case("7.3.5.1", KINDS, "the description is of 1056 bytes, its texts ended by zeros")
def _(bench: Bench) -> None:
    body = bench.multipart(of.MP_DESCRIPTION)
    check(len(body) == 1056, f"{len(body)} bytes")
    parts = [body[:256], body[256:512], body[512:768], body[768:800], body[800:]]
    check(all(b"\0" in part for part in parts), "a text without end")
    check(body[0] != 0, "no manufacturer")


@case("7.3.5.10", KINDS, "groups are described as they were made")
def _(bench: Bench) -> None:
    buckets = of.bucket(of.output(bench.p2, 0), weight=3), of.bucket(of.output(bench.p3, 0), weight=1)
    bench.obeyed(of.group_mod(7, of.GROUP_SELECT, *buckets))
    body = bench.multipart(of.MP_GROUP_DESCRIPTION)
    length, kind, number = struct.unpack_from("!HBxI", body)
    check((length, kind, number) == (len(body), of.GROUP_SELECT, 7), f"{length}, {kind}, {number}")
    check(body[8:] == b"".join(buckets), "other buckets")


@case("7.3.5.10", KINDS, "what buckets watch is described")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(2, of.GROUP_ALL))
    watching = of.bucket(of.output(bench.p2, 0), watch_port=bench.p2), of.bucket(watch_group=2)
    bench.obeyed(of.group_mod(7, of.GROUP_FAST_FAILOVER, *watching))
    bodies = bench.multipart(of.MP_GROUP_DESCRIPTION)
    check(b"".join(watching) in bodies, "other buckets")


@case("7.3.5.11", KINDS, "the features of groups report four types, and actions of each")
def _(bench: Bench) -> None:
    body = bench.multipart(of.MP_GROUP_FEATURES)
    check(len(body) == 40, f"{len(body)} bytes")
    types, capabilities, *rest = struct.unpack("!II4I4I", body)
    check(types & 0b1111 == 0b1111, f"types {types:#b}")
    check(capabilities & 0b1111 != 0, "no capabilities")
    check(all(most > 0 for most in rest[:4]) and all(rest[4:]), f"{rest}")


for _name, _bit in (("weights", 1), ("liveness", 2), ("chains", 4), ("checks of chains", 8)):

    @case("7.3.5.11", KINDS, f"the features of groups report {_name}")
    def _(bench: Bench, bit: int = _bit) -> None:
        capabilities = int.from_bytes(bench.multipart(of.MP_GROUP_FEATURES)[4:8])
        check(capabilities & bit == bit, f"capabilities {capabilities:#b}")


@case("7.3.5.7", KINDS, "ports are described in 64 bytes each")
def _(bench: Bench) -> None:
    body = bench.multipart(of.MP_PORT_DESCRIPTION)
    check(len(body) % of.PORT_BYTES == 0 and len(body) >= 4 * of.PORT_BYTES, f"{len(body)} bytes")


for _kind, _body, _name in (
    (of.MP_FLOW, of.flow_request().body[8:], "flows"),
    (of.MP_GROUP, of.ALL_GROUPS.to_bytes(4) + bytes(4), "groups"),
    (of.MP_GROUP_DESCRIPTION, b"", "group descriptions"),
    (of.MP_METER, of.ALL_METERS.to_bytes(4) + bytes(4), "meters"),
    (of.MP_METER_CONFIG, of.ALL_METERS.to_bytes(4) + bytes(4), "configurations of meters"),
):

    @case("7.3.5", KINDS, f"{_name}, when there are none, are one empty reply")
    def _(bench: Bench, kind: int = _kind, body: bytes = _body) -> None:
        parts = bench.parts(of.multipart(kind, body))
        check(len(parts) == 1 and parts[0] == b"", f"{[len(part) for part in parts]} bytes")


@case("7.3.5", LONG, "2000 flows are reported in several parts, all but the last with OFPMPF_REPLY_MORE")
def _(bench: Bench) -> None:
    for number in range(2000):
        bench.send(of.flow_mod({"eth_type": 0x0800, "ipv4_dst": number}, of.apply_actions(of.output(bench.p2))))
    bench.barrier()
    parts = bench.parts(of.flow_request())
    check(len(parts) > 1, "one part")
    flows = [flow for part in parts for flow in of.read_flow_stats(part)]
    check({flow.conditions["ipv4_dst"][0] for flow in flows} == set(range(2000)), "others, or fewer")
    check(len(flows) == 2000, "a flow twice")


@case("7.3.5", LONG, "1500 groups are reported in several parts")
def _(bench: Bench) -> None:
    buckets = [of.bucket(of.output(bench.p2)), of.bucket(of.output(bench.p3))]
    for number in range(1500):
        bench.send(of.group_mod(number, of.GROUP_ALL, *buckets))
    bench.barrier()
    check(not bench.take(of.ERROR), "refused")
    described = bench.parts(of.multipart(of.MP_GROUP_DESCRIPTION))
    counted = bench.parts(of.multipart(of.MP_GROUP, of.ALL_GROUPS.to_bytes(4) + bytes(4)))
    check(len(described) > 1 and len(counted) > 1, "one part")


@case("7.3.5", LONG, "a part is no longer than a message can be, and each begins with a whole item")
def _(bench: Bench) -> None:
    for number in range(1500):
        bench.send(of.flow_mod({"eth_type": 0x86DD, "ipv6_dst": number}, of.apply_actions(of.output(bench.p2))))
    bench.barrier()
    for part in bench.parts(of.flow_request()):
        check(len(part) + 16 <= 65535, f"{len(part)} bytes")
        list(of.read_flow_stats(part))


@case("7.3.5", REFUSED, "a kind that does not exist is OFPBRC_BAD_MULTIPART")
def _(bench: Bench) -> None:
    bench.refused(of.multipart(99), of.BAD_REQUEST, 2)


@case("7.3.5.15", REFUSED, "an unknown experimenter's is OFPBRC_BAD_EXPERIMENTER")
def _(bench: Bench) -> None:
    bench.refused(of.multipart(0xFFFF, bytes([0, 0x55, 0x66, 0x77, 0, 0, 0, 1])), of.BAD_REQUEST, 3)


for _kind, _name in (
    (of.MP_FLOW, "flows"),
    (of.MP_AGGREGATE, "an aggregate"),
    (of.MP_PORT_STATS, "counters of ports"),
    (of.MP_QUEUE, "queues"),
    (of.MP_GROUP, "groups"),
    (of.MP_METER, "meters"),
    (of.MP_METER_CONFIG, "configurations of meters"),
):

    @case("7.3.5", REFUSED, f"a request for {_name} that is too short is OFPBRC_BAD_LEN")
    def _(bench: Bench, kind: int = _kind) -> None:
        bench.refused(of.multipart(kind, bytes(4)), of.BAD_REQUEST, 6)


for _kind, _name in (
    (of.MP_DESCRIPTION, "the description"),
    (of.MP_TABLE, "tables"),
    (of.MP_GROUP_FEATURES, "features of groups"),
):

    @case("7.3.5", REFUSED, f"a request for {_name} that is too long is OFPBRC_BAD_LEN")
    def _(bench: Bench, kind: int = _kind) -> None:
        bench.refused(of.multipart(kind, bytes(8)), of.BAD_REQUEST, 6)


@case("7.3.5.2", REFUSED, "flows of a table that is not there are OFPBRC_BAD_TABLE_ID")
def _(bench: Bench) -> None:
    tables = bench.ask(of.Message(of.FEATURES_REQUEST), of.FEATURES_REPLY).body[12]
    if tables < 255:
        bench.refused(of.flow_request(table=tables), of.BAD_REQUEST, 9)
    else:
        bench.flows(table=254)


@case("7.3.5.2", REFUSED, "a match in a request is checked as in a flow-mod")
def _(bench: Bench) -> None:
    bench.refused(of.flow_request(conditions={"ipv4_dst": 5}), of.BAD_MATCH, 9)


@case("7.3.5.9", REFUSED, "counters of a group that is not there are an empty reply or OFPGMFC_UNKNOWN_GROUP")
def _(bench: Bench) -> None:
    answers = bench.answers(of.multipart(of.MP_GROUP, (77).to_bytes(4) + bytes(4)))
    check(len(answers) == 1, f"{len(answers)} answers")
    if answers[0].kind == of.ERROR:
        check(of.read_refusal(answers[0]) == (of.GROUP_MOD_FAILED, 8), f"{of.read_refusal(answers[0])}")
    else:
        check(answers[0].body[8:] == b"", "something is reported")
