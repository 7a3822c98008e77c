"""Whatever part of a lab is killed, and whenever: nothing of it remains."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from lab_killer import VICTIMS
from lab_owner import PHASES
from namespace_census import can_be_confined, confined

SEED = 20_240
TESTS = Path(__file__).parents[1] / "support"

pytestmark = pytest.mark.skipif(not can_be_confined(), reason="this machine permits no user namespaces")


@pytest.mark.parametrize(
    "kills", [pytest.param(12, marks=pytest.mark.alone), pytest.param(200, marks=pytest.mark.quiet)]
)
def test_nothing_remains_after_kills_at_random_moments(kills: int, tmp_path: Path) -> None:
    command = confined(str(TESTS / "lab_killer.py"), str(kills), str(SEED), str(tmp_path))
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # Several labs are struck in one round, so the last round may end above the number.
    assert found["kills"] >= kills
    if kills >= 200:
        # Every phase and every part was struck: otherwise the test would prove less than it says.
        assert set(found["phases"]) >= set(PHASES)
        assert set(found["victims"]) == set(VICTIMS)
    # No process outlived its lab, and the count of namespaces would have told of one.
    assert found["failures"] == []
    assert found["seen_while_alive"] == ["ipc", "mnt", "net", "pid", "user", "uts"]
    assert found["namespaces"] == []
    assert found["children"] == []
    # No interface, mount, abstract address or named file is new; the only files are the captures that were asked for.
    assert found["changed"] == {}
    assert set(found["files"]) <= {"capture.pcapng"}
