"""Hosts whose use of the processors is limited."""

from __future__ import annotations

import os
from typing import Any

from twinnet.mininet.base_node import Host
from twinnet.mininet.fabric import FABRIC

__all__ = ["CPULimitedHost"]


class CPULimitedHost(Host):
    """A host with a share of the processors. Without `cpu` it is a host like any other, and its shares are told to be
    left out: twinnet marks a run when the machine was too slow for it.

    Parameters
    ----------
    name
        Its name.
    sched
        ``cfs`` or ``rt``, as in Mininet.
    params
        Those of a host.
    """

    cgversion: str = "cgroup2"
    inited: bool = True

    def __init__(self, name: str, sched: str = "cfs", **params: Any) -> None:
        super().__init__(name, **params)
        self.period_us: int = params.get("period_us", 100000)
        self.sched = sched
        self.rtprio: int | None = None

    def config(self, cpu: float = -1, cores: Any = None, **params: Any) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Configure the host; `cores` are the processors that it may run on."""
        results = super().config(**params)
        self.setParam(results, "setCPUFrac", cpu=cpu)
        self.setParam(results, "setCPUs", cores=cores)
        return results

    def setCPUFrac(self, f: float, sched: str | None = None) -> None:
        """Tell that the share `f` of the processors is not set."""
        if f and f > 0:
            said = f"cpu={f} of {self.name} needs control groups of the whole machine: it is left out"
            FABRIC.advice.tell("cpu", said, "look at the verdict of the run, which says when the machine was too slow")

    def setCPUs(self, cores: Any, mems: int = 0) -> None:
        """Have the host run on the processors `cores`: numbers, or a text such as ``0,1``."""
        if cores is None or cores == "" or self.pid is None:
            return
        text = ",".join(str(one) for one in cores) if isinstance(cores, (list, tuple, range)) else str(cores)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        os.sched_setaffinity(self.pid, {int(one) for one in text.split(",")})

    def unlimit(self) -> None:
        """Take the limits away before the host ends."""
