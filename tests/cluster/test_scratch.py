"""The folders of slots on disk go, also those of slots that were killed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from campaign import environment
from twinnet.cluster.scratch import remove_left, remove_mine, scratch

_HOLDS = """
import sys
from twinnet.cluster.scratch import scratch
with scratch() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_lives_as_long_as_its_process(temporary: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**environment(), "TMPDIR": str(temporary)},
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert folder.parent == temporary
        remove_left()
        assert folder.is_dir()
        process.kill()
        process.wait(10)
        assert folder.is_dir()
        remove_left()
        assert not folder.exists()


def test_a_folder_goes_at_the_end_and_before_a_sudden_end(temporary: Path) -> None:
    with scratch() as folder:
        assert folder.is_dir()
    assert not folder.exists()
    with scratch() as folder:
        remove_mine()
        assert not folder.exists()


def test_what_is_not_a_slots_folder_stays(temporary: Path) -> None:
    other = temporary / "twinnet-slot-of-mine"
    other.mkdir()
    remove_left()
    assert [path.name for path in temporary.iterdir()] == ["twinnet-slot-of-mine"]
