"""A study that `twinnet new` writes runs as it is, and `--dry-run` tells what would be run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from twinnet.cli import run as command_line
from twinnet.study.resolution import load_study


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("network", ["dumbbell:2", "single:2", "tree:2", "linear:3", "fat-tree:4"])
def test_a_new_study_is_right_on_every_template(network: str) -> None:
    assert command_line(["new", "mine", "--network", network]) == 0
    assert load_study("mine/study.yaml").specification.study == "mine"


def test_a_new_study_supports_its_statement_and_answers_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["new", "mine"]) == 0
    settings = ["--set", "length=2 s", "--repeat", "2", "--no-report"]
    assert command_line(["run", "mine/study.yaml", "--clock", "virtual", "--yes", *settings]) == 0
    told = capsys.readouterr().out
    assert "Of 1 statement: 1 supported." in told and "With a long queue a ping takes" in told


def test_an_existing_study_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine").mkdir()
    Path("mine/study.yaml").write_text("mine")
    assert command_line(["new", "mine"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert Path("mine/study.yaml").read_text() == "mine"


def test_a_name_that_no_study_may_have_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["new", "My Study"]) == 2
    assert "lower-case letters" in capsys.readouterr().err
    assert not Path("My Study").exists()


def test_a_dry_run_tells_runs_time_and_network_and_makes_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["run", "tcp-udp-queues", "--preset", "demo", "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "4 hosts, 1 switch and 4 links" in told and "TCP congestion control: cubic" in told
    assert "6 runs; about" in told and "Nothing was run." in told
    assert command_line(["run", "tcp-udp-queues", "--preset", "demo", "--dry-run", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 6


@pytest.mark.parametrize("options", [[], ["--json"], ["--clock", "virtual"], ["--shard", "1/2"]])
def test_a_dry_run_writes_nothing(
    options: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Neither here, nor at home, nor where it tries runs: that is gone with it."""
    # matplotlib keeps a list of fonts for itself.
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path_factory.mktemp("fonts")))
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "TMPDIR"):
        Path(name).mkdir()
        monkeypatch.setenv(name, str(Path(name).resolve()))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = sorted(Path().rglob("*"))
    assert command_line(["run", "mtu-sweep", "--preset", "tiny", "--dry-run", *options]) == 0
    assert sorted(Path().rglob("*")) == before
