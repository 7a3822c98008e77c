"""The plan: which runs, in which order, with which seeds and names."""

import hashlib
from collections import Counter

import pytest
from twinnet.study.network_of import network_of
from twinnet.study.plan import derived_seed, plan_study
from twinnet.study.resolution import built_in_studies, load_study


def plan(**settings):
    return plan_study(load_study("tcp-udp-queues", settings))


def test_every_combination_is_repeated():
    runs = plan(repetitions="3")
    assert Counter(run.levels["queues"] for run in runs) == {"shared": 3, "separate": 3}
    assert [run.repetition for run in runs] == [1, 1, 2, 2, 3, 3]
    assert len({run.seed for run in runs}) == 6


def test_the_names_are_readable_and_stable():
    runs = plan(repetitions="1")
    assert [run.id.rsplit("-", 1)[0] for run in runs] == ["shared-01", "separate-01"]
    assert [run.id for run in plan(repetitions="1")] == [run.id for run in runs]


def test_a_seed_is_the_same_on_every_machine():
    assert derived_seed(1, {"queues": "shared"}, 1) == 1914677418061611575


def test_more_repetitions_keep_the_runs_that_are_there_and_wording_changes_nothing():
    few, many = plan(repetitions="2"), plan(repetitions="3", title="Another title")
    assert [run.id for run in few] == [run.id for run in many][:4]


def test_the_threads_that_move_a_network_change_no_run():
    threads = plan(**{"network.fabric_threads": "2"})
    assert [run.id for run in threads] == [run.id for run in plan()]
    assert all(network_of(run.specification, run.levels, run.seed).fabric_threads == 2 for run in threads)


def test_what_changes_the_work_changes_the_name():
    before = {run.id for run in plan()}
    for settings in ({"udp_rate": "500 Mbit"}, {"seed": "2"}, {"traffic.udp.payload": "1000 B"}):
        assert before.isdisjoint(run.id for run in plan(**settings)), settings


def test_the_random_order_is_a_permutation_that_the_seed_decides():
    listed, shuffled = plan(), plan(order="random")
    assert sorted(run.id for run in listed) == sorted(run.id for run in shuffled)
    assert [run.id for run in listed] != [run.id for run in shuffled]
    assert [run.id for run in shuffled] == [run.id for run in plan(order="random")]


PLANS = {
    "available-bandwidth": "663a94eaed01",
    "bandwidth-conditions": "55a96548f704",
    "mtu-sweep": "0a924df8f61b",
    "multimedia-delivery": "161887fc5c3b",
    "multimedia-fitted": "46f65a288107",
    "qos-class-profiles": "4ff54660ee3e",
    "qos-policies": "443cda25016f",
    "sending-accuracy": "b95087e7017f",
    "sending-fairness": "8b8bbac94144",
    "tcp-udp-queues": "eb5551379617",
}
"""A hash of the names of all runs of each built-in study: results that users keep go by these names."""


@pytest.mark.parametrize("name", sorted(built_in_studies()))
def test_runs_of_built_in_studies_keep_their_names(name: str) -> None:
    found = hashlib.sha256(" ".join(run.id + run.digest for run in plan_study(load_study(name, {}, None))).encode())
    # A study that itself was changed has other runs; a new setting that has its default must stay out of the digest.
    assert found.hexdigest()[:12] == PLANS[name]


@pytest.mark.parametrize(
    ("name", "usual", "other"),
    [
        ("available-bandwidth", {"switch": "own", "cross_generator": "none"}, {"switch": "ovs"}),
        ("multimedia-delivery", {"receiver": "ffmpeg"}, {"receiver": "vlc"}),
        ("sending-fairness", {"switch": "own", "payload": "1450 B"}, {"payload": "1470 B"}),
    ],
)
def test_settings_that_are_as_without_them_change_no_run(
    name: str, usual: dict[str, str], other: dict[str, str]
) -> None:
    plain, same, changed = ({run.digest for run in plan_study(load_study(name, one))} for one in ({}, usual, other))
    assert plain == same and not plain & changed
