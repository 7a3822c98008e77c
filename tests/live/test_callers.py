"""Strangers at the page: however many connect, and however slowly they speak, the owner is answered."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import SplitResult, urlsplit

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_command import started
from twinnet.live import callers as callers_module
from twinnet.live.callers import MOST_GUESTS, MOST_STRANGERS, Callers, PageServer
from twinnet.live.gate import Gate
from twinnet.live.server import server_settings

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
"""A request whose headers do not end."""
ANSWER_S = 5.0


@pytest.fixture(scope="module", params=[(), ("--listen", "127.0.0.2", "--tls")], ids=["loopback", "tls"])
def page(request: pytest.FixtureRequest) -> Iterator[SplitResult]:
    with tn.templates.single(2).emulate() as lab:
        server, line = started(lab.name, "--json", *request.param)
        yield urlsplit(json.loads(line)["address"])
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=20)


def asked(page: SplitResult, cookie: str = "") -> tuple[int, str]:
    """The status of an answer to the owner, and the cookie that came with it."""
    assert page.hostname is not None
    connection: http.client.HTTPConnection = http.client.HTTPConnection(page.hostname, page.port, timeout=ANSWER_S)
    if page.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(page.hostname, page.port, timeout=ANSWER_S, context=context)
    connection.request("GET", "/acts" if cookie else f"/?{page.query}", headers={"Cookie": cookie} if cookie else {})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, (answer.headers["set-cookie"] or "").partition(";")[0]


def stranger(page: SplitResult, said: bytes = b"") -> socket.socket:
    connection = socket.create_connection((page.hostname or "", page.port or 0), timeout=20)
    connection.sendall(said)
    return connection


def ends(connection: socket.socket) -> bool:
    """True when the server has ended the connection; what it says before is read."""
    try:
        while connection.recv(4096):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


@needs_a_lab
@pytest.mark.parametrize("said", [b"", HALF], ids=["silent", "half a request"])
def test_a_hundred_connections_of_strangers_keep_nobody_out(page: SplitResult, said: bytes) -> None:
    _, cookie = asked(page)
    with ExitStack() as stack:
        strangers = [stack.enter_context(stranger(page, said)) for _ in range(100)]
        assert asked(page)[0] == 200
        assert asked(page, cookie)[0] == 200
        # The oldest have made room.
        assert ends(strangers[0])


@needs_a_lab
def test_a_stranger_is_gone_after_ten_seconds_even_if_it_goes_on_to_speak(page: SplitResult) -> None:
    began = time.monotonic()
    with stranger(page, HALF) as silent, stranger(page, HALF) as dripping:
        dripping.settimeout(0.5)
        with pytest.raises(ConnectionError):
            # A header that never ends; in TLS the handshake refuses it at once.
            for _ in range(60):
                dripping.sendall(b"X-Slow: 1\r\n")
                try:
                    if not dripping.recv(4096):
                        raise ConnectionResetError
                except TimeoutError:
                    continue
        assert ends(silent)
        assert time.monotonic() - began < 2 * callers_module.PATIENCE_S


async def _let_in(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def served(play: Callable[[Gate, int, Callers], Awaitable[None]]) -> None:
    """Run `play` beside a server in this process."""

    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port, callers = listener.getsockname()[1], Callers()
            gate = Gate(_let_in, port, callers=callers)
            server = PageServer(server_settings(gate), listener, callers)
            serving = asyncio.create_task(server.serve())
            try:
                await play(gate, port, callers)
            finally:
                server.should_exit = True
                await serving

    asyncio.run(work())


async def request(port: int, head: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """Send a request, and return the first line of the answer with the connection, which stays."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{head}\r\n".encode())
    return reader, writer, (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), ANSWER_S)).partition(b"\r\n")[0]


def test_those_who_have_the_token_are_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers_module, "PATIENCE_S", 0.5)

    async def play(gate: Gate, port: int, callers: Callers) -> None:
        cookie = f"Cookie: twinnet-live-{port}={gate._pass}\r\n"
        guests = [await request(port, cookie) for _ in range(MOST_GUESTS)]
        assert {line for _, _, line in guests} == {b"HTTP/1.1 200 OK"}
        *_, refused = await request(port, cookie)
        assert refused.startswith(b"HTTP/1.1 503")
        # A stranger among as many guests as there may be is answered as ever, and is gone after its time.
        reader, _, line = await request(port, "")
        assert line.startswith(b"HTTP/1.1 403")
        await asyncio.wait_for(reader.read(), ANSWER_S)
        # Guests stay beyond the time of strangers, and whose connection has ended leaves a place.
        writer = guests[0][1]
        writer.write(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{cookie}\r\n".encode())
        assert (await asyncio.wait_for(guests[0][0].readuntil(b"\r\n"), ANSWER_S)).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()
        for _ in range(100):
            *_, line = await request(port, cookie)
            if line == b"HTTP/1.1 200 OK":
                return
            await asyncio.sleep(0.05)
        raise AssertionError("the place of who has left is not free")

    served(play)


def test_strangers_are_ended_oldest_first() -> None:
    async def play(_gate: Gate, port: int, _callers: Callers) -> None:
        strangers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST_STRANGERS + 3)]
        for reader, _ in strangers[:3]:
            assert await asyncio.wait_for(reader.read(), ANSWER_S) == b""
        for _, writer in strangers[3:]:
            writer.write(b"GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\n")
        for reader, _ in strangers[3:]:
            assert (await asyncio.wait_for(reader.readuntil(b"\r\n"), ANSWER_S)).startswith(b"HTTP/1.1 421")

    served(play)
