"""`twinnet tour` shows what there is by commands that run here, and leaves labs out where they are not permitted."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import Any

import pytest
from labs_here import can_run_labs
from twinnet.cli import run as command_line
from twinnet.cli import tour_command
from twinnet.cli.registry import COMMANDS
from twinnet.cli.tour_command import STOPS, pasteable


@pytest.mark.long
@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
def test_every_stop_of_the_tour_succeeds_on_this_machine(capfd: pytest.CaptureFixture[str]) -> None:
    assert command_line(["tour", "--no-wait"]) == 0
    told, said_by_mn = capfd.readouterr()
    assert all(f"{number}/{len(STOPS)} " in told for number, _ in enumerate(STOPS, 1))
    # As Mininet does, `mn` writes what it does to standard error.
    assert "*** Results: 0% dropped (2/2 received)" in told
    assert "*** Results: 0% dropped (12/12 received)" in said_by_mn
    assert told.count("rtt min/avg/max/mdev") == 3
    assert "left out" not in told


def test_commands_are_shown_in_lines_that_a_shell_joins() -> None:
    for stop in STOPS:
        shown = pasteable(f"twinnet {stop.command}", 80)
        assert max(map(len, shown.splitlines())) <= 80
        assert shlex.split(shown.replace("\\\n", "")) == ["twinnet", *shlex.split(stop.command)]


def test_stops_that_need_labs_are_left_out_where_there_are_none_and_a_failure_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[list[str]] = []

    def run(command: list[str], **_settings: Any) -> subprocess.CompletedProcess[bytes]:
        started.append(command)
        return subprocess.CompletedProcess(command, 1 if "studies" in command else 0)

    monkeypatch.setattr(tour_command, "labs_run", lambda: False)
    monkeypatch.setattr(tour_command.subprocess, "run", run)
    assert command_line(["tour"]) == 1
    told = capsys.readouterr().out
    assert len(started) == sum(not stop.needs_labs for stop in STOPS)
    assert told.count("left out: this machine permits no labs") == sum(stop.needs_labs for stop in STOPS)
    assert command_line(["tour", "--json"]) == 1
    stops = json.loads(capsys.readouterr().out)["stops"]
    assert [one["command"] for one in stops] == [stop.command for stop in STOPS]
    assert [one["status"] for one in stops] == [
        None if stop.needs_labs else int("studies" in stop.command) for stop in STOPS
    ]


def test_every_stop_is_a_command_that_there_is() -> None:
    assert {shlex.split(stop.command)[0] for stop in STOPS} <= set(COMMANDS)
