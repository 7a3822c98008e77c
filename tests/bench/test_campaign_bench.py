"""The campaign of kills, in small: see ``python -m bench.campaign``."""

from __future__ import annotations

import pytest

from bench.campaign import kills


@pytest.mark.quiet
def test_no_run_is_lost_while_slots_workers_and_schedulers_are_killed(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed: pip install .[dev]")
    wrong = kills(12, 2.5, 1000.0)
    told = capsys.readouterr().out
    assert wrong == 0, told
    assert "12 of 12 runs made" in told
