"""Hosts whose use of the processors is limited."""

from __future__ import annotations

import os
from subprocess import Popen
from typing import Any

from twinnet.mininet import outside
from twinnet.mininet.base_node import Host
from twinnet.mininet.fabric import FABRIC
from twinnet.mininet.log import info
from twinnet.mininet.util import numCores

__all__ = ["CPULimitedHost"]

_LEAST_QUOTA_US = 1000


class CPULimitedHost(Host):
    """A host with a share of the processors. Without `cpu` it is a host like any other.

    Parameters
    ----------
    name
        Its name.
    sched
        ``cfs``: a share of the time. ``rt`` needs a right that a script's machine does not have.
    params
        Those of a host; ``period_us`` is the period in which the share holds, in microseconds.
    """

    cgversion: str = "cgroup2"
    inited: bool = True

    def __init__(self, name: str, sched: str = "cfs", **params: Any) -> None:
        self.period_us: int = params.get("period_us", 100000)
        self.sched = sched
        self.rtprio: int | None = None
        self.limited: bool = False
        super().__init__(name, **params)

    def popen(self, *args: Any, **kwargs: Any) -> Popen[Any]:
        """As for every host; the process is under the host's limit."""
        if self.limited:
            kwargs.setdefault("mncmd", ["mnexec", "-g", self.name, "-da", str(self.pid)])
        return super().popen(*args, **kwargs)

    def config(self, cpu: float = -1, cores: Any = None, **params: Any) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Configure the host: `cpu` is its share of all processors, `cores` are those that it may run on."""
        results = super().config(**params)
        self.setParam(results, "setCPUFrac", cpu=cpu)
        self.setParam(results, "setCPUs", cores=cores)
        return results

    def cfsInfo(self, f: float) -> tuple[str, str, int, int]:
        """Return the names of period and quota, the period, and the quota of a share `f`, in microseconds."""
        quota, period = int(self.period_us * f * numCores()), self.period_us
        if 0 < quota < _LEAST_QUOTA_US:
            quota, period = _LEAST_QUOTA_US, int(_LEAST_QUOTA_US / f / numCores())
        return "cfs_period_us", "cfs_quota_us", period, quota

    def setCPUFrac(self, f: float, sched: str | None = None) -> None:
        """Let the host use the share `f` of all processors; below 0: all."""
        if not f or (f < 0 and not self.limited) or self.pid is None:
            return
        if (sched or self.sched) == "rt":
            raise Exception("sched=rt needs real-time scheduling, which this machine does not have; use sched=cfs")
        _, _, period_us, quota_us = self.cfsInfo(f)
        if outside.limit_processor_share(self.name, self.pid, quota_us, period_us):
            self.limited = True
            info(f"(cfs {quota_us}/{period_us}us) ")
            return
        said = f"cpu={f} of {self.name} is left out: this user may not make control groups with a share of processors"
        FABRIC.advice.tell("cpu", said, "run twinnet as root")

    def setCPUs(self, cores: Any, mems: int = 0) -> None:
        """Have the host run on the processors `cores`: numbers, or a text such as ``0,1``."""
        if cores is None or cores == "" or self.pid is None:
            return
        text = ",".join(str(one) for one in cores) if isinstance(cores, (list, tuple, range)) else str(cores)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        os.sched_setaffinity(self.pid, {int(one) for one in text.split(",")})

    def unlimit(self) -> None:
        """Take the limit away, so that the host ends quickly."""
        if self.limited:
            self.setCPUFrac(-1)
