"""The connection: hello, echo, features, errors (6.3, 7.1, 7.5)."""

from __future__ import annotations

import struct

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import HELLO_BODY_13, Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

HELLO = "Channel: version negotiation"
ECHO = "Channel: echo"
FEATURES = "Channel: features and configuration"
ERRORS = "Channel: errors"


@case("7.5.1", HELLO, "the switch says hello first")
def _(bench: Bench) -> None:
    other = bench.stranger()
    other.wait_for(of.HELLO)


@case("7.5.1", HELLO, "a hello with a bitmap of 1.3 agrees on 1.3")
def _(bench: Bench) -> None:
    check(bench.ask(of.Message(of.FEATURES_REQUEST), of.FEATURES_REPLY).version == 4, "another version")


@case("7.5.1", HELLO, "a hello without elements agrees on its header's version")
def _(bench: Bench) -> None:
    other = bench.stranger()
    other.send(of.Message(of.HELLO))
    check(other.ask(of.Message(of.FEATURES_REQUEST), of.FEATURES_REPLY).version == 4, "another version")


@case("7.5.1", HELLO, "a hello of a higher version with a bitmap of 1.3 agrees on 1.3")
def _(bench: Bench) -> None:
    other = bench.stranger()
    other.send(of.Message(of.HELLO, HELLO_BODY_13, 9))
    check(other.ask(of.Message(of.FEATURES_REQUEST), of.FEATURES_REPLY).version == 4, "another version")


@case("7.5.1", HELLO, "elements of a hello that are not known are passed over")
def _(bench: Bench) -> None:
    other = bench.stranger()
    other.send(of.Message(of.HELLO, bytes([0, 77, 0, 8, 1, 2, 3, 4]) + HELLO_BODY_13))
    other.ask(of.Message(of.FEATURES_REQUEST), of.FEATURES_REPLY)


@case("7.5.1", HELLO, "a bitmap without a common version is OFPHFC_INCOMPATIBLE")
def _(bench: Bench) -> None:
    other = bench.stranger()
    # Version 31 alone.
    other.send(of.Message(of.HELLO, bytes([0, 1, 0, 8, 0x80, 0, 0, 0])))
    refusal = of.read_refusal(other.wait_for(of.ERROR))
    check(refusal == (of.HELLO_FAILED, 0), f"{refusal}")


@case("6.3.1", HELLO, "the connection ends after OFPHFC_INCOMPATIBLE")
def _(bench: Bench) -> None:
    other = bench.stranger()
    other.send(of.Message(of.HELLO, bytes([0, 1, 0, 8, 0x80, 0, 0, 0])))
    other.wait_for(of.ERROR)
    other.collect(bench.target.patience_s)
    check(other.connection.closed, "it is open")


for _size in (0, 1, 1000, 65527):

    @case("7.5.2", ECHO, f"an echo of {_size} bytes is answered with them")
    def _(bench: Bench, size: int = _size) -> None:
        data = bytes(number % 251 for number in range(size))
        reply = bench.ask(of.Message(of.ECHO_REQUEST, data), of.ECHO_REPLY)
        check(reply.body == data, f"{len(reply.body)} bytes")


@case("7.1", ECHO, "an answer has the transaction of its request")
def _(bench: Bench) -> None:
    for _ in range(3):
        xid = bench.send(of.Message(of.ECHO_REQUEST, b"x"))
        bench.wait_for(of.ECHO_REPLY, xid)


@case("6.2", ECHO, "a message in single bytes is read as one")
def _(bench: Bench) -> None:
    for byte in bytes([4, 2, 0, 12, 0, 0, 0x99, 0x99]) + b"half":
        bench.connection.send(bytes([byte]))
    check(bench.wait_for(of.ECHO_REPLY, 0x9999).body == b"half", "another answer")


@case("6.2", ECHO, "a hundred messages in one piece are all answered")
def _(bench: Bench) -> None:
    last = bench.send(*(of.Message(of.ECHO_REQUEST, bytes([number])) for number in range(100)))
    bench.wait_for(of.ECHO_REPLY, last)
    check(len(bench.take(of.ECHO_REPLY)) == 99, "some were not")


@case("7.3.1", FEATURES, "the features report datapath, tables and no ports")
def _(bench: Bench) -> None:
    body = bench.ask(of.Message(of.FEATURES_REQUEST), of.FEATURES_REPLY).body
    datapath, _, tables, auxiliary, _ = struct.unpack("!QIBB2xI4x", body)
    check((datapath, auxiliary) == (1, 0), f"datapath {datapath:#x}, auxiliary {auxiliary}")
    check(tables > 0, "no tables")


for _name, _bit in (("flows", 1), ("tables", 2), ("ports", 4), ("groups", 8), ("queues", 64)):

    @case("7.3.1", FEATURES, f"the features report that counters of {_name} are there")
    def _(bench: Bench, bit: int = _bit) -> None:
        body = bench.ask(of.Message(of.FEATURES_REQUEST), of.FEATURES_REPLY).body
        check(int.from_bytes(body[16:20]) & bit == bit, f"capabilities {body[16:20].hex()}")


@case("7.3.2", FEATURES, "a configuration that is set is not answered")
def _(bench: Bench) -> None:
    check(not bench.answers(of.set_config(0, 200)), "an answer came")


def _refused(title: str, section: str, kind: int, codes: tuple[int, ...], message: of.Message) -> None:
    @case(section, ERRORS, title)
    def _(bench: Bench) -> None:
        bench.refused(message, kind, *codes)


_refused("a message of a type that does not exist: OFPBRC_BAD_TYPE", "7.4.4", of.BAD_REQUEST, (1,), of.Message(99))
_refused(
    "an unknown experimenter's message: OFPBRC_BAD_EXPERIMENTER",
    "7.5.4",
    of.BAD_REQUEST,
    (3,),
    of.Message(of.EXPERIMENTER, bytes([0, 0x55, 0x66, 0x77, 0, 0, 0, 1])),
)
for _kind, _name in (
    (of.FEATURES_REQUEST, "a features request"),
    (of.GET_CONFIG_REQUEST, "a configuration request"),
    (of.BARRIER_REQUEST, "a barrier"),
    (of.GET_ASYNC_REQUEST, "a request for the asynchronous configuration"),
):
    _refused(f"{_name} that is too long: OFPBRC_BAD_LEN", "7.4.4", of.BAD_REQUEST, (6,), of.Message(_kind, bytes(8)))
for _kind, _name, _size in (
    (of.SET_CONFIG, "a configuration", 2),
    (of.PACKET_OUT, "a packet-out", 8),
    (of.FLOW_MOD, "a flow-mod", 20),
    (of.GROUP_MOD, "a group-mod", 4),
    (of.PORT_MOD, "a port-mod", 16),
    (of.TABLE_MOD, "a table-mod", 4),
    (of.METER_MOD, "a meter-mod", 4),
    (of.ROLE_REQUEST, "a role request", 8),
    (of.SET_ASYNC, "an asynchronous configuration", 8),
    (of.MULTIPART_REQUEST, "a multipart request", 4),
    (of.QUEUE_CONFIG_REQUEST, "a queue configuration request", 4),
    (of.EXPERIMENTER, "an experimenter's message", 4),
):
    _refused(
        f"{_name} that is too short: OFPBRC_BAD_LEN", "7.4.4", of.BAD_REQUEST, (6,), of.Message(_kind, bytes(_size))
    )
for _kind, _name in ((of.PACKET_IN, "packet-in"), (of.FLOW_REMOVED, "flow-removed"), (of.FEATURES_REPLY, "features")):
    _refused(
        f"a {_name} from a controller: OFPBRC_BAD_TYPE", "7.1", of.BAD_REQUEST, (1, 6), of.Message(_kind, bytes(64))
    )


@case("7.1", ERRORS, "a message of another version than was agreed on: OFPBRC_BAD_VERSION")
def _(bench: Bench) -> None:
    bench.send(of.Message(of.ECHO_REQUEST, b"", 1))
    refusal = of.read_refusal(bench.wait_for(of.ERROR))
    check(refusal == (of.BAD_REQUEST, 0), f"{refusal}")


@case("7.4.4", ERRORS, "an error has the transaction and at least 64 bytes of the message that it refuses")
def _(bench: Bench) -> None:
    message = of.flow_mod({"eth_type": 0x0800, "ip_proto": 6, "tcp_dst": 80}, table=255)
    xid = bench.send(message)
    error = bench.wait_for(of.ERROR, xid)
    whole = bytes([4, of.FLOW_MOD]) + (8 + len(message.body)).to_bytes(2) + xid.to_bytes(4) + message.body
    check(error.body[4 : 4 + 64] == whole[:64], "other bytes")


@case("7.4.4", ERRORS, "a short message that is refused comes back whole")
def _(bench: Bench) -> None:
    xid = bench.send(of.Message(99))
    error = bench.wait_for(of.ERROR, xid)
    check(error.body[4:12] == bytes([4, 99, 0, 8]) + xid.to_bytes(4), "other bytes")


@case("7.4.4", ERRORS, "the connection goes on after an error")
def _(bench: Bench) -> None:
    bench.refused(of.Message(99), of.BAD_REQUEST, 1)
    bench.forward({})
    bench.one_flow()


@case("6.2", ERRORS, "a refused message has changed nothing")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod({}, of.apply_actions(of.output(bench.p2)), of.goto_table(0)), of.BAD_INSTRUCTION, 2)
    check(not bench.flows(), "a flow is there")


@case("7.3.8", ERRORS, "a barrier has its transaction")
def _(bench: Bench) -> None:
    xid = bench.send(of.Message(of.BARRIER_REQUEST))
    check(bench.wait_for(of.BARRIER_REPLY).xid == xid, "another one")


@case("6.3", ERRORS, "flows stay when a controller leaves")
def _(bench: Bench) -> None:
    other = bench.controller()
    other.obeyed(of.flow_mod({}, of.apply_actions(of.output(bench.p2))))
    other.connection.close()
    bench.passes(build())
