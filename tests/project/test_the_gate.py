"""``tools/gate.py``: what decides, what is made again, and what is told at the end."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tools import gate
from tools.gate import Gate, Step, failures_of_cargo


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, whose tests are a line of the test."""
    monkeypatch.setattr(gate, "ROOT", tmp_path)
    monkeypatch.setattr(gate, "FOLDER", tmp_path / "gate")
    monkeypatch.setattr(gate, "PYTHON", tmp_path / "python")
    return tmp_path


def shell(name: str, script: str, **more: object) -> Step:
    """A step that is a line of shell."""
    return Step(name, ("sh", "-c", script), **more)  # type: ignore[arg-type]


def run_of(folder: Path, failed: dict[str, str], alone: str, wrongly: dict[str, str] | None = None) -> Gate:
    """Run `make test-python` where these tests fail, and what runs them alone is `alone`."""
    result = json.dumps({"failed": failed, "wrongly_skipped": wrongly or {}})
    (folder / "Makefile").write_text(f"test-python:\n\t@echo '{result}' > $$TWINNET_TEST_RESULT\n\t@exit 1\n")
    (folder / "python").write_text(f'#!/bin/sh\necho "$@" >> {folder}/alone\n{alone}\n')
    (folder / "python").chmod(0o755)
    made = Gate()
    made.test("test", "test-python")
    return made


def test_what_follows_a_step_that_failed_is_not_begun_and_other_lanes_go_on(folder: Path) -> None:
    made = Gate()
    made.side_by_side(
        (shell("build", "echo no compiler; exit 2"), shell("lint", "touch begun")),
        (shell("format", "exit 0"), shell("rust", "echo fine")),
    )
    assert {one.step.name: one.word for one in made.done} == {
        "build": "FAILED (2)",
        "lint": "not begun",
        "format": "passed",
        "rust": "passed",
    }
    assert not (folder / "begun").exists()
    assert [one.step.name for one in made.failed()] == ["build"]
    assert made.failures() == f"-- build, the last lines of {folder}/gate/build.log\nno compiler"
    assert [line.split()[0] for line in made.table().splitlines()] == ["step", *(o.step.name for o in _begun(made))]


def test_a_lane_may_go_on_in_several_which_are_not_begun_after_a_failure(folder: Path) -> None:
    made = Gate()
    made.side_by_side(
        (shell("one", "exit 0"), ((shell("two", "exit 1"), shell("three", "exit 0")), (shell("four", "exit 0"),))),
        (shell("five", "exit 1"), ((shell("six", "exit 0"), ((shell("seven", "exit 0"),),)), (shell("eight", ":"),))),
    )
    assert {one.step.name: one.word for one in made.done} == {
        **dict.fromkeys(("one", "four"), "passed"),
        **dict.fromkeys(("two", "five"), "FAILED (1)"),
        **dict.fromkeys(("three", "six", "seven", "eight"), "not begun"),
    }


def _begun(made: Gate) -> list[gate.Done]:
    return sorted(made.done, key=lambda one: one.began_s)


def test_it_goes_on_without_what_cannot_be_had_but_not_without_what_fails(folder: Path) -> None:
    made = Gate()
    for status in (0, 3, 1):
        made.make(shell(f"kernel {status}", f"exit {status}", goes_without=frozenset((3,))))
    assert [one.word for one in made.done] == ["passed", "not to be had here", "FAILED (1)"]
    assert len(made.failed()) == 1


def test_a_step_beyond_its_limit_is_ended_with_all_that_it_began(folder: Path) -> None:
    made = Gate()
    done = made.make(shell("slow", "sleep 60 & echo $! > child; wait", limit_s=2))
    assert (done.status, done.failed) == (124, True)
    assert re.search(r"ended after \d s", done.step.log.read_text())
    child = (folder / "child").read_text().strip()
    # A signal was sent; the kernel ends who it is for a moment later.
    until_s = time.monotonic() + 10
    while (alive := _is_alive(child)) and time.monotonic() < until_s:
        time.sleep(0.01)
    assert not alive


def _is_alive(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_a_test_that_passes_alone_twice_is_unsteady_and_named(folder: Path) -> None:
    made = run_of(folder, {"tests/a.py::test_b[c d]": "E   assert 1 == 2"}, "exit 0")
    assert made.failed() == []
    assert (folder / "alone").read_text() == "-m pytest -q --tb=short tests/a.py::test_b[c d]\n" * 2
    assert [one.word for one in made.done] == ["passed, 1 unsteady", "passed", "passed"]
    assert "unsteady" in made.failures() and "test_b[c d]\nE   assert 1 == 2" in made.failures()


def test_a_test_that_fails_alone_once_of_two_times_fails_the_gate(folder: Path) -> None:
    made = run_of(folder, {"tests/a.py::test_b": "wrong"}, f'test "$(wc -l < {folder}/alone)" = 1')
    assert [one.step.name for one in made.failed()] == ["test", "test again"]
    assert "-- tests/a.py::test_b\nwrong" in made.failures()


@pytest.mark.parametrize(
    ("failed", "wrongly"),
    [
        ({f"tests/a.py::test_{n}": "wrong" for n in range(4)}, {}),
        ({"tests/a.py::test_b": "wrong"}, {"tests/a.py::test_c": "this machine has ping"}),
        ({}, {"tests/a.py::test_c": "this machine has ping"}),
    ],
)
def test_many_failures_and_wrong_skips_are_never_laid_to_chance(
    folder: Path, failed: dict[str, str], wrongly: dict[str, str]
) -> None:
    made = run_of(folder, failed, "exit 0", wrongly)
    assert [one.step.name for one in made.failed()] == ["test"]
    assert not (folder / "alone").exists()
    assert all(name in made.failures() for name in (*failed, *wrongly))


CARGO = """running 2 tests
..F
failures:

---- codel::tests::drops stdout ----

thread 'codel::tests::drops' panicked at crates/queue/src/codel.rs:9:5:
assertion `left == right` failed

---- red::tests::marks stdout ----
no mark

failures:
    codel::tests::drops
    red::tests::marks
"""


def test_rusts_failures_are_told_by_name() -> None:
    found = failures_of_cargo(CARGO)
    assert list(found) == ["codel::tests::drops", "red::tests::marks"]
    assert "panicked at crates/queue/src/codel.rs:9:5" in found["codel::tests::drops"]
    assert found["red::tests::marks"] == "no mark"
    assert list(failures_of_cargo("error: could not compile `twinnet-queue` (lib)")) == ["Rust's tests do not compile"]


RECORDER = """#!/bin/sh
echo "$(basename "$0") $*|$TWINNET_LACKS|$TWINNET_FAUCET" >> "{folder}/made"
case "$(basename "$0") $*" in
    *"python tests/support/means.py") echo frr,vlc ;;
    "make .venv/.built") touch .venv/.built ;;
esac
grep -qxF "$(basename "$0") $*" "{folder}/fails" && exit "$(cat "{folder}/status")"
exit 0
"""
"""In the place of each program that the gate runs: it writes down how it was called."""
FIRST = "install_peers.sh "
THEORY = "make --no-print-directory validate-check"
PREPARED = ["install_faucet.sh ", "make .venv/.built", "make lint-python", "make lint-rust", "make test-build", THEORY]
KERNEL = "nice -n 10 python3 tools/guest_kernel.py"
DECIDES = [
    "python tests/support/means.py --least",
    "make --no-print-directory --keep-going test-rust test-python",
    "make --no-print-directory --keep-going test-alone",
]
AFTERWARDS = ["make --no-print-directory test-wall", "make --no-print-directory test-long"]


@pytest.fixture
def made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, list[str]]]:
    """Runs the gate where all programs are recorders; gives its exit status and how they were called."""
    programs = ["bin/make", "bin/nice", "tools/install_peers.sh", "tools/install_faucet.sh", ".venv/bin/python"]
    for name in programs:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(RECORDER.format(folder=folder))
        (folder / name).chmod(0o755)
    (folder / "target/faucet/bin").mkdir(parents=True)
    (folder / "target/faucet/bin/faucet").touch()
    monkeypatch.setattr(gate, "PYTHON", folder / ".venv/bin/python")
    monkeypatch.setattr(gate, "FAUCET", folder / "target/faucet/bin/faucet")
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
    for name in (*gate.QUICKER_BUILD, "TWINNET_FAUCET", "PYTHONPATH", "TWINNET_LACKS", "PYTEST_ADDOPTS"):
        # What it sets goes when the test ends.
        monkeypatch.setenv(name, "")

    def run(fails: str = "", status: int = 1) -> tuple[int, list[str]]:
        (folder / "fails").write_text(f"{fails}\n")
        (folder / "status").write_text(str(status))
        return gate.main(), (folder / "made").read_text().splitlines()

    return run


def commands(lines: list[str]) -> list[str]:
    return [line.partition("|")[0] for line in lines]


def test_the_gate_makes_each_of_its_steps_once_and_in_order(
    made: Callable[..., tuple[int, list[str]]], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = made()
    ran = commands(lines)
    assert status == 0, capsys.readouterr().out
    assert ran[0] == FIRST and sorted(ran[1:8]) == sorted([*PREPARED, KERNEL])
    assert min(ran.index("make lint-python"), ran.index(THEORY)) > ran.index("make .venv/.built")
    assert ran.index("make test-build") > ran.index("make lint-rust")
    assert ran[8:] == ["python tests/support/means.py", *DECIDES, *AFTERWARDS]
    # The tests know what the machine lacks, and where Faucet is.
    assert {line.partition("|")[2] for line in lines[9:]} == {f"frr,vlc|{folder}/target/faucet/bin/faucet"}


@pytest.mark.parametrize("step", [*PREPARED, *DECIDES])
def test_each_step_that_decides_closes_the_gate(
    made: Callable[..., tuple[int, list[str]]], step: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = made(step)
    assert status == 1
    assert step in commands(lines) and not set(AFTERWARDS) & set(commands(lines))
    assert "the gate is closed" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    ("step", "status"), [(FIRST, 1), (KERNEL, 3), ("install_faucet.sh ", 3), *((one, 1) for one in AFTERWARDS)]
)
def test_the_gate_goes_on_without_what_does_not_decide(
    made: Callable[..., tuple[int, list[str]]], step: str, status: int
) -> None:
    ended, lines = made(step, status)
    assert ended == 0
    assert commands(lines)[-2:] == AFTERWARDS


def test_the_continuous_integration_is_the_gate_which_makes_what_make_test_and_make_check_make() -> None:
    root = Path(gate.__file__).parents[1]
    assert (root / ".ci" / "run").read_text().rstrip().endswith("exec python3 -u tools/gate.py")

    def recipe(*targets: str) -> list[str]:
        command = ["make", "--dry-run", "--no-print-directory", "-o", ".venv/.built", *targets]
        told = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=True).stdout
        return told.splitlines()

    parts = ["test-rust", "test-python", "test-alone"]
    assert DECIDES[1].split()[3:] + DECIDES[2].split()[3:] == parts
    assert recipe("test") == recipe(*parts)
    assert recipe("check") == recipe("lint-rust", "lint-python", *parts)
    # Properties have the same cases each time, and new ones at a door of their own.
    assert [line.split()[0] for line in recipe("test-rust") if "cargo test" in line] == ["PROPTEST_RNG_SEED=1"]
    assert settings.get_current_profile_name() in ("same", "new") and settings.get_profile("same").derandomize
    assert not any("PROPTEST_RNG_SEED" in line for line in recipe("test-cases"))
    assert any("--hypothesis-profile=new" in line for line in recipe("test-cases"))
    # Whatever its marks are, each test is behind one door.
    doors = [*parts[1:], "test-wall", "test-long"]
    chosen = {door: re.findall(r'pytest .*-m (?:"([^"]+)"|(\w+)) tests', "\n".join(recipe(door))) for door in doors}
    assert [len(one) for one in chosen.values()] == [1] * 4
    for marks in itertools.product((True, False), repeat=3):
        named = dict(zip(("wall", "long", "alone"), marks, strict=True))
        behind = [door for door, [words] in chosen.items() if eval("".join(words), dict(named))]
        after = "test-wall" if named["wall"] else "test-long" if named["long"] else ""
        assert behind == [after or ("test-alone" if named["alone"] else "test-python")], named
