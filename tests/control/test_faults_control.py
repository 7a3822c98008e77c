"""A lab whose clients misbehave, or which has no descriptor left, goes on serving its owner and does not spin."""

from __future__ import annotations

import os
import random
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_protocol import Client, RawLab, Refused, core, eventually, star

NOT_PERMITTED = {"NamespacesRefused", "ProcNotMounted"}
MOST_CLIENTS = 64
PACKET_BYTES = 128 * 1024


@pytest.fixture
def lab() -> Iterator[RawLab]:
    try:
        lab = RawLab()
    except core.CoreError as error:
        if error.args[0] in NOT_PERMITTED:
            pytest.skip(f"this machine permits no lab: {error.args[1]}")
        raise
    network = star(2)
    # So many flows that the answer to `describe` needs a memfd.
    network["nodes"][2]["flows"] = [f"priority={n},ip,nw_dst=10.0.0.1,actions=drop" for n in range(1, 4000)]
    lab.start(network)
    yield lab
    lab.close()


def connect(lab: RawLab) -> Client:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(f"\0twinnet/{os.geteuid()}/{lab.name}")
    return Client(connection)


class FewerFiles:
    """Lets the lab open no file with the number `limit` (or else the lowest that is free) or above."""

    def __init__(self, lab: RawLab, limit: int | None = None) -> None:
        used = {int(entry.name) for entry in Path(f"/proc/{lab.pid}/fd").iterdir()}
        self.pid = lab.pid
        self.before = resource.prlimit(lab.pid, resource.RLIMIT_NOFILE)
        self.limit = min(set(range(len(used) + 1)) - used) if limit is None else limit

    def __enter__(self) -> None:
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (self.limit, self.before[1]))

    def __exit__(self, *_: object) -> None:
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, self.before)


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_lab_without_a_descriptor_left_turns_clients_away_and_says_why(lab: RawLab) -> None:
    with FewerFiles(lab):
        for _ in range(3):
            other = connect(lab)
            told = other.receive()
            assert (told["id"], told["error"]["name"]) == (None, "OpenFilesExhausted")
            with pytest.raises(EOFError):
                other.receive()
        with pytest.raises(Refused, match="OpenFilesExhausted"):
            lab.ask("describe")
        with pytest.raises(Refused, match="each needs room among the open files"):
            lab.spawn("h1", "true")
        assert lab.ask("now")["now_ps"] > 0
    assert connect(lab).ask("now")["now_ps"] > 0
    assert len(lab.ask("describe")["nodes"]) == 3
    assert lab.run("h1", "true")[0]["status"] == 0


def test_a_lab_that_cannot_even_turn_clients_away_lets_them_wait_without_spinning(lab: RawLab) -> None:
    # The descriptor that is given up to turn a client away, a copy of the listener, must not help.
    sockets = [entry for entry in Path(f"/proc/{lab.pid}/fd").iterdir() if str(entry.readlink()).startswith("socket:")]
    links = [str(entry.readlink()) for entry in sockets]
    twice = [int(entry.name) for entry, link in zip(sockets, links, strict=True) if links.count(link) == 2]
    assert len(twice) == 2
    with FewerFiles(lab, max(twice)):
        other = connect(lab)
        asked = other.send("now")
        assert lab.ask("now")["now_ps"] > 0
        before = processor_seconds(lab.pid)
        time.sleep(0.5)  # The time over which the processor's use is seen; nothing is awaited.
        # A thread that spins would use all of it; waking ten times a second uses next to none.
        assert processor_seconds(lab.pid) - before < 0.2
    assert other.answer(asked)["now_ps"] > 0


def test_one_client_too_many_is_told_so_and_takes_no_others_place(lab: RawLab) -> None:
    clients = [connect(lab) for _ in range(MOST_CLIENTS - 1)]
    assert all(client.ask("now")["now_ps"] > 0 for client in clients)
    one_more = connect(lab)
    assert one_more.receive()["error"]["name"] == "TooManyClients"
    clients.pop().connection.close()

    def let_in() -> bool:
        client = connect(lab)
        try:
            return "now_ps" in client.ask("now")
        except (EOFError, OSError, KeyError):
            return False

    assert eventually(let_in)


def test_random_packets_with_descriptors_disturb_nobody(lab: RawLab) -> None:
    draw = random.Random(7)
    words = [
        b'{"id":',
        b'"do":',
        b'"spawn"',
        b'"start"',
        b'"memfd"',
        b"true",
        b"[",
        b"{",
        b"}",
        b"null",
        b"1e999",
        b'"',
    ]
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    before = len(list(Path(f"/proc/{lab.pid}/fd").iterdir()))
    for _ in range(20):
        other = connect(lab)
        other.connection.settimeout(5)
        for _ in range(20):
            if draw.random() < 0.5:
                packet = draw.randbytes(draw.choice([1, 10, 1000, PACKET_BYTES + 1]))
            else:
                packet = b"".join(draw.choice(words) for _ in range(draw.randrange(1, 8)))
            socket.send_fds(other.connection, [packet], [null] * draw.choice([0, 0, 1, 3, 9]))
            assert "error" in other.receive()
        other.connection.close()
    os.close(null)
    assert lab.ask("now")["now_ps"] > 0
    assert lab.run("h1", "echo", "well")[1] == "well\n"
    # A host's first process and its pipes may be new; no descriptor that came with garbage stays.
    assert eventually(lambda: len(list(Path(f"/proc/{lab.pid}/fd").iterdir())) <= before + 2)


def test_well_formed_requests_with_nonsense_in_every_field_are_refused(lab: RawLab) -> None:
    nonsense = [None, -1, 1e300, 10**40, "", "x" * 5000, [], {}, [[]], True]
    requests = {
        "spawn": ["host", "argv", "env", "cwd", "terminal", "limit_ps"],
        "wait": ["job"],
        "signal": ["job", "signal"],
        "app.start": ["host", "app", "at_ps"],
        "app.stop": ["app"],
        "app.report": ["app", "apps"],
        "flows.add": ["switch", "flows"],
        "flows.delete": ["switch", "match"],
        "flows.dump": ["switch"],
        "queues.set": ["node", "port", "queue"],
        "link.set": ["link", "a", "b", "direction", "set"],
        "samples.start": ["interval_ps", "ports"],
        "samples.read": ["sampler"],
        "samples.stop": ["sampler"],
        "schedule": ["at_ps", "set"],
        "capture.start": ["port", "limit_bytes", "snap"],
        "capture.stop": ["capture"],
        "no.such.request": ["x"],
    }
    draw = random.Random(3)
    refused = 0
    for do, fields in requests.items():
        for _ in range(12):
            given = {field: draw.choice(nonsense) for field in fields if draw.random() < 0.8}
            try:
                lab.ask(do, **given)
            except Refused as error:
                assert error.name != "NoAnswer", (do, given)
                refused += 1
    assert refused > 150
    assert lab.run("h1", "echo", "well")[1] == "well\n"
