"""``tools/gate.py``: what decides, what is made again, and what is told at the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
    """Run `make test` where these tests fail, and what runs them alone is `alone`."""
    result = json.dumps({"failed": failed, "wrongly_skipped": wrongly or {}})
    (folder / "Makefile").write_text(f"test:\n\t@echo '{result}' > $$TWINNET_TEST_RESULT\n\t@exit 1\n")
    (folder / "python").write_text(f'#!/bin/sh\necho "$@" >> {folder}/alone\n{alone}\n')
    (folder / "python").chmod(0o755)
    made = Gate()
    made.test()
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
    done = made.make(shell("slow", "sleep 60 & echo $! > child; wait", limit_s=0.5))
    assert (done.status, done.failed) == (124, True)
    assert "ended after 0 s" in done.step.log.read_text() or "ended after 1 s" in done.step.log.read_text()
    child = (folder / "child").read_text().strip()
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


def test_a_test_that_passes_alone_twice_is_unsteady_and_named(folder: Path) -> None:
    made = run_of(folder, {"tests/a.py::test_b[c d]": "E   assert 1 == 2"}, "exit 0")
    assert made.failed() == []
    assert (folder / "alone").read_text() == "-m pytest -q --tb=short tests/a.py::test_b[c d]\n" * 2
    assert [one.word for one in made.done] == ["passed, 1 unsteady", "passed", "passed"]
    assert "unsteady" in made.failures() and "test_b[c d]\nE   assert 1 == 2" in made.failures()


def test_a_test_that_fails_alone_once_of_two_times_fails_the_gate(folder: Path) -> None:
    made = run_of(folder, {"tests/a.py::test_b": "wrong"}, f'test "$(wc -l < {folder}/alone)" = 1')
    assert [one.step.name for one in made.failed()] == ["test", "test alone"]
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


def test_the_continuous_integration_is_the_gate_and_it_makes_check_and_test() -> None:
    root = Path(gate.__file__).parents[1]
    assert (root / ".ci" / "run").read_text().rstrip().endswith("exec python3 -u tools/gate.py")
    source = Path(gate.__file__).read_text()
    order = ["install_peers.sh", "lint-python", "lint-rust", "guest_kernel.py", "means.py", "--least", "gate.test()"]
    places = [source.index(one, source.index("def main")) for one in order]
    assert places == sorted(places)
    make = (root / "Makefile").read_text()
    assert "\ncheck: lint test\n" in make and "\nlint: lint-rust lint-python\n" in make
    assert "\ntest: test-rust test-python\n" in make
