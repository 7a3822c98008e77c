"""ApacheBench: many HTTP requests over several connections, from the built-in HTTP server or Python's."""

from __future__ import annotations

import re
from typing import Literal

from twinnet.errors import ProgramFailed, ReportUnreadable
from twinnet.programs.file_server import served
from twinnet.programs.transfer import Output, Transfer
from twinnet.results.flow_report import FlowReport, Summary
from twinnet.units import Picoseconds, Size

__all__ = ["apache_bench", "read_report"]

_LINES = {
    "requests": r"^Complete requests:\s+([0-9]+)$",
    "failed": r"^Failed requests:\s+([0-9]+)$",
    "seconds": r"^Time taken for tests:\s+([0-9.]+) seconds$",
    "bytes": r"^HTML transferred:\s+([0-9]+) bytes$",
}
_TOTAL = re.compile(r"^Total:\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)$", re.MULTILINE)
_QUANTILE = re.compile(r"^\s+([0-9]+)%\s+([0-9]+)\b", re.MULTILINE)
_PS_PER_MS = 1e9


def apache_bench(
    client: str,
    server: str,
    *,
    size: Size,
    count: int,
    connections: int = 1,
    duration: Picoseconds | None = None,
    port: int = 8080,
    flow: int = 0,
    congestion_control: str | None = None,
    server_by: Literal["twinnet", "python"] = "twinnet",
) -> Transfer:
    """Return `count` requests for `size` each over `connections` kept-alive connections by ApacheBench in host
    `client`, for `duration` at most, from a server in host `server`: the built-in one, or Python's ``http.server``.

    Its times are whole milliseconds: so are the round trips of its report, each from a request to the last byte of the
    answer, the opening of the connection included. ApacheBench has no HTTP/1.1: a connection that the server closes is
    opened again. Python's server closes each after one answer.
    """
    # ab -t ends only when a request does; interrupted, it reports all that were complete.
    limit = ("timeout", "-s", "INT", f"{duration / 10**12:g}") if duration is not None else ()
    url, server_argv, server_app = served(size, server, server_by, port, congestion_control)
    argv = (*limit, "ab", "-q", "-k", "-r", "-l", "-n", str(max(count, connections)), "-c", str(connections), url)
    return Transfer(
        "ab",
        client,
        server,
        argv,
        _reports,
        server_argv=server_argv,
        server_app=server_app,
        port=port,
        flow=flow,
        may_fail=True,
    )


def read_report(text: str) -> tuple[int, int, int, float, Summary | None]:
    """Return complete and failed requests, bytes of the answers' bodies, seconds, and the times of requests.

    Raises
    ------
    ReportUnreadable
        When a line is missing.
    """
    found: dict[str, str] = {}
    for name, pattern in _LINES.items():
        line = re.search(pattern, text, re.MULTILINE)
        if line is None:
            raise ReportUnreadable(f"ApacheBench's report has no {name}")
        found[name] = line[1]
    requests = int(found["requests"])
    times = _TOTAL.search(text)
    summary = None
    if times is not None and requests:
        least, mean, deviation, _, most = (float(value) * _PS_PER_MS for value in times.groups())
        shares = {int(share): float(value) * _PS_PER_MS for share, value in _QUANTILE.findall(text)}
        summary = Summary(requests, mean, least, most, deviation, shares.get(50), shares.get(90), shares.get(99))
    return requests, int(found["failed"]), int(found["bytes"]), float(found["seconds"]), summary


def _reports(transfer: Transfer, output: Output) -> list[FlowReport]:
    if output.client_end.returncode != 0 and "Complete requests:" not in output.client:
        said = output.errors.strip().splitlines() or ["no report"]
        raise ProgramFailed(f"ab in {transfer.client}: {said[-1]}")
    requests, failed, payload, seconds, times = read_report(output.client)
    return [
        FlowReport(
            flow=transfer.flow,
            protocol="http",
            role="client",
            start_ps=output.start_ps,
            end_ps=output.start_ps + round(seconds * 1e12),
            bytes=payload,
            packets=requests,
            lost=failed,
            rtt=times,
        )
    ]
