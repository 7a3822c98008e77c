"""Starts and stops labs one after the other in one process and tells what that process has gathered; runs confined (see
namespace_census). Argument: how many labs. Prints one JSON object."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from pathlib import Path

import twinnet as tn
from namespace_census import kinds_left

LOOKS = 8
SETTLED_AFTER = 0.2
"""Of the labs: what is made once is there then."""


def resident_kb() -> int:
    """Memory of this process that is in use, in KiB."""
    gc.collect()
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Dirty", "Private_Clean")))


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def one_lab(number: int) -> None:
    net = tn.templates.single(2, rate="100 Mbit")
    with net.emulate() as lab:
        if number % 4 == 0:
            assert lab["h1"].run("ping -c 1 -W 2 h2", timeout="10 s").returncode == 0
        if number % 4 == 1:
            lab.wait([lab.start(tn.apps.udp("h1", "h2", rate="10 Mbit", packets=10, payload="100 B"))], until="5 s")
        if number % 4 == 2:
            lab["h2"].popen("sleep 100")


def main() -> None:
    labs = int(sys.argv[1])
    memory: list[int] = []
    files: list[int] = []
    settled_after = round(labs * SETTLED_AFTER)
    every = (labs - settled_after) // LOOKS
    for number in range(labs):
        one_lab(number)
        if number >= settled_after and (number - settled_after) % every == 0 and len(memory) < LOOKS:
            memory.append(resident_kb())
            files.append(descriptors())
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    found = {"memory_kb": memory, "descriptors": files, "threads": threading.active_count(), "children": children}
    json.dump({**found, "namespaces": kinds_left()}, sys.stdout)


if __name__ == "__main__":
    main()
