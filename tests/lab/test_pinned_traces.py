"""Traces of programs on the virtual clock are the same on every machine: two scenarios have those that are kept.
Their programs use no library of the machine. A change of these numbers is a change of behaviour, and belongs in the
changelog; another version of Linux has traces of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import twinnet as tn
from kernels_here import needs_a_kernel
from pinned_traces import PINNED

SOURCE = Path(__file__).parents[1] / "support" / "plain_program.c"
pytestmark = [
    needs_a_kernel,
    pytest.mark.skipif(
        shutil.which("gcc") is None, reason="gcc is not installed, one of the tools that build a kernel"
    ),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("plain") / "plain"
    options = ["-O1", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector"]
    subprocess.run(["gcc", *options, "-o", str(built), str(SOURCE)], check=True)
    return built


@pytest.mark.parametrize("what", ["datagrams", "connection"])
def test_a_trace_is_the_one_that_is_kept(what: str, program: Path) -> None:
    net = tn.Network(seed=5)
    s1 = net.switch("s1")
    net.link(net.host("h1"), s1, rate="10 Mbit", delay="5 ms")
    net.link(s1, net.host("h2"), rate="2 Mbit", delay="10 ms", queue=tn.qos.Fifo(limit_frames=20))
    with net.simulate(hosts="programs") as lab:
        lab["h2"].popen([str(program), what[0].upper()])
        lab.run_until("1 s")
        lab["h1"].run([str(program), what[0]], check=True)
        lab.run_until("20 s")
        kernel = lab.started["kernel"]
        if kernel not in PINNED:
            pytest.skip(f"no trace is kept for the kernel {kernel}")
        assert lab.trace_hash == PINNED[kernel][what]
