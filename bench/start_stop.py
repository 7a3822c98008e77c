"""How long a network takes to come and to go, and what a host weighs."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import twinnet as tn
from twinnet.network import templates

from bench.arena import Arena
from bench.figure import Figure
from bench.interfaces_gone import Sentinel
from bench.machine import BARE, descendants, kernel_memory_bytes, missing, process_memory_bytes
from bench.quiet import Quiet

TITLE = "Create and start, stop"
MEASURES = ("bench/start_stop.py", "crates/lab", "crates/linux", "python/twinnet/lab", "python/twinnet/lab_process")

ROWS = ("single,200", "linear,100", "tree,4,4", "tree of 1024 hosts, 33 switches")
"""What can be measured by itself; the memory of a host belongs to the last."""
MININET_FACTOR = 20
BARE_FACTOR = 2
MININET_SCRIPT = Path(__file__).with_name("mininet_peer.py")
_SETTLE_LIMIT_S = 30.0
_MININET = "Mininet, OVS user space"


@dataclass(frozen=True)
class Times:
    """Seconds of creating with starting, of stopping until the call returns, and until all interfaces are gone."""

    create_s: float
    return_s: float
    gone_s: float


def measure(quick: bool, quiet: Quiet, rows: Sequence[str] = ROWS) -> Iterator[Figure]:
    """Yield the figures of `rows`."""
    repetitions = 1 if quick else 3
    for name, theirs, build in zip(
        ROWS,
        (*ROWS[:3], "tree,2,32"),
        (lambda: templates.single(200), lambda: templates.linear(100), lambda: templates.tree(4, 4), wide_tree),
        strict=True,
    ):
        if name not in rows:
            continue
        hosts = len(build().hosts)
        bare: list[float] = []
        ours: list[Times] = []
        for _ in range(repetitions):
            # By turns, so that both see the same neighbours on the machine.
            if missing("bare") is None:
                settle(quiet)
                bare.append(bare_seconds(hosts))
            settle(quiet)
            ours.append(our_times(build))
        mininet: list[Times] = []
        for _ in range(0 if quick or missing("mininet") else repetitions):
            settle(quiet)
            mininet.append(mininet_times(theirs))
        yield from _figures(name, ours, bare, mininet)
        if hosts > 1000:
            settle(quiet)
            yield Figure(
                "memory per host, tree of 1024",
                "KiB",
                [memory_per_host(build)],
                note="lab process and the kernel's slabs, per-CPU areas, stacks",
            )


def _figures(name: str, ours: list[Times], bare: list[float], mininet: list[Times]) -> Iterator[Figure]:
    create, gone = [one.create_s for one in ours], [one.gone_s for one in ours]
    peers: dict[str, list[float]] = {}
    strains: list[float] = []
    if bare:
        peers["bare namespaces and TAPs"] = bare
        strains.append(median(create) / (BARE_FACTOR * median(bare)))
    if mininet:
        peers[_MININET] = [one.create_s for one in mininet]
        strains.append(median(create) * MININET_FACTOR / median(peers[_MININET]))
    of_mininet = f", 1/{MININET_FACTOR} of Mininet" if mininet else ""
    target = f"within {BARE_FACTOR} x bare{of_mininet}"
    yield _judged(f"{name}: create and start", create, peers, target, "create and start", strains)
    peers = {_MININET: [one.return_s for one in mininet]} if mininet else {}
    yield Figure(f"{name}: stop, until the call returns", "s", [one.return_s for one in ours], peers)
    peers = {_MININET: [one.gone_s for one in mininet]} if mininet else {}
    strains = [median(gone) / median(create)]
    if mininet:
        strains.append(median(gone) * MININET_FACTOR / median(peers[_MININET]))
    target = f"faster than start{of_mininet}"
    yield _judged(f"{name}: stop, until all interfaces are gone", gone, peers, target, "stop", strains)


def _judged(
    name: str, ours: list[float], peers: dict[str, list[float]], target: str, goal: str, strains: list[float]
) -> Figure:
    strain = max(strains, default=None)
    met = None if strain is None else strain <= 1
    return Figure(name, "s", ours, peers, target, met, goal=f"{goal}: {target}", strain=strain)


def wide_tree() -> tn.Network:
    """Return 32 switches of 32 hosts each below one root."""
    net = tn.Network()
    root = net.switch("s1")
    for number in range(32):
        leaf = net.switch(f"s{number + 2}")
        net.link(root, leaf)
        for host in range(32):
            net.link(net.host(f"h{number * 32 + host + 1}"), leaf)
    return net


def our_times(build: Callable[[], tn.Network]) -> Times:
    """Describe, start and stop a network."""
    sentinel = Sentinel()
    begin = time.perf_counter()
    lab = build().emulate().open()
    started = time.perf_counter()
    lab.stop()
    returned = time.perf_counter()
    sentinel.wait()
    return Times(started - begin, returned - started, time.perf_counter() - started)


def bare_seconds(hosts: int) -> float:
    """Return what the yardstick took to create `hosts` namespaces with a TAP each."""
    done = subprocess.run([str(BARE), "hosts", str(hosts)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def mininet_times(name: str, *options: str) -> Times:
    """Return what Mininet took for the topology `name`, such as ``tree,4,4``; `options` are those of its script."""
    with Arena() as arena:
        arena.start_open_vswitch()
        said = arena.run(["/usr/bin/python3", str(MININET_SCRIPT), *name.split(","), *options], timeout_s=1200)
    return Times(*map(float, said.split()))


def memory_per_host(build: Callable[[], tn.Network]) -> float:
    """Return what a host weighs, in KiB."""
    before = kernel_memory_bytes()
    network = build()
    with network.emulate():
        held = kernel_memory_bytes() - before + process_memory_bytes(descendants())
    return held / len(network.hosts) / 1024


def settle(quiet: Quiet) -> None:
    """Wait until the kernel has put away the namespaces of what ran before, which it does in the background, and the
    machine is quiet."""
    end = time.monotonic() + _SETTLE_LIMIT_S
    last = _namespaces()
    while time.monotonic() < end:
        time.sleep(0.5)
        now = _namespaces()
        # Others use the machine too: what matters is that no great number is on its way out.
        if now >= last - 2:
            break
        last = now
    quiet.wait()


def _namespaces() -> int:
    found = re.search(r"^net_namespace\s+([0-9]+)", Path("/proc/slabinfo").read_text(), re.MULTILINE)
    return int(found.group(1)) if found else 0
