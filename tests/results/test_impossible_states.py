"""A run in which twinnet met a state that cannot be is not to be trusted, on either clock."""

from __future__ import annotations

import pytest
import twinnet as tn
from twinnet.results.fidelity import FidelityRecord


@pytest.mark.parametrize("clock", ["wall", "virtual"])
def test_a_fault_of_the_program_makes_the_run_invalid_and_is_told(clock: str) -> None:
    record = FidelityRecord.from_spec(
        {"clock": clock, "elapsed_ps": 10**12, "impossible_states": 2, "first_impossible_state": "no such interface"}
    )
    verdict = record.verdict()
    assert verdict.state == "invalid"
    assert "2 states" in verdict.reasons[0]
    assert "no such interface" in verdict.reasons[0]


def test_a_sound_lab_has_met_none() -> None:
    with tn.templates.single(2).simulate() as lab:
        record = lab.fidelity()
    assert record.impossible_states == 0
    assert record.verdict().state == "valid"
