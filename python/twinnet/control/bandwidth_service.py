"""Available bandwidth by counters for other tools: a small service over HTTP, on the loopback device by default."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from twinnet.control.available_bandwidth import AvailableBandwidth, CountedLink, PassiveBandwidth
from twinnet.control.link_discovery import LinkDiscovery
from twinnet.errors import BadValue, NotAvailable, TwinnetError, reason

__all__ = ["BandwidthService"]

_LONGEST_TARGET = 2000
_PATIENCE_S = 10.0
"""A connection lasts so long, however slowly it asks, in seconds."""
_MOST_CONNECTIONS = 64
"""A further one takes the place of the oldest."""
_KEYS = ("from", "to", "since", "until", "layer")


class BandwidthService:
    """Answers ``GET /available?from=h1&to=h2`` and ``GET /links`` in JSON; ``with`` starts and ends it.

    It only reads. Nothing proves who asks: leave it on the loopback device, or put a proxy before it.

    Parameters
    ----------
    counters
        The controller that counts, in a running lab.
    discovery
        With it, paths are those that LLDP found, between hardware or IPv4 addresses; without it those of the lab's
        description, between names of hosts.
    address, port
        Where it listens; port 0 takes a free one.

    Attributes
    ----------
    url
        Where it listens, such as ``http://127.0.0.1:40123``.

    Raises
    ------
    NotAvailable
        The address or the port cannot be used.
    """

    def __init__(
        self,
        counters: AvailableBandwidth,
        discovery: LinkDiscovery | None = None,
        *,
        address: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._counters, self._discovery = counters, discovery
        try:
            self._server = _Server((address, port), _handler_of(self._answer))
        except (OSError, OverflowError) as error:
            raise NotAvailable(
                f"cannot listen on {address} port {port}: {reason(error)}", "give another port, or 0"
            ) from None
        self.url: str = f"http://{address}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def __enter__(self) -> BandwidthService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the service."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, path: str, asked: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of the answer."""
        if path == "/links":
            return 200, {"links": self._links()}
        if path != "/available":
            return 404, {"error": f"there is no {path}; ask for /available?from=h1&to=h2 or /links"}
        unknown = sorted(set(asked) - set(_KEYS))
        if unknown or not asked.get("from") or not asked.get("to"):
            return 400, {"error": f"give 'from' and 'to', and at most {', '.join(_KEYS)}; given: {sorted(asked)}"}
        try:
            return 200, _record(self._estimate(asked))
        except (TwinnetError, ValueError) as error:
            return 400, {"error": str(error)}

    def _estimate(self, asked: Mapping[str, str]) -> PassiveBandwidth:
        layer = asked.get("layer", "wire")
        if layer not in ("wire", "network"):
            raise BadValue(f"the layer is {layer!r}; allowed are wire and network")
        source, target = asked["from"], asked["to"]
        since_s, until_s = (float(asked[name]) if name in asked else None for name in ("since", "until"))
        if self._discovery is not None:
            found = self._discovery.path(source, target)
            return self._counters.estimate(found, since_s=since_s, until_s=until_s, layer=layer)
        nodes = self._counters.shortest_path(source, target)
        return self._counters.estimate(nodes, since_s=since_s, until_s=until_s, layer=layer)

    def _links(self) -> list[dict[str, Any]]:
        if self._discovery is None:
            return [
                {"from": link["a"]["node"], "to": link["b"]["node"], "rate_bps": link["ab"]["rate_bps"]}
                for link in self._counters.stage.spec["links"]
            ]
        return [
            {"from": here.switch, "from_port": here.port, "to": there.switch, "to_port": there.port}
            for here, there in self._discovery.links
        ]


def _record(found: PassiveBandwidth) -> dict[str, Any]:
    plain = ("available_bps", "error_bps", "error_model", "start_s", "end_s", "layer")
    links = [{**_link_record(link), "available_bps": available} for link, available in found.links.items()]
    return {**{name: getattr(found, name) for name in plain}, "tight": _link_record(found.tight), "links": links}


def _link_record(link: CountedLink) -> dict[str, Any]:
    """Return the link without its trace, which may have a million moments."""
    return {name: getattr(link, name) for name in ("switch", "port", "direction", "capacity_bps")}


class _Server(ThreadingHTTPServer):
    """Ends connections that last too long, and the oldest where there are too many: each has a thread."""

    daemon_threads = True
    request_queue_size = _MOST_CONNECTIONS
    """Those that the kernel keeps until they are accepted: where it has no room, they try again after a second."""

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._since: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._since) >= _MOST_CONNECTIONS:
                _hang_up(next(iter(self._since)))
            self._since[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._since.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        before_s = time.monotonic() - _PATIENCE_S
        with self._lock:
            for connection in [one for one, since_s in self._since.items() if since_s <= before_s]:
                _hang_up(connection)


def _hang_up(connection: socket.socket) -> None:
    """Have the thread that reads from it see its end."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _handler_of(
    answer: Callable[[str, Mapping[str, str]], tuple[int, dict[str, Any]]],
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE_S

        def do_GET(self) -> None:
            if len(self.path) > _LONGEST_TARGET:
                self._send(414, {"error": f"the question has more than {_LONGEST_TARGET} characters"})
                return
            asked = urlsplit(self.path)
            try:
                words = dict(parse_qsl(asked.query, keep_blank_values=True, max_num_fields=len(_KEYS)))
            except ValueError:
                self._send(400, {"error": f"more words than {', '.join(_KEYS)}"})
                return
            self._send(*answer(asked.path, words))

        def _send(self, status: int, body: Mapping[str, Any]) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the terminal belongs to who runs the lab."""

    return Handler
