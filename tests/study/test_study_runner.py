"""Runner and store with a fluid model in the lab's place: resume, failures, interrupts, full disks, dead writers."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest
from fluid_lab import FluidLab
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study
from twinnet.study.runner import Interrupted, run_plan
from twinnet.study.store import ResultStore, StoreError


class Silent:
    def __init__(self):
        self.seen = []

    def begin(self, todo, skipped, expected_s):
        self.seen.append(("begin", len(todo), skipped))

    def started(self, run, progress):
        self.seen.append(("started", run.id))

    def tick(self, left_s):
        assert left_s >= 0

    def ended(self, run, stored, left_s):
        self.seen.append(("ended", run.id, stored.record["status"]))

    def stopping(self):
        self.seen.append(("stopping",))


def tiny(**settings):
    return load_study("tcp-udp-queues", {"repetitions": "2", **settings}, preset="tiny")


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path / "results" / "tcp-udp-queues")


def test_every_run_lands_with_its_record_and_its_tables(store):
    plan = plan_study(tiny())
    outcome = run_plan(plan, store, FluidLab(), Silent())
    assert [run.id for run in outcome.finished] == [run.id for run in plan]
    stored = store.find(plan[0])
    assert stored is not None
    assert stored.record["status"] == "finished"
    assert stored.record["seed"] == plan[0].seed
    assert stored.record["machine"]["before"]["kernel"] == os.uname().release
    assert stored.table("intervals")["payload_bytes"].sum() > 0
    assert [path.name for path in store.folder.iterdir() if path.name.startswith(".")] == []


def test_the_same_command_again_makes_only_what_is_missing(store):
    plan = plan_study(tiny())
    run_plan(plan[:1], store, FluidLab(), Silent())
    lab = FluidLab()
    outcome = run_plan(plan, store, lab, Silent())
    assert [run.id for run in outcome.skipped] == [plan[0].id]
    assert lab.made == [run.id for run in plan[1:]]


def test_runs_of_another_specification_stay_and_do_not_count(store):
    run_plan(plan_study(tiny()), store, FluidLab(), Silent())
    other = plan_study(tiny(http_bytes="200 kB"))
    outcome = run_plan(other, store, FluidLab(), Silent())
    assert (len(outcome.finished), len(outcome.skipped)) == (4, 0)
    assert len(list(store.all_runs())) == 8


def test_a_run_that_fails_is_told_the_rest_go_on_and_it_is_made_again(store):
    plan = plan_study(tiny())

    def fail_second(run, progress):
        if run.id == plan[1].id:
            raise RuntimeError("the switch fell off its shelf")

    outcome = run_plan(plan, store, FluidLab(before=fail_second), Silent())
    assert [run.id for run in outcome.failed] == [plan[1].id]
    assert len(outcome.finished) == 3
    assert outcome.failed[0].record["error"] == {"name": "RuntimeError", "message": "the switch fell off its shelf"}
    again = run_plan(plan, store, FluidLab(), Silent())
    assert [run.id for run in again.finished] == [plan[1].id]
    assert store.find(plan[1]) is not None


def test_runs_side_by_side_are_under_way_at_the_same_time(store):
    together = threading.Barrier(2, timeout=20)
    outcome = run_plan(
        plan_study(tiny()), store, FluidLab(before=lambda run, progress: together.wait()), Silent(), jobs=2
    )
    assert len(outcome.finished) == 4


def test_an_interrupt_keeps_what_is_finished_and_the_same_call_resumes(store):
    plan = plan_study(tiny())

    def interrupt_third(run, progress):
        if run.id == plan[2].id:
            os.kill(os.getpid(), signal.SIGINT)
            assert progress.stop.wait(20)
            raise Interrupted

    observer = Silent()
    outcome = run_plan(plan, store, FluidLab(before=interrupt_third), observer)
    assert outcome.interrupted
    assert ("stopping",) in observer.seen
    assert len(outcome.finished) == 2
    resumed = run_plan(plan, store, FluidLab(), Silent())
    assert (len(resumed.skipped), len(resumed.finished)) == (2, 2)


def test_a_full_disk_is_one_clear_message_and_loses_no_finished_run(store, monkeypatch):
    plan = plan_study(tiny())
    run_plan(plan[:1], store, FluidLab(), Silent())

    def full(frame, file, **options):
        file.write(b"PAR1")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(StoreError, match=r"no space is left.*finished runs are kept"):
        run_plan(plan, store, FluidLab(), Silent())
    monkeypatch.undo()
    assert sorted(path.name for path in store.folder.iterdir()) == [plan[0].id]
    assert store.find(plan[0]) is not None
    assert len(run_plan(plan, store, FluidLab(), Silent()).finished) == 3


def test_what_a_killed_writer_left_is_removed_and_a_living_writers_stays(store):
    code = (
        "import os, sys; from pathlib import Path; from twinnet.study.partial_files import partial_name;"
        "folder = Path(sys.argv[1]) / partial_name('shared-01-abc'); folder.mkdir(parents=True);"
        "print(folder, flush=True); sys.stdin.read()"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", code, str(store.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    partial = writer.stdout.readline().strip()
    assert store.remove_leftovers() == []
    writer.kill()
    writer.wait()
    assert [str(path) for path in store.remove_leftovers()] == [partial]
    assert not Path(partial).exists()


def test_a_run_cut_short_in_the_middle_of_its_writing_is_not_there(store, monkeypatch):
    plan = plan_study(tiny())

    def die(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", die)
    with pytest.raises(KeyboardInterrupt):
        store.write_failed(plan[0], {}, {"name": "x", "message": "y"})
    assert list(store.all_runs()) == []
