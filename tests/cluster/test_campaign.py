"""A study on a cluster: the same results as here, whatever is killed meanwhile, and an end when it is asked for."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import twinnet as tn
from campaign import Campaign, Told, twinnet_command
from shared_processors import stretched_s
from twinnet.cluster.contact import security_of
from twinnet.cluster.engine import ClusterError, distributed
from twinnet.cluster.joining import PROGRESS
from twinnet.cluster.places import ClusterPlaces
from twinnet.code_version import code_version
from twinnet.errors import BadValue
from twinnet.report.progress import SilentObserver
from twinnet.results.tables import TABLES
from twinnet.study.execute import LabExecutor
from twinnet.study.plan import PlannedRun, plan_study
from twinnet.study.resolution import Study, load_study
from twinnet.study.runner import Outcome, Progress, run_plan
from twinnet.study.store import ResultStore, StoredRun

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    with Campaign(tmp_path_factory.mktemp("campaign")) as one:
        yield one


class Counting(SilentObserver):
    """Counts how often each run ended."""

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter()

    def ended(self, run: PlannedRun, stored: StoredRun, left_s: float) -> None:
        self.ends[run.id] += 1


class KillingOnce(Counting):
    """Kills a process as soon as a run in slot 1 has told that it is on its way."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.pid = pid
        self.going: list[Progress] = []
        self.killed = False

    def started(self, run: PlannedRun, progress: Progress) -> None:
        self.going.append(progress)

    def tick(self, left_s: float) -> None:
        under_way = [one for one in self.going if 0 < one.fraction < 1 and one.doing.endswith("slot 1")]
        if not self.killed and under_way:
            os.kill(self.pid, signal.SIGKILL)
            self.killed = True


def study_of(campaign: Campaign, **settings: str) -> Study:
    return load_study(campaign.study, {"clock": "virtual", **settings})


def make(campaign: Campaign, study: Study, folder: Path, observer: Counting) -> Outcome:
    """Make `study` on the cluster."""
    store = ResultStore(folder)
    store.write_study(study)
    with ClusterPlaces(campaign.address, campaign.certificates, study) as places:
        return run_plan(plan_study(study), store, LabExecutor(), observer, places=places)


def here(study: Study, folder: Path) -> dict[str, StoredRun]:
    """`study`, made in this process."""
    outcome = run_plan(plan_study(study), ResultStore(folder), LabExecutor(), SilentObserver())
    return {run.id: run for run in outcome.finished}


def check_same(outcome: Outcome, observer: Counting, local: dict[str, StoredRun]) -> None:
    """No run lost, none twice, and each bit by bit the one that was made here."""
    assert [run.record.get("error") for run in outcome.failed] == []
    assert {run.id for run in outcome.finished} == set(local)
    assert observer.ends == dict.fromkeys(local, 1)
    for run in outcome.finished:
        assert run.record["trace_hash"] == local[run.id].record["trace_hash"]
        for name in TABLES:
            if name != "twin":
                assert run.table(name).equals(local[run.id].table(name)), (run.id, name)


def test_runs_on_two_slots_are_those_made_here_bit_by_bit(campaign: Campaign, tmp_path: Path) -> None:
    done = campaign.run(str(tmp_path / "far"))
    told = done.rest()
    assert done.process.returncode == 0, told
    assert "2 slots take the runs of this study" in told
    store = ResultStore(tmp_path / "far" / "load")
    local = here(study_of(campaign), tmp_path / "near")
    far = {run.id: run for run in store.all_runs()}
    assert len(local) == 4
    assert {name: run.record["trace_hash"] for name, run in far.items()} == {
        name: run.record["trace_hash"] for name, run in local.items()
    }
    assert far.keys() == local.keys()
    for name, run in far.items():
        assert run.table("flows").equals(local[name].table("flows"))
        ours, theirs = dict(local[name].record), dict(run.record)
        for when in ("started", "elapsed_s", "machine", "notes"):
            ours.pop(when), theirs.pop(when)
        assert theirs == ours
    machines = [run.record["machine"] for run in far.values()]
    assert {machine["name"] for machine in machines} == {socket.gethostname()}
    assert {machine["slot"] for machine in machines} == {1, 2}
    assert all(machine["before"]["kernel"] == os.uname().release for machine in machines)


def test_a_study_is_run_on_the_cluster_from_python(campaign: Campaign, tmp_path: Path) -> None:
    settings = {"clock": "virtual"}
    address, keys = str(campaign.address), campaign.certificates.folder
    there = tn.studies.run(
        campaign.study, settings=settings, out=tmp_path / "there", on=address, keys=keys, progress=False
    )
    local = here(study_of(campaign), tmp_path / "here")
    found = [ResultStore(there.folder).find(run) for run in plan_study(study_of(campaign))]
    stored = {run.id: run for run in found if run is not None}
    assert {name: run.record["trace_hash"] for name, run in stored.items()} == {
        name: run.record["trace_hash"] for name, run in local.items()
    }
    assert {run.record["machine"]["slot"] for run in stored.values()} <= {1, 2}
    with pytest.raises(BadValue, match="jobs is 2"):
        tn.studies.run(campaign.study, out=tmp_path, on=address, jobs=2)
    with pytest.raises(BadValue, match="keys and without_tls"):
        tn.studies.run(campaign.study, out=tmp_path, keys=keys)


def test_a_run_whose_slot_is_killed_is_made_again_and_the_slot_comes_back(campaign: Campaign, tmp_path: Path) -> None:
    study = study_of(campaign, time="2000 s")
    killing = KillingOnce(campaign.slots[1])
    outcome = make(campaign, study, tmp_path / "far", killing)
    assert killing.killed
    check_same(outcome, killing, here(study, tmp_path / "near"))
    campaign.worker.line("slot 1 has ended by signal 9; it is started again")
    campaign.await_slots(1)


def test_a_scheduler_that_is_killed_and_started_again_loses_no_run(campaign: Campaign, tmp_path: Path) -> None:
    study = study_of(campaign, time="2000 s", repetitions="1")
    old = campaign.scheduler

    class StartedAgain(KillingOnce):
        again = False

        def tick(self, left_s: float) -> None:
            super().tick(left_s)
            if self.killed and not self.again:
                old.process.wait(10)
                campaign.start_scheduler(str(campaign.address))
                self.again = True

    killing = StartedAgain(old.process.pid)
    outcome = make(campaign, study, tmp_path / "far", killing)
    assert killing.again
    check_same(outcome, killing, here(study, tmp_path / "near"))
    campaign.await_slots(2)


LONG = ("--set", "time=20 h", "--repeat", "1")
"""Two runs of minutes."""


def begun(campaign: Campaign, folder: Path) -> Told:
    """A study of two long runs, both of which are under way."""
    attempts: set[str] = set()
    both = threading.Event()

    def hear(event: tuple[float, dict[str, str]]) -> None:
        attempts.add(event[1]["attempt"])
        if len(attempts) == len(campaign.slots):
            both.set()

    security = security_of(campaign.certificates)
    with distributed().Client(str(campaign.address), security=security, set_as_default=False) as client:
        client.subscribe_topic(PROGRESS, hear)
        going = campaign.run(str(folder), *LONG)
        assert both.wait(60), going.lines
    return going


def test_ctrl_c_ends_the_runs_of_all_slots_within_two_seconds_and_the_same_command_goes_on(
    campaign: Campaign, tmp_path: Path
) -> None:
    going = begun(campaign, tmp_path)
    begin = time.monotonic()
    going.process.send_signal(signal.SIGINT)
    for _ in campaign.slots:
        campaign.worker.line("has ended a run whose client cancelled it or has gone")
    assert time.monotonic() - begin < stretched_s(2.0)
    assert "0 of 2 runs are finished; the same command goes on" in going.rest()
    assert going.process.returncode == 130
    assert "2 runs to make" in campaign.run(str(tmp_path), "--repeat", "1").rest()


def test_a_client_that_is_killed_leaves_no_run_behind(campaign: Campaign, tmp_path: Path) -> None:
    begun(campaign, tmp_path).process.kill()
    for _ in campaign.slots:
        campaign.worker.line("has ended a run whose client cancelled it or has gone", 15)


def test_who_has_no_certificate_of_the_cluster_gets_no_connection(campaign: Campaign) -> None:
    context = ssl.create_default_context(cafile=campaign.certificates.authority)
    context.check_hostname = False
    with (
        pytest.raises((ssl.SSLError, ConnectionError)),
        socket.create_connection((campaign.address.host, campaign.address.port), timeout=10) as plain,
        context.wrap_socket(plain) as secure,
    ):
        # In TLS 1.3 the refusal comes after the client's part of the handshake.
        if not secure.recv(1):
            raise ConnectionError


def test_certificates_of_another_cluster_are_refused_with_the_remedy(campaign: Campaign, tmp_path: Path) -> None:
    from twinnet.cluster.certificates import new_certificates

    new_certificates(tmp_path / "other")
    for command in (["worker", "--at"], ["run", str(campaign.study), "--clock", "virtual", "--on"]):
        told = Told(twinnet_command(*command, str(campaign.address), "--keys", str(tmp_path / "other")), tmp_path)
        text = told.rest()
        assert told.process.returncode == 1, text
        assert "is of another cluster: its certificate is not signed by" in text
        assert "copy the folder of `twinnet cluster new`" in text


def test_another_version_is_refused_by_name(campaign: Campaign, tmp_path: Path) -> None:
    other = "import twinnet; twinnet.__version__ = '0.0.9'"
    for command in (["worker", "--at"], ["run", str(campaign.study), "--clock", "virtual", "--on"]):
        told = Told(
            twinnet_command(*command, str(campaign.address), "--keys", str(campaign.keys), before=other), tmp_path
        )
        text = told.rest()
        assert told.process.returncode == 1, text
        assert f"is of twinnet {code_version()}, and this is twinnet 0.0.9 (code " in text
        assert "install one version on all machines, from one wheel or from one commit of the source" in text


def test_slots_that_share_cores_refuse_a_study_on_the_wall_clock_with_the_remedy(campaign: Campaign) -> None:
    wall = load_study(campaign.study)
    with (
        pytest.raises(ClusterError, match=r"takes no runs on the wall clock: shared: shares a core .*--clock virtual"),
        ClusterPlaces(campaign.address, campaign.certificates, wall),
    ):
        pass


def test_a_scheduler_that_does_not_come_back_is_told_and_finished_runs_are_kept(
    campaign: Campaign, tmp_path: Path
) -> None:
    study = study_of(campaign, repetitions="500")

    class KillingLater(Counting):
        def ended(self, run: PlannedRun, stored: StoredRun, left_s: float) -> None:
            super().ended(run, stored, left_s)
            if len(self.ends) == 3:
                campaign.scheduler.process.kill()

    counting = KillingLater()
    store = ResultStore(tmp_path)
    with (
        pytest.raises(ClusterError, match=r"has had no worker for 2 s, or has gone .*the same command goes on"),
        ClusterPlaces(campaign.address, campaign.certificates, study, patience_s=2) as places,
    ):
        run_plan(plan_study(study), store, LabExecutor(), counting, places=places)
    assert {run.id for run in store.all_runs()} >= set(counting.ends)
    assert len(counting.ends) >= 3
