"""What the page's server answers: its files, the network, and the stream of what the lab does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

    from twinnet.live.feed import Feed

__all__ = ["routes"]

_FOLDER = Path(__file__).parent / "page"
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def routes(network: Mapping[str, Any], feed: Feed) -> Starlette:
    """Return what answers for the page of `network`, whose state `feed` has."""
    files = {path.name: (path.read_bytes(), _KINDS[path.suffix]) for path in sorted(_FOLDER.iterdir())}

    async def file(request: Request) -> Response:
        found = files.get(request.path_params.get("name", "page.html"))
        if found is None:
            return PlainTextResponse("twinnet: there is nothing here\n", 404)
        return Response(found[0], media_type=found[1])

    async def told(_: Request) -> Response:
        return JSONResponse(network)

    async def ticks(request: Request) -> Response:
        if feed.is_full:
            return PlainTextResponse("twinnet: enough browsers watch this lab; close one\n", 503)
        return StreamingResponse(_followed(request, feed), media_type="text/event-stream")

    return Starlette(
        routes=[
            Route("/", file),
            Route("/network", told),
            Route("/ticks", ticks),
            Route("/{name}", file),
        ]
    )


async def _followed(request: Request, feed: Feed) -> AsyncIterator[bytes]:
    with feed.reader():
        # So that a browser knows at once that it is heard, and asks again soon when it is not.
        yield b"retry: 1000\n\n"
        async for message in feed.messages():
            if await request.is_disconnected():
                return
            yield message
