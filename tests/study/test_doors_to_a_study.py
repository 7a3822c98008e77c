"""One study by each door that makes its runs: the same runs, the same traces, the same stored study."""

from __future__ import annotations

from pathlib import Path

import pytest
import twinnet as tn
from campaign import STUDY
from twinnet.cli import run as command_line
from twinnet.errors import BadValue
from twinnet.study.campaign import Campaign
from twinnet.study.store import ResultStore

FITTED = """
study: fitted
title: A study with sizes for the wall clock
question: Which size is taken?
parameters:
  rate: {default: 100 Gbit, text: How much is sent}
presets:
  huge: {set: {rate: 100 Gbit}, text: as it is}
  small: {set: {rate: 1 Mbit}, text: a little of it}
wall_presets: [huge, small]
network:
  hosts: {h1: , h2: }
  links:
    - {between: [h1, h2], rate: 400 Gbit}
traffic:
  - {name: load, app: udp, from: [h1], to: h2, port: 5003, rate: "${rate}", duration: 200 ms, payload: 1400 B}
measurements:
  lost: {of: loss}
settle: 100 ms
drain: 100 ms
"""


@pytest.fixture
def study(tmp_path: Path) -> str:
    path = tmp_path / "load.yaml"
    path.write_text(STUDY)
    return str(path)


def traces(folder: Path) -> dict[str, str]:
    runs = {run.id: run for run in ResultStore(folder).all_runs() if run.record["clock"] == "virtual"}
    assert all(run.record["status"] == "finished" for run in runs.values())
    return {name: run.record["trace_hash"] for name, run in runs.items()}


def test_each_door_makes_the_same_runs(study: str, tmp_path: Path) -> None:
    def out(name: str) -> list[str]:
        return ["--out", str(tmp_path / name)]

    virtual = ["--clock", "virtual", "--no-report"]
    assert command_line(["run", study, *virtual, *out("command")]) == 0
    tn.studies.run(study, clock="virtual", out=tmp_path / "python", progress=False)
    for shard in ("1/2", "2/2"):
        assert command_line(["run", study, "--clock", "virtual", "--shard", shard, *out(f"part{shard[0]}")]) == 0
    parts = [str(tmp_path / part / "load") for part in ("part1", "part2")]
    assert command_line(["gather", *parts, *out("gathered")]) == 0
    assert command_line(["twin", study, "--set", "time=100 ms", "--no-report", *out("twin")]) == 0
    assert command_line(["run", study, *virtual, "--set", "time=100 ms", *out("short")]) == 0

    expected = traces(tmp_path / "command" / "load")
    assert len(expected) == 4 and len(set(expected.values())) == 4
    for door in ("python", "gathered"):
        assert traces(tmp_path / door / "load") == expected, door
    assert traces(tmp_path / "twin" / "load") == traces(tmp_path / "short" / "load")
    written = {
        door: [(tmp_path / door / "load" / name).read_text() for name in ("study.yaml", "study.json")]
        for door in ("command", "python", "part1", "gathered")
    }
    assert all(one == written["command"] for one in written.values())
    # What is there is made by no door again.
    before = {run.id: run.record["started"] for run in ResultStore(tmp_path / "command" / "load").all_runs()}
    tn.studies.run(study, clock="virtual", out=tmp_path / "command", progress=False)
    assert {run.id: run.record["started"] for run in ResultStore(tmp_path / "command" / "load").all_runs()} == before


def test_python_fits_a_study_to_this_machine_as_the_command_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fitted.yaml"
    path.write_text(FITTED)
    assert command_line(["run", str(path), "--clock", "wall", "--no-report", "--out", str(tmp_path / "command")]) == 0
    by_command = capsys.readouterr().err
    tn.studies.run(path, clock="wall", out=tmp_path / "python", with_invalid=True)
    by_python = capsys.readouterr().err
    for told in (by_command, by_python):
        assert "the runs need at most: huge" in told and "Trying small by one run" in told
    made = [ResultStore(tmp_path / door / "fitted").read_study().parameters["rate"] for door in ("command", "python")]
    assert made[0] == made[1]


def test_the_campaign_counts_time_by_its_places(study: str, tmp_path: Path) -> None:
    campaign = Campaign.read(study, out=tmp_path, clock="wall", settings={"time": "1 s"}, jobs=2)
    alone = Campaign.read(study, out=tmp_path, clock="wall", settings={"time": "1 s"})
    assert campaign.expected_s() == pytest.approx(alone.expected_s() / 2)
    assert campaign.expected_s(4) == pytest.approx(alone.expected_s() / 4)
    runs, expected_s = campaign.twin_expected_s()
    assert runs == 8 and expected_s > campaign.expected_s()
    for wrong in ({"clock": "real", "jobs": 2}, {"clock": "real", "elsewhere": True}):
        with pytest.raises(BadValue, match="the real clock"):
            Campaign.read(study, out=tmp_path, **wrong)  # pyright: ignore[reportArgumentType]
