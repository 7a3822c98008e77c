"""A campaign on machines that share nothing but a wire, of which one loses its cable."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path

import pytest
from campaign import STUDY
from cluster_machines import ClusterMachines, permits_machines
from twinnet.cluster.certificates import new_certificates
from twinnet.report.progress import SilentObserver
from twinnet.results.tables import TABLES
from twinnet.study.execute import LabExecutor
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study
from twinnet.study.runner import run_plan
from twinnet.study.store import ResultStore

pytestmark = pytest.mark.long

SCHEDULER = "tls://10.9.0.1:8786"
CUT_S = 25.0
"""How long the cable is cut at least: a connection that says nothing is given up after 15 s, a worker after 20 s."""
ENDED = re.compile(r"\[\d/8\] (\S+): finished")
SETTINGS = {"time": "3000 s", "repetitions": "4", "clock": "virtual"}
"""Eight runs of half a second to two seconds each: most are made before a connection is given up."""


@pytest.mark.quiet
@pytest.mark.skipif(not permits_machines(), reason="this machine permits no namespaces: see twinnet doctor")
def test_a_machine_whose_cable_is_cut_is_taken_for_dead_and_its_run_made_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed: pip install .[dev]")
    new_certificates(tmp_path / "keys")
    with ClusterMachines(tmp_path, tmp_path / "keys", 4) as machines:
        machines.start(1, "scheduler", "--at", SCHEDULER).line("Scheduler: ")
        workers = {n: machines.start(n, "worker", "--at", SCHEDULER, "--slots", "1") for n in (2, 3)}
        processes = {n: one.line(r"has joined \S+ \(process (\d+)\)")[1] for n, one in workers.items()}
        study_file = machines.seen_from_here(4) / "load.yaml"
        study_file.write_text(STUDY)
        asked = ["--repeat", SETTINGS["repetitions"], "--set", f"time={SETTINGS['time']}", "--clock", "virtual"]
        client = machines.start(
            4, "run", "load.yaml", *asked, "--no-report", "--yes", "--out", "out", "--on", SCHEDULER
        )
        client.line(r"^\[2/8\]")
        mend = machines.cut(2)
        began_s = time.monotonic()
        # The other machine makes all but one run, which is the one that the cut machine holds where runs are quick.
        client.line(r"^\[7/8\]")
        ended = {found[1] for line in client.lines if (found := ENDED.match(line))}
        # That one is made elsewhere before the cable is mended, and its first result comes too late.
        client.line(r"^\[8/8\]")
        time.sleep(max(0.0, CUT_S - (time.monotonic() - began_s)))
        mend()
        told = client.rest()
        workers[2].line("slot 1 has lost the scheduler; it joins again")
        assert workers[2].line(r"has joined \S+ \(process (\d+)\)")[1] == processes[2]
        assert client.process.returncode == 0, told
        ends = Counter(found[1] for line in told.splitlines() if (found := ENDED.match(line)))
        study = load_study(study_file, SETTINGS)
        plan = plan_study(study)
        assert ends == Counter(run.id for run in plan), told
        far = {run.id: run for run in ResultStore(machines.seen_from_here(4) / "out" / study.name).all_runs()}
        near = run_plan(plan, ResultStore(tmp_path / "near"), LabExecutor(), SilentObserver())
        assert set(far) == {run.id for run in near.finished}
        for here in near.finished:
            there = far[here.id]
            assert there.record["trace_hash"] == here.record["trace_hash"]
            assert all(there.table(name).equals(here.table(name)) for name in TABLES if name != "twin"), here.id
        (lost,) = set(far) - ended
        assert far[lost].record["machine"]["name"] == "m3"
        assert {run.record["machine"]["name"] for run in far.values()} == {"m2", "m3"}
        assert not list(machines.own.iterdir()), "a machine wrote where others could read it"
