"""Shards of a study and their joining, with a fluid model in the lab's place."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fluid_lab import FluidLab
from twinnet.errors import BadValue
from twinnet.report.progress import SilentObserver
from twinnet.study.analysis import analyse
from twinnet.study.comparison import compare_results
from twinnet.study.gather import DifferentTraces, gather
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study
from twinnet.study.runner import run_plan
from twinnet.study.shard import Shard, parse_shard, usual_deal
from twinnet.study.store import ResultStore, StoreError


def tiny(**settings):
    return load_study("tcp-udp-queues", {"repetitions": "3", "clock": "virtual", **settings}, preset="tiny")


class TracedLab:
    """A fluid model whose runs tell a trace hash, as those on the virtual clock do."""

    def __init__(self, build="same"):
        self.lab, self.build = FluidLab(), build

    def expected_s(self, run):
        return 0.01

    def __call__(self, run, progress):
        made = self.lab(run, progress)
        told = {**made.fidelity.record, "trace_hash": f"{run.seed:x}-{self.build}", "events": 1}
        return replace(made, fidelity=replace(made.fidelity, record=told))


def make(folder: Path, shard: str = "1/1", deal: str = "run", study=None, lab=None) -> Path:
    """The folder in which the runs of `shard` stand, made now."""
    study = study if study is not None else tiny()
    store = ResultStore(folder / study.name)
    store.write_study(study)
    run_plan(parse_shard(shard).of(plan_study(study), deal), store, lab or TracedLab(), SilentObserver())
    return store.folder


def change_record(folder: Path, change) -> None:
    path = folder / "run.json"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def first_run(folder: Path) -> Path:
    return min(path.parent for path in folder.glob("*/run.json"))


@pytest.mark.parametrize("deal", ["run", "repetition"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 16])
@pytest.mark.parametrize("order", ["listed", "random"])
def test_every_run_of_the_plan_is_in_exactly_one_shard(deal, count, order):
    plan = plan_study(tiny(repetitions="5", order=order))
    dealt = [run.id for number in range(1, count + 1) for run in Shard(number, count).of(plan, deal)]
    assert sorted(dealt) == sorted(run.id for run in plan)


def test_a_shard_takes_every_sixteenth_run_of_the_plan():
    plan = plan_study(tiny(repetitions="20"))
    assert parse_shard("3/16").of(plan, "run") == [plan[2], plan[18], plan[34]]


@pytest.mark.parametrize("order", ["listed", "random"])
def test_by_repetition_all_levels_of_a_repetition_are_in_one_shard(order):
    plan = plan_study(tiny(repetitions="7", order=order))
    for number in (1, 2, 3):
        mine = Shard(number, 3).of(plan, "repetition")
        for repetition in {run.repetition for run in mine}:
            assert {run.levels["queues"] for run in mine if run.repetition == repetition} == {"shared", "separate"}


def test_runs_made_twice_are_the_next_shards_and_spread_over_them():
    plan = plan_study(tiny(repetitions="50"))
    shards = [Shard(number, 4) for number in (1, 2, 3, 4)]
    for shard, following in zip(shards, [*shards[1:], shards[0]], strict=True):
        theirs = following.of(plan, "run")
        again = shard.twice(plan, "run", 0.08)
        assert again == [theirs[0], theirs[12]]
        assert not set(map(id, again)) & set(map(id, shard.of(plan, "run")))
        assert shard.twice(plan, "run", 1.0) == theirs
    assert shards[0].twice(plan, "run", 0.0) == []
    assert Shard(1, 300).twice(plan[:1], "run", 0.02) == []


def test_repetitions_stay_together_on_the_wall_clock_alone():
    assert (usual_deal("wall"), usual_deal("virtual")) == ("repetition", "run")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("0/4", "there is no shard 0 of 4: they count from 1 to 4.*--array=1-4"),
        ("5/4", "there is no shard 5 of 4"),
        ("1/0", "1 to 100000 shards, not 0"),
        ("1/100001", "not 100001"),
        ("a/b", "'a/b' is no shard.*--shard 3/16"),
        ("", "'' is no shard"),
        ("-1/4", "is no shard"),
        ("1/2/3", "is no shard"),
        ("٣/٤", "is no shard"),
        ("9" * 5000 + "/1", "is no shard"),
    ],
)
def test_a_shard_that_cannot_be_is_refused_with_the_form_that_it_has(given, message):
    with pytest.raises(BadValue, match=message):
        parse_shard(given)


def test_gathered_shards_say_what_one_machine_would_have_said(tmp_path):
    alone = make(tmp_path / "alone")
    shards = [make(tmp_path / f"m{number}", f"{number}/3") for number in (1, 2, 3)]
    found = gather(shards, tmp_path / "joined")
    assert (len(found.finished), found.missing, found.failed, found.copied, found.equal) == (6, [], [], 6, 0)
    joined = analyse(found.store)
    compared = compare_results(analyse(ResultStore(alone)), joined).compared
    assert compared and all(one.first.samples == one.second.samples for one in compared)
    for run in joined.stored.values():
        theirs = ResultStore(alone).folder / run.id
        assert (run.folder / "flows.parquet").read_bytes() == (theirs / "flows.parquet").read_bytes()


def test_gathering_again_takes_up_what_was_made_since_and_copies_nothing_twice(tmp_path):
    first = make(tmp_path / "a", "1/2")
    assert len(gather([first], tmp_path / "joined").missing) == 3
    second = make(tmp_path / "b", "2/2")
    found = gather([first, second], tmp_path / "joined")
    assert (len(found.finished), found.missing, found.copied) == (6, [], 3)
    again = gather([first, second], tmp_path / "joined")
    assert (again.copied, again.equal, again.same_traces) == (0, 0, 0)


def test_of_equal_runs_one_is_kept(tmp_path):
    found = gather([make(tmp_path / "a"), make(tmp_path / "b", "1/2")], tmp_path / "joined")
    assert (len(found.finished), found.copied, found.equal, found.same_traces) == (6, 6, 3, 3)


def test_a_gathering_that_was_killed_is_taken_up_and_leaves_nothing_behind(tmp_path):
    folder = make(tmp_path / "a")
    code = (
        "import os, signal, sys; from pathlib import Path; from twinnet.study import gather, store\n"
        "rename = Path.rename; seen = []\n"
        "def die_at_third(path, target):\n"
        "    seen.append(path)\n"
        "    os.kill(os.getpid(), signal.SIGKILL) if len(seen) == 3 else rename(path, target)\n"
        "Path.rename = die_at_third; gather.gather([Path(sys.argv[1])], Path(sys.argv[2]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder), str(tmp_path / "joined")], check=False)
    assert done.returncode == -signal.SIGKILL
    joined = tmp_path / "joined" / "tcp-udp-queues"
    # Two runs are whole; the third is there under the name that readers pass over.
    whole = [path.name for path in joined.iterdir() if path.is_dir() and not path.name.startswith(".")]
    assert (len(whole), len(list(joined.glob(".*.partial")))) == (2, 1)
    found = gather([folder], tmp_path / "joined")
    assert (found.copied, len(found.finished), list(joined.glob(".*.partial"))) == (4, 6, [])


def test_a_finished_run_goes_before_a_failed_one_in_either_order(tmp_path):
    def fail(run, progress):
        raise RuntimeError("no")

    for number, order in enumerate([(0, 1), (1, 0)]):
        here = tmp_path / str(number)
        folders = [make(here / "a", lab=FluidLab(before=fail)), make(here / "b")]
        found = gather([folders[place] for place in order], here / "joined")
        assert (len(found.finished), found.failed) == (6, [])


def test_failed_runs_are_gathered_as_failed_and_replaced_once_they_are_made(tmp_path):
    def fail(run, progress):
        raise RuntimeError("no")

    bad = make(tmp_path / "a", lab=FluidLab(before=fail))
    assert len(gather([bad], tmp_path / "joined").failed) == 6
    found = gather([bad, make(tmp_path / "b")], tmp_path / "joined")
    assert (len(found.finished), found.failed) == (6, [])


def test_equal_virtual_runs_with_different_traces_are_an_error_that_names_both(tmp_path):
    folders = [make(tmp_path / "a"), make(tmp_path / "b", "1/6", lab=TracedLab("other"))]
    with pytest.raises(DifferentTraces) as told:
        gather(folders, tmp_path / "joined")
    run = first_run(folders[1]).name
    assert all(
        word in str(told.value) for word in (run, str(folders[0]), str(folders[1]), "-other", os.uname().nodename)
    )
    assert not (tmp_path / "joined").exists()


def test_a_gathered_run_is_held_against_what_comes_later(tmp_path):
    gather([make(tmp_path / "a")], tmp_path / "joined")
    with pytest.raises(DifferentTraces):
        gather([make(tmp_path / "b", lab=TracedLab("other"))], tmp_path / "joined")


def test_equal_runs_on_the_wall_clock_may_differ_and_the_first_is_kept(tmp_path):
    study = tiny(clock="wall")
    folders = [make(tmp_path / "a", study=study), make(tmp_path / "b", study=study, lab=TracedLab("other"))]
    found = gather(folders, tmp_path / "joined")
    assert (found.equal, found.same_traces) == (6, 0)
    assert {run.record["trace_hash"].split("-")[1] for run in analyse(found.store).stored.values()} == {"same"}


@pytest.mark.parametrize(
    ("study", "message"),
    [
        (lambda: load_study("mtu-sweep", {"clock": "virtual"}, preset="tiny"), "tcp-udp-queues and mtu-sweep"),
        (lambda: tiny(repetitions="4"), "repetitions is 3 in the first and 4 in the second"),
        (lambda: tiny(seed="9"), "seed is not set in the first and 9 in the second"),
    ],
)
def test_different_studies_are_refused_by_name(tmp_path, study, message):
    other = study()
    ResultStore(tmp_path / "b" / other.name).write_study(other)
    with pytest.raises(BadValue, match=message):
        gather([make(tmp_path / "a", "1/6"), tmp_path / "b" / other.name], tmp_path / "joined")


def test_a_study_file_that_was_edited_is_refused_with_the_line(tmp_path):
    folders = [make(tmp_path / "a", "1/6"), make(tmp_path / "b", "2/6")]
    path = folders[1] / "study.yaml"
    path.write_text("# mine\n" + path.read_text())
    with pytest.raises(BadValue, match=r"study\.yaml differ, first in line 1"):
        gather(folders, tmp_path / "joined")


def test_runs_of_different_versions_are_refused_by_name(tmp_path):
    folders = [make(tmp_path / "a", "1/6"), make(tmp_path / "b", "2/6")]
    change_record(first_run(folders[1]), lambda record: record["versions"].update(twinnet="0.0.7"))
    with pytest.raises(BadValue, match=rf"different versions: twinnet 0\.0\.7 made {first_run(folders[1])}"):
        gather(folders, tmp_path / "joined")


def test_folders_that_overlap_are_refused(tmp_path):
    one = make(tmp_path / "a", "1/6")
    (tmp_path / "link").symlink_to(one)
    for folders, out, message in (
        ([one, one], tmp_path / "joined", "are the same folder"),
        ([one, tmp_path / "link"], tmp_path / "joined", "are the same folder"),
        ([one], tmp_path / "a", "the same folder or overlaps"),
        ([one], one, "the same folder or overlaps"),
        ([one, one / first_run(one).name], tmp_path / "joined", "one is inside the other"),
    ):
        with pytest.raises(BadValue, match=message):
            gather(folders, out)


def test_a_folder_without_results_is_refused_with_the_one_that_is_meant(tmp_path):
    one = make(tmp_path / "a", "1/6")
    with pytest.raises(BadValue, match="there is no folder"):
        gather([tmp_path / "absent"], tmp_path / "joined")
    with pytest.raises(BadValue, match=f"holds no results itself.*such as {one}"):
        gather([tmp_path / "a"], tmp_path / "joined")
    (one / "study.json").write_text("[" * 100_000)
    with pytest.raises(BadValue, match="does not hold the results of a study"):
        gather([one], tmp_path / "joined")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda run: (run / "run.json").write_text("{"), "cannot be read"),
        (lambda run: (run / "run.json").write_text("[]"), "no JSON object"),
        (lambda run: (run / "run.json").write_text("[" * 100_000), "cannot be read"),
        (lambda run: (run / "run.json").write_bytes(b"\xff\xfe"), "cannot be read"),
        (lambda run: (run / "run.json").unlink(), "No such file"),
        (lambda run: (run / "flows.parquet").unlink(), "No such file"),
        (lambda run: os.truncate(run / "intervals.parquet", 100), "cannot be read"),
        (lambda run: change_record(run, lambda record: record.update(format=99)), "its format is 99"),
        (lambda run: change_record(run, lambda record: record.update(digest="0")), "its digest is not the one"),
        (lambda run: change_record(run, lambda record: record.update(status="new")), "its status is 'new'"),
        (lambda run: change_record(run, lambda record: record.update(fidelity=3)), "where an object belongs"),
    ],
)
def test_a_run_that_cannot_be_read_is_named_and_nothing_is_gathered(tmp_path, spoil, message):
    folder = make(tmp_path / "a", "1/6")
    run = first_run(folder)
    spoil(run)
    with pytest.raises(StoreError) as told:
        gather([folder], tmp_path / "joined")
    assert f"{run} cannot be read" in str(told.value)
    assert message in str(told.value)
    assert not (tmp_path / "joined").exists()


def test_a_full_disk_is_told_and_what_was_copied_before_is_kept(tmp_path, monkeypatch):
    folder = make(tmp_path / "a")
    copied = []

    def full_after_two(store, run):
        if len(copied) == 2:
            raise StoreError("no space is left")
        copied.append(run.id)
        return whole(store, run)

    whole = ResultStore.copy_run
    monkeypatch.setattr(ResultStore, "copy_run", full_after_two)
    with pytest.raises(StoreError, match="no space is left"):
        gather([folder], tmp_path / "joined")
    monkeypatch.undo()
    assert gather([folder], tmp_path / "joined").copied == 4


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_table_that_finds_the_disk_full_leaves_no_part_of_its_run(tmp_path, monkeypatch):
    folder = make(tmp_path / "a", "1/6")
    real = Path.open

    def open_full(path, mode="r", **options):
        return real(Path("/dev/full") if mode == "wb" and path.suffix == ".parquet" else path, mode, **options)

    monkeypatch.setattr(Path, "open", open_full)
    with pytest.raises(StoreError, match=r"no space is left for the results in .*joined"):
        gather([folder], tmp_path / "joined")
    monkeypatch.undo()
    assert [path.name for path in (tmp_path / "joined" / "tcp-udp-queues").iterdir() if path.is_dir()] == []


def test_runs_of_other_settings_stay_where_they_are(tmp_path):
    folder = make(tmp_path / "a")
    make(tmp_path / "a", "1/6", study=tiny(seed="9"))
    ResultStore(folder).write_study(tiny())
    found = gather([folder], tmp_path / "joined")
    assert (found.others, len(list(found.store.all_runs()))) == (1, 6)


def test_a_twin_is_gathered_with_both_clocks(tmp_path):
    folder = make(tmp_path / "a", study=tiny(clock="virtual"))
    make(tmp_path / "a", study=tiny(clock="wall"))
    ResultStore(folder).write_study(tiny(), twin=True)
    found = gather([folder], tmp_path / "joined")
    assert (len(found.finished), found.missing, found.store.holds_twin) == (12, [], True)


def test_shards_may_share_one_folder(tmp_path):
    for number in (1, 2, 3):
        folder = make(tmp_path / "shared", f"{number}/3")
    assert len(analyse(ResultStore(folder)).stored) == 6


def test_what_a_source_lost_in_the_meantime_is_told_as_the_sources_fault(tmp_path):
    folder = make(tmp_path / "a", "1/6")
    run = next(iter(ResultStore(folder).all_runs()))
    (run.folder / "flows.parquet").unlink()
    (run.folder / "flows.parquet").mkdir()
    with pytest.raises(StoreError, match=rf"{run.folder / 'flows.parquet'} cannot be read: it is a folder"):
        ResultStore(tmp_path / "joined").copy_run(run)
    shutil.rmtree(folder)
