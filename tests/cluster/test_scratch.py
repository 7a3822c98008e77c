"""The folders of slots on disk go, also those of slots that were killed."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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


def test_a_folder_goes_at_the_end_though_threads_still_write_there(temporary: Path) -> None:
    numbers, ended = itertools.count(), threading.Event()

    def write(folder: Path) -> None:
        while not ended.is_set():
            with suppress(OSError):
                (folder / str(next(numbers))).mkdir()

    with ThreadPoolExecutor() as pool:
        try:
            with scratch() as folder:
                writing = [pool.submit(write, folder) for _ in range(3)]
                while not any(folder.iterdir()):
                    pass
            assert not list(temporary.iterdir())
            assert not any(one.done() for one in writing)
        finally:
            ended.set()


_WRITES_AND_ENDS = """
import itertools, sys, threading
from pathlib import Path
from twinnet.cluster.scratch import end_suddenly, scratch
numbers = itertools.count()
def write(folder):
    while True:
        try:
            # With its parents, as the engine makes its own.
            place = folder / "dask-scratch-space" / f"worker-{next(numbers)}"
            place.mkdir(parents=True)
            (place / "file").write_text("x")
        except OSError:
            continue
with scratch() as folder:
    for _ in range(3):
        threading.Thread(target=write, args=(folder,), daemon=True).start()
    while not any(folder.glob("*/*/file")):
        pass
    print(next(numbers) > 0, flush=True)
    end_suddenly()
"""


def test_a_sudden_end_removes_what_other_threads_still_write(temporary: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", _WRITES_AND_ENDS],
        capture_output=True,
        text=True,
        env={**environment(), "TMPDIR": str(temporary)},
        timeout=60,
    )
    assert (told.returncode, told.stdout) == (0, "True\n"), told.stderr
    assert not list(temporary.iterdir())


_NO_OTHER_PROGRAM = """
import os, threading
from twinnet.cluster import scratch
with scratch.scratch() as folder:
    def no_program(path, words):
        threading.Thread(target=lambda: scratch.scratch().__enter__(), daemon=True).start()
        threading.Event().wait(0.5)
        raise OSError
    os.execv = no_program
    print(folder.is_dir(), flush=True)
    scratch.end_suddenly()
"""


def test_no_folder_is_made_after_a_sudden_end_has_begun_and_without_another_program_they_go_too(
    temporary: Path,
) -> None:
    told = subprocess.run(
        [sys.executable, "-c", _NO_OTHER_PROGRAM],
        capture_output=True,
        text=True,
        env={**environment(), "TMPDIR": str(temporary)},
        timeout=60,
    )
    assert (told.returncode, told.stdout) == (0, "True\n"), told.stderr
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
