"""Queues of ports: set-queue, their configuration and counters (7.2.2, 7.3.5.8, 7.3.6)."""

from __future__ import annotations

import struct

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

QUEUES = "Queues"
REFUSED = "Queues: what is refused"
RATES = ((100_000_000, 400_000_000), (200_000_000, 500_000_000))
LINE = 1_000_000_000


def _queue_stats(bench: Bench, port: int, queue: int) -> dict[tuple[int, int], tuple[int, int, int]]:
    body = bench.multipart(of.MP_QUEUE, port.to_bytes(4) + queue.to_bytes(4))
    rows = struct.iter_unpack("!IIQQQII", body)
    return {(row[0], row[1]): (row[2], row[3], row[4]) for row in rows}


def _config(bench: Bench, port: int) -> dict[int, dict[int, int]]:
    """Return rates by property's number, by queue."""
    body = bench.ask(of.Message(of.QUEUE_CONFIG_REQUEST, port.to_bytes(4) + bytes(4)), of.QUEUE_CONFIG_REPLY).body
    check(int.from_bytes(body[:4]) == port, "another port")
    found: dict[int, dict[int, int]] = {}
    at = 8
    while at < len(body):
        queue, _, length = struct.unpack_from("!IIH", body, at)
        found[queue] = {}
        inner = at + 16
        while inner < at + length:
            kind, size = struct.unpack_from("!HH", body, inner)
            found[queue][kind] = int.from_bytes(body[inner + 8 : inner + 10])
            check(size >= 8, "a property without length")
            inner += size
        at += length
    return found


@case("7.3.6", QUEUES, "the queues of a port are reported")
def _(bench: Bench) -> None:
    bench.target.set_queues(bench.p2, RATES)
    check(set(_config(bench, bench.p2)) == {0, 1}, f"{_config(bench, bench.p2)}")


@case("7.2.2", QUEUES, "minimum and maximum rates are reported, in tenths of a percent of the line")
def _(bench: Bench) -> None:
    bench.target.set_queues(bench.p2, RATES)
    due = {queue: {1: least * 1000 // LINE, 2: most * 1000 // LINE} for queue, (least, most) in enumerate(RATES)}
    check(_config(bench, bench.p2) == due, f"{_config(bench, bench.p2)}")


@case("5.12", QUEUES, "a frame goes by the queue that was set")
def _(bench: Bench) -> None:
    bench.target.set_queues(bench.p2, RATES)
    bench.forward({}, of.set_queue(1))
    bench.passes(build())
    sent = _queue_stats(bench, bench.p2, of.ALL_QUEUES)
    check(sent[(bench.p2, 1)][:2] == (len(build()), 1), f"{sent}")
    check(sent[(bench.p2, 0)][1] == 0, f"{sent}")


@case("5.12", QUEUES, "a frame without a queue goes by queue 0")
def _(bench: Bench) -> None:
    bench.target.set_queues(bench.p2, RATES)
    bench.forward({})
    bench.passes(build())
    check(_queue_stats(bench, bench.p2, 0)[(bench.p2, 0)][1] == 1, "not counted there")


@case("5.12", QUEUES, "a queue in the action set")
def _(bench: Bench) -> None:
    bench.target.set_queues(bench.p2, RATES)
    bench.flow({}, of.write_actions(of.output(bench.p2), of.set_queue(1)))
    bench.passes(build())
    check(_queue_stats(bench, bench.p2, 1)[(bench.p2, 1)][1] == 1, "not counted there")


@case("5.12", QUEUES, "set-queue does not hold back frames of ports without queues")
def _(bench: Bench) -> None:
    bench.forward({}, of.set_queue(1))
    bench.passes(build())


@case("7.3.5.8", QUEUES, "one queue is reported alone")
def _(bench: Bench) -> None:
    bench.target.set_queues(bench.p2, RATES)
    check(list(_queue_stats(bench, bench.p2, 1)) == [(bench.p2, 1)], "others too, or none")


@case("7.3.5.8", QUEUES, "all queues of all ports are reported")
def _(bench: Bench) -> None:
    for port in (bench.p2, bench.p3):
        bench.target.set_queues(port, RATES)
    reported = set(_queue_stats(bench, of.ANY, of.ALL_QUEUES))
    check({(port, queue) for port in (bench.p2, bench.p3) for queue in (0, 1)} <= reported, f"{reported}")


@case("7.3.6", QUEUES, "OFPP_ANY asks for the queues of all ports")
def _(bench: Bench) -> None:
    bench.target.set_queues(bench.p2, RATES)
    body = bench.ask(of.Message(of.QUEUE_CONFIG_REQUEST, of.ANY.to_bytes(4) + bytes(4)), of.QUEUE_CONFIG_REPLY).body
    ports = [struct.unpack_from("!II", body, at)[1] for at in range(8, len(body), 16) if len(body) >= at + 16]
    check(bench.p2 in ports, f"{ports}")


@case("7.3.5.8", REFUSED, "counters of a port that is not there: OFPQOFC_BAD_PORT")
def _(bench: Bench) -> None:
    body = (77).to_bytes(4) + of.ALL_QUEUES.to_bytes(4)
    bench.refused(of.multipart(of.MP_QUEUE, body), of.QUEUE_OP_FAILED, 0)


@case("7.3.5.8", REFUSED, "counters of a queue that is not there: OFPQOFC_BAD_QUEUE")
def _(bench: Bench) -> None:
    body = bench.p1.to_bytes(4) + (77).to_bytes(4)
    bench.refused(of.multipart(of.MP_QUEUE, body), of.QUEUE_OP_FAILED, 1)


@case("7.3.6", REFUSED, "the configuration of a port that is not there: OFPQOFC_BAD_PORT")
def _(bench: Bench) -> None:
    message = of.Message(of.QUEUE_CONFIG_REQUEST, (77).to_bytes(4) + bytes(4))
    bench.refused(message, of.QUEUE_OP_FAILED, 0)
