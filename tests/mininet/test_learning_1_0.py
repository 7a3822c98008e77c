"""The controller of scripts speaks OpenFlow 1.0 with switches that do, as Mininet's own controller does."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import Any

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script
from twinnet.mininet.learning_1_0 import Session10
from twinnet.mininet.learning_controller import LearningController

machine = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")

A, B, ALL = bytes(5) + b"\x01", bytes(5) + b"\x02", b"\xff" * 6


def message(kind: int, body: bytes = b"") -> bytes:
    return struct.pack("!BBHI", 1, kind, 8 + len(body), 7) + body


def packet_in(
    port: int, destination: bytes, source: bytes, buffer: int = 0xFFFF_FFFF, rest: bytes = bytes(50)
) -> bytes:
    return message(10, struct.pack("!IHHBx", buffer, 64, port, 0) + destination + source + rest)


def told(session: Session10) -> list[tuple[int, bytes]]:
    """The messages that the session says: type and body."""
    out, found = session.take(), list[tuple[int, bytes]]()
    while out:
        version, kind, length, _ = struct.unpack_from("!BBHI", out)
        assert version == 1
        found.append((kind, out[8:length]))
        out = out[length:]
    return found


@pytest.fixture
def session() -> Session10:
    """A session that has greeted."""
    made = Session10([])
    assert told(made) == [(0, b"")]
    made.receive(message(0))
    assert told(made) == [(5, b""), (9, b"\x00\x00\xff\xff")]
    return made


def test_a_frame_for_everybody_is_flooded_and_one_for_a_known_address_gets_a_flow(session: Session10) -> None:
    session.receive(packet_in(1, ALL, A))
    [(kind, body)] = told(session)
    assert (kind, body[:8]) == (13, struct.pack("!IHH", 0xFFFF_FFFF, 1, 8))
    assert body[8:16] == struct.pack("!HHHH", 0, 8, 0xFFFB, 0)
    assert body[16:28] == ALL + A
    session.receive(packet_in(2, A, B))
    (first, flow), (second, sent) = told(session)
    assert (first, second) == (14, 13)
    wildcards, in_port, source, destination, vlan = struct.unpack_from("!IH6s6sH", flow)
    assert (wildcards & 15, in_port, source, destination, vlan) == (0, 2, B, A, 0xFFFF)
    assert struct.unpack_from("!HHHH", flow, 48) == (0, 60, 0, 1)
    assert flow[64:] == sent[8:16] == struct.pack("!HHHH", 0, 8, 1, 0)


def test_a_buffered_frame_goes_with_its_flow(session: Session10) -> None:
    session.receive(packet_in(1, ALL, A, buffer=5))
    [(_, body)] = told(session)
    assert (body[:4], len(body)) == (struct.pack("!I", 5), 16)
    session.receive(packet_in(2, A, B, buffer=6))
    [(kind, flow)] = told(session)
    assert (kind, struct.unpack_from("!I", flow, 56)) == (14, (6,))


def test_vlans_learn_apart_and_what_would_go_back_is_dropped(session: Session10) -> None:
    tag = b"\x81\x00\x00\x0a" + bytes(46)
    session.receive(packet_in(1, ALL, A, rest=tag) + packet_in(2, A, B))
    assert [body[8:16] for _, body in told(session)] == [struct.pack("!HHHH", 0, 8, 0xFFFB, 0)] * 2
    session.receive(packet_in(1, A, B, rest=tag))
    [(kind, flow)] = told(session)
    assert (kind, flow[18:20], len(flow)) == (14, b"\x00\x0a", 64)


def test_a_port_that_goes_down_has_all_sessions_forget(session: Session10) -> None:
    peers: list[Session10] = []
    one, other = Session10(peers), Session10(peers)
    peers += [one, other]
    one.take(), other.take()
    status = struct.pack("!B7xH6s16sII", 2, 1, A, b"s1-eth1", 0, 0)
    one.receive(message(12, status + bytes(16)))
    assert told(one) == []
    one.receive(message(12, status[:-1] + b"\x01" + bytes(16)))
    for peer in peers:
        [(kind, flow)] = told(peer)
        assert (kind, struct.unpack_from("!H", flow, 48)) == (14, (3,))


def test_an_echo_is_answered_with_its_content(session: Session10) -> None:
    session.receive(message(2, b"abc"))
    assert session.take() == struct.pack("!BBHI", 1, 3, 11, 7) + b"abc"


def test_a_hello_is_sent_by_itself_in_the_version_of_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []

    def send(_controller: LearningController, sock: socket.socket, session: Any) -> None:
        sent.append(session.take())
        sock.sendall(sent[-1])

    monkeypatch.setattr(LearningController, "_send", send)
    offers_both = bytes.fromhex("0400001000000001 0001000800000012")
    only_newer = bytes.fromhex("0400001000000001 0001000800000010")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        controller = LearningController([listener])
        for hello, version in ((message(0), 1), (offers_both, 1), (only_newer, 4)):
            sent.clear()
            with socket.create_connection(listener.getsockname()) as switch:
                controller.turn(5)
                switch.sendall(hello[:5])
                controller.turn(5)
                assert sent == []
                switch.sendall(hello[5:])
                controller.turn(5)
                assert sent[0][:2] == bytes((version, 0))
                assert len(sent[0]) == int.from_bytes(sent[0][2:4], "big")
                assert len(sent) == 2
            controller.turn(5)


@machine
def test_switches_of_each_version_have_the_usual_controller(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.net import Mininet
        from mininet.topo import LinearTopo

        for protocols in (None, "OpenFlow10", "OpenFlow13"):
            net = Mininet(topo=LinearTopo(2, sopts={"protocols": protocols}), waitConnected=True)
            net.start()
            lost = [net.pingAll(), net.pingAll()]
            net["s1"].dpctl("del-flows")
            print(protocols, lost, net.pingAll())
            net.configLinkStatus("s1", "s2", "down")
            net.configLinkStatus("s1", "s2", "up")
            print(min(net.pingAll(timeout=1) for _ in range(3)))
            net.stop()
        """,
    )
    lines = done.stdout.splitlines()
    assert lines == [
        "None [0.0, 0.0] 0.0",
        "0.0",
        "OpenFlow10 [0.0, 0.0] 0.0",
        "0.0",
        "OpenFlow13 [0.0, 0.0] 0.0",
        "0.0",
    ], done.stdout + done.stderr
