"""What travels is data and is looked at before it is used; and which slot gets which run."""

from __future__ import annotations

import hashlib
import json
import pickle
import struct
import threading
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from campaign import STUDY
from fluid_lab import FluidLab
from hypothesis import given, settings
from hypothesis import strategies as st
from twinnet.cluster import messages, remote_run
from twinnet.cluster.address import parse_address
from twinnet.cluster.engine import ClusterError
from twinnet.cluster.made_twice import compare_machines
from twinnet.cluster.messages import Asked, apart, made_from, packed_made, packed_together, study_message
from twinnet.cluster.places import ClusterPlaces, RemoteSlot
from twinnet.cluster.remote_run import SLOT, SlotState, make_for_client, study_digest
from twinnet.results.tables import TABLES
from twinnet.study.gather import DifferentTraces
from twinnet.study.plan import PlannedRun, plan_study
from twinnet.study.resolution import Study, load_study
from twinnet.study.runner import Made, Progress, make_run
from twinnet.study.store import Measured, ResultStore, StoredRun

TINY = load_study("tcp-udp-queues", {"clock": "virtual", "repetitions": "3"}, preset="tiny")
PLAN = plan_study(TINY)
MADE = make_run(PLAN[0], FluidLab(), Progress(threading.Event()), 2)
PACKED = packed_made(PLAN[0], MADE)


def test_a_run_that_travelled_is_the_run_that_was_made() -> None:
    came = made_from(PACKED, PLAN[0])
    assert isinstance(came, Made) and isinstance(came.result, Measured) and isinstance(MADE.result, Measured)
    assert came.record == MADE.record
    assert came.result.fidelity.verdict == MADE.result.fidelity.verdict
    for name in ("flows", "intervals", "port_samples", "fidelity_samples", "packets"):
        assert getattr(came.result, name).equals(getattr(MADE.result, name))


def test_a_run_that_failed_travels_as_its_error() -> None:
    failed = Made(MADE.record, {"name": "LabError", "message": "no such luck"})
    assert made_from(packed_made(PLAN[0], failed), PLAN[0]) == failed


BEGIN = 44
"""Bytes before the JSON object of a message."""


def header_changed(change: Mapping[str, object]) -> bytes:
    length = struct.unpack_from("<8sI", PACKED)[1]
    head = json.dumps({**json.loads(PACKED[BEGIN : BEGIN + length]), **change}).encode()
    return sealed(len(head), head + PACKED[BEGIN + length :])


def sealed(length: int, content: bytes) -> bytes:
    """A message whose sum is right, whatever it holds."""
    return struct.pack("<8sI32s", b"twinrun2", length, hashlib.sha256(content).digest()) + content


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (pickle.dumps({"status": "finished", "run": "x" * 60}), "does not begin as a message"),
        ("text", "no message of a worker"),
        (b"", "no message of a worker"),
        (PACKED[:-10], "is cut off|cannot be read"),
        (header_changed({"run": "another"}), "it is the run 'another'"),
        (header_changed({"status": "splendid"}), "its status is 'splendid'"),
        (header_changed({"tables": dict.fromkeys(TABLES, -1)}), "is cut off"),
        (header_changed({"tables": dict.fromkeys(TABLES, 10**12)}), "is cut off"),
        (header_changed({"record": {"machine": {"name": 5}}}), "does not name its machine"),
        (sealed(2**32 - 1, b"{}"), "does not begin as a message"),
        (PACKED[:100] + b"?" + PACKED[101:], "was damaged on its way"),
    ],
)
def test_what_is_no_result_of_the_run_is_refused(message: object, reason: str) -> None:
    with pytest.raises(ClusterError, match=reason):
        made_from(message, PLAN[0])


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(PACKED) - 1), st.binary(min_size=1, max_size=4))
def test_a_damaged_message_is_refused_unless_the_damage_changes_nothing(place: int, damage: bytes) -> None:
    damaged = PACKED[:place] + damage + PACKED[place + len(damage) :]
    if damaged == PACKED:
        assert isinstance(made_from(damaged, PLAN[0]), Made)
        return
    with pytest.raises(ClusterError, match=PLAN[0].id):
        made_from(damaged, PLAN[0])


@settings(max_examples=300, deadline=None)
@given(st.integers(0, struct.unpack_from("<8sI", PACKED)[1] - 1), st.binary(min_size=1, max_size=4))
def test_a_header_of_any_bytes_is_a_result_or_refused_and_never_anything_else(place: int, damage: bytes) -> None:
    content = PACKED[BEGIN:]
    length = struct.unpack_from("<8sI", PACKED)[1]
    head = (content[:place] + damage + content[place + len(damage) :])[:length]
    try:
        assert isinstance(made_from(sealed(length, head + content[length:]), PLAN[0]), (Made, tuple))
    except ClusterError as error:
        assert PLAN[0].id in str(error)


def test_a_table_with_other_columns_is_refused() -> None:
    assert isinstance(MADE.result, Measured)
    swapped = replace(MADE.result, flows=MADE.result.intervals)
    with pytest.raises(ClusterError, match="its table flows has the columns"):
        made_from(packed_made(PLAN[0], Made(MADE.record, swapped)), PLAN[0])


def test_a_table_of_more_rows_than_are_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MOST_ROWS", 0)
    with pytest.raises(ClusterError, match="its table flows has more than 0 rows"):
        made_from(PACKED, PLAN[0])


def test_what_a_worker_packed_is_stored_as_it_came(tmp_path: Path) -> None:
    came = made_from(PACKED, PLAN[0])
    assert isinstance(came, Made) and isinstance(came.result, Measured) and isinstance(MADE.result, Measured)
    far = ResultStore(tmp_path / "far").write_finished(PLAN[0], came.record, came.result)
    near = ResultStore(tmp_path / "near").write_finished(PLAN[0], MADE.record, MADE.result)
    for name in came.result.parquet:
        assert (far.folder / f"{name}.parquet").read_bytes() == (near.folder / f"{name}.parquet").read_bytes()
    assert far.on_disk().record == far.record


def test_a_result_that_is_too_large_becomes_a_failure_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "LARGEST_MESSAGE_BYTES", len(PACKED) - 1)
    told = made_from(packed_made(PLAN[0], MADE), PLAN[0])
    assert isinstance(told, Made) and isinstance(told.result, Mapping)
    assert told.result["name"] == "TooLarge"
    assert f"at most {len(PACKED) - 1} travel" in told.result["message"]


@pytest.fixture
def small(tmp_path: Path) -> Study:
    (tmp_path / "load.yaml").write_text(STUDY)
    return load_study(tmp_path / "load.yaml", {"clock": "virtual", "time": "1 s"})


def request_of(study: Study, **changes: object) -> bytes:
    run = plan_study(study)[0]
    digest = study_digest(study_message(study))
    asked = Asked(run.id, run.digest, dict(run.levels), run.repetition, digest, "auto", "auto")
    return json.dumps({**asdict(asked), **changes}).encode()


def answered(attempt: str, request: bytes, study: bytes | None, run: PlannedRun) -> Made | tuple[str, str]:
    """What a slot answers to one request."""
    return made_from(apart(make_for_client(attempt, [request], study), 1)[0], run)


def test_a_slot_asks_for_a_study_that_it_does_not_know_and_keeps_it(
    small: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SLOT, "studies", SlotState().studies)
    run = plan_study(small)[0]
    assert answered("a", request_of(small), None, run) == ("study wanted", "")
    assert isinstance(answered("b", request_of(small), study_message(small), run), Made)
    assert isinstance(answered("c", request_of(small), None, run), Made)
    assert not SLOT.going


def test_a_slot_refuses_a_run_that_it_plans_otherwise_and_one_on_the_wall_clock(
    small: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = plan_study(small)[0]
    for changes, reason in (
        ({"digest": "0"}, "client and worker are not of the same build"),
        ({"levels": {"queue": "wide"}}, "has no run"),
        ({"repetition": 99}, "has no run"),
        ({"unknown": 1}, "the request for a run cannot be read"),
    ):
        told = answered("a", request_of(small, **changes), study_message(small), run)
        assert isinstance(told, tuple) and told[0] == "refused" and reason in told[1]
    monkeypatch.setattr(SLOT, "why_not", "doubtful: frames were late")
    wall = load_study(small.document.file)
    told = answered("a", request_of(wall), study_message(wall), plan_study(wall)[0])
    assert told == ("refused", "this slot takes no runs on the wall clock: doubtful: frames were late")


def test_several_runs_travel_as_one_message(small: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SLOT, "studies", SlotState().studies)
    run = plan_study(small)[0]
    requests = [request_of(small), request_of(small, repetition=99), request_of(small)]
    first, second, third = apart(make_for_client("a", requests, study_message(small)), 3)
    assert isinstance(made_from(first, run), Made) and isinstance(made_from(third, run), Made)
    refused = made_from(second, run)
    assert isinstance(refused, tuple) and refused[0] == "refused"


def test_what_does_not_fit_into_one_message_is_to_be_asked_for_again(
    small: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SLOT, "studies", SlotState().studies)
    monkeypatch.setattr(remote_run, "_MOST_TOGETHER_BYTES", 1)
    run = plan_study(small)[0]
    first, second = apart(make_for_client("a", [request_of(small)] * 2, study_message(small)), 2)
    assert isinstance(made_from(first, run), Made)
    assert made_from(second, run) == ("interrupted", "")


def test_runs_after_one_that_is_cancelled_are_not_made(small: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    run = plan_study(small)[0]
    slot = SlotState()
    monkeypatch.setattr(remote_run, "SLOT", slot)
    slot.begin("a")
    slot.cancel("a")
    answers = apart(make_for_client("a", [request_of(small)] * 2, study_message(small)), 2)
    assert [made_from(one, run) for one in answers] == [("interrupted", "")] * 2


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("text", "no message of a worker"),
        (b"", "cannot be read"),
        (packed_together([b"one", b"two"])[:-1], "is cut off"),
        (packed_together([b"one", b"two"]) + b"?", "longer than it says"),
        (packed_together([b"one"]), "does not begin as a message of 2 runs"),
        (PACKED, "does not begin as a message of 2 runs"),
    ],
)
def test_what_is_no_message_of_several_runs_is_refused(message: object, reason: str) -> None:
    with pytest.raises(ClusterError, match=reason):
        apart(message, 2)


def test_a_cancelled_run_that_does_not_end_ends_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_run, "GRACE_S", 0.01)
    ended = threading.Event()
    slot = SlotState(end_process=ended.set)
    progress = slot.begin("stubborn")
    slot.cancel("stubborn")
    assert progress.stop.is_set()
    assert ended.wait(10)


def placing(study: Study, announced: dict[str, tuple[str, int]], placed: dict[int, str] | None = None) -> ClusterPlaces:
    """The client's choice, with slots that are announced here in the scheduler's place."""
    places = ClusterPlaces(parse_address("tls://lab:1"), None, study, placed=placed)
    slots = {
        address: RemoteSlot(address, machine, number, True, "") for address, (machine, number) in announced.items()
    }
    places.slots = lambda: list(slots.values())  # type: ignore[method-assign]
    return places


def taken(places: ClusterPlaces, waiting: list) -> tuple[int, str] | None:
    found = places.take(waiting)
    return None if found is None else (waiting.pop(found[0]).repetition, found[1].machine)


def test_on_the_wall_clock_all_runs_of_a_repetition_go_to_one_machine() -> None:
    wall = load_study("tcp-udp-queues", {"clock": "wall", "repetitions": "3"}, preset="tiny")
    waiting = list(reversed(plan_study(wall)))
    places = placing(wall, {"1": ("a", 1), "2": ("b", 1), "3": ("b", 2)})
    assert taken(places, waiting) == (1, "a")
    # The other run of repetition 1 waits for machine a; repetition 2 need not.
    assert taken(places, waiting) == (2, "b")
    assert taken(places, waiting) == (2, "b")
    assert taken(places, waiting) is None
    places.free(RemoteSlot("1", "a", 1, True, ""))
    assert taken(places, waiting) == (1, "a")


def test_a_repetition_goes_on_where_it_was_begun_or_elsewhere_when_that_machine_is_gone() -> None:
    wall = load_study("tcp-udp-queues", {"clock": "wall", "repetitions": "3"}, preset="tiny")
    waiting = list(reversed(plan_study(wall)))
    places = placing(wall, {"1": ("a", 1), "2": ("b", 1)}, placed={1: "b", 2: "gone"})
    assert taken(places, waiting) == (1, "b")
    assert taken(places, waiting) == (2, "a")


def test_on_the_virtual_clock_the_next_run_goes_to_any_free_slot() -> None:
    waiting = list(reversed(PLAN))
    places = placing(TINY, {"1": ("a", 1), "2": ("b", 1)})
    assert [taken(places, waiting), taken(places, waiting), taken(places, waiting)] == [(1, "a"), (1, "b"), None]


def test_a_slot_is_given_several_short_runs_at_once_and_no_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    places = placing(TINY, {"1": ("a", 1), "2": ("b", 1)})
    monkeypatch.setattr(places, "_took_s", 0.05)
    # A quarter of a second is five of them; as many again wait.
    waiting = list(PLAN) * 10
    machines = [found[1].machine for found in iter(lambda: places.take(waiting), None)]
    assert machines.count("a") == machines.count("b") == 10
    few = placing(TINY, {"1": ("a", 1), "2": ("b", 1)})
    monkeypatch.setattr(few, "_took_s", 0.05)
    waiting = list(PLAN[:4])
    assert sorted(machine for _, machine in iter(lambda: taken(few, waiting), None)) == ["a", "a", "b", "b"]


def test_a_slot_is_given_one_long_run_or_one_on_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    wall = load_study("tcp-udp-queues", {"clock": "wall", "repetitions": "3"}, preset="tiny")
    for study, took_s in ((TINY, 0.2), (wall, 0.01)):
        places = placing(study, {"1": ("a", 1)})
        monkeypatch.setattr(places, "_took_s", took_s)
        waiting = list(reversed(plan_study(study)))
        assert taken(places, waiting) is not None
        assert taken(places, waiting) is None


class Machines:
    """Slots whose runs have the trace hash that is given for their machine, for each run or for all."""

    def __init__(self, **traces: str) -> None:
        self.traces = traces
        self.made: list[tuple[str, str]] = []

    def slots(self) -> list[RemoteSlot]:
        return [RemoteSlot(f"tls://{name}", name, 1, True, "") for name in self.traces]

    def make(self, run: PlannedRun, place: RemoteSlot, progress: Progress) -> Made:
        self.made.append((run.id, place.machine))
        assert isinstance(MADE.result, Measured)
        fidelity = replace(MADE.result.fidelity, record={"trace_hash": self.traces[place.machine]})
        return replace(MADE, result=replace(MADE.result, fidelity=fidelity))


def finished_on(machine: str, trace: str) -> list[StoredRun]:
    record = {"machine": {"name": machine}, "trace_hash": trace}
    return [StoredRun(run.id, Path(), record) for run in PLAN]


def test_two_runs_in_a_hundred_and_at_least_one_are_made_again_on_another_machine() -> None:
    machines = Machines(lab1="aa", lab2="aa", lab3="aa")
    assert compare_machines(machines, PLAN, finished_on("lab1", "aa")) == 1
    assert machines.made[0][1] in ("lab2", "lab3")
    machines.made.clear()
    assert compare_machines(machines, PLAN, finished_on("lab1", "aa"), share=0.5) == len(PLAN) // 2
    assert {machine for _, machine in machines.made} == {"lab2", "lab3"}


def test_one_machine_has_no_other_to_be_compared_with() -> None:
    machines = Machines(lab1="aa")
    assert compare_machines(machines, PLAN, finished_on("lab1", "aa")) == 0
    assert compare_machines(machines, PLAN, []) == 0
    assert machines.made == []


def test_a_run_with_another_trace_is_told_with_both_machines() -> None:
    with pytest.raises(DifferentTraces, match="has the trace hash aa on machine lab1 and bb on lab2 slot 1"):
        compare_machines(Machines(lab1="aa", lab2="bb"), PLAN, finished_on("lab1", "aa"))
