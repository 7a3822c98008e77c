"""The loads that `twinnet doctor` names are those up to which the forecast promises a valid run."""

from datetime import UTC, datetime

import pytest
from twinnet.cli.doctor_command import carried_finding
from twinnet.study.capacity import LASTING, Capacity, this_machine
from twinnet.study.greatest_loads import KINDS, greatest_loads, loads_in_words

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize("carried", [50_000, 175_500, 240_000])
def test_the_forecast_promises_the_number_that_is_named_and_not_one_more(carried: int):
    for load in greatest_loads(carried):
        assert load.kind.needs(load.count) <= carried * (1 + 1e-9)
        assert load.kind.needs(load.count + 1) > carried


def test_a_kind_of_which_not_one_is_carried_is_told_as_none():
    assert "no TCP flow of 1 Gbit/s" in loads_in_words(KINDS[2].needs(1) - 1)
    assert "1 TCP flow of 1 Gbit/s" in loads_in_words(KINDS[2].needs(1))


def test_the_doctor_names_them():
    finding = carried_finding(Capacity(240_000, 180_000, this_machine(), NOON), "")
    lasting = round(LASTING * 180_000)
    assert loads_in_words(lasting) in finding["follows"]
    assert finding["greatest_loads"] == {load.kind.several: load.count for load in greatest_loads(lasting)}


def test_on_the_machine_that_the_weights_were_measured_on_they_are_what_was_valid_there():
    """Where all of three runs of 3 s were valid with 50 lines, 5 flows, and 1 flow of 1 Gbit/s, and not with 60 lines,
    7 flows and 2 flows of 1 Gbit/s (2026-11-30)."""
    named = {
        load.kind.several: load.count for load in greatest_loads(Capacity(292_500, 292_500, {}, NOON).frames_per_second)
    }
    assert 40 <= named["links of 10 Mbit/s at twice their rate"] < 60
    assert 3 <= named["TCP flows of 100 Mbit/s"] <= 5
    assert named["TCP flows of 1 Gbit/s"] == named["links of 1 Gbit/s at twice their rate"] == 1
