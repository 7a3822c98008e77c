"""Shells in hosts for a page that may change its lab: a pseudo-terminal for each, joined with a WebSocket of the page.

Whoever may open one runs any program with the rights of the lab's user: the gate lets in the page itself alone. Nothing
here grows with what a shell writes or a page sends: output waits in the pseudo-terminal until the page has shown what
came before, and a page that sends more than a program reads is shut out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import termios
from typing import TYPE_CHECKING

from twinnet.errors import BadValue, LabError, TwinnetError
from twinnet.lab.terminal_job import start_on_terminal, usual_shell
from twinnet.live.acts import DOOR
from twinnet.shown_text import shown_json

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from twinnet.lab_process.job import Job
    from twinnet.live.acts import Acts

__all__ = ["MOST_CONSOLES", "MOST_MESSAGE_BYTES", "Consoles"]

MOST_CONSOLES = 16
MOST_MESSAGE_BYTES = 16 * 1024
"""Of one message of the page."""
_MOST_UNSEEN_BYTES = 128 * 1024
_MOST_WAITING_BYTES = 64 * 1024
_MOST_SIDE = 1000
_SIZE = (24, 80)
_PATIENCE = "2 s"
_GOING_AWAY, _POLICY_VIOLATION, _TOO_BIG = 1001, 1008, 1009
"""Of RFC 6455, 7.4.1."""


class Consoles:
    """The consoles of a page; `acts` is the record of what it does in its lab."""

    def __init__(self, acts: Acts) -> None:
        self._acts = acts
        self._count = 0

    async def serve(self, socket: WebSocket) -> None:
        """Run a shell in the host that the path of `socket` names until it ends, or the page closes the socket.

        Binary messages are what is typed and what the terminal shows. The page sends in JSON ``{"size": [rows,
        columns]}`` and ``{"seen": bytes}`` (of output that it has shown), and gets ``{"ended": status}`` or
        ``{"error": sentence}`` before the end.
        """
        await socket.accept()
        self._count += 1
        try:
            if self._count > MOST_CONSOLES:
                raise BadValue(f"{MOST_CONSOLES} consoles of this page are open", "close one")
            await self._join(socket, await asyncio.to_thread(self._started, socket.path_params["host"]))
        except (TwinnetError, TimeoutError) as error:
            with contextlib.suppress(RuntimeError):
                await socket.send_text(shown_json({"error": str(error) or "the lab does not answer"}))
                await socket.close(_GOING_AWAY)
        finally:
            self._count -= 1

    def _started(self, host: str) -> _Console:
        self._acts.refuse_if_full()
        self._acts.lab.require_programs(host)
        lab = self._acts.lab
        with lab.by_hand.through(DOOR, f"a console in {host}"):
            job, terminal = start_on_terminal(lab, host, [usual_shell(lab, host)], _SIZE, {"TERM": "xterm-256color"})
        self._acts.note(f"a console was opened in {host}; what is typed there is not in this record")
        return _Console(job, terminal)

    async def _join(self, socket: WebSocket, console: _Console) -> None:
        ways = [asyncio.create_task(console.show(socket)), asyncio.create_task(console.read(socket))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            results = await asyncio.gather(*ways, return_exceptions=True)
            console.hang_up()
            await asyncio.to_thread(console.end)
        for result in results:
            if isinstance(result, TwinnetError):
                raise result


class _Console:
    """A program on a pseudo-terminal, seen from the loop."""

    def __init__(self, job: Job, terminal: int) -> None:
        self._job = job
        self._terminal = terminal
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._waiting = bytearray()
        self._unseen = 0
        self._seen = asyncio.Event()
        os.set_blocking(terminal, False)
        job.notify(self._wake)

    async def show(self, socket: WebSocket) -> None:
        """Send what the program writes until it has ended; then how."""
        loop = asyncio.get_running_loop()
        while True:
            ended = self._job.poll()
            try:
                piece = os.read(self._terminal, MOST_MESSAGE_BYTES)
            except BlockingIOError:
                if ended is not None:
                    break
                ready = asyncio.Event()
                for descriptor in (self._terminal, self._wake):
                    loop.add_reader(descriptor, ready.set)
                try:
                    await ready.wait()
                finally:
                    for descriptor in (self._terminal, self._wake):
                        loop.remove_reader(descriptor)
                continue
            except OSError:
                # EIO: nobody has the terminal open any more.
                ended = await asyncio.to_thread(self._job.wait)
                break
            self._unseen += len(piece)
            await socket.send_bytes(piece)
            while self._unseen > _MOST_UNSEEN_BYTES:
                self._seen.clear()
                await self._seen.wait()
        await socket.send_text(json.dumps({"ended": ended.shell_status}))
        await socket.close()

    async def read(self, socket: WebSocket) -> None:
        """Take what the page sends until it closes the socket, or sends what no page of ours does."""
        while (message := await socket.receive())["type"] != "websocket.disconnect":
            if message.get("bytes") is not None:
                self._waiting += message["bytes"]
                if len(self._waiting) > _MOST_WAITING_BYTES:
                    await socket.close(_TOO_BIG)
                    return
                self._type()
            elif not self._told(message["text"]):
                await socket.close(_POLICY_VIOLATION)
                return

    def _type(self) -> None:
        """Give the program what waits for it, as far as it takes it now."""
        loop = asyncio.get_running_loop()
        try:
            del self._waiting[: os.write(self._terminal, self._waiting)]
        except BlockingIOError:
            pass
        except OSError:
            self._waiting.clear()
        if self._waiting:
            loop.add_writer(self._terminal, self._type)
        else:
            loop.remove_writer(self._terminal)

    def _told(self, text: str) -> bool:
        """Heed a message in JSON; False for one that no page of ours sends."""
        try:
            told: object = json.loads(text)
        except (ValueError, RecursionError):
            return False
        match told:
            case {"seen": int(seen)} if 0 <= seen <= self._unseen:
                self._unseen -= seen
                self._seen.set()
            case {"size": [int(rows), int(columns)]} if 0 < rows <= _MOST_SIDE and 0 < columns <= _MOST_SIDE:
                with contextlib.suppress(termios.error):
                    termios.tcsetwinsize(self._terminal, (rows, columns))
            case _:
                return False
        return True

    def hang_up(self) -> None:
        """Close the terminal: what still runs on it gets SIGHUP."""
        loop = asyncio.get_running_loop()
        loop.remove_writer(self._terminal)
        self._job.forget()
        os.close(self._wake)
        os.close(self._terminal)

    def end(self) -> None:
        """Wait a moment for the shell to end after :meth:`hang_up`, and else kill it."""
        with contextlib.suppress(LabError, OSError):
            try:
                self._job.wait(_PATIENCE)
            except TimeoutError:
                self._job.kill()
