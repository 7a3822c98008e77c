"""The folders of slots on disk go, also those of slots that were killed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from campaign import environment
from twinnet.cluster.scratch import remove_left, scratch

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


def test_a_folder_goes_at_the_end(temporary: Path) -> None:
    with scratch() as folder:
        assert folder.is_dir()
    assert not folder.exists()


_WRITES_AND_ENDS = """
import os, threading
from pathlib import Path
from twinnet.cluster.scratch import remove_for_good, scratch
ended = threading.Event()
def write(folder):
    for number in range(10**9):
        if ended.is_set():
            return
        try:
            place = folder / "dask-scratch-space" / f"worker-{number}"
            place.mkdir(parents=True)
            (place / "file").write_text("x")
        except FileNotFoundError:
            continue
with scratch() as folder:
    (folder / "dask-scratch-space").mkdir()
    threads = [threading.Thread(target=write, args=(folder,), daemon=True) for _ in range(3)]
    for one in threads:
        one.start()
    while not (folder / "dask-scratch-space" / "worker-100").exists():
        pass
    threading.Timer(2, ended.set).start()
    remove_for_good()
    # What the threads make afterwards is for the engine alone, which makes no folder but its own.
    print(folder.exists(), flush=True)
    os._exit(0)
"""


def test_a_sudden_end_removes_what_other_threads_still_write(temporary: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", _WRITES_AND_ENDS],
        capture_output=True,
        text=True,
        env={**environment(), "TMPDIR": str(temporary)},
        timeout=60,
    )
    assert told.stdout == "False\n", told.stderr


def test_no_folder_is_made_after_a_sudden_end_has_begun(temporary: Path) -> None:
    code = (
        "import os, threading\nfrom twinnet.cluster.scratch import remove_for_good, scratch\n"
        "remove_for_good()\nthreading.Thread(target=lambda: scratch().__enter__(), daemon=True).start()\n"
        "threading.Event().wait(0.5)\nos._exit(0)"
    )
    subprocess.run(
        [sys.executable, "-c", code], env={**environment(), "TMPDIR": str(temporary)}, timeout=60, check=True
    )
    assert not list(temporary.iterdir())


def test_a_folder_whose_process_was_killed_before_it_had_a_lock_is_removed(temporary: Path) -> None:
    (temporary / "twinnet-slot-4711-abcdefg_").mkdir()
    remove_left()
    assert not list(temporary.iterdir())


def test_what_is_not_a_slots_folder_stays(temporary: Path) -> None:
    other = temporary / "twinnet-slot-of-mine"
    other.mkdir()
    remove_left()
    assert [path.name for path in temporary.iterdir()] == ["twinnet-slot-of-mine"]
