"""Frames that a host gets together are joined to super-segments: its programs must read the bytes that were sent."""

from __future__ import annotations

import hashlib
import random
import sys
from pathlib import Path

import pytest
import twinnet as tn
from labs_here import can_run_labs
from twinnet.lab.lab import Lab

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")

LENGTH = 2 << 20
PORT = 5001
RECEIVER = """
import hashlib, socket, sys
family, port = (socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET), int(sys.argv[2])
with socket.socket(family, socket.SOCK_STREAM) as listener:
    listener.bind((sys.argv[1], port))
    listener.listen()
    print("listens", flush=True)
    connection, _ = listener.accept()
    digest, length = hashlib.sha256(), 0
    while piece := connection.recv(1 << 16):
        digest.update(piece)
        length += len(piece)
    print(length, digest.hexdigest(), flush=True)
"""
SENDER = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as connection, open(sys.argv[3], "rb") as file:
    connection.sendfile(file)
"""


def received_packets(lab: Lab, host: str) -> int:
    """What the kernel of a host says its interface has received: a super-segment counts once."""
    return int(lab[host].run(f"cat /sys/class/net/{host}-eth0/statistics/rx_packets", check=True).stdout)


@pytest.mark.parametrize("mtu", [1500, 1337])
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("loss", ["0", "0.5 %"])
def test_a_program_reads_what_was_sent_though_frames_come_joined(
    tmp_path: Path, version: int, mtu: int, loss: str
) -> None:
    content = random.Random(f"{version} {mtu} {loss}").randbytes(LENGTH)
    (tmp_path / "sent").write_bytes(content)
    network = tn.Network()
    switch = network.switch("s1")
    network.link(network.host("h1"), switch, rate="100 Mbit", mtu=mtu)
    # At this rate frames come to the card one by one, and not in trains; in 1 ms eight of them.
    receiver = network.host("h2", interrupt_delay="1 ms")
    network.link(switch, receiver, rate="100 Mbit", mtu=mtu, loss=loss)
    with network.emulate() as lab:
        address = lab["h2"].ip if version == 4 else lab["h2"].ip6
        before = received_packets(lab, "h2")
        listens = lab["h2"].popen([sys.executable, "-c", RECEIVER, address, str(PORT)], limit="60 s")
        assert listens.stdout is not None
        assert listens.stdout.readline().strip() in ("listens", b"listens")
        sender = [sys.executable, "-c", SENDER, address, str(PORT), str(tmp_path / "sent")]
        lab["h1"].run(sender, timeout="60 s", check=True)
        told = listens.stdout.readline()
        listens.wait()
        packets = received_packets(lab, "h2") - before
    length, digest = (told if isinstance(told, str) else told.decode()).split()
    assert (int(length), digest) == (LENGTH, hashlib.sha256(content).hexdigest())
    # The test would show nothing if every frame came by itself. Losses cut what can be joined, but not to single ones.
    segments = LENGTH / (mtu - 52)
    assert packets < segments / 2, f"{packets} packets for {segments:.0f} segments: few frames were joined"
