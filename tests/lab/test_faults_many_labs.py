"""Labs in great number: one after the other, and side by side."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import twinnet as tn
from namespace_census import can_be_confined, confined
from twinnet.lab.lab import Lab

TESTS = Path(__file__).parents[1] / "support"
# A lab that left only its connection's objects, or one page of the allocator, behind would cost 4 KiB; the
# interpreter's and glibc's own arenas move by some hundred KiB in all, however many labs there are.
LONGEST_GROWTH_KB = 400

pytestmark = pytest.mark.skipif(not can_be_confined(), reason="this machine permits no user namespaces")


@pytest.mark.parametrize(
    "labs", [pytest.param(12, marks=pytest.mark.alone), pytest.param(200, marks=pytest.mark.quiet)]
)
def test_labs_in_a_row_leave_nothing_with_their_owner_or_the_kernel(labs: int) -> None:
    command = confined(str(TESTS / "labs_in_a_row.py"), str(labs))
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["memory_kb"]) == 8
    assert len(set(found["descriptors"])) == 1
    if labs >= 200:
        assert found["memory_kb"][-1] - found["memory_kb"][0] < LONGEST_GROWTH_KB
    assert found["threads"] == 1
    assert found["children"] == []
    assert found["namespaces"] == []


@pytest.mark.alone
def test_ten_labs_with_the_same_names_run_at_once_and_keep_apart() -> None:
    def use(lab: Lab, number: int) -> str:
        assert lab["h1"].run("ping -c 2 -i 0.1 -W 2 h2", timeout="20 s").returncode == 0
        lab["h2"].popen(["sleep", str(1000 + number)])
        return lab["h2"].run("ps -e -o args=").stdout

    labs = [tn.templates.single(2, rate="10 Mbit").emulate() for _ in range(10)]
    try:
        with ThreadPoolExecutor(10) as pool:
            list(pool.map(Lab.open, labs))
            seen = list(pool.map(use, labs, range(10)))
        assert len({lab.name for lab in labs}) == 10
        for number, processes in enumerate(seen):
            sleeps = [line for line in processes.splitlines() if line.startswith("sleep")]
            assert sleeps == [f"sleep {1000 + number}"], "a host sees its own lab's programs only"
        assert {lab.name for lab in labs} <= {info.name for info in tn.labs()}
    finally:
        for lab in labs:
            lab.stop()
