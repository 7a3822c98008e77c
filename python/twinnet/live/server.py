"""The server of the page: it looks at the lab a few times a second while somebody watches, and ends with the lab."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twinnet.errors import LabClosed, NotAvailable
from twinnet.live.recording import Recording
from twinnet.live.watch import LabWatch, network_told

if TYPE_CHECKING:
    import uvicorn

    from twinnet.lab.lab import Lab
    from twinnet.live.feed import Feed

__all__ = ["REMEDY", "serve"]

REMEDY = "install twinnet with its extra: pip install 'twinnet[live]'"
_LOOK_S = 0.25
"""Seconds from one look at the lab to the next while somebody watches."""
_IDLE_S = 0.1
_MOST_CONNECTIONS = 64
_SEND_BUFFER_BYTES = 64 * 1024
"""What the kernel holds for a slow reader; the server holds about as much again."""


def serve(lab: Lab, tell: Callable[[str], None], out: str | os.PathLike[str] | None = None) -> None:
    """Serve the page of `lab` on a free port of loopback until the lab ends, or a signal comes. Call it in the main
    thread.

    Parameters
    ----------
    lab
        A lab on the wall clock that this process has attached to, with `PATIENCE_S`.
    tell
        Is given the page's address when a browser can open it.
    out
        A file that is to have all that the page could have shown, from now on: it is written at the end.

    Raises
    ------
    NotAvailable
        The extra ``live`` is not installed, or there is no loopback to listen on.
    BadValue
        The network has so many nodes that they could not be told apart, or no file can be written at `out`.
    """
    for name in ("uvicorn", "starlette"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise NotAvailable(f"the live page needs {error.name or name}, which is not installed", REMEDY) from None
    try:
        network = network_told(lab)
    except TimeoutError:
        raise NotAvailable(f"the lab {lab.name} does not answer", "see what it does with: twinnet labs") from None
    recording = None if out is None else Recording(network, out)
    if recording is not None:
        # The file is to be written also when the page is stopped by `LivePage.stop`.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    with socket.socket() as listener:
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
            listener.bind(("127.0.0.1", 0))
            listener.listen()
        except OSError as error:
            raise NotAvailable(f"nothing can listen on 127.0.0.1: {error.strerror}", "bring loopback up") from None
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_serve(lab, network, listener, tell, recording))
    if recording is not None:
        recording.write()


async def _serve(
    lab: Lab,
    network: dict[str, Any],
    listener: socket.socket,
    tell: Callable[[str], None],
    recording: Recording | None,
) -> None:
    import uvicorn

    from twinnet.live.feed import Feed
    from twinnet.live.gate import Gate
    from twinnet.live.routes import routes

    feed = Feed()
    port = listener.getsockname()[1]
    gate = Gate(routes(network, feed), port)
    config = uvicorn.Config(
        gate,
        access_log=False,
        h11_max_incomplete_event_size=16 * 1024,
        http="h11",
        interface="asgi3",
        lifespan="off",
        limit_concurrency=_MOST_CONNECTIONS,
        log_level="critical",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        ws="none",
    )
    server = uvicorn.Server(config)
    tell(f"http://127.0.0.1:{port}/?token={gate.token}")
    watching = asyncio.create_task(_watch(LabWatch(lab), lab, feed, server, recording))
    try:
        await server.serve([listener])
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


async def _watch(watch: LabWatch, lab: Lab, feed: Feed, server: uvicorn.Server, recording: Recording | None) -> None:
    """Publish what the lab does until it ends; then end the server."""
    clock = asyncio.get_running_loop().time
    due_s = clock()
    try:
        while lab.running:
            if not feed.readers and recording is None:
                watch.rest()
                await asyncio.sleep(_IDLE_S)
                continue
            try:
                seen = await asyncio.to_thread(watch.look)
                if seen is not None:
                    if recording is not None:
                        recording.add(seen)
                    await feed.publish(_event("tick", seen))
            except TimeoutError:
                watch.rest()
                await feed.publish(_event("silent", {}))
            due_s = max(due_s + _LOOK_S, clock())
            await asyncio.sleep(due_s - clock())
    except LabClosed:
        pass
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await feed.publish(_event("ended", {}), last=True)
        server.should_exit = True


def _event(name: str, fields: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(fields, separators=(',', ':'))}\n\n".encode()
