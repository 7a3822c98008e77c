"""OpenFlow 1.0: matching, flow-mods, timeouts (3.3, 3.4, 4.6 of 1.0.2)."""

from __future__ import annotations

from twinnet_conformance import openflow10 as ten
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import ETH_DST, ETH_SRC, build, ethernet, vlan

__all__: list[str] = []

MATCH = "1.0: match fields"
FLOWS = "1.0: flow-mods"
REMOVAL = "1.0: flow removal"

IP, UDP, SIX = {"dl_type": 0x0800}, {"dl_type": 0x0800, "nw_proto": 17}, {"dl_type": 0x86DD}


def _forward(bench: Bench, match: bytes, *actions: bytes, out: int | None = None, **rest: int) -> None:
    port = bench.p2 if out is None else out
    bench.obeyed(ten.flow_mod(match, *actions, ten.output(port), **rest))


def _flows(bench: Bench) -> list[ten.FlowStats]:
    bodies: list[bytes] = []
    xid = bench.send(ten.flow_request())
    while True:
        part = bench.wait_for(ten.STATS_REPLY, xid)
        bodies.append(part.body[4:])
        if not part.body[3] & 1:
            return [flow for body in bodies for flow in ten.read_flow_stats(body)]


for _name, _needs, _value, _frame, _other in (
    ("dl_src", {}, 9, build(eth_src=9), build(eth_src=8)),
    ("dl_dst", {}, 9, build(eth_dst=9), build(eth_dst=8)),
    ("dl_type", {}, 0x88B5, build(eth_type=0x88B5), build(eth_type=0x88B6)),
    ("dl_vlan", {}, 5, build(vlan_vid=5), build(vlan_vid=6)),
    ("dl_vlan", {}, ten.NO_VLAN, build(), build(vlan_vid=6)),
    ("dl_vlan_pcp", {"dl_vlan": 5}, 3, build(vlan_vid=5, vlan_pcp=3), build(vlan_vid=5, vlan_pcp=4)),
    ("nw_tos", IP, 40, build(ip_dscp=10), build(ip_dscp=11)),
    ("nw_proto", IP, 200, build(ip_proto=200), build(ip_proto=201)),
    ("nw_src", IP, 9, build(ipv4_src=9), build(ipv4_src=8)),
    ("nw_dst", IP, 9, build(ipv4_dst=9), build(ipv4_dst=8)),
    ("tp_src", UDP, 9, build(ip_proto=17, udp_src=9), build(ip_proto=17, udp_src=8)),
    ("tp_dst", UDP, 9, build(ip_proto=17, udp_dst=9), build(ip_proto=17, udp_dst=8)),
    ("tp_src", {**IP, "nw_proto": 6}, 9, build(ip_proto=6, tcp_src=9), build(ip_proto=6, tcp_src=8)),
    ("tp_dst", {**IP, "nw_proto": 6}, 9, build(ip_proto=6, tcp_dst=9), build(ip_proto=6, tcp_dst=8)),
    ("tp_src", {**IP, "nw_proto": 1}, 8, build(ip_proto=1, icmpv4_type=8), build(ip_proto=1, icmpv4_type=0)),
    ("tp_dst", {**IP, "nw_proto": 1}, 3, build(ip_proto=1, icmpv4_code=3), build(ip_proto=1, icmpv4_code=1)),
    ("nw_tos", SIX, 40, build(eth_type=0x86DD, ip_dscp=10), build(eth_type=0x86DD, ip_dscp=11)),
    ("nw_proto", SIX, 200, build(eth_type=0x86DD, ip_proto=200), build(eth_type=0x86DD, ip_proto=201)),
    (
        "tp_src",
        {**SIX, "nw_proto": 6},
        9,
        build(eth_type=0x86DD, ip_proto=6, tcp_src=9),
        build(eth_type=0x86DD, ip_proto=6, tcp_src=8),
    ),
    (
        "tp_dst",
        {**SIX, "nw_proto": 17},
        9,
        build(eth_type=0x86DD, ip_proto=17, udp_dst=9),
        build(eth_type=0x86DD, ip_proto=17, udp_dst=8),
    ),
    (
        "tp_src",
        {**SIX, "nw_proto": 58},
        128,
        build(eth_type=0x86DD, ip_proto=58, icmpv6_type=128),
        build(eth_type=0x86DD, ip_proto=58, icmpv6_type=129),
    ),
    ("nw_proto", {"dl_type": 0x0806}, 2, build(arp_op=2), build(arp_op=1)),
    ("nw_src", {"dl_type": 0x0806}, 9, build(arp_spa=9), build(arp_spa=8)),
    ("nw_dst", {"dl_type": 0x0806}, 9, build(arp_tpa=9), build(arp_tpa=8)),
):
    _title = f"{_name} {_value:#x}" + (f" under {_needs}" if _needs else "") + " is met by it and by nothing else"

    @case("3.4", MATCH, _title, "1.0")
    def _(
        bench: Bench,
        match: bytes = ten.flow_match(**_needs, **{_name: _value}),
        frame: bytes = _frame,
        other: bytes = _other,
    ) -> None:
        _forward(bench, match)
        bench.passes(frame)
        bench.drops(other)


def _twice_tagged(packet: bytes) -> bytes:
    return ethernet(ETH_DST, ETH_SRC, 0x8100, vlan(100, 0, 0x8100, vlan(200, 0, 0x0800, packet[14:])))


@case("3.4", MATCH, "dl_type 0x8100 is met by frames with two tags, whatever the inner one covers", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(dl_type=0x8100))
    bench.passes(_twice_tagged(build()))
    bench.drops(build(vlan_vid=100))
    bench.drops(build())


@case("3.4", MATCH, "what a second tag covers is not looked at", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(dl_type=0x0800, nw_dst=0x0A000002))
    bench.passes(build(vlan_vid=100, ipv4_dst=0x0A000002))
    bench.drops(_twice_tagged(build(ipv4_dst=0x0A000002)))


@case("3.4", MATCH, "dl_vlan is that of the outer of two tags", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(dl_vlan=100))
    bench.passes(_twice_tagged(build()))
    bench.drops(build(vlan_vid=200))


@case("3.4", MATCH, "in_port is met by it and by nothing else", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(in_port=bench.p1))
    bench.passes(build())
    bench.drops(build(), port=bench.p3)


for _prefix in (1, 8, 24, 31):
    for _name, _field in (("nw_src", "ipv4_src"), ("nw_dst", "ipv4_dst")):

        @case("5.2.3", MATCH, f"{_name} with a prefix of {_prefix} bits", "1.0")
        def _(bench: Bench, name: str = _name, field: str = _field, prefix: int = _prefix) -> None:
            address = 0x0A010203
            match = ten.flow_match(**IP, **{name: (address, prefix)})
            _forward(bench, match)
            bench.passes(build(**{field: address ^ (1 << (32 - prefix)) - 1}))
            bench.drops(build(**{field: address ^ 1 << (32 - prefix)}))


@case("5.2.3", MATCH, "all wildcards are met by every frame", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match())
    for frame in (build(), build(arp_op=1), build(vlan_vid=5), build(eth_type=0x88B5)):
        bench.passes(frame)


@case("3.4", MATCH, "fields whose prerequisite is missing are not looked at", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(nw_dst=9))
    bench.passes(build(arp_op=1))


@case("3.4", FLOWS, "a flow without wildcards comes before all others", "1.0")
def _(bench: Bench) -> None:
    exact = ten.flow_match(
        in_port=bench.p1,
        dl_src=1,
        dl_dst=2,
        dl_vlan=ten.NO_VLAN,
        dl_vlan_pcp=0,
        dl_type=0x0800,
        nw_tos=0,
        nw_proto=17,
        nw_src=3,
        nw_dst=4,
        tp_src=5,
        tp_dst=6,
    )
    _forward(bench, exact, priority=1)
    _forward(bench, ten.flow_match(**IP), priority=60000, out=bench.p3)
    bench.passes(build(eth_src=1, eth_dst=2, ip_proto=17, ipv4_src=3, ipv4_dst=4, udp_src=5, udp_dst=6))


@case("3.4", FLOWS, "of two flows that match, the one of higher priority is taken", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(), priority=1, out=bench.p3)
    _forward(bench, ten.flow_match(**IP), priority=2)
    bench.passes(build())


@case("4.6", FLOWS, "an add with the same match and priority takes the old one's place, counters too", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(**IP), out=bench.p3)
    bench.frame(build())
    _forward(bench, ten.flow_match(**IP))
    bench.passes(build())
    flows = _flows(bench)
    check([flow.packets for flow in flows] == [1], f"{[flow.packets for flow in flows]} frames")


@case("4.6", FLOWS, "an overlap is refused when it is asked for: OFPFMFC_OVERLAP", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(**IP))
    wanted = ten.flow_mod(ten.flow_match(**UDP), flags=ten.CHECK_OVERLAP)
    bench.refused(wanted, ten.FLOW_MOD_FAILED, 1)


@case("4.6", FLOWS, "modify changes actions and keeps cookie and counters", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(**UDP), out=bench.p3, cookie=7)
    bench.frame(build(ip_proto=17))
    bench.obeyed(ten.flow_mod(ten.flow_match(**IP), ten.output(bench.p2), command=ten.MODIFY))
    bench.passes(build(ip_proto=17))
    flow = _flows(bench)[0]
    check((flow.packets, len(_flows(bench))) == (2, 1), f"{flow.packets} frames")


for _command, _name in ((ten.MODIFY, "modify"), (ten.MODIFY_STRICT, "modify-strict")):

    @case("4.6", FLOWS, f"{_name} that meets no flow adds it", "1.0")
    def _(bench: Bench, command: int = _command) -> None:
        bench.obeyed(ten.flow_mod(ten.flow_match(**IP), ten.output(bench.p2), command=command))
        bench.passes(build())


@case("4.6", FLOWS, "modify-strict changes the flow of the same match and priority alone", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(**IP), out=bench.p3, priority=5)
    _forward(bench, ten.flow_match(**UDP), out=bench.p3, priority=6)
    bench.obeyed(ten.flow_mod(ten.flow_match(**IP), ten.output(bench.p2), command=ten.MODIFY_STRICT, priority=5))
    frame = build(ip_proto=17)
    bench.expect(frame, (bench.p3, frame))
    bench.passes(build())


@case("4.6", FLOWS, "delete takes flows within its match", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(**UDP))
    _forward(bench, ten.flow_match(dl_type=0x0806))
    bench.obeyed(ten.flow_mod(ten.flow_match(**IP), command=ten.DELETE))
    check(len(_flows(bench)) == 1, f"{len(_flows(bench))} flows")


@case("4.6", FLOWS, "delete with out_port takes flows that output there alone", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(**IP), out=bench.p3)
    bench.obeyed(ten.flow_mod(ten.flow_match(), command=ten.DELETE, out_port=bench.p2))
    check(len(_flows(bench)) == 1, "it is gone")
    bench.obeyed(ten.flow_mod(ten.flow_match(), command=ten.DELETE, out_port=bench.p3))
    check(not _flows(bench), "it is there")


@case("4.6", FLOWS, "delete-strict takes the flow of the same match and priority alone", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(**IP), priority=5)
    _forward(bench, ten.flow_match(**IP), priority=6)
    bench.obeyed(ten.flow_mod(ten.flow_match(**IP), command=ten.DELETE_STRICT, priority=5))
    check([flow.priority for flow in _flows(bench)] == [6], "another one")


@case("5.3.5", FLOWS, "a flow is reported with all that it was added with", "1.0")
def _(bench: Bench) -> None:
    match = ten.flow_match(**UDP, tp_dst=53, nw_dst=(0x0A000000, 8))
    actions = ten.set_dl(5, 9) + ten.output(bench.p2, 0)
    message = ten.flow_mod(match, actions, priority=321, cookie=99, idle=100, hard=200)
    bench.obeyed(message)
    flow = _flows(bench)[0]
    check(ten.canonical(flow.match) == ten.canonical(match), f"match {flow.match.hex()}, sent {match.hex()}")
    check(flow.actions == actions, f"actions {flow.actions.hex()}")
    check((flow.priority, flow.cookie, flow.idle, flow.hard) == (321, 99, 100, 200), f"{flow}")


@case("5.3.5", FLOWS, "the match is reported bit for bit: what the wildcards cover, too", "1.0")
def _(bench: Bench) -> None:
    wide = int.from_bytes(ten.flow_match()[:4]) | 63 << 8
    match = wide.to_bytes(4) + ten.flow_match(**UDP, in_port=3, tp_dst=53, nw_src=0x0A000001)[4:]
    bench.obeyed(ten.flow_mod(match, ten.output(bench.p2, 99)))
    flow = _flows(bench)[0]
    check(flow.match == match, f"match {flow.match.hex()}, sent {match.hex()}")
    check(flow.actions == ten.output(bench.p2, 99), f"actions {flow.actions.hex()}")


@case(
    "3.4",
    FLOWS,
    "a flow without wildcards is reported with the priority that it was sent with, or with the highest",
    "1.0",
)
def _(bench: Bench) -> None:
    match = bytes(4) + ten.flow_match(in_port=bench.p1, **UDP)[4:]
    bench.obeyed(ten.flow_mod(match, ten.output(bench.p2), priority=5))
    # The specification does not say which; Open vSwitch tells the highest.
    check(_flows(bench)[0].priority in (5, 0xFFFF), f"priority {_flows(bench)[0].priority}")


@case("4.6", FLOWS, "a command that does not exist: OFPFMFC_BAD_COMMAND", "1.0")
def _(bench: Bench) -> None:
    bench.refused(ten.flow_mod(ten.flow_match(), command=9), ten.FLOW_MOD_FAILED, 4)


@case("4.6", FLOWS, "an emergency flow with timeouts: OFPFMFC_BAD_EMERG_TIMEOUT, or no room for any", "1.0")
def _(bench: Bench) -> None:
    message = ten.flow_mod(ten.flow_match(), flags=ten.EMERGENCY, idle=5)
    bench.refused(message, ten.FLOW_MOD_FAILED, 0, 3, 5)


@case("3.5", REMOVAL, "an idle timeout ends a flow, and is reported", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(**IP), idle=2, flags=ten.SEND_FLOW_REM, cookie=5)
    bench.advance(4)
    reported = [ten.read_flow_removed(bench.wait_for(ten.FLOW_REMOVED))]
    bench.barrier()
    reported += [ten.read_flow_removed(one) for one in bench.take(ten.FLOW_REMOVED)]
    check([(one.reason, one.cookie, one.idle) for one in reported] == [(0, 5, 2)], f"{reported}")


@case("3.5", REMOVAL, "a hard timeout ends a flow, and is reported with its counters", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(**IP), hard=2, flags=ten.SEND_FLOW_REM)
    bench.passes(build())
    bench.advance(4)
    reported = [ten.read_flow_removed(bench.wait_for(ten.FLOW_REMOVED))]
    bench.barrier()
    reported += [ten.read_flow_removed(one) for one in bench.take(ten.FLOW_REMOVED)]
    check([(one.reason, one.packets) for one in reported] == [(1, 1)], f"{reported}")


@case("5.4.3", REMOVAL, "a deleted flow is reported as OFPRR_DELETE, when it was asked for", "1.0")
def _(bench: Bench) -> None:
    _forward(bench, ten.flow_match(**IP), flags=ten.SEND_FLOW_REM)
    _forward(bench, ten.flow_match(dl_type=0x0806))
    bench.obeyed(ten.flow_mod(ten.flow_match(), command=ten.DELETE))
    reported = [ten.read_flow_removed(bench.wait_for(ten.FLOW_REMOVED))]
    bench.barrier()
    reported += [ten.read_flow_removed(one) for one in bench.take(ten.FLOW_REMOVED)]
    check([one.reason for one in reported] == [2], f"{reported}")
    check(ten.canonical(reported[0].match) == ten.canonical(ten.flow_match(**IP)), "another match")
