"""The server of a campaign's page: it looks at the folder of results while somebody asks, and ends with a signal."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinnet.errors import NotAvailable, TwinnetError
from twinnet.live.campaign import CampaignWatch
from twinnet.live.finished import FinishedRun, served_page
from twinnet.live.server import REMEDY, server_settings

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["campaign_routes", "serve_campaign"]

_LOOK_S = 1.0
"""The folder is looked at once in so many seconds at most, however many ask."""
_FOLDER = Path(__file__).parent / "page"
_NO_RUN = "twinnet: the study has no such run\n"
_OF_A_RECORD = ("run", "status", "levels", "repetition", "seed", "clock", "started", "elapsed_s", "error")


def serve_campaign(folder: Path, tell: Callable[[str], None]) -> None:
    """Serve the page of the campaign whose results are in `folder`, on a free port of loopback, until a signal comes.

    Parameters
    ----------
    folder
        Where ``twinnet run`` writes or has written; a campaign that goes on is not asked for anything.
    tell
        Is given the page's address when a browser can open it.

    Raises
    ------
    NotAvailable
        The extra ``live`` is not installed, or there is no loopback to listen on.
    BadValue
        The folder holds no results of a study.
    """
    for name in ("uvicorn", "starlette"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise NotAvailable(f"the page needs {error.name or name}, which is not installed", REMEDY) from None
    watch = CampaignWatch(folder)
    try:
        listener = socket.create_server(("127.0.0.1", 0))
    except OSError as error:
        raise NotAvailable(f"nothing can listen on 127.0.0.1: {error.strerror}", "bring loopback up") from None
    with listener, contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(watch, listener, tell))


async def _serve(watch: CampaignWatch, listener: socket.socket, tell: Callable[[str], None]) -> None:
    from twinnet.live.callers import Callers, PageServer
    from twinnet.live.gate import Gate

    port = listener.getsockname()[1]
    callers = Callers()
    gate = Gate(campaign_routes(watch), port, callers=callers)
    tell(f"http://127.0.0.1:{port}/?token={gate.token}")
    await PageServer(server_settings(gate), listener, callers).serve()


def campaign_routes(watch: CampaignWatch) -> Starlette:
    """Return what answers for the page of the campaign that `watch` looks at."""
    from starlette.applications import Starlette
    from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    from twinnet.live.shown_response import ShownJSON

    looking = asyncio.Lock()
    looked_s = -_LOOK_S

    async def plan(_: Request) -> Response:
        return ShownJSON(watch.record())

    async def looked(told: Callable[[], dict[str, Any] | None]) -> Response:
        nonlocal looked_s
        async with looking:
            if time.monotonic() >= looked_s + _LOOK_S:
                await asyncio.to_thread(watch.look)
                looked_s = time.monotonic()
            record = told()
        return PlainTextResponse(_NO_RUN, 404) if record is None else ShownJSON(record)

    async def changes(request: Request) -> Response:
        return await looked(lambda: watch.changes(_number(request, "since", -1)))

    async def going(request: Request) -> Response:
        return await looked(lambda: watch.going(_number(request, "n", -1)))

    async def run(request: Request) -> Response:
        number = _number(request, "n", -1)
        async with looking:
            planned = watch.going(number)
        # What failed may be made again.
        runs = planned is not None and planned["state"] == "running"
        page, record = (None, None) if runs else await asyncio.to_thread(_shown, watch, number)
        if page is not None:
            return HTMLResponse(page)
        if record is not None:
            return ShownJSON(record)
        if planned is not None:
            return FileResponse(_FOLDER / "campaign_run.html")
        return PlainTextResponse(_NO_RUN, 404)

    async def page(_: Request) -> Response:
        return FileResponse(_FOLDER / "campaign.html")

    return Starlette(
        routes=[
            Route("/", page),
            Route("/plan", plan),
            Route("/changes", changes),
            Route("/going", going),
            Route("/run", run),
            Mount("/", StaticFiles(directory=_FOLDER)),
        ]
    )


def _number(request: Request, name: str, otherwise: int) -> int:
    given = request.query_params.get(name, "")
    return int(given) if given.isascii() and given.isdecimal() and len(given) < 10 else otherwise


def _shown(watch: CampaignWatch, number: int) -> tuple[str | None, dict[str, Any] | None]:
    """The page of a run whose ports were sampled; of another, what its record says of it; and neither before it has
    ended."""
    try:
        stored = watch.run(number)
        if stored is None:
            return None, None
        record = {name: stored.record[name] for name in _OF_A_RECORD if name in stored.record}
        if stored.record["status"] == "failed":
            return None, record
        told = stored.record["fidelity"]
        record |= {"verdict": stored.verdict, "reasons": told.get("reasons", [])}
        try:
            return served_page(FinishedRun.of(watch.study, stored)), None
        except TwinnetError as error:
            return None, record | {"page": f"{error.message}; {error.remedy}"}
    except TwinnetError as error:
        return None, {"error": error.message, "remedy": error.remedy}
