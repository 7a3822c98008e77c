"""What a lab costs in which nothing happens."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.arena import Arena
from bench.figure import Figure
from bench.machine import descendants, missing
from twinnet import templates

TITLE = "Idle"

HOSTS = 1000
SWITCHES = 50
TARGET_PERCENT = 5.0
# New interfaces announce themselves (duplicate address detection, router solicitations) for some seconds.
_SETTLE_S = 8.0


def measure(quick: bool) -> Iterator[Figure]:
    """Yield the figure."""
    seconds, repetitions = (2.0, 1) if quick else (5.0, 3)
    with templates.single(HOSTS).emulate():
        time.sleep(_SETTLE_S)
        ours = [busy_percent(descendants(), seconds) for _ in range(repetitions)]
    peers: dict[str, Sequence[float]] = {}
    if missing("ovs") is None:
        with Arena() as arena:
            arena.start_open_vswitch()
            for number in range(1, SWITCHES + 1):
                settings = ["datapath_type=netdev", "fail_mode=standalone"]
                arena.run(["ovs-vsctl", "add-br", f"s{number}", "--", "set", "bridge", f"s{number}", *settings])
            time.sleep(2.0)
            daemons = arena.processes("ovs-vswitchd")
            peers[f"OVS user space, {SWITCHES} switches"] = [busy_percent(daemons, seconds) for _ in range(repetitions)]
    yield Figure(
        f"idle lab of {HOSTS} hosts on one switch", "% of one core", ours, peers, "below 5", max(ours) < TARGET_PERCENT,
        note=f"{repetitions} spans of {seconds:g} s, {_SETTLE_S:g} s after the start; all threads of the lab process",
    )


def busy_percent(processes: Sequence[int], seconds: float) -> float:
    """Return the CPU time that `processes` use in `seconds`, in percent of one core."""
    begin, before = time.monotonic(), _cpu_s(processes)
    time.sleep(seconds)
    return 100 * (_cpu_s(processes) - before) / (time.monotonic() - begin)


def _cpu_s(processes: Sequence[int]) -> float:
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
