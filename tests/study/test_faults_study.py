"""A study that is interrupted, or whose disk is full, keeps every finished run, and the same command goes on. With real
labs and the real command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import twinnet as tn
from lab_protocol import eventually
from labs_here import can_run_labs

SOURCE = str(Path(tn.__file__).parent.parent)
ENVIRONMENT = {**os.environ, "PYTHONPATH": SOURCE, "LC_ALL": "C"}
# The size for tests, a third as long.
SETTINGS = ["tcp_duration=1 s", "udp_duration=700 ms", "interval=100 ms", "settle=100 ms", "drain=200 ms"]
SIZE = ["--preset", "tiny", *(word for setting in SETTINGS for word in ("--set", setting))]
STUDY = [sys.executable, "-c", "from twinnet.cli import main; main()", "run", "tcp-udp-queues", *SIZE, "--no-report"]
LIMIT_S = 120
# How Ctrl-C is told by a program that ended in order.
INTERRUPTED = 130

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor"),
]


def run_folders(folder: Path) -> dict[str, int]:
    """The finished runs, and when the record of each was written."""
    records = folder.glob("results/tcp-udp-queues/*/run.json")
    finished = [path for path in records if json.loads(path.read_text())["status"] == "finished"]
    return {path.parent.name: path.stat().st_mtime_ns for path in finished}


def labs_of(pid: int) -> list[str]:
    """The lab processes of a study: each is a child of the thread that makes the run."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [word for children in threads for word in children.read_text().split()]


def resume(folder: Path) -> dict[str, int]:
    """Give the same command again and see that it ends well."""
    done = subprocess.run(
        [*STUDY, "--repeat", "2", "--json"],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"] == {"planned": 4, "finished": 4, "failed": 0}
    return run_folders(folder)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_a_study_that_is_stopped_in_the_middle_of_a_run_goes_on_where_it_was(
    tmp_path: Path, how: signal.Signals
) -> None:
    with subprocess.Popen(
        [*STUDY, "--repeat", "2"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as study:
        assert study.stderr is not None
        told = ""
        while "[1/4]" not in told:
            line = study.stderr.readline()
            assert line, told
            told += line
        assert eventually(lambda: labs_of(study.pid) != [], 20), "the second run has its lab"
        lab = labs_of(study.pid)[0]
        # As a terminal does: to the whole group. (The lab has a session of its own.)
        os.killpg(study.pid, how)
        told += study.stderr.read()
        status = study.wait(LIMIT_S)
    assert status == {signal.SIGINT: INTERRUPTED}.get(how, -how), told
    if how == signal.SIGINT:
        assert "the same command goes on" in told
        assert "Traceback" not in told
    assert eventually(lambda: not Path(f"/proc/{lab}").exists()), "the lab went with its owner"
    kept = run_folders(tmp_path)
    assert len(kept) == 1
    after = resume(tmp_path)
    assert kept.items() <= after.items(), "the finished run was not made again"
    assert len(after) == 4
    assert list(tmp_path.rglob("*.partial")) == []


def test_a_full_disk_is_told_and_loses_no_finished_run(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can mount a small file system")
    # Room for the records of one run or two, not of four.
    script = (
        'mkdir results && mount -t tmpfs -o size="$1" tmpfs results && shift && "$@"; status=$?;'
        "mkdir kept && cp -a results/. kept; exit $status"
    )
    size = sum(path.stat().st_blocks * 512 for path in one_run(tmp_path / "measured").iterdir())
    place = tmp_path / "small"
    place.mkdir()
    room = size * 5 // 2 + 64 * 1024
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(room), *STUDY, "--repeat", "2"]
    done = subprocess.run(
        command, cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "no space is left for the results in" in done.stderr
    assert "the same command again" in done.stderr
    assert "Traceback" not in done.stderr
    (place / "results").rmdir()
    (place / "kept").rename(place / "results")
    kept = run_folders(place)
    assert 1 <= len(kept) <= 3
    after = resume(place)
    assert kept.items() <= after.items()
    assert len(after) == 4
    assert list(place.rglob("*.partial")) == []


def one_run(folder: Path) -> Path:
    """Make the study's first run and return where it is."""
    folder.mkdir()
    subprocess.run([*STUDY], cwd=folder, env=ENVIRONMENT, capture_output=True, timeout=LIMIT_S, check=True)
    return next(path.parent for path in folder.glob("results/tcp-udp-queues/*/run.json"))
