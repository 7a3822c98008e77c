"""Slots: which processors of a machine they take, and which take no runs on the wall clock."""

from __future__ import annotations

from pathlib import Path

import pytest
from twinnet.cluster.slots import Processor, claimed_cores, processors_here, slots_in_words, slots_on
from twinnet.errors import BadValue

NONE = frozenset[tuple[int, int]]()


def machine(nodes: int, cores: int, threads: int) -> list[Processor]:
    """A machine whose second threads are counted after all cores, as Linux does."""
    return [
        Processor(thread * nodes * cores + node * cores + core, (node, core), node)
        for thread in range(threads)
        for node in range(nodes)
        for core in range(cores)
    ]


def processors_of(made) -> list[tuple[int, ...]]:
    return [slot.processors for slot in made]


def test_each_slot_has_two_cores_of_one_node_and_shares_none() -> None:
    made = slots_on(machine(nodes=2, cores=4, threads=2), None, NONE)
    assert processors_of(made) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert all(slot.alone for slot in made)
    assert "processors 8-15 stay free of runs" in slots_in_words(machine(2, 4, 2), made)


def test_an_odd_core_stays_free_and_a_slot_never_spans_two_nodes() -> None:
    assert processors_of(slots_on(machine(nodes=2, cores=3, threads=1), None, NONE)) == [(0, 1), (3, 4)]


def test_a_node_of_one_core_is_one_slot_with_its_threads() -> None:
    assert processors_of(slots_on(machine(nodes=1, cores=1, threads=2), None, NONE)) == [(0, 1)]
    assert processors_of(slots_on(machine(nodes=1, cores=1, threads=1), None, NONE)) == [(0,)]


def test_fewer_slots_than_fit_are_alone_and_more_share_cores_and_say_so() -> None:
    here = machine(nodes=1, cores=4, threads=2)
    assert [slot.alone for slot in slots_on(here, 1, NONE)] == [True]
    three = slots_on(here, 3, NONE)
    # The third takes second threads of the first's cores; the second has its cores to itself.
    assert [(slot.processors, slot.alone) for slot in three] == [((0, 1), False), ((2, 3), True), ((4, 5), False)]
    assert "slot 3: processors 4-5; shares a core with another slot: virtual runs only" in slots_in_words(here, three)
    assert processors_of(slots_on(machine(1, 2, 1), 3, NONE)) == [(0, 1)] * 3


def test_cores_that_another_worker_has_are_not_alone() -> None:
    made = slots_on(machine(nodes=1, cores=4, threads=1), None, frozenset({(0, 2)}))
    assert [slot.alone for slot in made] == [True, False]
    here = [Processor(0, (987, 1), 0), Processor(1, (987, 2), 0)]
    first, taken = claimed_cores(here[:1])
    second, others = claimed_cores(here)
    assert (taken, others) == (NONE, frozenset({(987, 1)}))
    for claim in (*first, *second):
        claim.close()
    again, taken = claimed_cores(here)
    assert taken == NONE
    for claim in again:
        claim.close()


def test_the_machine_is_read_as_linux_tells_it(tmp_path: Path) -> None:
    for number in range(4):
        topology = tmp_path / "cpu" / f"cpu{number}" / "topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text("0\n")
        (topology / "core_id").write_text(f"{number % 2}\n")
    for node, processors in enumerate(("0,2", "1,3-3")):
        (tmp_path / "node" / f"node{node}").mkdir(parents=True)
        (tmp_path / "node" / f"node{node}" / "cpulist").write_text(f"{processors}\n")
    found = processors_here(tmp_path, {0, 1, 3})
    assert found == [Processor(0, (0, 0), 0), Processor(1, (0, 1), 1), Processor(3, (0, 1), 1)]
    assert processors_of(slots_on(found, None, NONE)) == [(0,), (1, 3)]


@pytest.mark.parametrize("count", [0, 257])
def test_a_number_of_slots_out_of_range_is_refused(count: int) -> None:
    with pytest.raises(BadValue, match=f"1 to 256 slots, not {count}"):
        slots_on(machine(1, 2, 1), count, NONE)
