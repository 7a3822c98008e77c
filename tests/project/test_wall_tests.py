"""Tests that judge time: skipped with the figure where the machine is busy, made again where they fail, and told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import quiet_machine
from quiet_machine import MARK, Look, look, own_processes, too_busy

pytest_plugins = ["pytester"]

CONFTEST = Path(__file__).parents[1] / "conftest.py"
INI = """[pytest]
markers =
    quiet: as here
    judged: as here
    alone: as here
    wall: as here
    long: as here
"""
TEST = """
import pytest

made = []

@pytest.mark.{mark}
def test_something():
    made.append(len(made))
    assert len(made) >= {right}, f"time {{len(made)}}"

def test_how_often():
    assert len(made) == {times}
"""


def run_here(pytester: pytest.Pytester, source: str) -> tuple[pytest.RunResult, dict[str, object]]:
    """Run a file of tests under this project's conftest, and return what it kept."""
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(test_here=source)
    pytester.makeini(INI)
    result = pytester.runpytest("-p", "no:cacheprovider", "-p", "no:xdist")
    return result, json.loads((pytester.path / "kept.json").read_text())


@pytest.fixture
def quiet(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine that is quiet, whatever this one is; what is kept goes to ``kept.json``."""
    monkeypatch.setenv("TWINNET_TEST_RESULT", str(pytester.path / "kept.json"))
    monkeypatch.setattr(quiet_machine, "too_busy", lambda processors: None)
    return monkeypatch


@pytest.mark.parametrize(
    ("mark", "right", "times", "outcome"),
    [
        ("quiet", 1, 1, {"passed": 2}),
        ("judged", 2, 2, {"passed": 2}),
        ("quiet", 3, 3, {"passed": 2}),
        ("quiet", 4, 3, {"passed": 1, "failed": 1}),
        ("long", 2, 1, {"passed": 1, "failed": 1}),
    ],
)
def test_only_a_test_that_judges_time_is_made_again_and_at_most_twice(
    pytester: pytest.Pytester,
    quiet: pytest.MonkeyPatch,
    mark: str,
    right: int,
    times: int,
    outcome: dict[str, int],
) -> None:
    result, kept = run_here(pytester, TEST.format(mark=mark, right=right, times=times))
    result.assert_outcomes(**outcome)
    failures = [f"AssertionError: time {time}" for time in range(1, times)]
    assert kept["repeated"] == ({"test_here.py::test_something": failures} if failures else {})
    if failures:
        result.stdout.fnmatch_lines(["*failed and made again*", *[f"*test_something: {said}" for said in failures]])
    assert kept["passed"] == outcome["passed"]
    assert list(kept["failed"]) == ["test_here.py::test_something"] * outcome.get("failed", 0)


def test_a_busy_machine_has_it_skipped_with_the_figure_and_with_a_right_to(
    pytester: pytest.Pytester, quiet: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def busy(processors: float) -> str | None:
        asked.append(processors)
        return Look(0.2, 0.0, 0.1).against(processors)

    quiet.setattr(quiet_machine, "too_busy", busy)
    result, kept = run_here(pytester, TEST.format(mark="quiet(processors=1.8)", right=1, times=0))
    result.assert_outcomes(passed=1, skipped=1)
    assert asked == [1.8]
    reason = "this machine is not quiet enough: 0.2 processors are free, 1.8 are needed"
    assert kept["skipped"] == {"test_here.py::test_something": reason}
    assert kept["wrongly_skipped"] == {}
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (Look(1.5, 0.03, 5.0), None),
        (Look(1.4, 0.0, 0.1), "1.4 processors are free"),
        (Look(2.0, 0.04, 0.1), "the host takes 4%"),
        (Look(2.0, 0.0, 5.1), "a sleep ended 5.1 ms late"),
    ],
)
def test_each_figure_has_its_bound(seen: Look, said: str | None) -> None:
    reason = seen.against(1.5)
    assert reason is None if said is None else said in (reason or "")


RECORDED = json.loads((Path(__file__).parents[1] / "support" / "recorded" / "processes_of_a_session.json").read_text())
"""What Linux told of a session of pytest, twice, with a lab that sends 160 Mbit/s and a program that computes in one
of its hosts, beside a program of the session that has become a daemon and one that is none of it."""
LAB, HOST, COMPUTES, DAEMON, OTHER = 13352, 13389, 13391, 13346, 13343


def machine(folder: Path, files: dict[str, str]) -> Path:
    """A folder like ``/proc``."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The machine that was recorded: a sleep brings it from the first time to the second."""
    monkeypatch.setattr(quiet_machine.os, "getpid", lambda: RECORDED["session"])
    monkeypatch.setattr(quiet_machine.os, "sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setattr(quiet_machine.time, "sleep", lambda seconds: machine(tmp_path, RECORDED["after"]))
    monkeypatch.setenv(MARK, RECORDED["mark"])
    return machine(tmp_path, RECORDED["before"])


def test_a_look_reads_what_others_left_and_what_the_host_took(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine(tmp_path, {"stat": "cpu 100 0 100 700 100 0 0 0 0 0\ncpu0 1 2 3\n"})
    # Of 100 ticks 40 were idle, 10 waited for disks, 5 were stolen.
    after = {"stat": "cpu 135 0 110 740 110 0 0 5 0 0\ncpu0 1 2 3\n"}
    monkeypatch.setattr(quiet_machine.time, "sleep", lambda seconds: machine(tmp_path, after))
    monkeypatch.setattr(quiet_machine.os, "sched_getaffinity", lambda process: {0, 1})
    seen = look(tmp_path)
    assert (seen.free, seen.stolen) == (pytest.approx(1.0), pytest.approx(0.05))


def test_processes_of_the_session_are_its_descendants_and_those_with_its_mark(recorded: Path) -> None:
    own = own_processes(recorded)
    assert {RECORDED["session"], LAB, HOST, COMPUTES, DAEMON} < set(own)
    assert OTHER not in own and len(own) == 6
    # The host's first process has cleared its environment: its parents tell.
    (recorded / str(HOST) / "environ").write_text("")
    assert own_processes(recorded) == own
    # The daemon's parent is the machine's first process: the mark tells.
    (recorded / str(DAEMON) / "environ").write_text(f"{MARK}=another\0")
    assert set(own) - set(own_processes(recorded)) == {DAEMON}


def test_what_the_session_uses_is_left_to_its_test(recorded: Path) -> None:
    # 186 ticks of two processors passed and none was idle. The session used 174 of them, 163 of these in its lab.
    assert look(recorded).free == pytest.approx(2 * 174 / 186)


def test_a_process_of_the_session_that_ends_meanwhile_takes_nothing_from_it(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def the_program_ends(seconds: float) -> None:
        machine(recorded, RECORDED["after"])
        shutil.rmtree(recorded / str(COMPUTES))
        # Its parent has waited for it: 204 ticks are in the parent's times of children.
        fields = RECORDED["after"][f"{HOST}/stat"].split(" ")
        assert fields[15:17] == ["0", "0"]
        (recorded / str(HOST) / "stat").write_text(" ".join([*fields[:15], "150", "54", *fields[17:]]))

    monkeypatch.setattr(quiet_machine.time, "sleep", the_program_ends)
    assert look(recorded).free == pytest.approx(2 * 174 / 186)


def test_what_tests_start_is_marked_as_of_their_session() -> None:
    with subprocess.Popen(["sh", "-c", "exec sleep 60"], start_new_session=True) as one:
        try:
            assert one.pid in own_processes()
            environment = Path(f"/proc/{one.pid}/environ").read_bytes().split(b"\0")
            assert f"{MARK}={os.environ[MARK]}".encode() in environment
        finally:
            one.kill()


def test_it_looks_again_until_the_machine_is_quiet_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Look] = []

    def seen(proc: Path) -> Look:
        looks.append(Look(2.0 if len(looks) == 3 else 0.5, 0.0, 0.0))
        return looks[-1]

    monkeypatch.setattr(quiet_machine, "look", seen)
    assert too_busy(1.5) is None and len(looks) == 4
    assert too_busy(2.5) is not None and len(looks) == 19
