"""The check that a record is not older than what it measures by too many commits."""

from __future__ import annotations

import importlib
import os
import re
import runpy
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.__main__ import PARTS

ROOT = Path(__file__).resolve().parents[2]
CHECK = runpy.run_path(str(ROOT / "tools/check_record_age.py"))
MEASURES = {"speed": ["engine"]}


@dataclass
class Part:
    commit: str
    begin: str = "2026-01-01 00:00"


def faults(folder: Path, parts: dict[str, Part], measures: dict[str, list[str]], most: int = 300) -> list[str]:
    return CHECK["faults"](CHECK["ages"](folder, parts, measures), most)


def git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    command = ["git", *identity, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def commit(folder: Path, file: str, times: int = 1) -> str:
    for number in range(times):
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{path.read_text() if path.exists() else ''}{number}\n")
        git(folder, "add", ".")
        git(folder, "commit", "-m", "a change")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    commit(folder, "engine/run")
    return folder


def test_a_part_is_too_old_by_the_commits_up_to_the_newest_change_of_what_it_measures(repository: Path) -> None:
    measured = {"speed": Part(git(repository, "rev-parse", "--short", "HEAD") + "+")}
    commit(repository, "elsewhere", 5)
    # Nothing of what it measures has changed, however long ago it was.
    assert faults(repository, measured, MEASURES, 2) == []
    commit(repository, "engine/run")
    assert faults(repository, measured, MEASURES, 6) == []
    (told,) = faults(repository, measured, MEASURES, 5)
    assert "6 commits before the newest change" in told


def test_a_part_that_was_never_measured_and_one_of_no_file_are_told(repository: Path) -> None:
    assert faults(repository, {}, MEASURES) == ["speed: not measured"]
    here = {"speed": Part(git(repository, "rev-parse", "HEAD"))}
    assert faults(repository, here, {"speed": ["motor"]}) == ["speed: git knows no change of motor"]


def test_a_commit_that_was_rebased_away_is_placed_by_its_date(repository: Path) -> None:
    gone = {"speed": Part("deadbeef", "2020-01-01 00:00")}
    commit(repository, "engine/run", 2)
    assert faults(repository, gone, MEASURES, 3) == []
    assert "3 commits before" in faults(repository, gone, MEASURES, 2)[0]
    later = {"speed": Part("deadbeef", "2090-01-01 00:00")}
    assert faults(repository, later, MEASURES, 0) == []


def test_a_shallow_clone_that_ends_before_the_measurement_fails_with_the_remedy(repository: Path) -> None:
    measured = {"speed": Part(git(repository, "rev-parse", "HEAD"))}
    commit(repository, "engine/run", 3)
    shallow = repository.parent / "shallow"
    git(repository.parent, "clone", "--quiet", "--depth", "1", f"file://{repository}", str(shallow))
    (told,) = faults(shallow, measured, MEASURES)
    assert "git fetch --unshallow" in told
    git(shallow, "fetch", "--quiet", "--unshallow")
    assert faults(shallow, measured, MEASURES) == []


@pytest.mark.parametrize("name", PARTS)
def test_every_part_says_which_files_it_measures_and_they_are_there(name: str) -> None:
    measures = importlib.import_module(f"bench.{name}").MEASURES
    assert f"bench/{name}.py" in measures
    assert [path for path in measures if not (ROOT / path).exists()] == []


def test_a_source_without_history_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert faults(tmp_path, {"speed": Part("4f502c46")}, MEASURES) == [
        "speed: unknown: git has no history of these sources"
    ]


def test_the_built_page_of_performance_has_the_ages_which_the_file_has_not(repository: Path) -> None:
    measured = {"speed": Part(git(repository, "rev-parse", "--short", "HEAD"))}
    commit(repository, "engine/run", 3)
    ages = CHECK["ages"](repository, measured, {"speed": ["engine"], "size": ["engine"]})
    rows = CHECK["table"](ages).splitlines()[2:]
    assert rows == [f"| `speed` | {measured['speed'].commit} | 3 |", "| `size` |  | not measured |"]
    page = (ROOT / "docs/explanation/performance.md").read_text(encoding="utf-8")
    told = [page]
    runpy.run_path(str(ROOT / "docs/conf.py"))["commits_behind"](None, "explanation/performance", told)
    assert "<!-- commits behind -->" in page and "| commits behind |" not in page
    assert told[0].count("| part | measured at | commits behind |") == 1
    assert all(
        re.search(rf"^\| `{name}` \| \w+\+? \| (\d+|unknown.*|this clone is.*) \|$", told[0], re.M) for name in PARTS
    )
