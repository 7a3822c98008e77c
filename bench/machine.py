"""The machine that the figures were measured on, and which peers it has."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.ns3_peer import ns3_missing, ns3_version

__all__ = ["BARE", "cpu_s", "descendants", "describe", "kernel_memory_bytes", "missing", "process_memory_bytes"]

BARE = Path(__file__).resolve().parent.parent / "target" / "release" / "examples" / "bare"
"""The yardstick program; `make bench` builds it."""

_PROGRAMS = {
    "mininet": ("mn", "mnexec", "ovs-vswitchd", "ovsdb-server", "ovs-vsctl"),
    "ovs": ("ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ip", "ethtool", "unshare", "nsenter"),
    "kernel": ("tc", "ip", "ethtool", "unshare", "nsenter"),
    "iperf": ("iperf",),
    "iperf3": ("iperf3",),
    "ping": ("ping",),
}
_PACKAGES = {
    "mininet": "mininet",
    "ovs": "openvswitch-switch",
    "kernel": "iproute2 and ethtool",
    "ping": "iputils-ping",
}


def missing(peer: str) -> str | None:
    """Return why `peer` cannot be measured, with the remedy; ``None`` when it can."""
    if peer == "bare":
        return None if BARE.exists() else "the yardstick program is not built: run make bench"
    if peer == "ns-3":
        return ns3_missing()
    absent = [name for name in _PROGRAMS[peer] if shutil.which(name, path=_search_path()) is None]
    if absent:
        return f"{peer} is not measured: {', '.join(absent)} not found; install {_PACKAGES.get(peer, peer)}"
    if peer in ("mininet", "ovs", "kernel") and os.geteuid() != 0:
        return f"{peer} is not measured: it needs root"
    return None


def _search_path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def describe() -> dict[str, str]:
    """Return what of the machine matters to the figures."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s*([0-9]+)", Path("/proc/meminfo").read_text())
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": f"{os.cpu_count()} x {cpu.group(1) if cpu else platform.machine()}",
        "memory": f"{int(memory.group(1)) / 1e6:.0f} GB" if memory else "unknown",
        "kernel": platform.release(),
        "load": f"{os.getloadavg()[0]:.2f}",
        "python": platform.python_version(),
        "open vswitch": _first_line(["ovs-vswitchd", "--version"]),
        "mininet": _first_line(["mn", "--version"]),
        "iperf3": _first_line(["iperf3", "--version"]),
        "ns-3": ns3_version() or "not installed",
    }


def _first_line(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=10, check=False, env={**os.environ, "PATH": _search_path()}
        )
    except OSError:
        return "not installed"
    return next(iter((done.stdout + done.stderr).splitlines()), "")


def kernel_memory_bytes() -> int:
    """Return what the kernel holds for its own objects: slabs and per-CPU areas."""
    found = re.findall(r"^(?:Slab|Percpu|KernelStack):\s*([0-9]+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return sum(int(value) for value in found) * 1024


def descendants() -> list[int]:
    """Return the processes that descend from this one: those of the lab that it runs."""
    found = [os.getpid()]
    for one in found:
        for thread in Path(f"/proc/{one}/task").iterdir():
            found += [int(child) for child in (thread / "children").read_text().split()]
    return found[1:]


def cpu_s(processes: Iterable[int]) -> float:
    """Return the processor time that `processes` have used, in seconds to a hundredth."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def process_memory_bytes(processes: Sequence[int]) -> int:
    """Return what `processes` hold, shared pages by their share."""
    total = 0
    for process in processes:
        share = re.search(r"^Pss:\s*([0-9]+)", Path(f"/proc/{process}/smaps_rollup").read_text(), re.MULTILINE)
        total += int(share.group(1)) * 1024 if share else 0
    return total
