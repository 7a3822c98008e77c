"""What the page's server answers: its files, the network, the stream of what the lab does, and what changes it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute

from twinnet.errors import BadValue, LabClosed, TwinnetError
from twinnet.live.consoles import Consoles
from twinnet.live.fine import INTERVAL_S
from twinnet.live.gate import METRICS
from twinnet.live.metrics import CONTENT_TYPE, metrics_text
from twinnet.live.page_text import page_with, script_of
from twinnet.live.shown_response import ShownJSON
from twinnet.live.traffic import controllers_now, traffic_now
from twinnet.network.written_file import written_network
from twinnet.shown_text import shown_json

if TYPE_CHECKING:
    from starlette.requests import Request

    from twinnet.live.acts import Acts
    from twinnet.live.feed import Feed
    from twinnet.live.places import Places

__all__ = ["SOCKETS", "WRITES", "routes"]

WRITES = frozenset({"/act", "/place"})
"""The paths at which a page that may change its lab asks for it."""
SOCKETS = ("/console/",)
"""The folders below which it opens sockets."""
_FOLDERS = tuple(Path(__file__).parent / name for name in ("page", "vendored"))
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def routes(network: Mapping[str, Any], feed: Feed, acts: Acts, places: Places | None = None) -> Starlette:
    """Return what answers for the page of `network`, whose state `feed` has; `acts` are what it changes in its lab, if
    ``control`` of the network says that it may, and `places` those of its nodes, if they are kept."""
    answers = _Answers(network, feed, acts, places)
    of_control = [
        Route("/act", answers.act, methods=["POST"]),
        *([Route("/place", answers.placed, methods=["POST"])] if places is not None else []),
        WebSocketRoute("/console/{host}", Consoles(acts).serve),
        Route("/captures", answers.captures),
        Route("/captures/{capture:int}", answers.analysed),
        Route("/captures/{capture:int}.pcapng", answers.captured),
    ]
    return Starlette(
        routes=[
            Route("/", answers.page),
            Route("/network.yaml", answers.saved),
            Route("/ticks", answers.ticks),
            Route("/flows/{switch}", answers.flows),
            Route("/groups/{switch}", answers.groups),
            Route("/traffic", answers.traffic),
            Route("/controllers", answers.controllers),
            Route("/messages/{switch}", answers.messages),
            Route("/follow", answers.followed),
            Route("/settings/{link:int}", answers.settings),
            Route("/samples", answers.sampled),
            Route("/acts", answers.done),
            Route(METRICS, answers.metrics),
            *(of_control if network.get("control") else []),
            Route("/{name}", answers.file),
        ]
    )


class _Answers:
    """What each path of the page answers."""

    def __init__(self, network: Mapping[str, Any], feed: Feed, acts: Acts, places: Places | None) -> None:
        self._network, self._feed, self._acts, self._places = network, feed, acts, places
        self._lab = acts.lab
        self._files = {path.name: (path.read_bytes(), _KINDS[path.suffix]) for path in _files()}
        for name in ("page", "painting"):
            self._files[f"{name}.js"] = (script_of(name).encode(), _KINDS[".js"])

    async def page(self, _: Request) -> Response:
        return HTMLResponse(page_with("network", shown_json(self._network)))

    async def file(self, request: Request) -> Response:
        found = self._files.get(request.path_params["name"])
        if found is None:
            return PlainTextResponse("twinnet: there is nothing here\n", 404)
        return Response(found[0], media_type=found[1])

    async def ticks(self, request: Request) -> Response:
        if self._feed.is_full:
            return PlainTextResponse("twinnet: enough browsers watch this lab; close one\n", 503)
        return StreamingResponse(_followed(request, self._feed), media_type="text/event-stream")

    async def flows(self, request: Request) -> Response:
        return await _answered(lambda: self._lab.switch(request.path_params["switch"]).dump_flows())

    async def groups(self, request: Request) -> Response:
        def work() -> dict[str, Any]:
            switch = self._lab.switch(request.path_params["switch"])
            return {"groups": switch.groups(), "meters": switch.meters()}

        return await _answered(work)

    async def traffic(self, _: Request) -> Response:
        return await _answered(lambda: traffic_now(self._lab))

    async def controllers(self, _: Request) -> Response:
        return await _answered(lambda: controllers_now(self._lab))

    async def messages(self, request: Request) -> Response:
        return await _answered(lambda: self._lab.switch(request.path_params["switch"]).controller_messages())

    async def followed(self, request: Request) -> Response:
        asked = request.query_params

        def work() -> dict[str, Any]:
            given = [asked.get("port") or "5001", asked.get("source_port") or "49152"]
            if strange := [text for text in given if not text.isdecimal()]:
                raise BadValue(f"the port is {strange[0]!r}", "write a number, such as 5001")
            ends, protocol = (asked.get("from", ""), asked.get("to", "")), asked.get("protocol", "udp")
            port, source_port = map(int, given)
            way = self._lab.follow(*ends, protocol, port=port, source_port=source_port)
            return way.as_dict(with_times=not self._acts.seal.is_on)

        return await _answered(work)

    async def settings(self, request: Request) -> Response:
        return await _answered(lambda: self._acts.settings(request.path_params["link"]))

    async def sampled(self, request: Request) -> Response:
        def work() -> dict[str, Any]:
            try:
                asked = {int(link): float(since_s) for link, since_s in request.query_params.multi_items()}
            except ValueError:
                remedy = "write NUMBER=SECONDS of the lab's clock for each link"
                raise BadValue("what is asked for are no links with times", remedy) from None
            return {"interval_s": INTERVAL_S, "links": self._acts.fine.since(asked)}

        return await _answered(work)

    async def done(self, _: Request) -> Response:
        return ShownJSON(self._acts.record())

    async def act(self, request: Request) -> Response:
        body = await request.body()
        return await _answered(lambda: asdict(self._acts.do(_read(body))))

    async def placed(self, request: Request) -> Response:
        body = await request.body()
        return await _answered(lambda: None if self._places is None else self._places.keep(_read(body)))

    async def saved(self, _: Request) -> Response:
        def work() -> Response:
            head = [f"The network of the lab {self._lab.name} as it was at {self._lab.now():.3f} s."]
            kind = {"Content-Disposition": f'attachment; filename="{self._lab.name}.yaml"'}
            text = written_network(self._acts.network_now(), head)
            return Response(text, media_type="application/yaml", headers=kind)

        return await _answered(work)

    async def captures(self, _: Request) -> Response:
        return ShownJSON(self._acts.captures.rows())

    async def analysed(self, request: Request) -> Response:
        return await _answered(lambda: self._acts.captures.tables(request.path_params["capture"]))

    async def captured(self, request: Request) -> Response:
        def work() -> Response:
            port, content = self._acts.captures.content(request.path_params["capture"])
            kind = {"Content-Disposition": f'attachment; filename="{self._lab.name}-{port}.pcapng"'}
            return Response(content, media_type="application/x-pcapng", headers=kind)

        return await _answered(work)

    async def metrics(self, _: Request) -> Response:
        def work() -> Response:
            text = metrics_text(self._lab, lambda: self._acts.seal.is_on)
            return Response(text, headers={"Content-Type": CONTENT_TYPE})

        return await _answered(work)


def _files() -> list[Path]:
    return [path for folder in _FOLDERS for path in sorted(folder.iterdir()) if path.suffix in _KINDS]


async def _answered(work: Callable[[], Any]) -> Response:
    """What `work` returns, a response or a value for JSON; or what is wrong with what was asked for."""
    try:
        done = await asyncio.to_thread(work)
        return done if isinstance(done, Response) else ShownJSON(done)
    except TwinnetError as error:
        refusal = {"name": error.name, "message": error.message, "remedy": error.remedy}
        return ShownJSON(refusal, 410 if isinstance(error, LabClosed) else 400)
    except TimeoutError:
        return ShownJSON({"name": "TimeLimit", "message": "the lab does not answer", "remedy": ""}, 504)


def _read(body: bytes) -> dict[str, Any]:
    try:
        asked: object = json.loads(body)
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict):
        raise BadValue("what is to be done is no JSON object", "see what the page itself sends")
    return cast("dict[str, Any]", asked)


async def _followed(request: Request, feed: Feed) -> AsyncIterator[bytes]:
    with feed.reader():
        # So that a browser knows at once that it is heard, and asks again soon when it is not.
        yield b"retry: 1000\n\n"
        async for message in feed.messages():
            if await request.is_disconnected():
                return
            yield message
