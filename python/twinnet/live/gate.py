"""Who is let in to the page: one browser of this user, which was given the address that was printed.

Other users of the machine can connect to loopback, other machines to an address that was asked for, and any web site
that the user visits can make the browser send requests there. Against the former stands a token of 128 bits, which the
first visit exchanges for a cookie, and TLS where other machines connect. Against the latter: ``Host`` must be that
address, or a literal name of loopback (no rebinding of names), ``Origin`` and ``Sec-Fetch-Site`` must be the page's
own, the cookie is strict, and no header lets another origin read. Nothing is written but where the page may change the
lab: there a request must have the page's ``Origin``, and be of a kind that no form of another site can send. Who opens
a WebSocket must have that ``Origin`` too: no rule of browsers keeps sockets within one origin.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from twinnet.live.listening import LOOPBACK, Listening

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from twinnet.live.callers import Callers

__all__ = ["METRICS", "Gate"]

METRICS = "/metrics"
"""What programs may ask for with the token alone."""
_TOKEN_BYTES = 16
_MOST_PATH_BYTES = 200
_MOST_QUERY_BYTES = 1000
_MOST_HEADER_BYTES = 8192
_MOST_BODY_BYTES = 8192
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
_ENTER = (
    '<!doctype html><meta http-equiv="refresh" content="0; url=/">'
    '<link rel="icon" href="/icon.svg"><title>twinnet</title>'
)


class Gate:
    """Stands before `app`, which listens where `listening` says, at `port`. At the paths `writes` alone something can
    be asked for by POST, and below the folders `sockets` alone a WebSocket is opened.

    Attributes
    ----------
    token
        What the printed address has; 128 random bits.
    """

    def __init__(
        self,
        app: ASGIApp,
        port: int,
        writes: Collection[str] = (),
        sockets: Collection[str] = (),
        listening: Listening = LOOPBACK,
        callers: Callers | None = None,
    ) -> None:
        self._app = app
        self._callers = callers
        self._writes = writes
        self._sockets = sockets
        self._hosts = frozenset(listening.hosts(port))
        self._scheme = listening.scheme
        # Cookies know no ports: pages of two labs must not take each other's.
        self._cookie = f"twinnet-live-{port}"
        self._pass = secrets.token_urlsafe(_TOKEN_BYTES)
        self.token: str = secrets.token_urlsafe(_TOKEN_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let `app` do so."""
        if scope["type"] not in ("http", "websocket"):
            return

        answer = self._refusal(scope) or self._entry(scope)
        cookie = None if answer is None else answer.headers.get("set-cookie")
        if cookie is not None and Headers(scope=scope).get("sec-fetch-site") == "none":
            # Nobody linked here: the page comes at once, and its script takes the token out of the address.
            answer = None
        if answer is None and self._callers is not None and not self._callers.let_in(scope):
            answer, cookie = _refused(503, "enough connections to this page; close some of its windows"), None

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if answer is None and cookie is not None:
                    headers.append("set-cookie", cookie)
            await send(message)

        if answer is not None and scope["type"] == "websocket":
            # Before it is accepted: the browser is answered 403, and no message is read.
            await send({"type": "websocket.close", "code": 1008})
        else:
            await (answer or self._app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Why a request is refused whoever sends it."""
        headers = Headers(scope=scope)
        if [host.lower() for host in headers.getlist("host")] not in [[host] for host in self._hosts]:
            return _refused(421, "this address is not the page's: open the one that twinnet has printed")
        method, opens = scope.get("method", "GET"), scope["type"] == "websocket"
        writes = method == "POST" and scope["path"] in self._writes
        if method not in ("GET", "HEAD") and not writes:
            return _refused(405, "the page only shows: GET and HEAD are all that it answers")
        if opens and not scope["path"].startswith(tuple(self._sockets)):
            return _refused(403, "the page only shows: it opens no socket")
        if (writes or opens) and headers.getlist("origin") != [self._origin(headers)]:
            return _refused(403, "another site's page may not ask here")
        if writes and headers.getlist("content-type") != ["application/json"]:
            return _refused(415, "what is to be done is told as application/json")
        lengths = headers.getlist("content-length") or ["0"]
        if (
            "transfer-encoding" in headers
            or len(lengths) != 1
            or not _is_at_most(lengths[0], _MOST_BODY_BYTES * writes)
        ):
            return _refused(413, "requests have no body here, and what is to be done takes at most 8 kB")
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
        if origin is not None and origin != self._origin(headers):
            return _refused(403, "another site's page may not ask here")
        if given:
            if scope["path"] != "/" or len(given) != 1 or not _equal(given[0], self.token):
                return _refused(403, "the token is wrong: open the address that twinnet has printed")
            answer = HTMLResponse(_ENTER)
            answer.set_cookie(
                self._cookie, self._pass, httponly=True, samesite="strict", secure=self._scheme == "https"
            )
            return answer
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _refused(403, "another site's page may not ask here")
        if scope["path"] == METRICS and self._bears_token(headers):
            return None
        if not any(_equal(value, self._pass) for value in self._cookies(headers)):
            return _refused(403, "open the address with the token that twinnet has printed")
        return None

    def _origin(self, headers: Headers) -> str:
        """The origin of the page's own requests, by the name that this one uses for it."""
        return f"{self._scheme}://{headers['host'].lower()}"

    def _bears_token(self, headers: Headers) -> bool:
        """True for a program that was given the token: it keeps no cookies."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and _equal(given, self.token)

    def _cookies(self, headers: Headers) -> list[str]:
        pairs = (pair.strip().partition("=") for line in headers.getlist("cookie") for pair in line.split(";"))
        return [value for name, _, value in pairs if name == self._cookie]


def _is_at_most(length: str, most: int) -> bool:
    return length.isascii() and length.isdecimal() and len(length) < 10 and int(length) <= most


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


def _refused(status: int, why: str) -> Response:
    return PlainTextResponse(f"twinnet: {why}\n", status)
