"""Guests that are made again and again leave nothing."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import twinnet as tn
from kernels_here import a_kernel_is_here

if not a_kernel_is_here():
    pytest.skip("there is no kernel for programs on the virtual clock", allow_module_level=True)


def two_hosts() -> tn.Network:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
    return net


def held() -> tuple[int, int, int]:
    """How many descriptors, threads and processes this process has."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), len(children)


def test_labs_in_a_row_leave_nothing_in_the_process_that_makes_them() -> None:
    counts: list[tuple[int, int, int]] = []
    traces: set[str] = set()
    for _ in range(10):
        with two_hosts().simulate(hosts="programs", seed=7) as lab:
            lab["h2"].popen("sleep 1000", stdout=tn.lab.DEVNULL)
            lab["h1"].run(["bash", "-c", "echo hello >/dev/tcp/h2/80"])
            traces.add(lab.trace_hash)
        counts.append(held())
    # The first has made what all share. What tests before this one left may have gone meanwhile.
    assert all(last <= first for first, last in zip(counts[0], counts[-1], strict=True)), counts
    assert len(traces) == 1
