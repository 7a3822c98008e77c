"""ping of iputils: round-trip times."""

from __future__ import annotations

import re
import statistics

from twinnet.errors import ProgramFailed
from twinnet.programs.transfer import Output, Transfer
from twinnet.results.distributions import Summary
from twinnet.results.flow_report import FlowReport
from twinnet.units import Duration, Size, duration_ps, size_bytes

__all__ = ["ping", "read_report"]

_REPLY = re.compile(r"icmp_seq=([0-9]+) .*?time=([0-9.]+) ms(.*)$", re.MULTILINE)
_TOTAL = re.compile(r"^([0-9]+) packets transmitted, ([0-9]+) received(?:, \+([0-9]+) duplicates)?", re.MULTILINE)


def ping(
    client: str,
    target: str,
    *,
    count: int = 3,
    interval: Duration = "1 s",
    payload: Size = "56 B",
    timeout: Duration = "1 s",
    flow: int = 0,
) -> Transfer:
    """Return `count` echo requests by ping in host `client` to host `target`."""
    seconds, patience = duration_ps(interval, "interval") / 1e12, duration_ps(timeout, "timeout") / 1e12
    size = size_bytes(payload, "payload")
    options = ("-n", "-c", str(count), "-i", f"{seconds:g}", "-W", f"{patience:g}", "-s", str(size))
    return Transfer(
        "ping", client, target, ("ping", *options, "{to}"), _reports, protocol="icmp", flow=flow, may_fail=True
    )


def read_report(text: str, errors: str = "") -> tuple[int, int, int, list[float]]:
    """Return how many requests were sent and answered, the duplicates, and the round-trip times in milliseconds.

    Raises
    ------
    ProgramFailed
        When ping could not send at all.
    """
    total = _TOTAL.search(text)
    if total is None:
        said = (errors.strip() or text.strip()).splitlines()[-1:] or ["it wrote no report"]
        raise ProgramFailed(f"ping: {said[0].removeprefix('ping: ')}")
    times = [float(time) for _, time, rest in _REPLY.findall(text) if "DUP" not in rest]
    return int(total.group(1)), int(total.group(2)), int(total.group(3) or 0), times


def _reports(transfer: Transfer, output: Output) -> list[FlowReport]:
    sent, received, duplicates, times = read_report(output.client, output.errors)
    return [
        FlowReport(
            flow=transfer.flow,
            protocol="icmp",
            role="client",
            start_ps=output.start_ps,
            end_ps=output.end_ps,
            packets=received,
            lost=sent - received,
            duplicates=duplicates,
            rtt=summary([time * 1e9 for time in times]),
        )
    ]


def summary(values: list[float]) -> Summary | None:
    """Return the summary of `values`, ``None`` of none."""
    if not values:
        return None
    ordered = sorted(values)

    def quantile(share: float) -> float:
        return ordered[min(round(share * (len(ordered) - 1)), len(ordered) - 1)]

    spread = statistics.stdev(ordered) if len(ordered) > 1 else 0.0
    parts = (quantile(0.5), quantile(0.9), quantile(0.99))
    return Summary(len(ordered), statistics.fmean(ordered), ordered[0], ordered[-1], spread, *parts)
