"""The recording of a running lab: its looks, and now and then what flows it has and which way their packets go."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from twinnet.errors import TwinnetError
from twinnet.lab.following import Follower, Packet
from twinnet.live.kept_traffic import traffic_of_reports
from twinnet.live.recording import Recording
from twinnet.live.traffic import flow_row

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.live.seal import Seal

__all__ = ["MOST_WAYS", "LabRecording"]

MOST_WAYS = 16
"""There and back of eight flows: a way takes one to three kilobytes."""
_EVERY_S = 2.0
"""Seconds from one look at the traffic to the next, at least."""
_PATIENCE = 50
"""After a look that took long the next one is later: they take a fiftieth of the time at most."""


class LabRecording(Recording):
    """The looks at `lab`, for the file `out`, with its flows and the ways of those that ran, each as it was when it was
    last seen to run. While there is a `seal`, ways have no times."""

    def __init__(self, network: Mapping[str, Any], out: str | os.PathLike[str], lab: Lab, seal: Seal) -> None:
        super().__init__(network, out)
        self._lab, self._seal = lab, seal
        self._ways: dict[str, dict[str, Any]] = {}
        self._due_s = 0.0
        owners = [(port, name) for name in lab.layout.names("host") for port in lab.layout.nodes[name]["ports"]]
        self._names = {
            address.partition("/")[0]: name for port, name in owners for address in port.get("addresses") or ()
        }

    def add(self, tick: Mapping[str, Any]) -> None:
        """Keep a look of :class:`~twinnet.live.watch.LabWatch`, and when it is time what flows there are."""
        super().add(tick)
        begin_s = time.monotonic()
        if begin_s < self._due_s or not self.is_page:
            return
        # A lab that has just ended is told by the next look at it.
        with contextlib.suppress(TwinnetError, TimeoutError):
            self._look()
        self._due_s = begin_s + max(_EVERY_S, _PATIENCE * (time.monotonic() - begin_s))

    def _look(self) -> None:
        reports, at_s = self._lab.reports(), round(self._lab.now(), 3)
        follower = Follower(self._lab)
        running = [flow_row(report, flow) for report in reports if not report.finished for flow in report.flows]
        for row in running:
            if row["follow"] and (row["key"] in self._ways or len(self._ways) < MOST_WAYS):
                with contextlib.suppress(TwinnetError):
                    self._ways[row["key"]] = self._way(follower, row["follow"]) | {"at_s": at_s}
        self.know(traffic=traffic_of_reports(reports), followed=list(self._ways.values()))

    def _way(self, follower: Follower, asked: Mapping[str, str]) -> dict[str, Any]:
        source, target, protocol = asked["from"], asked["to"], asked["protocol"]
        port, source_port = (int(asked.get(name, 0)) for name in ("port", "source_port"))
        way = follower.follow(source, target, Packet(protocol, port, source_port))
        told = way.as_dict(with_times=not self._seal.is_on)
        to = self._names.get(target, target)
        return {"words": f"{protocol}: {source} to {to}{f', port {port}' if port else ''}", "way": told}
