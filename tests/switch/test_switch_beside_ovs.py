"""Random flow tables and frames: our switch and Open vSwitch do the same with them.

More of it: ``python -m twinnet_conformance.differential --seed 7 --rounds 500``.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from twinnet_conformance.bare import Bare
from twinnet_conformance.bench import Bench
from twinnet_conformance.differential import Round, compare, compare_rounds, random_round
from twinnet_conformance.open_vswitch import OpenVSwitch, why_not

ROUNDS = 12


class Damaged(Bare):
    """Our switch, but that it changes the last byte of what comes out."""

    name = "damaged"

    def arrived(self) -> list[tuple[int, bytes]]:
        """Return what has come out, damaged."""
        return [(port, frame[:-1] + bytes([frame[-1] ^ 1])) for port, frame in super().arrived()]


@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
def test_random_flows_and_frames_meet_the_same_fate() -> None:
    other = OpenVSwitch()
    try:
        found = compare_rounds(1, ROUNDS, (Bare(), other))
    finally:
        other.stop()
    assert not found, "\n\n".join(str(difference) for difference in found[:3])


def test_a_round_is_the_same_for_the_same_seed() -> None:
    assert random_round(5) == random_round(5)
    assert random_round(5) != random_round(6)


def test_most_rounds_forward_and_rewrite_frames() -> None:
    found = compare(random_round(3), (Bare(), Bare()))
    assert not found
    came = 0
    for seed in range(10):
        came += len(compare(random_round(seed), (Bare(), Damaged())))
    # Half of the frames at least come out somewhere.
    assert came >= 100


def fates(given: Round) -> list[list[tuple[int, bytes]]]:
    """What our switch does with each frame of a round."""
    switch = Bare()
    switch.reset()
    bench = Bench(switch)
    for message in given.messages:
        bench.refusal(message)
    came: list[list[tuple[int, bytes]]] = []
    for number, (port, frame) in enumerate(given.frames):
        for message in given.changes.get(number, ()):
            bench.refusal(message)
        came.append(bench.frame(frame, port))
    bench.close()
    return came


def test_changes_between_frames_and_metadata_decide_the_fate_of_some() -> None:
    rounds = [random_round(seed) for seed in range(12)]
    assert sum(fates(given) != fates(replace(given, changes={})) for given in rounds) >= 6
    told = "\n".join(line for given in rounds for line in given.text)
    assert all(word in told for word in (": modify table", ": delete table", "metadata=", " metadata "))


def test_a_difference_tells_flows_frame_and_both_results() -> None:
    found = compare_rounds(0, 5, (Bare(), Damaged()))
    told = str(found[0])
    assert " by port" in told and "twinnet: port" in told and "damaged: port" in told and "table 0 priority" in told
