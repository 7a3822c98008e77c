"""What a study says of the guest in which its programs run: memory, date and patience reach runs and their record."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from kernels_here import needs_a_kernel
from twinnet.cli import run as command_line
from twinnet.study.machine import processors_apart
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study

needs_iperf = pytest.mark.skipif(shutil.which("iperf") is None, reason="iperf not installed")
STUDY = """\
study: guests
title: Programs of another day
question: Do programs get what their study says?
clock: virtual
repetitions: 1
settle: 100 ms
drain: 100 ms
parameters:
  tools: {default: programs, one_of: [programs, apps]}
GUEST
network:
  hosts: {h1: , h2: }
  links: [{between: [h1, h2], rate: 10 Mbit}]
traffic:
  - {name: bulk, app: tcp, using: "${tools}", from: [h1], to: h2, port: 5002, duration: 1 s}
measurements:
  throughput: {of: throughput, interval: 500 ms}
"""
GIVEN = "guest: {memory: 1 GiB, date: 2026-11-28 16:30, patience: 20 s}"


def written(folder: Path, guest: str) -> Path:
    path = folder / "guests.yaml"
    path.write_text(STUDY.replace("GUEST", guest))
    return path


def planned(folder: Path, guest: str, **settings: str) -> str:
    (run,) = plan_study(load_study(written(folder, guest), settings))
    return run.id


@needs_a_kernel
@needs_iperf
def test_what_a_study_says_of_its_guest_is_what_runs_have_and_is_recorded(tmp_path: Path) -> None:
    assert command_line(["run", str(written(tmp_path, GIVEN)), "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("guests/*/run.json")
    lab = json.loads(path.read_text())["notes"]["lab"]
    assert lab["guest"] == {"memory_bytes": 1 << 30, "begins_s": 1_795_883_400, "patience_s": 20.0}
    assert isinstance(lab["processor"], list)
    report = (tmp_path / "guests" / "report" / "report.html").read_text()
    assert "Their clock begins at 2026-11-28 16:30:00 UTC. All of them have 1.073741824 GB of memory." in report


def test_a_run_is_another_with_another_memory_or_date_and_the_same_with_more_patience(tmp_path: Path) -> None:
    usual = planned(tmp_path, "")
    assert planned(tmp_path, "guest: {patience: 60 s}") == usual
    assert planned(tmp_path, "guest: {memory: 512 MiB, date: 2026-01-01}") == usual
    assert (
        len({usual, planned(tmp_path, "guest: {memory: 1 GiB}"), planned(tmp_path, "guest: {date: 2026-02-01}")}) == 3
    )
    assert planned(tmp_path, "", **{"guest.memory": "1 GiB"}) == planned(tmp_path, "guest: {memory: 1 GiB}")
    # Without programs, or on the wall clock, there is no guest.
    for other in ({"tools": "apps"}, {"clock": "wall"}):
        assert planned(tmp_path, GIVEN, **other) == planned(tmp_path, "", **other)
    assert planned(tmp_path, GIVEN, **{"guest.date": "2026-12-01"}) != planned(tmp_path, GIVEN)


@pytest.mark.parametrize(
    ("guest", "said"),
    [
        ("guest: {memory: 1 MiB}", "memory '1 MiB' is out of range"),
        ("guest: {memory: 1024}", "has no unit"),
        ("guest: {date: tomorrow}", "the date 'tomorrow' is none"),
        ("guest: {date: 1969-01-01}", "is out of range"),
        ("guest: {patience: -1 s}", "is negative"),
        ("guest: {memroy: 1 GiB}", "memory"),
        ("guest: much", "guest"),
    ],
)
def test_what_a_guest_cannot_have_is_refused_with_its_place(
    guest: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line(["run", str(written(tmp_path, guest)), "--dry-run"]) != 0
    told = capsys.readouterr().err
    assert said in told and "guests.yaml:10" in told


def notes(*instructions: str) -> dict[str, Any]:
    return {"lab": {"processor": list(instructions)}}


def test_traces_that_differ_are_told_with_what_the_processors_have_apart() -> None:
    assert processors_apart(notes("aes", "avx2"), notes("aes")) == (
        "; only one of the two processors has avx2, and programs may look for that"
    )
    assert processors_apart(notes("aes"), notes("aes")) == ""
    # Runs of earlier versions, and of model hosts, do not know it.
    assert processors_apart({}, notes("aes")) == processors_apart({"lab": {}}, notes("aes")) == ""
