"""The server of the page: it looks at the lab a few times a second while somebody watches, and ends with the lab."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinnet.drawing.positions import read_positions
from twinnet.errors import LabClosed, NotAvailable
from twinnet.live.acts import Acts
from twinnet.live.lab_recording import LabRecording
from twinnet.live.listening import LOOPBACK, Listening
from twinnet.live.places import Places
from twinnet.live.watch import LabWatch, network_record
from twinnet.shown_text import shown_json

if TYPE_CHECKING:
    import uvicorn

    from twinnet.lab.lab import Lab
    from twinnet.live.callers import PageServer
    from twinnet.live.feed import Feed
    from twinnet.live.gate import Gate

__all__ = ["REMEDY", "serve", "server_settings", "span_of_look"]

REMEDY = "install twinnet with its extra: pip install 'twinnet[live]'"
_LOOK_S = 0.25
"""Seconds from one look at the lab to the next while somebody watches, at least."""
_LONGEST_LOOK_S = 1.25
"""And at most: a page without news for two seconds says so."""
_MOST_SHARE = 0.04
"""Of the time of a processor that the server takes: looks that cost more are less often."""
_IDLE_S = 0.1
_SEND_BUFFER_BYTES = 64 * 1024
"""What the kernel holds for a slow reader; the server holds about as much again."""


def serve(
    lab: Lab,
    tell: Callable[[str], None],
    out: str | os.PathLike[str] | None = None,
    control: bool = False,
    listening: Listening = LOOPBACK,
    positions: str | os.PathLike[str] | None = None,
) -> None:
    """Serve the page of `lab`, on a free port of loopback unless `listening` says another place, until the lab ends, or
    a signal comes. Call it in the main thread.

    Parameters
    ----------
    lab
        A lab that this process has attached to, with `PATIENCE_S`. On the virtual clock time stands,
        unless somebody lets it go on.
    tell
        Is given the page's address when a browser can open it.
    out
        A file that is to have all that the page could have shown, from now on: it is written at the end.
    control
        Whether the page may change the lab: its links, queues and flows. It captures, and opens shells, too.
    listening
        Where it listens.
    positions
        A file with the places of nodes. With `control`, those that are dragged are kept in it.

    Raises
    ------
    NotAvailable
        The extra ``live`` is not installed, or nothing can listen there.
    BadValue
        The network has so many nodes that they could not be told apart, or no file can be written at `out`, or the
        file `positions` has something else.
    """
    for name in ("uvicorn", "starlette", *(["websockets"] if control else [])):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise NotAvailable(f"the live page needs {error.name or name}, which is not installed", REMEDY) from None
    chosen = {} if positions is None else read_positions(positions)
    try:
        network = network_record(lab, chosen) | {"control": control, "clock": lab.clock}
    except TimeoutError:
        raise NotAvailable(f"the lab {lab.name} does not answer", "see what it does with: twinnet labs") from None
    acts = Acts(lab)
    recording = None if out is None else LabRecording(network | {"control": False}, out, lab, acts.seal)
    # The file is to be written, and captures and samplers are to end, also when the page is stopped by `LivePage.stop`.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    places = Places(network, Path(positions)) if positions is not None and control else None
    with socket.socket(socket.AF_INET6 if ":" in listening.address else socket.AF_INET) as listener:
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((listening.address, listening.port))
            listener.listen()
        except OSError as error:
            remedy = "bring loopback up" if listening == LOOPBACK else "name a free port of an address of this machine"
            raise NotAvailable(f"nothing can listen on {listening.address}: {error.strerror}", remedy) from None
        try:
            asyncio.run(_serve(acts, network, places, listener, listening, tell, recording))
        except KeyboardInterrupt:
            pass
        finally:
            acts.captures.close()
            acts.fine.end()
    if recording is not None:
        recording.write(acts.record())


def span_of_look(took_s: float) -> float:
    """Return how long after a look the next one is due, in seconds; `took_s` is the processor time of the look and of
    all that was done until now."""
    return min(max(took_s / _MOST_SHARE, _LOOK_S), _LONGEST_LOOK_S)


def server_settings(gate: Gate, websockets: bool = False) -> uvicorn.Config:
    """Return how the page behind `gate` is served, with WebSockets or without."""
    import uvicorn

    from twinnet.live.consoles import MOST_MESSAGE_BYTES

    return uvicorn.Config(
        gate,
        access_log=False,
        h11_max_incomplete_event_size=16 * 1024,
        http="h11",
        interface="asgi3",
        lifespan="off",
        log_level="critical",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        ws="websockets-sansio" if websockets else "none",
        ws_max_size=MOST_MESSAGE_BYTES,
        ws_per_message_deflate=False,
    )


async def _serve(
    acts: Acts,
    network: dict[str, Any],
    places: Places | None,
    listener: socket.socket,
    listening: Listening,
    tell: Callable[[str], None],
    recording: LabRecording | None,
) -> None:
    from twinnet.live.callers import Callers, PageServer
    from twinnet.live.feed import Feed
    from twinnet.live.gate import Gate
    from twinnet.live.routes import SOCKETS, WRITES, routes

    feed = Feed()
    port = listener.getsockname()[1]
    control = network["control"]
    callers = Callers()
    answers = routes(network, feed, acts, places)
    gate = Gate(answers, port, WRITES if control else (), SOCKETS if control else (), listening, callers)
    config = server_settings(gate, websockets=control)
    listening.load(config)
    server = PageServer(config, listener, callers)
    tell(f"{listening.scheme}://{listening.hosts(port)[0]}/?token={gate.token}")
    watching = asyncio.create_task(_watch(LabWatch(acts.lab), acts, feed, server, recording))
    try:
        await server.serve()
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


async def _watch(watch: LabWatch, acts: Acts, feed: Feed, server: PageServer, recording: LabRecording | None) -> None:
    """Publish what the lab does until it ends; then end the server."""
    clock = asyncio.get_running_loop().time
    due_s, used_s, lasts_s = clock(), time.process_time(), _LOOK_S
    try:
        while acts.lab.running:
            await asyncio.to_thread(acts.fine.rest)
            if not feed.readers and recording is None:
                watch.rest()
                await asyncio.sleep(_IDLE_S)
                continue
            try:
                await asyncio.to_thread(acts.go_on, lasts_s)
                seen = acts.seal.hide(await asyncio.to_thread(watch.look))
                if seen is not None:
                    # Who follows asks for the acts when there are others than before.
                    seen["acts"] = acts.count
                    if recording is not None:
                        await asyncio.to_thread(recording.add, seen)
                    await feed.publish(_event("tick", seen))
                elif watch.stands:
                    await feed.publish(_event("stands", {"acts": acts.count}))
            except TimeoutError:
                watch.rest()
                await feed.publish(_event("silent", {}))
            due_s = max(due_s + _LOOK_S, clock())
            await asyncio.sleep(due_s - clock())
            # With all that was done meanwhile, such as what it took to send what was seen.
            took_s = time.process_time() - used_s
            lasts_s = span_of_look(took_s)
            due_s += lasts_s - _LOOK_S
            await asyncio.sleep(due_s - clock())
            used_s = time.process_time()
    except LabClosed:
        pass
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await feed.publish(_event("ended", {}), last=True)
        server.should_exit = True


def _event(name: str, fields: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {shown_json(fields)}\n\n".encode()
