"""Description of the machine and the software, written before and after each run so that a reader can judge the run."""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from twinnet.guest.processor import differing

__all__ = ["describe_machine", "describe_place", "describe_versions", "machine_of", "processors_apart"]

NOT_RECORDED = "not recorded"
"""The machine of a run that was made before runs named theirs."""

SYSCTLS = (
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.core.default_qdisc",
    "net.core.netdev_max_backlog",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_limit_output_bytes",
    "kernel.sched_rt_runtime_us",
)
PACKAGES = ("twinnet", "polars", "numpy", "scipy", "pydantic", "matplotlib")


def _read(path: str) -> str | None:
    """The first 4 KiB of a file of /proc or /sys; `None` where it does not exist here."""
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            return file.read(4096).strip()
    except OSError:
        return None


def _cpu_model() -> str | None:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        if line.startswith(("model name", "Model")):
            return line.partition(":")[2].strip()
    return platform.machine() or None


def _memory_available_bytes() -> int | None:
    for line in (_read("/proc/meminfo") or "").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def describe_machine() -> dict[str, Any]:
    """Kernel, processor, load, memory and the sysctls that bear on measurements; `None` for what is not known."""
    return {
        "kernel": platform.release(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "cpu_model": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "clock_source": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "load_1min": os.getloadavg()[0],
        "memory_available_bytes": _memory_available_bytes(),
        "virtualised": "hypervisor" in (_read("/proc/cpuinfo") or ""),
        "sysctls": {name: _read("/proc/sys/" + name.replace(".", "/")) for name in SYSCTLS},
    }


def describe_place(slot: int) -> dict[str, Any]:
    """Describe the machine that makes a run, and the place of the run on it.

    Parameters
    ----------
    slot
        Which of the runs that are made side by side, counted from 1.
    """
    return {
        "name": socket.gethostname()[:253] or platform.machine(),
        "slot": slot,
        "processors": processor_ranges(os.sched_getaffinity(0)),
    }


def machine_of(record: Mapping[str, Any]) -> str:
    """The name of the machine that made the run of `record`."""
    return str(record["machine"].get("name") or NOT_RECORDED)


def processors_apart(notes: Mapping[str, Any], others: Mapping[str, Any]) -> str:
    """Return what the processors of two runs with programs on the virtual clock had apart, by the runs' notes, in words
    that follow others; empty where nothing is known of it."""
    one, other = (_of_lab(given).get("processor") for given in (notes, others))
    return differing(one, other)


def _of_lab(notes: Mapping[str, Any]) -> Mapping[str, Any]:
    told = notes.get("lab")
    return cast("Mapping[str, Any]", told) if isinstance(told, dict) else {}


def processor_ranges(processors: set[int]) -> str:
    """Processors as Linux writes them: `0-3,8`."""
    ranges: list[list[int]] = []
    for one in sorted(processors):
        if ranges and one == ranges[-1][1] + 1:
            ranges[-1][1] = one
        else:
            ranges.append([one, one])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def describe_versions() -> dict[str, str | None]:
    """The versions of Python, of this package and of the packages that results depend on."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str | None]:
    # Packages do not change while a process runs, and finding out takes as long as a short run.
    versions: dict[str, str | None] = {"python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    if versions["twinnet"] is None and (Path(__file__).parents[3] / "Cargo.toml").is_file():
        versions["twinnet"] = "source tree"
    return versions
