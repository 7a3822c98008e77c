"""A pack that was changed before it was packed: what its check finds, and what it says that it cannot find."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from forged_packs import PLAIN, contents, repacked, whole_forgery, written
from labs_here import needs_a_lab
from twinnet.cli import run as command_line
from twinnet.report.pack_check import CheckedPack, check_pack, missed
from twinnet.study.execute import LabExecutor


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forged")
    (folder / "study.yaml").write_text(PLAIN)
    assert command_line(["run", str(folder / "study.yaml"), "--out", str(folder / "out"), "--no-report"]) == 0
    return folder / "out" / "forged"


@pytest.fixture(scope="module")
def pack(results: Path) -> Path:
    path = results.parent / "honest.zip"
    assert command_line(["pack", str(results), "--out", str(path)]) == 0
    return path


@pytest.fixture
def checked(tmp_path: Path) -> Callable[..., CheckedPack]:
    numbers = itertools.count()

    def check(pack: Path, sample: int = 0, seed: int | None = None) -> CheckedPack:
        into = tmp_path / f"into{next(numbers)}"
        into.mkdir()
        return check_pack(pack, into, sample, LabExecutor(), seed)

    return check


def runs_of(results: Path) -> list[str]:
    return sorted(path.parent.name for path in results.glob("*/run.json"))


def twice_the_load(name: str, table: pl.DataFrame) -> pl.DataFrame:
    """Twice the bytes of the flow whose packets are not kept, in all tables alike."""
    if name not in ("flows", "intervals"):
        return table
    of_it = pl.col("name") == "load"
    return table.with_columns(pl.when(of_it).then(pl.col("payload_bytes") * 2).otherwise(pl.col("payload_bytes")))


def a_tenth_of_delays(name: str, table: pl.DataFrame) -> pl.DataFrame:
    if name not in ("flows", "intervals"):
        return table
    delays = [column for column in table.columns if column.startswith("delay_") and column.endswith("_ms")]
    return table.with_columns(pl.col(delays) / 10)


def test_what_an_honest_pack_is_told_to_be_depends_on_what_was_made_again(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line(["check", str(pack), "--runs", "0"]) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[-1].startswith("Unchanged since it was packed.") and "It holds" not in told
    assert command_line(["check", str(pack), "--seed", "5"]) == 0
    told = capsys.readouterr().out
    assert "(--seed 5)" in told and "1 changed with 70 %" in told
    assert told.splitlines()[-1].startswith("It holds for the runs that were made again.")
    assert command_line(["check", str(pack), "--runs", "10", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], len(found["made_again"]), found["missed"]) == ("holds", 10, [])


def test_the_sample_is_that_of_the_reviewer(pack: Path, checked: Callable[..., CheckedPack]) -> None:
    drawn = [set(checked(pack, 3, seed).again) for seed in (1, 2, 3, 1)]
    assert drawn[0] == drawn[3] and len({frozenset(one) for one in drawn}) == 3
    assert checked(pack).seed != checked(pack).seed


@pytest.mark.parametrize(("runs", "again", "changed"), [(10, 3, 1), (10, 3, 7), (30, 3, 13), (5, 5, 1), (4, 2, 3)])
def test_the_probability_to_miss_a_forgery_is_that_of_drawing_none(runs: int, again: int, changed: int) -> None:
    draws = list(itertools.combinations(range(runs), again))
    none = sum(min(draw) >= changed for draw in draws)
    assert missed(runs, again, changed) == pytest.approx(none / len(draws))


def test_runs_that_the_first_the_middle_and_the_last_place_leave_out_are_found(
    results: Path, checked: Callable[..., CheckedPack]
) -> None:
    every = runs_of(results)
    forged = [run for place, run in enumerate(every) if place not in (0, 3, 6)]
    pack = whole_forgery(results, forged, twice_the_load)
    # All that a pack has twice agrees, so that only making runs again can tell.
    assert checked(pack).verdict == "unchanged"
    drawn = random.Random(1).sample(every, 3)
    found = checked(pack, 3, 1)
    assert found.verdict == "differs"
    assert sorted(line.split()[0] for line in found.wrong) == sorted({*drawn} & {*forged})
    assert len(checked(pack, 10).wrong) == 7


def test_delays_that_are_not_those_of_the_packets_are_found_without_making_a_run(
    results: Path, checked: Callable[..., CheckedPack]
) -> None:
    (run, *_) = runs_of(results)
    found = checked(whole_forgery(results, [run], a_tenth_of_delays))
    assert found.verdict == "differs"
    assert f"{run} contradicts itself: call from h1: delay_mean_ms is" in found.wrong[0]

    def packets_too(name: str, table: pl.DataFrame) -> pl.DataFrame:
        table = a_tenth_of_delays(name, table)
        return table.with_columns(pl.col("delay_ms") / 10) if name == "packets" else table

    (told, *_) = checked(whole_forgery(results, [run], packets_too)).wrong
    assert "are not the time from when they were sent to when they arrived" in told


@needs_a_lab
def test_on_the_wall_clock_tables_are_compared_and_no_run_is_made_again(
    tmp_path: Path, checked: Callable[..., CheckedPack], capsys: pytest.CaptureFixture[str]
) -> None:
    study = PLAIN.replace("clock: virtual", "clock: wall").replace("repetitions: 10", "repetitions: 2")
    (tmp_path / "study.yaml").write_text(study.replace("duration: 1 s", "duration: 500 ms"))
    assert command_line(["run", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "out"), "--no-report"]) == 0
    results, pack = tmp_path / "out" / "forged", tmp_path / "wall.zip"
    # Whether this machine kept the schedule does not matter here.
    assert command_line(["pack", str(results), "--out", str(pack)]) == 0
    capsys.readouterr()
    assert command_line(["check", str(pack)]) == 0
    told = capsys.readouterr().out
    assert "runs on the wall clock differ each time; none was made again" in told
    assert told.splitlines()[-1].startswith("Unchanged since it was packed.")
    found = checked(whole_forgery(results, runs_of(results), a_tenth_of_delays), 3)
    assert {line.split(":")[0] for line in found.wrong} >= {f"{run} contradicts itself" for run in runs_of(results)}


@pytest.mark.parametrize(
    ("column", "of"),
    [
        ("payload_bytes", "call"),
        ("packets", "call"),
        ("lost_packets", "call"),
        ("delay_max_ms", "load"),
        ("delay_mean_ms", "load"),
        ("delay_p90_ms", "call"),
        ("gap_std_ms", "call"),
        ("jitter_rfc4689_mean_ms", "call"),
        ("delay_count", "call"),
    ],
)
def test_a_column_of_flows_that_is_not_what_finer_tables_give_is_found(
    results: Path, checked: Callable[..., CheckedPack], column: str, of: str
) -> None:
    (run, *_) = runs_of(results)

    def more(name: str, table: pl.DataFrame) -> pl.DataFrame:
        if name != "flows":
            return table
        here = (pl.col("name") == of) & (pl.col("role") == "sink")
        changed = pl.when(here).then((pl.col(column) * 1.03 + 1).cast(table.schema[column])).otherwise(pl.col(column))
        return table.with_columns(changed)

    found = checked(whole_forgery(results, [run], more))
    assert any(column in line for line in found.wrong), found.wrong


def test_a_run_more_or_less_is_told(pack: Path, results: Path, checked: Callable[..., CheckedPack]) -> None:
    first, *_ = runs_of(results)

    def add(files: dict[str, bytes]) -> None:
        files.update({name.replace(first, "another-run"): content for name, content in files.items() if first in name})

    assert checked(repacked(pack, add)).wrong[0] == "it holds what the study does not plan: another-run"

    def remove(files: dict[str, bytes]) -> None:
        for name in [name for name in files if first in name]:
            del files[name]

    assert checked(repacked(pack, remove)).wrong[0] == f"of its 10 runs 1 are missing: {first}"

    def add_a_file(files: dict[str, bytes]) -> None:
        files[f"{first}/more.parquet"] = b""

    assert checked(repacked(pack, add_a_file)).wrong[0] == f"runs have files that belong to none: {first}/more.parquet"


def test_two_runs_that_changed_places_are_told(pack: Path, results: Path, checked: Callable[..., CheckedPack]) -> None:
    first, second, *_ = runs_of(results)

    def swap(only: str) -> Callable[[dict[str, bytes]], None]:
        def change(files: dict[str, bytes]) -> None:
            for name in [name for name in files if name.startswith(first) and only in name]:
                other = name.replace(first, second)
                files[name], files[other] = files[other], files[name]

        return change

    wrong = checked(repacked(pack, swap(""))).wrong
    assert wrong[0] == f"of its 10 runs 2 are missing: {first}, {second}"
    # Tables alone name no run: only making them again tells.
    tables = repacked(pack, swap(".parquet"))
    assert checked(tables).verdict == "unchanged"
    wrong = sorted(checked(tables, 10).wrong)
    assert [line.split(" has another table")[0] for line in wrong] == [f"{first} made again", f"{second} made again"]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("seed", 5, "says that its seed is 5, and the study gives it"),
        ("repetition", 7, "says that its repetition is 7, and the study gives it 1"),
        ("clock", "wall", "says that its clock is 'wall', and the study gives it 'virtual'"),
        ("levels", {"a": "b"}, "says that its levels is {'a': 'b'}, and the study gives it {}"),
    ],
)
def test_a_record_that_is_not_of_its_place_is_told(
    pack: Path, results: Path, checked: Callable[..., CheckedPack], key: str, value: object, said: str
) -> None:
    run = f"{runs_of(results)[0]}/run.json"

    def change(files: dict[str, bytes]) -> None:
        files[run] = json.dumps(json.loads(files[run]) | {key: value}).encode()

    assert any(said in line for line in checked(repacked(pack, change)).wrong)


def test_what_the_manifest_states_is_that_of_the_tables(pack: Path, checked: Callable[..., CheckedPack]) -> None:
    def state(change: Callable[[dict[str, object]], None]) -> list[str]:
        files = contents(pack)
        manifest = json.loads(files["MANIFEST.json"])
        change(manifest["came_to"])
        return checked(written(pack.with_name("stated.zip"), files, json.dumps(manifest).encode())).wrong

    (wrong,) = state(lambda came_to: came_to["means"][0].update(mean=0.5))
    assert wrong == "the means that the pack states are not those of its tables"
    (wrong,) = state(lambda came_to: came_to.update(statements=[]))
    assert wrong.startswith("statement late: the pack says nothing (), its tables come to supported")
    (wrong,) = state(lambda came_to: came_to.update(clock="wall"))
    assert wrong == "clock: the pack says 'wall', its tables come to 'virtual'"


def test_results_of_another_study_are_no_evidence(pack: Path, checked: Callable[..., CheckedPack]) -> None:
    manifest = json.loads(contents(pack)["MANIFEST.json"]) | {"study": "another"}
    other = written(pack.with_name("named.zip"), contents(pack), json.dumps(manifest).encode())
    assert checked(other).wrong == ["its manifest is of the study 'another', its files of 'forged'"]
    shutil.rmtree(pack.parent.parent / "forgery", ignore_errors=True)
