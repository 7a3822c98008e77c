"""What a lab costs in which nothing happens, and how soon nothing happens."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import twinnet as tn
from twinnet.network import templates

from bench.arena import Arena
from bench.figure import Figure
from bench.machine import cpu_s, descendants, missing
from bench.quiet import Quiet

TITLE = "Idle"
MEASURES = ("bench/idle.py", "crates/fabric", "crates/linux")

HOSTS = 1000
SWITCHES = 50
TARGET_PERCENT = 5.0
_CALM_LIMIT_S = 60.0


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures."""
    seconds, repetitions = (2.0, 1) if quick else (5.0, 3)
    with templates.single(HOSTS).emulate() as lab:
        calm_s = seconds_until_calm(lab)
        begin_cpu_s = cpu_s(descendants())
        ours = [busy_percent(descendants(), seconds) for _ in range(repetitions)]
    quiet.wait()
    peers = (
        {f"OVS user space, {SWITCHES} switches": switches_percent(seconds, repetitions)}
        if missing("ovs") is None
        else {}
    )
    yield Figure(
        f"idle lab of {HOSTS} hosts on one switch",
        "% of one core",
        ours,
        peers,
        "below 5",
        max(ours) < TARGET_PERCENT,
        strain=max(ours) / TARGET_PERCENT,
        note=f"{repetitions} spans of {seconds:g} s; all threads of the lab process; the peer has two ports a switch",
    )
    yield Figure(
        "until the kernel's own announcements have ended",
        "s",
        [calm_s],
        note=f"each interface announces its IPv6 groups to all others; that takes {begin_cpu_s:.1f} s of CPU time",
    )


def seconds_until_calm(lab: tn.Lab) -> float:
    """Wait until no frame moves; return how long that took."""
    begin = last_change = time.monotonic()
    seen = -1
    while time.monotonic() < begin + _CALM_LIMIT_S and time.monotonic() < last_change + 2.0:
        time.sleep(0.25)
        if (moved := lab.fidelity().handed_over) != seen:
            seen, last_change = moved, time.monotonic()
    return last_change - begin


def switches_percent(seconds: float, repetitions: int) -> list[float]:
    """Return what switches in a row cost the peer's daemon."""
    with Arena() as arena:
        arena.start_open_vswitch()
        for number in range(1, SWITCHES + 1):
            settings = ["datapath_type=netdev", "fail_mode=standalone"]
            arena.run(["ovs-vsctl", "add-br", f"s{number}", "--", "set", "bridge", f"s{number}", *settings])
        for left in range(1, SWITCHES):
            right = left + 1
            names = (f"s{left}-r", f"s{right}-l")
            arena.run(["ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1]])
            for switch, name in zip((left, right), names, strict=True):
                arena.run(["ip", "link", "set", name, "up"])
                arena.run(["ovs-vsctl", "add-port", f"s{switch}", name])
        # Its interfaces announce themselves too.
        time.sleep(5.0)
        daemons = arena.processes("ovs-vswitchd")
        return [busy_percent(daemons, seconds) for _ in range(repetitions)]


def busy_percent(processes: Sequence[int], seconds: float) -> float:
    """Return the CPU time that `processes` use in `seconds`, in percent of one core."""
    begin, before = time.monotonic(), cpu_s(processes)
    time.sleep(seconds)
    return 100 * (cpu_s(processes) - before) / (time.monotonic() - begin)
