"""The calibration lab, which decides whether a slot takes runs on the wall clock."""

from __future__ import annotations

import pytest
from labs_here import needs_a_lab
from twinnet.cluster import calibration
from twinnet.errors import LabError


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
