"""The levels of qos-class-profiles whose schedulers do not bind, and settings that only some levels take over."""

from __future__ import annotations

from pathlib import Path

import pytest
import twinnet as tn
from twinnet.cli import run as command_line
from twinnet.errors import BadPolicy, BadValue
from twinnet.network import templates
from twinnet.policies import find_policy
from twinnet.report.policy_samples import profile_samples
from twinnet.study.plan import plan_study
from twinnet.study.policy_of import load_of
from twinnet.study.resolution import load_study
from twinnet.study.store import ResultStore

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


def test_a_mean_is_the_same_in_the_study_and_where_policies_are_compared(tmp_path: Path) -> None:
    options = ["--preset", "tiny", "--no-report", "--out", str(tmp_path)]
    chosen = ["--set", "levels.profile=basic-leaf destination-core source-core"]
    assert command_line(["run", "qos-class-profiles", *options, *chosen]) == 0
    results = tn.results.load(tmp_path / "qos-class-profiles")
    runs = [
        one for one in ResultStore(tmp_path / "qos-class-profiles").all_runs() if one.record["status"] == "finished"
    ]
    compared = {one.levels["profile"]: one.values for one in profile_samples(runs)}

    def mean(measured: str, profile: str) -> float:
        return results.value(f"mean({measured}, profile={profile})").estimate

    for measured, name, unit in (
        ("client_rate", "transfer_rate", 8e3),
        ("video_rate", "video_rate", 1e3),
        ("video_read_rate", "video_read_rate", 1e3),
        ("round_trip", "round_trip", 1e-3),
    ):
        for profile in ("basic-leaf", "destination-core"):
            there = unit * sum(compared[profile][name]) / len(compared[profile][name])
            assert mean(measured, profile) == pytest.approx(there), (measured, profile)
    # Six clients have 3.06 to 3.15 Mbit/s each; the sum of all stood beside what was published of one.
    assert mean("client_rate", "basic-leaf") == pytest.approx(3.11e6, rel=0.005)
    assert mean("transfer_rate", "basic-leaf") == pytest.approx(6 * 3.11e6, rel=0.01)
    # One viewer of six had nothing to play; pairs with few replies count as much as others.
    assert mean("video_rate", "destination-core") == pytest.approx(5 / 6 * 111.4e3, rel=0.001)
    assert mean("round_trip", "destination-core") > 1.05 * mean("echo_time", "destination-core")


def test_groups_of_sources_are_of_clients_unless_servers_are_asked_for() -> None:
    network = templates.client_tree(clients=6, layers=1, servers=6, rate="100 Mbit")
    load = load_of(load_study("qos-class-profiles", preset="tiny").specification)
    groups: dict[str, list[str]] = {}
    for parts_of in ("clients", "servers"):
        policy = find_policy("source-cbq", {"parts_of": parts_of})
        groups[parts_of] = [
            host for one in policy.classes(network, load) for match in one.matches for host in match.source or ()
        ]
    assert groups == {"clients": ["h1", "h2", "h3", "h4"], "servers": ["v1", "v2", "v3", "v4"]}
    with pytest.raises(BadPolicy, match="groups are parts of 'hosts'"):
        find_policy("source-cbq", {"parts_of": "hosts"})


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
        ("bandwidth_in", "bandwidth_out", "transfer_rate", "request_time", "echo_time"), (90.0, 210.0)
    )
    assert not any(one.window for one in load_study("qos-class-profiles").specification.measurements.values())
