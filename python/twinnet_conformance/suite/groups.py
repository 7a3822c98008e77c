"""Groups of all four types (5.6)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

ALL = "Groups: all"
SELECT = "Groups: select"
INDIRECT = "Groups: indirect"
FAILOVER = "Groups: fast failover"
CHAINS = "Groups: chains"
CHANGES = "Groups: changes"

UDP = {"eth_type": 0x0800, "ip_proto": 17}
ADD, MODIFY, DELETE = range(3)


def _to_group(bench: Bench, number: int = 1) -> None:
    bench.flow({}, of.apply_actions(of.group(number)))


@case("5.6.1", ALL, "each bucket gets a frame")
def _(bench: Bench) -> None:
    buckets = (of.bucket(of.output(port)) for port in (bench.p2, bench.p3, bench.p4))
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, *buckets))
    _to_group(bench)
    bench.expect(build(), *((port, build()) for port in (bench.p2, bench.p3, bench.p4)))


@case("5.6.1", ALL, "what one bucket rewrites is not seen by the next")
def _(bench: Bench) -> None:
    first = of.bucket(of.set_field("eth_dst", 5), of.output(bench.p2))
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, first, of.bucket(of.output(bench.p3))))
    _to_group(bench)
    bench.expect(build(), (bench.p2, build(eth_dst=5)), (bench.p3, build()))


@case("5.6.1", ALL, "a bucket's output to the port by which the frame came is left out")
def _(bench: Bench) -> None:
    buckets = (of.bucket(of.output(port)) for port in (bench.p1, bench.p2))
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, *buckets))
    _to_group(bench)
    bench.passes(build())


@case("5.6.1", ALL, "a bucket to IN_PORT sends back")
def _(bench: Bench) -> None:
    buckets = (of.bucket(of.output(port)) for port in (of.IN_PORT, bench.p2))
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, *buckets))
    _to_group(bench)
    bench.expect(build(), (bench.p1, build()), (bench.p2, build()))


for _kind, _name in ((of.GROUP_ALL, ALL), (of.GROUP_SELECT, SELECT), (of.GROUP_FAST_FAILOVER, FAILOVER)):

    @case("5.6.1", _name, "without buckets the frame is dropped")
    def _(bench: Bench, kind: int = _kind) -> None:
        bench.obeyed(of.group_mod(1, kind))
        _to_group(bench)
        bench.drops(build())


@case("5.6.1", ALL, "a bucket without actions drops its frame alone")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, of.bucket(), of.bucket(of.output(bench.p2))))
    _to_group(bench)
    bench.passes(build())


@case("5.6.1", ALL, "a bucket may send to the controller")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, of.bucket(of.output(of.CONTROLLER)), of.bucket(of.output(bench.p2))))
    _to_group(bench)
    bench.passes(build())
    check(bench.packet_in().data == build(), "another frame")


@case("5.6.1", ALL, "a bucket's actions are carried out in the order of the action set")
def _(bench: Bench) -> None:
    bucket = of.bucket(of.output(bench.p2), of.set_field("eth_dst", 5))
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, bucket))
    _to_group(bench)
    bench.passes(build(), build(eth_dst=5))


def _ways(bench: Bench, flows: int) -> dict[int, int]:
    ways: dict[int, int] = {}
    for number in range(flows):
        came = bench.frame(build(**UDP, udp_src=2000 + number, ipv4_src=0x0A000100 + number))
        check(len(came) == 1, f"{len(came)} frames came, where one is due")
        ways[came[0][0]] = ways.get(came[0][0], 0) + 1
    return ways


@case("5.6.1", SELECT, "one bucket gets the frame")
def _(bench: Bench) -> None:
    buckets = (of.bucket(of.output(port), weight=1) for port in (bench.p2, bench.p3))
    bench.obeyed(of.group_mod(1, of.GROUP_SELECT, *buckets))
    _to_group(bench)
    check(set(_ways(bench, 10)) <= {bench.p2, bench.p3}, "another port")


@case("5.6.1", SELECT, "flows are spread over the buckets")
def _(bench: Bench) -> None:
    buckets = (of.bucket(of.output(port), weight=1) for port in (bench.p2, bench.p3))
    bench.obeyed(of.group_mod(1, of.GROUP_SELECT, *buckets))
    _to_group(bench)
    # All the same way is one chance in 2^39.
    check(len(_ways(bench, 40)) == 2, "all went one way")


@case("5.6.1", SELECT, "the frames of one flow take one way")
def _(bench: Bench) -> None:
    buckets = (of.bucket(of.output(port), weight=1) for port in (bench.p2, bench.p3, bench.p4))
    bench.obeyed(of.group_mod(1, of.GROUP_SELECT, *buckets))
    _to_group(bench)
    check(len({tuple(bench.frame(build(**UDP))) for _ in range(5)}) == 1, "they took several")


@case("5.6.1", SELECT, "a bucket of weight 0 gets nothing")
def _(bench: Bench) -> None:
    buckets = (of.bucket(of.output(bench.p3), weight=0), of.bucket(of.output(bench.p2), weight=1))
    bench.obeyed(of.group_mod(1, of.GROUP_SELECT, *buckets))
    _to_group(bench)
    check(set(_ways(bench, 20)) == {bench.p2}, "it got some")


@case("5.6.1", SELECT, "a heavier bucket gets more flows")
def _(bench: Bench) -> None:
    buckets = (of.bucket(of.output(bench.p3), weight=1), of.bucket(of.output(bench.p2), weight=9))
    bench.obeyed(of.group_mod(1, of.GROUP_SELECT, *buckets))
    _to_group(bench)
    ways = _ways(bench, 60)
    # Binomial(60, 0.9): fewer than 40 is beyond six standard deviations.
    check(ways.get(bench.p2, 0) >= 40, f"{ways}")


@case("5.6.1", SELECT, "a dead bucket gets nothing")
def _(bench: Bench) -> None:
    buckets = (of.bucket(of.output(port), weight=1, watch_port=port) for port in (bench.p2, bench.p3))
    bench.obeyed(of.group_mod(1, of.GROUP_SELECT, *buckets))
    _to_group(bench)
    _port_down(bench, bench.p3)
    check(set(_ways(bench, 20)) == {bench.p2}, "it got some")


@case("5.6.1", SELECT, "a bucket's rewriting is for the frames that it gets")
def _(bench: Bench) -> None:
    bucket = of.bucket(of.set_field("eth_dst", 5), of.output(bench.p2), weight=3)
    bench.obeyed(of.group_mod(1, of.GROUP_SELECT, bucket))
    _to_group(bench)
    bench.passes(build(), build(eth_dst=5))


@case("5.6.1", INDIRECT, "its bucket gets the frame")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_INDIRECT, of.bucket(of.set_field("eth_dst", 5), of.output(bench.p2))))
    _to_group(bench)
    bench.passes(build(), build(eth_dst=5))


@case("5.6.1", INDIRECT, "many flows share one")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_INDIRECT, of.bucket(of.output(bench.p3))))
    for number in range(5):
        bench.flow({**UDP, "udp_dst": number}, of.apply_actions(of.group(1)))
    bench.obeyed(of.group_mod(1, of.GROUP_INDIRECT, of.bucket(of.output(bench.p2)), command=MODIFY))
    for number in range(5):
        bench.passes(build(**UDP, udp_dst=number))


def _port_down(bench: Bench, port: int, down: bool = True) -> None:
    address = bench.port_descriptions()[port].address
    bench.obeyed(of.port_mod(port, address, int(down), 1))
    bench.advance(0.1)


def _failover(bench: Bench) -> None:
    buckets = (of.bucket(of.output(port), watch_port=port) for port in (bench.p2, bench.p3))
    bench.obeyed(of.group_mod(1, of.GROUP_FAST_FAILOVER, *buckets))
    _to_group(bench)


@case("5.6.1", FAILOVER, "the first live bucket gets the frame")
def _(bench: Bench) -> None:
    _failover(bench)
    bench.passes(build())


@case("5.6.1", FAILOVER, "when its port is taken down, the next one gets it")
def _(bench: Bench) -> None:
    _failover(bench)
    _port_down(bench, bench.p2)
    bench.expect(build(), (bench.p3, build()))


@case("5.6.1", FAILOVER, "when its port's line goes down, the next one gets it")
def _(bench: Bench) -> None:
    _failover(bench)
    bench.target.set_link(bench.p2, False)
    bench.expect(build(), (bench.p3, build()))


@case("5.6.1", FAILOVER, "when its port comes back, the first one gets it again")
def _(bench: Bench) -> None:
    _failover(bench)
    _port_down(bench, bench.p2)
    bench.expect(build(), (bench.p3, build()))
    _port_down(bench, bench.p2, down=False)
    bench.passes(build())


@case("5.6.1", FAILOVER, "without a live bucket the frame is dropped")
def _(bench: Bench) -> None:
    _failover(bench)
    _port_down(bench, bench.p2)
    _port_down(bench, bench.p3)
    bench.drops(build())


@case("5.6.1", FAILOVER, "a bucket may watch another port than it sends to")
def _(bench: Bench) -> None:
    first = of.bucket(of.output(bench.p2), watch_port=bench.p4)
    bench.obeyed(of.group_mod(1, of.GROUP_FAST_FAILOVER, first, of.bucket(of.output(bench.p3), watch_port=bench.p3)))
    _to_group(bench)
    bench.passes(build())
    _port_down(bench, bench.p4)
    bench.expect(build(), (bench.p3, build()))


@case("5.6.1", FAILOVER, "a bucket may watch a group: it lives as long as one of its buckets")
def _(bench: Bench) -> None:
    watched = of.bucket(of.output(bench.p4), watch_port=bench.p4)
    bench.obeyed(of.group_mod(2, of.GROUP_FAST_FAILOVER, watched))
    first = of.bucket(of.output(bench.p2), watch_group=2)
    bench.obeyed(of.group_mod(1, of.GROUP_FAST_FAILOVER, first, of.bucket(of.output(bench.p3), watch_port=bench.p3)))
    _to_group(bench)
    bench.passes(build())
    _port_down(bench, bench.p4)
    bench.expect(build(), (bench.p3, build()))


@case("5.6", CHAINS, "a bucket of a group leads to another group")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(2, of.GROUP_INDIRECT, of.bucket(of.output(bench.p2))))
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, of.bucket(of.set_field("eth_dst", 5), of.group(2))))
    _to_group(bench)
    bench.passes(build(), build(eth_dst=5))


@case("5.6", CHAINS, "a chain of five groups")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(5, of.GROUP_INDIRECT, of.bucket(of.output(bench.p2))))
    for number in (4, 3, 2, 1):
        bench.obeyed(of.group_mod(number, of.GROUP_INDIRECT, of.bucket(of.group(number + 1))))
    _to_group(bench)
    bench.passes(build())


@case("5.6", CHAINS, "buckets of all lead to a select group")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(2, of.GROUP_SELECT, of.bucket(of.output(bench.p2), weight=1)))
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, of.bucket(of.group(2)), of.bucket(of.output(bench.p3))))
    _to_group(bench)
    bench.expect(build(), (bench.p2, build()), (bench.p3, build()))


@case("6.5", CHANGES, "modify replaces type and buckets")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_INDIRECT, of.bucket(of.output(bench.p4))))
    _to_group(bench)
    bench.expect(build(), (bench.p4, build()))
    buckets = (of.bucket(of.output(port)) for port in (bench.p2, bench.p3))
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, *buckets, command=MODIFY))
    bench.expect(build(), (bench.p2, build()), (bench.p3, build()))


@case("6.5", CHANGES, "delete takes the group and the flows that use it")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, of.bucket(of.output(bench.p2))))
    _to_group(bench)
    bench.forward({}, priority=1, out=bench.p3)
    bench.obeyed(of.group_mod(1, command=DELETE))
    bench.expect(build(), (bench.p3, build()))
    check(len(bench.flows()) == 1, "the flow is there")


@case("6.5", CHANGES, "delete takes flows whose action set uses the group")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, of.bucket(of.output(bench.p2))))
    bench.flow({}, of.write_actions(of.group(1)))
    bench.obeyed(of.group_mod(1, command=DELETE))
    check(not bench.flows(), "the flow is there")


@case("6.5", CHANGES, "delete of OFPG_ALL takes every group")
def _(bench: Bench) -> None:
    for number in (1, 2, 0xFFFFFF00):
        bench.obeyed(of.group_mod(number, of.GROUP_ALL))
    bench.obeyed(of.group_mod(of.ALL_GROUPS, command=DELETE))
    check(bench.multipart(of.MP_GROUP_DESCRIPTION) == b"", "groups are left")


@case("6.5", CHANGES, "delete of a group that is not there is no error")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(7, command=DELETE))


@case("6.5", CHANGES, "a group's number may be used again")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, of.bucket(of.output(bench.p3))))
    bench.obeyed(of.group_mod(1, command=DELETE))
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, of.bucket(of.output(bench.p2))))
    _to_group(bench)
    bench.passes(build())


@case("6.5", CHANGES, "a refused modify leaves the group as it was")
def _(bench: Bench) -> None:
    bench.obeyed(of.group_mod(1, of.GROUP_ALL, of.bucket(of.output(bench.p2))))
    _to_group(bench)
    wrong = of.bucket(of.group(99))
    bench.refused(of.group_mod(1, of.GROUP_ALL, wrong, command=MODIFY), of.BAD_ACTION, 9)
    bench.passes(build())
