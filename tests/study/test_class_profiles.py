"""The levels of qos-class-profiles whose schedulers do not bind, and settings that only some levels take over."""

from __future__ import annotations

from pathlib import Path

import pytest
import twinnet as tn
from twinnet.cli import run as command_line
from twinnet.errors import BadValue
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study

PUBLISHED = 8


def test_the_core_carries_as_much_as_the_leaves_where_schedulers_do_not_bind(tmp_path: Path) -> None:
    chosen = "basic-core unbound-leaf unbound-core hosts-core"
    options = ["--preset", "tiny", "--no-report", "--out", str(tmp_path), "--set", f"levels.profile={chosen}"]
    assert command_line(["run", "qos-class-profiles", *options]) == 0
    results = tn.results.load(tmp_path / "qos-class-profiles")

    def mean(measured: str, profile: str) -> float:
        return results.value(f"mean({measured}, profile={profile})").estimate

    leaf, core = mean("bandwidth_in", "unbound-leaf"), mean("bandwidth_in", "unbound-core")
    assert core == pytest.approx(leaf, rel=0.02)
    assert core > 1.5 * mean("bandwidth_in", "basic-core")
    # Three servers of 22.5 Mbit/s and three of video leave room on the line: nobody waits there.
    assert mean("bandwidth_in", "hosts-core") < 80e6
    assert mean("round_trip", "hosts-core") < mean("round_trip", "unbound-core")


def test_levels_that_bring_their_own_value_leave_a_setting_to_the_others() -> None:
    study = load_study("qos-class-profiles", {"scheduler": "2 Gbit"})
    rates = {name: study.at({"profile": name}).policy for name in ("basic-core", "unbound-core")}
    assert {name: one.rate_bps for name, one in rates.items() if one is not None} == {
        "basic-core": 2 * 10**9,
        "unbound-core": 10 * 10**9,
    }
    with pytest.raises(BadValue, match="policy cannot be set: the levels of the factor profile set this parameter"):
        load_study("qos-class-profiles", {"policy": "source-cbq"})


def test_the_published_profiles_are_run_by_themselves() -> None:
    study = load_study("qos-class-profiles")
    assert len({run.levels["profile"] for run in plan_study(study)}) == PUBLISHED


def test_the_whole_size_leaves_out_what_the_original_left_out() -> None:
    full = load_study("qos-class-profiles", preset="full").specification.measurements
    assert {name: one.window for name, one in full.items() if one.window is not None} == dict.fromkeys(
        ("bandwidth_in", "bandwidth_out", "transfer_rate", "request_time", "round_trip"), (90.0, 210.0)
    )
    assert not any(one.window for one in load_study("qos-class-profiles").specification.measurements.values())
