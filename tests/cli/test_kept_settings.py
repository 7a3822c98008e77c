"""What a line at the prompt sets in a host for the lines after it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from labs_here import needs_a_lab
from twinnet.cli.prompt.kept import Kept

TWINNET = [sys.executable, "-c", "from twinnet.cli import main; main()"]


@pytest.mark.parametrize(
    ("command", "sets"),
    [
        ("cd /tmp", True),
        ("cd", True),
        ("export A=5 B", True),
        ("unset A", True),
        ("A=5", True),
        ("A='x; y' B=$(date | tail -c3)", True),
        ("A=5 env", False),
        ("cd /tmp && ls", False),
        ("export A=5 > file", False),
        ("cd /tmp &", False),
        ("cdrecord", False),
        ("echo A=5", False),
        ("cd 'open", False),
    ],
)
def test_lines_that_only_set_something_are_told_from_others(command: str, sets: bool) -> None:
    assert Kept.sets(command) == sets


def test_variables_come_before_a_command_as_they_were_set() -> None:
    kept = Kept("/a b", {"A": ("x'y", True), "B": ("", False), "C": None})
    assert kept.before("ls") == "export A='x'\"'\"'y'; B=''; unset C; ls"
    assert kept.before("ls", with_folder=True).startswith("cd '/a b'; export A=")


@needs_a_lab
def test_folders_and_variables_hold_for_later_lines_of_their_host(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    lines = [
        "h1 cd below",
        "h1 pwd",
        "h2 pwd",
        "h1 cd nowhere",
        "h1 pwd",
        "h1 export A='5 6'",
        "h1 B=$(printf $A | tail -c1)",
        'h1 echo "$A-$B"',
        'h1 sh -c "echo in $A-$B" &',
        "sleep 300 ms",
        "h2 echo ${A-none}",
        "h1 env | grep -c ^B=",
        "h1 unset A",
        "h1 echo ${A-none}",
    ]
    done = subprocess.run(
        [*TWINNET, "lab", "single:2"],
        input="\n".join(lines),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    said = [line for line in done.stdout.splitlines() if not line.startswith("[")]
    below = str(tmp_path / "below")
    assert said == [below, str(tmp_path), below, "5 6-5", "in 5 6-5", "none", "0", "none"], done.stderr
    assert "nowhere" in done.stderr
