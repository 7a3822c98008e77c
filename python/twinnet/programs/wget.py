"""wget: one HTTP fetch, from the built-in HTTP server or Python's."""

from __future__ import annotations

import re
from typing import Literal

from twinnet.errors import BadValue, ProgramFailed, ReportUnreadable
from twinnet.programs.file_server import object_of, python_server
from twinnet.programs.transfer import Output, Transfer
from twinnet.results.flow_report import FlowReport
from twinnet.traffic.apps import http_server
from twinnet.units import Size, size_bytes

__all__ = ["read_bytes", "wget"]

_SAVED = re.compile(r" URL:\S+ \[([0-9]+)(?:/[0-9]+)?\] -> ")


def wget(
    client: str,
    server: str,
    *,
    size: Size,
    port: int = 8080,
    flow: int = 0,
    congestion_control: str | None = None,
    server_by: Literal["twinnet", "python"] = "twinnet",
) -> Transfer:
    """Return a fetch of `size` by wget in host `client` from a server in host `server`: the built-in one, or Python's
    ``http.server``. It uses its host's congestion control or the one that is named."""
    if server_by not in ("twinnet", "python"):
        raise BadValue(f"the server is by {server_by!r}; allowed are 'twinnet' and 'python'")
    own = server_by == "twinnet"
    path = f"bytes/{size_bytes(size, 'size')}" if own else object_of(size)
    url = f"http://{{to}}:{port}/{path}"
    return Transfer(
        "wget",
        client,
        server,
        ("wget", "-nv", "--tries=1", "--no-proxy", "-O", "/dev/null", url),
        _reports,
        server_argv=None if own else python_server(port, congestion_control),
        server_app=http_server(server, port=port, congestion_control=congestion_control) if own else None,
        port=port,
        flow=flow,
        may_fail=True,
    )


def read_bytes(text: str) -> int:
    """Return how many bytes the report ``-nv`` on standard error says were fetched.

    Raises
    ------
    ProgramFailed
        When it tells of an error.
    ReportUnreadable
        When it says neither.
    """
    saved = _SAVED.search(text)
    if saved is not None:
        return int(saved.group(1))
    lines = [line for line in text.strip().splitlines() if line]
    if lines:
        raise ProgramFailed(f"wget: {lines[-1]}")
    raise ReportUnreadable("wget wrote no report")


def _reports(transfer: Transfer, output: Output) -> list[FlowReport]:
    return [
        FlowReport(
            flow=transfer.flow,
            protocol="http",
            role="client",
            start_ps=output.start_ps,
            end_ps=output.start_ps + round(output.client_end.elapsed_s * 1e12),
            bytes=read_bytes(output.errors),
            packets=1,
        )
    ]
