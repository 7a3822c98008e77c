"""``twinnet run --shard`` and ``twinnet gather`` as a user gives them, on the virtual clock."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from twinnet.cli.group import cli

STUDY = ["tcp-udp-queues", "--clock", "virtual", "--preset", "tiny", "--repeat", "2"]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), standalone_mode=False)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_shards_made_and_gathered_are_the_study(here: Path) -> None:
    for number in (1, 2):
        done = call("run", *STUDY, "--shard", f"{number}/2", "--out", f"m{number}", "--json")
        assert done.return_value == 0, done.stderr
        told = json.loads(done.stdout)
        assert (told["shard"], told["deal"], len(told["runs"]), told["finished"]) == (f"{number}/2", "run", 2, 2)
        assert not (here / f"m{number}" / "tcp-udp-queues" / "report").exists()
    half = call("gather", "m1/tcp-udp-queues")
    assert half.return_value == 1
    assert "2 of 4 runs are finished, made on " in half.stdout
    assert "2 runs missing: " in half.stdout
    whole = call("gather", "m1/tcp-udp-queues", "m2/tcp-udp-queues", "--json")
    assert whole.return_value == 0
    told = json.loads(whole.stdout)
    assert (told["runs"], told["finished"], told["copied"], told["missing"]) == (4, 4, 2, [])
    # What one machine would have made next: nothing.
    again = call("run", *STUDY, "--no-report", "--json")
    assert "nothing to make, 4 finished before and kept" in again.stderr


def test_a_shard_without_runs_says_so_and_is_no_failure(here: Path) -> None:
    done = call("run", *STUDY, "--shard", "9/9", "--deal", "repetition")
    assert done.return_value == 0
    assert "Shard 9/9: 0 of 4 runs" in done.stderr
    assert "with 2 or fewer shards each has runs" in " ".join(done.stderr.split())


def test_a_dry_run_tells_the_shards_runs_alone(here: Path) -> None:
    told = json.loads(call("run", *STUDY, "--shard", "1/2", "--deal", "repetition", "--dry-run", "--json").stdout)
    assert [run["repetition"] for run in told["runs"]] == [1, 1]
    assert (told["shard"], told["deal"], told["runs_of_all_shards"]) == ("1/2", "repetition", 4)
    assert "Shard 1/2: 2 of 4 runs" in call("run", *STUDY, "--shard", "1/2", "--dry-run").stdout


def test_runs_made_twice_are_compared_by_their_trace_hashes(here: Path) -> None:
    for number in (1, 2):
        done = call("run", *STUDY, "--shard", f"{number}/2", "--twice", "2 %", "--out", f"m{number}", "--json")
        told = json.loads(done.stdout)
        assert (told["finished"], len(told["twice"])) == (3, 1)
    whole = call("gather", "m1/tcp-udp-queues", "m2/tcp-udp-queues")
    assert "2 trace hashes compared: the same each time" in whole.stdout
    again = call("run", *STUDY, "--shard", "1/2", "--clock", "wall", "--twice", "2 %")
    assert "a run is never the same again" in str(again.exception)
