"""Frames that are sent to the controller (7.4.1)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

TOLD = "Packet-in: contents"
BUFFERS = "Packet-in: buffers and max_len"

IP = {"eth_type": 0x0800}


def _to_controller(bench: Bench, max_len: int = of.WHOLE_FRAME) -> None:
    bench.flow(IP, of.apply_actions(of.output(of.CONTROLLER, max_len)), cookie=0x1234)


@case("7.4.1", TOLD, "reason, table, cookie and port of the frame")
def _(bench: Bench) -> None:
    _to_controller(bench)
    bench.frame(build(), bench.p3)
    reported = bench.packet_in()
    found = (reported.reason, reported.table, reported.cookie, reported.conditions.get("in_port"))
    check(found == (1, 0, 0x1234, (bench.p3, None)), f"reported {found}")


@case("7.4.1", TOLD, "the whole frame, and its length")
def _(bench: Bench) -> None:
    _to_controller(bench)
    frame = build().ljust(500, b"\x55")
    bench.frame(frame)
    reported = bench.packet_in()
    check((reported.data, reported.total) == (frame, 500), f"{len(reported.data)} bytes of {reported.total}")


@case("7.4.1", TOLD, "metadata of a later table")
def _(bench: Bench) -> None:
    bench.flow({}, of.write_metadata(0xABCD), of.goto_table(1))
    bench.flow({}, of.apply_actions(of.output(of.CONTROLLER)), table=1)
    bench.frame(build())
    reported = bench.packet_in()
    check(reported.table == 1 and reported.conditions.get("metadata") == (0xABCD, None), f"{reported}")


@case("7.4.1", TOLD, "a tunnel's number that was set")
def _(bench: Bench) -> None:
    bench.flow({}, of.apply_actions(of.set_field("tunnel_id", 77), of.output(of.CONTROLLER)))
    bench.frame(build())
    check(bench.packet_in().conditions.get("tunnel_id") == (77, None), "not reported")


@case("7.4.1", TOLD, "the frame as the actions before have made it")
def _(bench: Bench) -> None:
    bench.flow(IP, of.apply_actions(of.set_field("eth_dst", 5), of.output(of.CONTROLLER)))
    bench.frame(build())
    check(bench.packet_in().data == build(eth_dst=5), "another frame")


@case("7.4.1", TOLD, "a frame with a tag comes with its tag")
def _(bench: Bench) -> None:
    bench.flow({}, of.apply_actions(of.output(of.CONTROLLER)))
    bench.frame(build(vlan_vid=7))
    check(bench.packet_in().data == build(vlan_vid=7), "another frame")


@case("7.4.1", TOLD, "every controller gets it")
def _(bench: Bench) -> None:
    other = bench.controller()
    _to_controller(bench)
    bench.frame(build())
    bench.packet_in()
    other.wait_for(of.PACKET_IN)


@case("7.4.1", TOLD, "a hundred frames are a hundred packet-ins, in their order")
def _(bench: Bench) -> None:
    _to_controller(bench)
    for number in range(100):
        bench.target.send(bench.p1, build(ipv4_src=number))
    bench.packet_ins()
    came = [int.from_bytes(one.data[26:30]) for one in [of.read_packet_in(m) for m in bench.take(of.PACKET_IN)]]
    check(came in ([], list(range(100))), "another order")


@case("7.2.5", BUFFERS, "OFPCML_NO_BUFFER: the whole frame and no buffer")
def _(bench: Bench) -> None:
    _to_controller(bench)
    bench.frame(build().ljust(1000, b"\1"))
    reported = bench.packet_in()
    check(
        (reported.buffer, len(reported.data)) == (of.NO_BUFFER, 1000),
        f"buffer {reported.buffer:#x}, {len(reported.data)} bytes",
    )


for _max in (0, 20, 128):

    @case("7.2.5", BUFFERS, f"max_len {_max}: so many bytes and a buffer")
    def _(bench: Bench, most: int = _max) -> None:
        bench.needs_buffers()
        _to_controller(bench, most)
        bench.frame(build().ljust(1000, b"\1"))
        reported = bench.packet_in()
        check(reported.total == 1000, f"length {reported.total}")
        check(
            len(reported.data) == most and reported.buffer != of.NO_BUFFER,
            f"{len(reported.data)} bytes, {reported.buffer:#x}",
        )


@case("7.2.5", BUFFERS, "a frame not longer than max_len comes whole")
def _(bench: Bench) -> None:
    _to_controller(bench, 500)
    bench.frame(build())
    check(bench.packet_in().data == build(), "another frame")


def _buffered(bench: Bench) -> tuple[int, bytes]:
    bench.needs_buffers()
    _to_controller(bench, 20)
    frame = build().ljust(300, b"\7")
    bench.frame(frame)
    reported = bench.packet_in()
    check(reported.buffer != of.NO_BUFFER, "the frame is in no buffer")
    return reported.buffer, frame


@case("7.3.7", BUFFERS, "a packet-out sends the frame of a buffer")
def _(bench: Bench) -> None:
    buffer, frame = _buffered(bench)
    bench.obeyed(of.packet_out(b"", of.output(bench.p2), buffer=buffer, in_port=bench.p1))
    check(bench.target.arrived() == [(bench.p2, frame)], "another frame")


@case("7.3.4.1", BUFFERS, "a flow-mod with a buffer sends its frame through the tables")
def _(bench: Bench) -> None:
    buffer, frame = _buffered(bench)
    bench.obeyed(of.flow_mod(IP, of.apply_actions(of.output(bench.p2)), priority=500, buffer=buffer))
    check(bench.target.arrived() == [(bench.p2, frame)], "another frame")


@case("7.3.7", BUFFERS, "a buffer is free when its frame was sent: OFPBRC_BUFFER_UNKNOWN or BUFFER_EMPTY")
def _(bench: Bench) -> None:
    buffer, _ = _buffered(bench)
    message = of.packet_out(b"", of.output(bench.p2), buffer=buffer, in_port=bench.p1)
    bench.obeyed(message)
    bench.refused(message, of.BAD_REQUEST, 7, 8)


@case("7.3.7", BUFFERS, "a packet-out without actions drops the frame of the buffer")
def _(bench: Bench) -> None:
    buffer, _ = _buffered(bench)
    bench.obeyed(of.packet_out(b"", buffer=buffer, in_port=bench.p1))
    bench.refused(of.packet_out(b"", buffer=buffer, in_port=bench.p1), of.BAD_REQUEST, 7, 8)


@case("7.3.7", BUFFERS, "a buffer that never was is OFPBRC_BUFFER_UNKNOWN")
def _(bench: Bench) -> None:
    bench.refused(of.packet_out(b"", of.output(bench.p2), buffer=0x7EADBEE), of.BAD_REQUEST, 8)


@case("7.3.1", BUFFERS, "the features report how many buffers there are")
def _(bench: Bench) -> None:
    body = bench.ask(of.Message(of.FEATURES_REQUEST), of.FEATURES_REPLY).body
    buffers = int.from_bytes(body[8:12])
    _to_controller(bench, 20)
    bench.frame(build().ljust(300, b"\7"))
    check((bench.packet_in().buffer != of.NO_BUFFER) == (buffers > 0), f"{buffers} buffers are reported")


@case("7.3.2", BUFFERS, "miss_send_len is kept and reported")
def _(bench: Bench) -> None:
    bench.obeyed(of.set_config(0, 321))
    body = bench.ask(of.Message(of.GET_CONFIG_REQUEST), of.GET_CONFIG_REPLY).body
    check(int.from_bytes(body[2:4]) == 321, f"reported {int.from_bytes(body[2:4])}")


@case("7.3.2", BUFFERS, "miss_send_len is 128 at the beginning")
def _(bench: Bench) -> None:
    body = bench.ask(of.Message(of.GET_CONFIG_REQUEST), of.GET_CONFIG_REPLY).body
    check(int.from_bytes(body[2:4]) == 128, f"reported {int.from_bytes(body[2:4])}")


@case("7.3.2", BUFFERS, "an invalid TTL sends miss_send_len bytes")
def _(bench: Bench) -> None:
    bench.needs_buffers()
    bench.obeyed(of.set_config(0, 40), of.set_async((7, 7), (7, 7), (15, 15)))
    bench.forward(IP, of.dec_nw_ttl())
    bench.frame(build(ip_ttl=1).ljust(300, b"\1"))
    check(len(bench.packet_in().data) == 40, "another length")
