"""Running a test of the files on a pair of switches, by the rules of os-ken's tester (its ``tester.py``)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from twinnet_conformance.bench import Channel, Failure, check
from twinnet_conformance.openflow13 import Message, Received
from twinnet_conformance.os_ken import codec
from twinnet_conformance.os_ken.exceptions import why_wrong
from twinnet_conformance.os_ken.files import SwitchTest
from twinnet_conformance.os_ken.pair import Pair
from twinnet_conformance.outcome import Outcome
from twinnet_conformance.target import NotPossible

__all__ = ["run_test", "run_tests"]

SEND_PORT, RECEIVE_PORT = 1, 2
"""Ports of the tester: what it sends enters the target by port 1, and what the target lets out of port 2 comes back."""
V10 = 1
PACKET_IN, FLOW_MOD, BARRIER_REQUEST = 10, 14, {1: 18, 4: 20}
STATISTICS_REPLY = {1: 17, 4: 19}
NO_MATCH, INVALID_TTL = 0, 2
CONTROLLER = {1: 0xFFFD, 4: 0xFFFFFFFD}
NO_BUFFER = ANY = 0xFFFFFFFF
BATCHES_PER_S = 100
"""Frames of a rate are sent in batches, as os-ken's tester does."""
TOLERANCE = 0.10
"""os-ken's ``THROUGHPUT_THRESHOLD``."""
KILOBIT_BYTES = 1024 / 8
"""What os-ken's tester takes for a kilobit."""
THROUGHPUT_PRIORITY = THROUGHPUT_COOKIE = 0x8001
USUAL_PACKETS_PER_S, USUAL_DURATION_S = 1000, 30


def run_tests(tests: Iterable[SwitchTest], pairs: Callable[[int], Pair]) -> Iterator[Outcome]:
    """Run tests one after the other; `pairs` makes switches for a version, and they are emptied before each test."""
    for version, of_it in groupby(tests, key=lambda test: test.wire_version):
        pair = pairs(version)
        try:
            for test in of_it:
                yield run_test(test, pair)
        finally:
            pair.stop()


def run_test(test: SwitchTest, pair: Pair, *, even_wrong: bool = False) -> Outcome:
    """Run one test; one that is wrong itself only with `even_wrong`."""
    wrong = None if even_wrong else why_wrong(test)
    if wrong is not None:
        return Outcome(test, None, wrong)
    if test.is_measured and not pair.measures:
        return Outcome(test, None, "frames pass one by one between these switches: no rate can be measured")
    try:
        _Run(test, pair).run()
    except NotPossible as reason:
        return Outcome(test, None, str(reason))
    except Failure as failure:
        return Outcome(test, False, str(failure))
    except (IndexError, KeyError, ValueError, struct.error, OSError) as error:
        return Outcome(test, False, f"an answer that cannot be read: {type(error).__name__}: {error}")
    return Outcome(test, True)


class _Run:
    """One test on its way."""

    def __init__(self, test: SwitchTest, pair: Pair) -> None:
        self.test = test
        self.pair = pair
        self.version = test.wire_version

    def run(self) -> None:
        """Empty the switches, install what is needed, send and judge."""
        for channel in (self.pair.target, self.pair.tester):
            self._empty(channel)
        for written in self.test.prerequisite:
            self._install(self.pair.target, written)
        for step in self.test.steps:
            ingress: Any = step["ingress"]
            if "packets" in ingress:
                self._measure(ingress["packets"], step["egress"]["throughput"])
            elif "table-miss" in step:
                self._send_and_miss(ingress, step["table-miss"])
            elif "egress" in step:
                self._send_and_expect(ingress, self.pair.tester, codec.frame(step["egress"]))
            else:
                self._send_and_expect(ingress, self.pair.target, codec.frame(step["PACKET_IN"]))

    def _empty(self, channel: Channel) -> None:
        if self.version == V10:
            everything: list[dict[str, Any]] = [{"OFPFlowMod": {"command": 3, "match": {"OFPMatch": {}}}}]
        else:
            match: dict[str, Any] = {"OFPMatch": {"oxm_fields": []}}
            everything = [
                {"OFPMeterMod": {"command": 2, "meter_id": 0xFFFFFFFF, "flags": 0, "bands": []}},
                {"OFPGroupMod": {"command": 2, "group_id": 0xFFFFFFFC, "type": 0, "buckets": []}},
                {"OFPFlowMod": {"command": 3, "table_id": 0xFF, "out_port": ANY, "out_group": ANY, "match": match}},
            ]
        for written in everything:
            self._obeyed(channel, codec.message(self.version, written)[0])
        self._obeyed(channel, codec.message(self.version, self._to_controller())[0])
        channel.take(PACKET_IN)

    def _to_controller(self) -> dict[str, Any]:
        """Return the flow that sends to the controller what comes in by the port that the tester listens at."""
        output = {"OFPActionOutput": {"port": CONTROLLER[self.version], "max_len": 0xFFFF}}
        if self.version == V10:
            return {"OFPFlowMod": {"actions": [output], "match": {"OFPMatch": {"in_port": RECEIVE_PORT}}}}
        port = {"OXMTlv": {"field": "in_port", "value": RECEIVE_PORT}}
        applied = {"OFPInstructionActions": {"actions": [output], "type": 4}}
        return {"OFPFlowMod": {"instructions": [applied], "match": {"OFPMatch": {"oxm_fields": [port]}}}}

    def _obeyed(self, channel: Channel, data: bytes) -> None:
        channel.obeyed(Message(data[1], data[8:], data[0]))

    def _install(self, channel: Channel, written: dict[str, Any]) -> None:
        """Send a message of the files, and look whether the switch gives it back as it was written."""
        data, installed = codec.message(self.version, written)
        self._obeyed(channel, data)
        (kind,) = written
        question, attributes = _READ_BACK[kind]
        if kind == "OFPFlowMod":
            attributes = (*attributes, *(("actions",) if self.version == V10 else ("table_id", "instructions")))
        differences = [codec.differs(installed, reported, attributes) for reported in self._ask(channel, question)]
        check("" in differences, f"{kind} does not read back: {'; '.join(differences) or 'nothing is reported'}")

    def _ask(self, channel: Channel, question: dict[str, Any] | str) -> list[Any]:
        """Return the entries of all parts of an answer."""
        if isinstance(question, str):
            name = question
            fields: dict[str, Any] = {"flags": 0}
            if name == "OFPFlowStatsRequest" and self.version == V10:
                fields |= {"match": {"OFPMatch": {}}, "table_id": 0xFF, "out_port": 0xFFFF}
            question = {name: fields}
        data, _ = codec.message(self.version, question)
        answers = channel.answers(Message(data[1], data[8:], data[0]))
        check(all(one.kind == STATISTICS_REPLY[self.version] for one in answers), "an error answers a question")
        return [entry for one in answers for entry in codec.entries(codec.reply(self.version, _whole(one)))]

    def _packet_out(self, data: bytes) -> bytes:
        """Return the message that lets the tester send a frame."""
        actions = [{"OFPActionOutput": {"port": SEND_PORT}}]
        written = {"in_port": CONTROLLER[self.version], "buffer_id": NO_BUFFER, "actions": actions, "data": ""}
        head = bytearray(codec.message(self.version, {"OFPPacketOut": written})[0]) + data
        head[2:4] = len(head).to_bytes(2)
        return bytes(head)

    def _send(self, layers: list[str]) -> None:
        self.pair.tester.connection.send(self._packet_out(codec.frame(layers)))
        self.pair.tester.barrier()
        self.pair.pass_on()

    def _send_and_expect(self, layers: list[str], teller: Channel, due: bytes) -> None:
        self._send(layers)
        other = self.pair.target if teller is self.pair.tester else self.pair.tester
        for channel in (teller, other):
            channel.barrier()
        wrong = other.take(PACKET_IN)
        check(not wrong, "a packet-in came from the other switch")
        reported = teller.take(PACKET_IN)
        check(bool(reported), f"no packet-in came; due is {codec.describe(due)}")
        packet_in = codec.reply(self.version, _whole(reported[0])).parsed
        refused = (NO_MATCH,) if self.version == V10 else (NO_MATCH, INVALID_TTL)
        check(packet_in.reason not in refused, f"the packet-in has reason {packet_in.reason}")
        came = bytes(packet_in.data)
        check(came == due, f"{codec.describe(came)} came, where {codec.describe(due)} is due")

    def _send_and_miss(self, layers: list[str], tables: list[int]) -> None:
        before = self._table_counts()
        self._send(layers)
        after = self._table_counts()
        looked = [table for table in tables if after[table][0] > before[table][0]]
        check(bool(looked), "no table looked the frame up")
        matched = [table for table in looked if after[table][1] > before[table][1]]
        check(not matched, f"a flow of table {matched} matched the frame")

    def _table_counts(self) -> dict[int, tuple[int, int]]:
        entries = self._ask(self.pair.target, "OFPTableStatsRequest")
        return {one.table_id: (one.lookup_count, one.matched_count) for one in entries}

    def _measure(self, packets: dict[str, Any], throughputs: list[dict[str, Any]]) -> None:
        """Send frames at a rate, and compare what comes back by each way with what is due."""
        counted: list[tuple[Any, dict[str, Any]]] = []
        for one in throughputs:
            flow = {
                "cookie": THROUGHPUT_COOKIE,
                "priority": THROUGHPUT_PRIORITY,
                "match": {"OFPMatch": one["OFPMatch"]},
            }
            self._install(self.pair.tester, {"OFPFlowMod": flow})
            counted.append((codec.message(self.version, {"OFPFlowMod": flow})[1], one))
        started_s, before = self.pair.now_s, self._counts()
        self._send_at_rate(packets)
        elapsed_s, after = self.pair.now_s - started_s, self._counts()
        for flow, due in counted:
            match = str(flow.match)
            is_packets = "pktps" in due
            came = after[match][is_packets] - before[match][is_packets]
            wanted = (due["pktps"] if is_packets else due["kbps"] * KILOBIT_BYTES) * elapsed_s
            unit = "frames" if is_packets else "bytes"
            check(
                abs(came - wanted) <= TOLERANCE * wanted,
                f"{came} {unit} came in {elapsed_s:g} s, where {wanted:.0f} are due: {match}",
            )

    def _counts(self) -> dict[str, tuple[int, int]]:
        """Return bytes and frames by the match of the flows that count."""
        entries = self._ask(self.pair.tester, "OFPFlowStatsRequest")
        return {
            str(one.match): (one.byte_count, one.packet_count) for one in entries if one.cookie == THROUGHPUT_COOKIE
        }

    def _send_at_rate(self, packets: dict[str, Any]) -> None:
        make = codec.frame_maker(packets["data"], 1)
        is_random = any("randint" in line for line in packets["data"])
        same = self._packet_out(make())
        rate, seconds = packets.get("pktps", USUAL_PACKETS_PER_S), packets.get("duration_time", USUAL_DURATION_S)
        sent = 0
        for batch in range(1, seconds * BATCHES_PER_S + 1):
            due = batch * rate // BATCHES_PER_S
            count, sent = due - sent, due
            batch_data = b"".join(self._packet_out(make()) for _ in range(count)) if is_random else same * count
            if count:
                self.pair.tester.connection.send(batch_data)
            self.pair.advance(1 / BATCHES_PER_S)
            self.pair.target.collect()
            self.pair.tester.collect()
        for channel in (self.pair.target, self.pair.tester):
            channel.take(PACKET_IN)


_READ_BACK: dict[str, tuple[str, tuple[str, ...]]] = {
    "OFPFlowMod": ("OFPFlowStatsRequest", ("cookie", "priority", "hard_timeout", "idle_timeout", "match")),
    "OFPMeterMod": ("OFPMeterConfigStatsRequest", ("flags", "meter_id", "bands")),
    "OFPGroupMod": ("OFPGroupDescStatsRequest", ("type", "group_id", "buckets")),
}
"""By message the question whose answer gives it, and what of it is compared."""


def _whole(received: Received) -> bytes:
    """Return a message with its header."""
    head = bytes([received.version, received.kind]) + (8 + len(received.body)).to_bytes(2)
    return head + received.xid.to_bytes(4) + received.body
