"""OpenFlow 1.0: the other messages (5.3 to 5.5 of 1.0.2)."""

from __future__ import annotations

import struct

from twinnet_conformance import openflow10 as ten
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build
from twinnet_conformance.openflow13 import Message

__all__: list[str] = []

CHANNEL = "1.0: channel"
FRAMES = "1.0: packet-in and packet-out"
COUNTED = "1.0: statistics"
PORTS = "1.0: ports"
BARRIER = 18


def _features(bench: Bench) -> bytes:
    return bench.ask(Message(ten.FEATURES_REQUEST, b"", 1), ten.FEATURES_REPLY).body


@case("5.5.1", CHANNEL, "a hello of 1.0 agrees on 1.0", "1.0")
def _(bench: Bench) -> None:
    reply = bench.ask(Message(ten.FEATURES_REQUEST, b"", 1), ten.FEATURES_REPLY)
    check(reply.version == 1, f"version {reply.version}")


@case("5.3.1", CHANNEL, "the features report datapath and ports", "1.0")
def _(bench: Bench) -> None:
    body = _features(bench)
    check(int.from_bytes(body[:8]) == 1, "another datapath")
    check(set(bench.target.ports) <= set(ten.read_ports(body)), "ports are missing")


@case("5.3.1", CHANNEL, "the features report every action", "1.0")
def _(bench: Bench) -> None:
    actions = int.from_bytes(_features(bench)[20:24])
    check(actions & 0xFFF == 0xFFF, f"actions {actions:#x}")


@case("5.5.2", CHANNEL, "an echo is answered", "1.0")
def _(bench: Bench) -> None:
    check(bench.ask(Message(2, b"hallo", 1), 3).body == b"hallo", "another answer")


@case("5.3.2", CHANNEL, "the configuration is kept and reported", "1.0")
def _(bench: Bench) -> None:
    bench.obeyed(Message(ten.SET_CONFIG, struct.pack("!HH", 1, 77), 1))
    body = bench.ask(Message(ten.GET_CONFIG_REQUEST, b"", 1), ten.GET_CONFIG_REPLY).body
    check(struct.unpack("!HH", body) == (1, 77), f"{body.hex()}")


@case("5.4.4", CHANNEL, "a type that does not exist: OFPBRC_BAD_TYPE", "1.0")
def _(bench: Bench) -> None:
    bench.refused(Message(99, b"", 1), ten.BAD_REQUEST, 1)


@case("5.4.4", CHANNEL, "statistics that do not exist: OFPBRC_BAD_STAT", "1.0")
def _(bench: Bench) -> None:
    bench.refused(ten.stats(99), ten.BAD_REQUEST, 2)


@case("5.4.4", CHANNEL, "an unknown vendor: OFPBRC_BAD_VENDOR", "1.0")
def _(bench: Bench) -> None:
    bench.refused(Message(ten.VENDOR, bytes([0, 0x55, 0x66, 0x77]), 1), ten.BAD_REQUEST, 3)


@case("5.4.4", CHANNEL, "a flow-mod that is too short: OFPBRC_BAD_LEN", "1.0")
def _(bench: Bench) -> None:
    bench.refused(Message(ten.FLOW_MOD, bytes(20), 1), ten.BAD_REQUEST, 6)


@case("5.3.7", CHANNEL, "a frame behind the answer to a barrier meets what was changed", "1.0")
def _(bench: Bench) -> None:
    bench.obeyed(ten.flow_mod(ten.flow_match(), ten.output(bench.p3)))
    for _ in range(3):
        bench.frame(build())
    bench.obeyed(ten.flow_mod(ten.flow_match(), ten.output(bench.p2), command=ten.MODIFY))
    check([port for port, _ in bench.frame(build(), settled=False)] == [bench.p2], "it met the state before")


@case(
    "5.4.1", FRAMES, "a flow of priority 0 that matches everything is no table-miss: its reason is OFPR_ACTION", "1.0"
)
def _(bench: Bench) -> None:
    bench.obeyed(ten.flow_mod(ten.flow_match(), ten.output(ten.CONTROLLER), priority=0))
    bench.frame(build())
    reported = ten.read_packet_in(bench.wait_for(ten.PACKET_IN))
    check(reported.reason == 1, f"reason {reported.reason}")


@case("5.4.1", FRAMES, "what no flow matches comes to the controller, with reason OFPR_NO_MATCH", "1.0")
def _(bench: Bench) -> None:
    bench.drops(build())
    reported = ten.read_packet_in(bench.wait_for(ten.PACKET_IN))
    check((reported.reason, reported.in_port) == (0, bench.p1), f"{reported}")


@case("5.4.1", FRAMES, "of it come miss_send_len bytes, and a buffer", "1.0")
def _(bench: Bench) -> None:
    bench.needs_buffers()
    bench.obeyed(Message(ten.SET_CONFIG, struct.pack("!HH", 0, 50), 1))
    bench.drops(build().ljust(500, b"\1"))
    reported = ten.read_packet_in(bench.wait_for(ten.PACKET_IN))
    check((len(reported.data), reported.total) == (50, 500) and reported.buffer != ten.NO_BUFFER, f"{reported}")


@case("5.4.1", FRAMES, "an output to the controller says OFPR_ACTION, and sends max_len bytes", "1.0")
def _(bench: Bench) -> None:
    bench.needs_buffers()
    bench.obeyed(ten.flow_mod(ten.flow_match(), ten.output(ten.CONTROLLER, 30)))
    bench.drops(build())
    reported = ten.read_packet_in(bench.wait_for(ten.PACKET_IN))
    check((reported.reason, len(reported.data)) == (1, 30), f"{reported}")


@case("5.3.6", FRAMES, "a buffer is sent by a packet-out", "1.0")
def _(bench: Bench) -> None:
    bench.needs_buffers()
    frame = build().ljust(500, b"\1")
    bench.drops(frame)
    reported = ten.read_packet_in(bench.wait_for(ten.PACKET_IN))
    check(reported.buffer != ten.NO_BUFFER, "there is none")
    bench.obeyed(ten.packet_out(b"", ten.output(bench.p2), buffer=reported.buffer, in_port=bench.p1))
    check(bench.target.arrived() == [(bench.p2, frame)], "another frame")


@case("5.3.6", FRAMES, "a frame is sent by a packet-out", "1.0")
def _(bench: Bench) -> None:
    bench.obeyed(ten.packet_out(build(), ten.set_dl(5, 9), ten.output(bench.p2)))
    check(bench.target.arrived() == [(bench.p2, build(eth_dst=9))], "another frame")


@case("5.3.6", FRAMES, "a frame is sent by TABLE", "1.0")
def _(bench: Bench) -> None:
    bench.obeyed(ten.flow_mod(ten.flow_match(in_port=bench.p3), ten.output(bench.p2)))
    bench.obeyed(ten.packet_out(build(), ten.output(ten.TABLE), in_port=bench.p3))
    check(bench.target.arrived() == [(bench.p2, build())], "another frame")


@case("5.3.6", FRAMES, "an unknown buffer: OFPBRC_BUFFER_UNKNOWN", "1.0")
def _(bench: Bench) -> None:
    bench.refused(ten.packet_out(b"", ten.output(bench.p2), buffer=0x7EADBEE), ten.BAD_REQUEST, 8)


@case("5.3.5", COUNTED, "the description is of 1056 bytes", "1.0")
def _(bench: Bench) -> None:
    body = bench.ask(ten.stats(0), ten.STATS_REPLY).body[4:]
    check(len(body) == 1056 and body[0] != 0, f"{len(body)} bytes")


@case("5.3.5", COUNTED, "the aggregate of frames, bytes and flows", "1.0")
def _(bench: Bench) -> None:
    bench.obeyed(ten.flow_mod(ten.flow_match(), ten.output(bench.p2)))
    bench.passes(build())
    body = bench.ask(ten.flow_request(2), ten.STATS_REPLY).body[4:]
    check(struct.unpack_from("!QQI", body) == (1, len(build()), 1), f"{body.hex()}")


@case("5.3.5", COUNTED, "look-ups and matches of table 0", "1.0")
def _(bench: Bench) -> None:
    bench.obeyed(ten.flow_mod(ten.flow_match(dl_type=0x0800), ten.output(bench.p2)))
    rows = [bench.ask(ten.stats(3), ten.STATS_REPLY).body[4:68]]
    bench.frame(build())
    bench.frame(build(arp_op=1))
    rows.append(bench.ask(ten.stats(3), ten.STATS_REPLY).body[4:68])
    (_, before, matched_before), (active, after, matched) = [struct.unpack_from("!IQQ", row, 44) for row in rows]
    check((active, after - before, matched - matched_before) == (1, 2, 1), f"{rows[1].hex()}")


@case("5.3.5", COUNTED, "frames and bytes of a port", "1.0")
def _(bench: Bench) -> None:
    request = ten.stats(4, bench.p1.to_bytes(2) + bytes(6))
    before = struct.unpack_from("!H6xQQQQ", bench.ask(request, ten.STATS_REPLY).body, 4)
    bench.frame(build())
    after = struct.unpack_from("!H6xQQQQ", bench.ask(request, ten.STATS_REPLY).body, 4)
    check((after[1] - before[1], after[3] - before[3]) == (1, len(build())), f"{after}")


@case("5.3.4", COUNTED, "the queues of a port are reported with their minimum rate", "1.0")
def _(bench: Bench) -> None:
    bench.target.set_queues(bench.p2, ((100_000_000, 400_000_000), (200_000_000, 500_000_000)))
    request = Message(ten.QUEUE_CONFIG_REQUEST, bench.p2.to_bytes(2) + bytes(2), 1)
    body = bench.ask(request, ten.QUEUE_CONFIG_REPLY).body
    rates: dict[int, int] = {}
    at = 8
    while at < len(body):
        queue, length = struct.unpack_from("!IH", body, at)
        rates[queue] = int.from_bytes(body[at + 16 : at + 18])
        check(length >= 8, "a queue without length")
        at += length
    check(rates == {0: 100, 1: 200}, f"{rates}")


def _modify(bench: Bench, port: int, config: int, mask: int) -> None:
    address = ten.read_ports(_features(bench))[port].address
    bench.obeyed(ten.port_mod(port, address, config, mask))
    bench.advance(0.1)


for _name, _bit, _due in (("PORT_DOWN", 1, 0), ("NO_FWD", 32, 0), ("NO_FLOOD", 16, 1)):

    @case("5.2.1", PORTS, f"{_name}: output to the port {'goes on' if _due else 'ends'}", "1.0")
    def _(bench: Bench, bit: int = _bit, due: int = _due) -> None:
        if bit == 1:
            bench.needs_devices()
        bench.obeyed(ten.flow_mod(ten.flow_match(), ten.output(bench.p2)))
        _modify(bench, bench.p2, bit, bit)
        check(len(bench.frame(build())) == due, "it does not")


@case("5.2.1", PORTS, "NO_FLOOD takes a port out of FLOOD, not out of ALL", "1.0")
def _(bench: Bench) -> None:
    _modify(bench, bench.p3, 16, 16)
    bench.obeyed(ten.flow_mod(ten.flow_match(), ten.output(ten.FLOOD)))
    bench.expect(build(), (bench.p2, build()), (bench.p4, build()))
    bench.obeyed(ten.flow_mod(ten.flow_match(), ten.output(ten.ALL_PORTS)))
    bench.expect(build(), (bench.p2, build()), (bench.p3, build()), (bench.p4, build()))


@case("5.2.1", PORTS, "NO_RECV drops what comes in", "1.0")
def _(bench: Bench) -> None:
    bench.obeyed(ten.flow_mod(ten.flow_match(), ten.output(bench.p2)))
    _modify(bench, bench.p1, 4, 4)
    bench.drops(build())


@case("5.2.1", PORTS, "NO_PACKET_IN keeps frames of the port from the controller", "1.0")
def _(bench: Bench) -> None:
    _modify(bench, bench.p1, 64, 64)
    bench.drops(build())
    bench.barrier()
    check(not bench.take(ten.PACKET_IN), "one came")


@case("5.4.3", PORTS, "a change is reported as OFPPR_MODIFY", "1.0")
def _(bench: Bench) -> None:
    _modify(bench, bench.p2, 16, 16)
    reported = bench.wait_for(ten.PORT_STATUS).body
    check((reported[0], int.from_bytes(reported[8:10])) == (2, bench.p2), f"{reported.hex()}")


@case("5.3.3", PORTS, "a port that is not there: OFPPMFC_BAD_PORT", "1.0")
def _(bench: Bench) -> None:
    bench.refused(ten.port_mod(77, bytes(6), 0, 0), ten.PORT_MOD_FAILED, 0)


@case("5.3.3", PORTS, "another address than the port's: OFPPMFC_BAD_HW_ADDR", "1.0")
def _(bench: Bench) -> None:
    bench.refused(ten.port_mod(bench.p1, bytes([2, 9, 9, 9, 9, 9]), 0, 0), ten.PORT_MOD_FAILED, 1)
