"""Shells in hosts by the page's WebSocket: who is refused, what is bounded, and that nothing is left."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import twinnet as tn
from kernels_here import a_kernel_is_here
from labs_here import needs_a_lab
from twinnet.lab.lab import Lab
from twinnet.live.consoles import MOST_CONSOLES, MOST_MESSAGE_BYTES
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

pytestmark = needs_a_lab
PATIENCE_S = 20.0


class Visitor:
    """Who came by the printed address of the page of `lab`."""

    def __init__(self, lab: Lab, control: bool = True) -> None:
        self.page = lab.live(control=control)
        where = urlsplit(self.page.address)
        self.server = where.netloc
        asked = http.client.HTTPConnection(self.server, timeout=PATIENCE_S)
        asked.request("GET", f"/?{where.query}")
        answer = asked.getresponse()
        answer.read()
        self.cookie = (answer.headers["set-cookie"] or "").partition(";")[0]
        self.given = {"Cookie": self.cookie, "Origin": f"http://{self.server}"}

    def console(self, host: str = "h1", **headers: str | None) -> ClientConnection:
        """A console in `host`; `headers` are sent in place of the browser's, or not at all."""
        sent = {name: value for name, value in (self.given | headers).items() if value is not None}
        return self.opened(f"ws://{self.server}/console/{host}", sent)

    def opened(self, address: str, headers: dict[str, str]) -> ClientConnection:
        """A socket to this page, whatever name `address` has for it."""
        host, port = self.server.split(":")
        sock = socket.create_connection((host, int(port)))
        return connect(address, sock=sock, additional_headers=headers, open_timeout=PATIENCE_S, proxy=None)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    before = os.environ.get("SHELL")
    os.environ["SHELL"] = "/bin/sh"
    with tn.templates.single(2).emulate() as lab:
        yield lab
    if before is not None:
        os.environ["SHELL"] = before


@pytest.fixture(scope="module")
def visitor(lab: Lab) -> Visitor:
    return Visitor(lab)


def running(lab: Lab) -> list[int]:
    return [job["job"] for job in lab.jobs() if job["state"] == "running"]


def await_none_running(lab: Lab) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while running(lab):
        assert time.monotonic() < deadline, lab.jobs()
        time.sleep(0.02)


def shown_until(console: ClientConnection, text: bytes) -> bytes:
    """What the terminal shows until `text` is there."""
    shown = b""
    while text not in shown:
        piece = console.recv(PATIENCE_S)
        assert isinstance(piece, bytes), piece
        shown += piece
        # The shell may have ended behind what it has written.
        with contextlib.suppress(ConnectionClosed):
            console.send(json.dumps({"seen": len(piece)}))
    return shown


def test_a_shell_in_the_host_reads_what_is_typed_and_tells_its_end(lab: Lab, visitor: Visitor) -> None:
    with visitor.console() as console:
        console.send(json.dumps({"size": [33, 111]}))
        console.send(b"stty size; cat /proc/sys/kernel/hostname; exit $((6 * 7))\n")
        assert b"h1" in shown_until(console, b"33 111\r\nh1\r\n")
        told = console.recv(PATIENCE_S)
        while isinstance(told, bytes):
            told = console.recv(PATIENCE_S)
        assert json.loads(told) == {"ended": 42}
        with pytest.raises(ConnectionClosed):
            console.recv(PATIENCE_S)
    await_none_running(lab)


@pytest.mark.parametrize("command", [b"sleep 1234", b"trap '' HUP; exec sleep 1234"])
def test_the_end_of_the_connection_ends_the_shell_and_what_it_waits_for(
    lab: Lab, visitor: Visitor, command: bytes
) -> None:
    with visitor.console() as console:
        # The sum is not in what is typed.
        console.send(b"echo $((40 + 2)); " + command + b"\n")
        shown_until(console, b"42")
        assert running(lab)
    await_none_running(lab)
    # What the shell had started ends by the same signal, and on a busy machine a moment later.
    deadline = time.monotonic() + PATIENCE_S
    while "1234" in lab["h1"].run("cat /proc/[0-9]*/cmdline", shell=True).stdout:
        assert time.monotonic() < deadline


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Origin": "http://127.0.0.1:1"},
        {"Cookie": None},
        {"Cookie": "twinnet-live-1=x"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_strangers_get_no_shell(lab: Lab, visitor: Visitor, headers: dict[str, str | None]) -> None:
    before = len(lab.jobs())
    with pytest.raises(InvalidStatus) as refused:
        visitor.console(**headers)
    assert refused.value.response.status_code == 403
    assert len(lab.jobs()) == before


def test_a_name_that_was_rebound_gets_no_shell(lab: Lab, visitor: Visitor) -> None:
    before = len(lab.jobs())
    evil = f"evil.example:{visitor.server.split(':')[1]}"
    with pytest.raises(InvalidStatus) as refused:
        visitor.opened(f"ws://{evil}/console/h1", visitor.given | {"Origin": f"http://{evil}"})
    assert refused.value.response.status_code == 403
    assert len(lab.jobs()) == before


def test_the_token_in_the_address_opens_no_shell(visitor: Visitor) -> None:
    token = urlsplit(visitor.page.address).query
    with pytest.raises(InvalidStatus):
        visitor.opened(f"ws://{visitor.server}/console/h1?{token}", {"Origin": f"http://{visitor.server}"})


def test_without_control_there_are_no_consoles(lab: Lab) -> None:
    onlooker = Visitor(lab, control=False)
    before = len(lab.jobs())
    with pytest.raises(InvalidStatus) as refused:
        onlooker.console()
    # The server knows no WebSockets there: it answers as to any other request for a page that is not.
    assert refused.value.response.status_code in (403, 404, 426)
    assert len(lab.jobs()) == before
    onlooker.page.stop()


@pytest.mark.parametrize("message", [b"x" * (MOST_MESSAGE_BYTES + 1), "x" * (MOST_MESSAGE_BYTES + 1)])
def test_a_huge_message_closes_the_console(lab: Lab, visitor: Visitor, message: bytes | str) -> None:
    with visitor.console() as console:
        console.send(message)
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                console.recv(PATIENCE_S)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009
    await_none_running(lab)


@pytest.mark.parametrize(
    "message",
    ["", "x", "[" * 8000, "1" * 9000, "{}", '{"seen": -1}', '{"seen": 99999999}', '{"size": [0, 80]}', '{"size": [1]}'],
)
def test_a_malformed_message_closes_the_console(lab: Lab, visitor: Visitor, message: str) -> None:
    with visitor.console() as console:
        console.send(message)
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                console.recv(PATIENCE_S)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008
    await_none_running(lab)


def test_who_types_more_than_a_program_reads_is_shut_out(lab: Lab, visitor: Visitor) -> None:
    with visitor.console() as console:
        # A shell may write other things between the end of its line and what it runs.
        console.send(b"stty raw -echo; printf '\\nso'; sleep 1000\n")
        shown_until(console, b"\nso")
        with pytest.raises(ConnectionClosed) as closed:
            for _ in range(100):
                console.send(b"x" * 4096)
            console.recv(PATIENCE_S)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009
    await_none_running(lab)


def test_a_page_that_shows_nothing_is_sent_a_bounded_output(lab: Lab, visitor: Visitor) -> None:
    with visitor.console() as console:
        console.send(b"yes\n")
        sent = 0
        while sent <= 128 * 1024:
            piece = console.recv(PATIENCE_S)
            sent += len(piece)
        with pytest.raises(TimeoutError):
            console.recv(1.0)
        console.send(json.dumps({"seen": sent}))
        assert console.recv(PATIENCE_S)
    await_none_running(lab)


def test_what_cannot_be_opened_is_said(lab: Lab, visitor: Visitor) -> None:
    for host, why in (("h9", "h9"), ("s1", "s1")):
        with visitor.console(host) as console:
            told = console.recv(PATIENCE_S)
            assert why in json.loads(told)["error"]
    await_none_running(lab)


def test_the_seventeenth_console_is_told_to_close_another(lab: Lab, visitor: Visitor) -> None:
    with contextlib.ExitStack() as opened:
        for _ in range(MOST_CONSOLES):
            opened.enter_context(visitor.console())
        one_more = opened.enter_context(visitor.console())
        assert "close one" in json.loads(one_more.recv(PATIENCE_S))["error"]
    await_none_running(lab)


def test_the_end_of_the_page_ends_its_shells(lab: Lab) -> None:
    visitor = Visitor(lab)
    with visitor.console() as console:
        console.send(b"echo $((40 + 2))\n")
        shown_until(console, b"42")
        visitor.page.stop()
        await_none_running(lab)


def test_a_lab_of_models_says_that_it_has_no_programs() -> None:
    with tn.templates.single(2).simulate(name=f"models-{os.getpid()}") as lab, Visitor(lab).console() as console:
        assert "programs" in json.loads(console.recv(PATIENCE_S))["error"]


@pytest.mark.skipif(not a_kernel_is_here(), reason="there is no kernel for programs on the virtual clock")
def test_a_console_on_the_virtual_clock_has_a_shell() -> None:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit")
    with net.simulate(hosts="programs", name=f"consoles-{os.getpid()}") as lab:
        with Visitor(lab).console() as console:
            console.send(b"echo $((40 + 2)) in $(hostname)\n")
            shown_until(console, b"42 in h1")
        await_none_running(lab)
