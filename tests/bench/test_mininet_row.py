"""Scripts of Mininet in a row, which end in every way, leave nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from labs_here import can_run_labs

from bench.mininet_row import ENDINGS


@pytest.mark.long
@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
def test_scripts_that_end_in_every_way_leave_no_processes_interfaces_mounts_or_files() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.mininet_row", str(2 * len(ENDINGS))],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TMPDIR": "/tmp"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[1] == "left: 0 processes, 0 interfaces, 0 mounts, 0 files"
