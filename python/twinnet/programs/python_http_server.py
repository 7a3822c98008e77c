"""The program that a server's host runs: Python's ``http.server``, with the congestion control of a study.

``python_http_server.py ADDRESS PORT FOLDER [CONGESTION_CONTROL]``. It is
``python -m http.server``, but for the congestion control, which that takes from the kernel, and without a line for each
request.
"""

from __future__ import annotations

import functools
import socket
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["main"]


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of requests that were answered, or not."""


def main(address: str, port: int, folder: str, congestion_control: str | None = None) -> None:
    """Serve the files of `folder` until the process is ended."""
    server = ThreadingHTTPServer(
        (address, port), functools.partial(_Handler, directory=folder), bind_and_activate=False
    )
    if congestion_control is not None:
        # Connections inherit it from the socket that accepts them.
        server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
    server.server_bind()
    server.server_activate()
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:5])
