"""The calibration lab, which decides whether a slot takes runs on the wall clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from campaign import Campaign, environment
from labs_here import needs_a_lab
from twinnet.cluster import calibration
from twinnet.cluster.places import ClusterPlaces
from twinnet.errors import LabError
from twinnet.report.progress import SilentObserver
from twinnet.study.execute import LabExecutor
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study
from twinnet.study.runner import run_plan
from twinnet.study.store import ResultStore


@needs_a_lab
def test_the_calibration_lab_is_judged_by_what_a_run_is_judged_by() -> None:
    verdict, reasons = calibration.calibrate()
    # Which of them it is depends on what else the machine does.
    assert verdict in ("valid", "doubtful", "invalid")
    assert bool(reasons) == (verdict != "valid")


def test_where_no_lab_runs_the_slot_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise LabError("no namespaces here")

    monkeypatch.setattr(calibration.Network, "emulate", refuse)
    assert calibration.calibrate() == ("unavailable", "no namespaces here")


@needs_a_lab
def test_a_calibrated_slot_makes_runs_on_the_wall_clock_on_its_own_processors(tmp_path: Path) -> None:
    alone = Campaign(tmp_path)
    processor = min(os.sched_getaffinity(0))
    try:
        alone.start_scheduler("tls://127.0.0.1:0")
        # Calibrated elsewhere: the verdict here would depend on what else the machine does.
        settings = {"number": 7, "processors": [processor], "verdict": "valid", "reasons": ""}
        settings |= {"scheduler": str(alone.address), "keys": str(alone.keys)}
        program = "from twinnet.cluster.slot_process import main; main()"
        with subprocess.Popen(
            [sys.executable, "-c", program, json.dumps(settings)],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as slot:
            assert slot.stdin is not None and slot.stdout is not None
            assert json.loads(slot.stdout.readline()) == {"joined": True}
            study = load_study(alone.study, {"repetitions": "1"})
            with ClusterPlaces(alone.address, alone.certificates, study) as places:
                plan = plan_study(study)
                outcome = run_plan(plan, ResultStore(tmp_path / "out"), LabExecutor(), SilentObserver(), places=places)
            assert [run.record["error"] for run in outcome.failed] == []
            assert len(outcome.finished) == 2
            for run in outcome.finished:
                assert run.record["clock"] == "wall"
                assert run.record["machine"]["slot"] == 7
                assert run.record["machine"]["processors"] == str(processor)
            # A slot ends with its parent.
            slot.stdin.close()
            assert slot.wait(10) == 0
    finally:
        alone.close()
