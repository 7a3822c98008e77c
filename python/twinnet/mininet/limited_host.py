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
from twinnet.mininet.virtual_time import on_virtual_clock

__all__ = ["CPULimitedHost"]

_LEAST_QUOTA_US = 1000


class CPULimitedHost(Host):
    """A host with a share of the processors. Without `cpu` it is a host like any other.

    Parameters
    ----------
    name
        Its name.
    sched
        ``cfs``: a share of the time. ``rt`` needs a right that a script's machine does not have, and is as ``cfs``.
    params
        Those of a host; ``period_us`` is the period in which the share holds, in microseconds.
    """

    cgversion: str = "cgroup2"
    inited: bool = True
    _rtGroupSched: bool = False

    def __init__(self, name: str, sched: str = "cfs", **params: Any) -> None:
        self.period_us: int = params.get("period_us", 100000)
        self.sched = sched
        self.rtprio: int | None = None
        self.limited: bool = False
        self.quota: tuple[int, int] = (-1, self.period_us)
        self.cgroup: str = f"cpu,cpuacct,cpuset:/{name}"
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
        quota, period = int(self.period_us * f * numCores()) if f > 0 else -1, self.period_us
        if 0 < quota < _LEAST_QUOTA_US:
            quota, period = _LEAST_QUOTA_US, int(_LEAST_QUOTA_US / f / numCores())
        return "cfs_period_us", "cfs_quota_us", period, quota

    def setCPUFrac(self, f: float, sched: str | None = None) -> None:
        """Let the host use the share `f` of all processors; below 0: all."""
        if not f or (f < 0 and not self.limited) or self.pid is None:
            return
        if (sched or self.sched) == "rt":
            said = f"sched=rt of {self.name} is left out: hosts here have no real-time scheduling"
            FABRIC.advice.tell("rt", said, "write sched=cfs, by which their shares hold here")
        _, _, period_us, quota_us = self.cfsInfo(f)
        if self._limit(quota_us, period_us, f"cpu={f}"):
            info(f"(cfs {quota_us}/{period_us}us) ")

    def _limit(self, quota_us: int, period_us: int, wanted: str) -> bool:
        if self.pid is not None and outside.limit_processor_share(self.name, self.pid, quota_us, period_us):
            self.limited = True
            self.quota = quota_us, period_us
            return True
        if on_virtual_clock():
            said = f"{wanted} of {self.name} is left out: on the virtual clock programs take no processor time"
            FABRIC.advice.tell("cpu", said, "leave --clock virtual away where a host is to be slow")
            return False
        said = f"{wanted} of {self.name} is left out: this user may not make control groups with a share of processors"
        FABRIC.advice.tell("cpu", said, "run twinnet as root")
        return False

    def setCPUs(self, cores: Any, mems: int = 0) -> None:
        """Have the host run on the processors `cores`: numbers, or a text such as ``0,1``."""
        if cores is None or cores == "" or self.pid is None:
            return
        text = ",".join(str(one) for one in cores) if isinstance(cores, (list, tuple, range)) else str(cores)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        os.sched_setaffinity(self.pid, {int(one) for one in text.split(",")})

    def rtInfo(self, f: float) -> tuple[str, str, int, int]:
        """Return the names of period and time of a real-time share `f`, the period and the time, in microseconds."""
        return "rt_period_us", "rt_runtime_us", self.period_us, int(self.period_us * f)

    def cgroupGet(self, param: str, resource: str = "cpu") -> str:
        """Return a setting of the host's control group, of those that it has; otherwise an empty text."""
        known = {"cfs_period_us": self.quota[1], "cfs_quota_us": self.quota[0], "mems": 0}
        if param == "cpus" and self.pid is not None:
            return ",".join(str(one) for one in sorted(os.sched_getaffinity(self.pid)))
        return str(known.get(param, ""))

    def cgroupSet(self, param: str, value: Any, resource: str = "cpu") -> int:
        """Change a setting of the host's control group: ``cfs_quota_us``, ``cfs_period_us`` or ``cpus``. Others are
        left out, and this is told. Returns 0 where it has an effect, and 1 otherwise."""
        quota_us, period_us = self.quota
        if param == "cpus":
            self.setCPUs(str(value))
            return 0
        if param not in ("cfs_quota_us", "cfs_period_us"):
            said = f"{resource}.{param} of {self.name} is left out: hosts here have no such limit"
            FABRIC.advice.tell("cgroup", said, "set cpu and cores")
            return 1
        chosen = (int(value), period_us) if param == "cfs_quota_us" else (quota_us, int(value))
        return 0 if self._limit(*chosen, f"{resource}.{param}={value}") else 1

    def cgroupDel(self) -> bool:
        """Take the limits away."""
        self.unlimit()
        return True

    def chrt(self) -> str:
        """Return the scheduling of the host's processes, which is the usual one."""
        return "SCHED_OTHER"

    @classmethod
    def init(cls) -> None:
        """Do nothing: control groups need no preparation here."""

    @classmethod
    def checkRtGroupSched(cls) -> None:
        """Do nothing: ``sched=rt`` is as ``sched=cfs``, and this is told when it is asked for."""

    def unlimit(self) -> None:
        """Take the limit away, so that the host ends quickly."""
        if self.limited:
            self.setCPUFrac(-1)
