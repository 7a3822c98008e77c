"""The Makefile in a fresh clone: every target can be made, and what is missing is said in one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TARGETS = [
    "help",
    "demo",
    "test",
    "test-alone",
    "test-wall",
    "test-long",
    "test-all",
    "test-record",
    "check",
    "lint",
    "format",
    "bench",
    "docs",
    "wheel",
    "sdist",
    "conformance-wheel",
    "kernel-wheel",
    "clean",
]
# What the prerequisites' script and make themselves need.
TOOLS = ["sh", "sed", "make", "find", "touch", "test", "echo", "cargo", "cc", "python3"]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What a fresh clone holds, and nothing that a build has left."""
    if shutil.which("git") is None or shutil.which("make") is None:
        pytest.skip("git and make are needed")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("these sources are no clone")
    folder = tmp_path / "clone"
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


class Machine:
    """A machine that has the given tools only; those with a text are scripts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for tool in TOOLS:
            found = sys.executable if tool == "python3" else shutil.which(tool)
            if found is not None:
                (folder / tool).symlink_to(found)

    def lacks(self, tool: str) -> None:
        (self.folder / tool).unlink()

    def has(self, tool: str, script: str) -> None:
        (self.folder / tool).unlink(missing_ok=True)
        (self.folder / tool).write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / tool).chmod(0o755)

    def run(self, *arguments: str, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
        home = {name: os.environ[name] for name in ("HOME", "CARGO_HOME", "RUSTUP_HOME") if name in os.environ}
        environment = {"PATH": str(self.folder), **home, **variables}
        return subprocess.run(
            arguments, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if any(shutil.which(tool) is None for tool in TOOLS):
        pytest.skip("this machine itself lacks what a build needs")
    return Machine(tmp_path / "bin")


def missing(machine: Machine, **variables: str) -> str:
    """The one line in which the script tells what is missing."""
    done = machine.run("sh", "tools/prerequisites.sh", **variables)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    (line,) = done.stderr.splitlines()
    return line


def test_a_machine_that_has_everything_is_told_nothing(machine: Machine) -> None:
    done = machine.run("sh", "tools/prerequisites.sh")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_each_missing_tool_is_one_line_with_the_remedy(machine: Machine) -> None:
    machine.lacks("cc")
    assert missing(machine).startswith("twinnet needs a C compiler: install gcc or clang")
    machine.has("cc", "exit 0")
    machine.lacks("cargo")
    assert missing(machine).startswith("twinnet needs Rust 1.85 or later: install it")
    machine.has("cargo", "echo 'cargo 1.63.0 (fd9c4297c 2022-07-01)'")
    assert missing(machine).startswith("twinnet needs Rust 1.85 or later, this is 1.63: update it")
    machine.has("cargo", "echo 'cargo 1.85.0'")
    machine.lacks("python3")
    assert missing(machine).startswith("twinnet needs Python 3.11 or later: install python3")
    assert "rustup" not in missing(machine, PYTHON="python3.99")


def test_a_cargo_that_cannot_run_is_told_too(machine: Machine) -> None:
    # What rustup leaves when no toolchain is chosen.
    machine.has("cargo", "echo 'error: no default toolchain is configured' >&2; exit 1")
    assert missing(machine).startswith("twinnet needs Rust 1.85 or later")


def test_an_old_python_is_told_with_its_version(machine: Machine) -> None:
    machine.has("python3", 'case "$1" in --version) echo "Python 3.9.2";; *) exit 1;; esac')
    line = missing(machine)
    assert line.startswith("twinnet needs Python 3.11 or later, this is Python 3.9.2")
    assert "PYTHON=" in line


def test_a_python_without_venv_is_told(machine: Machine) -> None:
    machine.has("python3", 'case "$2" in *venv*) exit 1;; *) exit 0;; esac')
    assert missing(machine).startswith("twinnet needs Python's venv module")


def test_make_stops_at_what_is_missing_before_it_makes_anything(machine: Machine, clone: Path) -> None:
    before = sorted(path.name for path in clone.iterdir())
    machine.lacks("cargo")
    for target in ("demo", "test", "check"):
        done = machine.run("make", target, cwd=clone)
        assert done.returncode == 2
        told = [line for line in done.stderr.splitlines() if not line.startswith("make")]
        assert told == ["twinnet needs Rust 1.85 or later: install it from your distribution or with rustup"]
    assert sorted(path.name for path in clone.iterdir()) == before


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_can_be_planned_in_a_fresh_clone(clone: Path, target: str) -> None:
    done = subprocess.run(["make", "-n", target], cwd=clone, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert done.stderr == ""


def test_the_help_names_every_target_that_users_need() -> None:
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
    assert all(
        f"make {target} " in told
        for target in ("demo", "test", "check", "bench", "validate", "docs", "wheel", "sdist", "kernel-wheel")
    )
