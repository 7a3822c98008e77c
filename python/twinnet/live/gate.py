"""Who is let in to the page: one browser of this user, which was given the address that was printed.

Other users of the machine can connect to loopback, and any web site that the user visits can make the browser send
requests there. Against the former stands a token of 128 bits, which the first visit exchanges for a cookie. Against the
latter: ``Host`` must be a literal name of loopback (no rebinding of names), ``Origin`` and ``Sec-Fetch-Site`` must be
the page's own, the cookie is strict, nothing is written, and no header lets another origin read.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Gate"]

_TOKEN_BYTES = 16
_MOST_PATH_BYTES = 200
_MOST_QUERY_BYTES = 200
_MOST_HEADER_BYTES = 8192
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every answer."""
# A redirect would go on with the visit of whoever linked here, which gets no strict cookie along; the page's own does.
_ENTER = '<!doctype html><meta http-equiv="refresh" content="0; url=/"><title>twinnet</title>'


class Gate:
    """Stands before `app`, which listens on loopback at `port`.

    Attributes
    ----------
    token
        What the printed address has; 128 random bits.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        # Cookies know no ports: pages of two labs must not take each other's.
        self._cookie = f"twinnet-live-{port}"
        self._pass = secrets.token_urlsafe(_TOKEN_BYTES)
        self.token: str = secrets.token_urlsafe(_TOKEN_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let `app` do so."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self._refusal(scope) or self._entry(scope)
        await (answer or self._app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Why a request is refused whoever sends it."""
        headers = Headers(scope=scope)
        if [host.lower() for host in headers.getlist("host")] not in [[host] for host in self._hosts]:
            return _refused(421, "this address is not the page's: open the one that twinnet has printed")
        if scope["method"] not in ("GET", "HEAD"):
            return _refused(405, "the page only shows: GET and HEAD are all that it answers")
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return _refused(413, "requests have no body here")
        size = sum(len(name) + len(value) for name, value in headers.raw)
        path = scope.get("raw_path") or scope["path"].encode()
        if len(path) > _MOST_PATH_BYTES or len(scope["query_string"]) > _MOST_QUERY_BYTES or size > _MOST_HEADER_BYTES:
            return _refused(414, "the request is too long")
        return None

    def _entry(self, scope: Scope) -> Response | None:
        """The answer to who comes with a token or without a cookie; ``None`` for who may go on."""
        headers = Headers(scope=scope)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers['host'].lower()}":
            return _refused(403, "another site's page may not ask here")
        if given:
            if scope["path"] != "/" or len(given) != 1 or not _equal(given[0], self.token):
                return _refused(403, "the token is wrong: open the address that twinnet has printed")
            answer = HTMLResponse(_ENTER)
            answer.set_cookie(self._cookie, self._pass, httponly=True, samesite="strict", path="/")
            return answer
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _refused(403, "another site's page may not ask here")
        if not any(_equal(value, self._pass) for value in self._cookies(headers)):
            return _refused(403, "open the address with the token that twinnet has printed")
        return None

    def _cookies(self, headers: Headers) -> list[str]:
        pairs = (pair.strip().partition("=") for line in headers.getlist("cookie") for pair in line.split(";"))
        return [value for name, _, value in pairs if name == self._cookie]


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


def _refused(status: int, why: str) -> Response:
    return PlainTextResponse(f"twinnet: {why}\n", status)
