"""One TCP flow between the hosts of a site, by iperf3."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from bench.sites import Site

__all__ = ["TcpFlow", "tcp_flow"]

_ATTEMPTS = 100


@dataclass(frozen=True)
class TcpFlow:
    """What iperf3 told of a flow.

    Parameters
    ----------
    received_bps
        Payload that the receiver had, in bit/s.
    rtt_us
        The mean of the round-trip times that the sender's kernel estimated, in microseconds.
    """

    received_bps: float
    rtt_us: float


def tcp_flow(site: Site, seconds: int, algorithm: str = "cubic") -> TcpFlow:
    """Run a single flow for `seconds` from host 1 to host 2; raises `OSError` when iperf3 fails."""
    server = site.start(2, ["iperf3", "--server", "--one-off"])
    try:
        client = ["iperf3", "--client", site.target, "--time", str(seconds), "--congestion", algorithm, "--json"]
        for _ in range(_ATTEMPTS):
            told = json.loads(site.run(1, client) or "{}")
            if "error" not in told and told:
                break
            # The server has not begun to listen yet.
            time.sleep(0.05)
        else:
            raise OSError(f"iperf3 in {site.name}: {told.get('error', 'no report')}")
    finally:
        server.kill()
        server.communicate()
    sender = told["end"]["streams"][0]["sender"]
    return TcpFlow(float(told["end"]["sum_received"]["bits_per_second"]), float(sender["mean_rtt"]))
