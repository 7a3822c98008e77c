"""wget: one HTTP fetch, from the built-in HTTP server or Python's."""

from __future__ import annotations

import re
from typing import Literal

from twinnet.errors import ProgramFailed, ReportUnreadable
from twinnet.programs.file_server import served
from twinnet.programs.transfer import Output, Transfer
from twinnet.results.flow_report import FlowReport
from twinnet.units import Size

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
    url, server_argv, server_app = served(size, server, server_by, port, congestion_control)
    return Transfer(
        "wget",
        client,
        server,
        ("wget", "-nv", "--tries=1", "--no-proxy", "-O", "/dev/null", url),
        _reports,
        server_argv=server_argv,
        server_app=server_app,
        port=port,
        flow=flow,
        may_fail=True,
    )


def read_bytes(text: str) -> int:
    """Return how many bytes the report ``-nv`` on standard error says were fetched.

    Raises
    ------
    ProgramFailed
        When it reports an error.
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
            end_ps=output.end_ps,
            bytes=read_bytes(output.errors),
            packets=1,
        )
    ]
