"""What the Tab key offers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import twinnet as tn
from labs_here import needs_a_lab

TWINNET = [sys.executable, "-c", "from twinnet.cli import main; main()"]


def offered(line: str, folder: Path) -> list[str]:
    """The words that are offered for the last word of `line`, typed in `folder`."""
    words = line.split(" ")
    variables = {"_TWINNET_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(TWINNET, capture_output=True, text=True, cwd=folder, env=os.environ | variables)
    assert done.stderr == ""
    return [one.partition(",")[2] for one in done.stdout.splitlines() if one]


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("twinnet run tcp", {"tcp-udp-queues"}),
        ("twinnet run my", {"mystudy.yaml"}),
        ("twinnet run tcp-udp-queues --preset de", {"demo"}),
        ("twinnet twin mtu", {"mtu-sweep"}),
        ("twinnet lab fat", {"fat-tree"}),
        ("twinnet graph mtu", {"mtu-sweep"}),
        ("twinnet lab single --queue fq", {"fq_codel"}),
        ("twinnet lab single --controller le", {"learning"}),
        ("twinnet completion z", {"zsh"}),
        ("twinnet run nowhere --preset de", set()),
        ("twinnet exec nolab h", set()),
    ],
)
def test_names_and_files_are_offered(line: str, some: set[str], tmp_path: Path) -> None:
    (tmp_path / "mystudy.yaml").touch()
    (tmp_path / "other.txt").touch()
    assert set(offered(line, tmp_path)) == some


@needs_a_lab
def test_a_running_lab_its_hosts_ports_and_commands_are_offered(tmp_path: Path) -> None:
    with tn.templates.single(2).emulate() as lab:
        assert lab.name in offered("twinnet exec ", tmp_path)
        assert offered(f"twinnet exec {lab.name} ", tmp_path) == ["h1", "h2"]
        assert offered(f"twinnet flows {lab.name} ", tmp_path) == ["s1"]
        assert offered(f"twinnet capture {lab.name} s1-", tmp_path) == ["s1-eth1", "s1-eth2"]
        assert offered(f"twinnet do {lab.name} pinga", tmp_path) == ["pingall", "pingallfull"]


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "complete -o"), ("zsh", "compdef"), ("fish", "complete --no-files")]
)
def test_each_shell_gets_its_script(shell: str, word: str) -> None:
    done = subprocess.run([*TWINNET, "completion", shell], capture_output=True, text=True)
    assert done.returncode == 0
    assert word in done.stdout


def test_a_shell_that_is_not_known_is_told(tmp_path: Path) -> None:
    environment = os.environ | {"SHELL": "/bin/dash"}
    done = subprocess.run([*TWINNET, "completion"], capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert "bash, zsh, fish" in done.stderr
