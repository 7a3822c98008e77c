"""The grid of TCP flows: which cells there are, how they share labs, and how two measurements are compared."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from bench.tcp_grid import Cell, batches, grid, network
from bench.tcp_grid_table import compare, page, table


def test_grid_has_every_combination_once_and_can_be_narrowed() -> None:
    assert len(set(grid())) == 3**5
    assert {cell.algorithm for cell in grid(["rate_mbit=2,10", "algorithm=bbr"])} == {"bbr"}
    assert len(grid(["rate_mbit=2,10", "algorithm=bbr"])) == 2 * 27
    with pytest.raises(ValueError, match="names no field"):
        grid(["speed=2"])


def test_labs_are_as_full_as_one_can_carry_and_of_one_length() -> None:
    flows = [(cell, replica) for cell in grid() for replica in range(3)]
    labs = list(batches(flows))
    assert sorted(repr(flow) for lab in labs for flow in lab) == sorted(map(repr, flows))
    assert all(len({(cell.seconds(), cell.rate_mbit) for cell, _ in lab}) == 1 for lab in labs)
    assert max(len(lab) for lab in labs if lab[0][0].rate_mbit == 2) == 40
    undisturbed = [len(lab) for lab in labs if all(cell.rate_mbit == 100 and not cell.loss for cell, _ in lab)]
    assert max(undisturbed) == 4


def test_random_losses_bound_what_a_flow_is_expected_to_carry() -> None:
    # Mathis, Semke, Mahdavi, Ott 1997: 1448 bytes / 50 ms x sqrt(3 / 2) / sqrt(1 %).
    assert Cell(10, 50, 1.0, 0.01, "reno").expected_mbit == pytest.approx(2.84, abs=0.01)
    assert Cell(2, 50, 1.0, 0.01, "reno").expected_mbit == 2
    assert Cell(10, 50, 1.0, 0.01, "bbr").expected_mbit == 10


def test_buffer_is_a_share_of_the_product_and_never_below_two_frames() -> None:
    assert Cell(10, 50, 1.0, 0.0, "cubic").buffer_bytes == 62_500
    assert Cell(2, 10, 0.25, 0.0, "cubic").buffer_bytes == 2 * 1514


def test_network_has_the_round_trip_and_the_loss_on_the_way_there_only() -> None:
    spec = network([Cell(10, 50, 1.0, 0.01, "cubic")], seed=3).to_spec()
    bottleneck = spec["links"][2]
    assert (bottleneck["ab"]["rate_bps"], bottleneck["ab"]["delay_ps"] + bottleneck["ba"]["delay_ps"]) == (
        10**7,
        5 * 10**10,
    )
    assert (bottleneck["ab"]["loss"], bottleneck["ba"]["loss"]) == ({"model": "bernoulli", "probability": 0.01}, None)


def row(cell: Cell, goodput_bps: float | None, verdict: str | None = None, place: int = 0) -> dict[str, Any]:
    kept = {"verdict": verdict} if verdict else None
    return {**asdict(cell), "goodput_bps": goodput_bps, "fidelity": kept, "seed": 1, "lab": "l", "place": place}


def test_cells_outside_of_the_tolerance_are_listed_and_missed_schedules_left_out() -> None:
    near, far, doubted = (Cell(rate, 50, 1.0, 0.0, "cubic") for rate in (2, 10, 100))
    linux = [
        row(near, 1.0e6, "valid"),
        row(near, 1.2e6, "doubtful", place=1),
        row(far, 5e6, "valid"),
        row(doubted, 1e6, "invalid"),
    ]
    model = [row(near, 1.15e6), row(near, 1.13e6, place=1), row(far, 6e6), row(doubted, 9e7)]
    pairs = compare(linux, model)
    assert [round(pair.difference, 3) for pair in pairs] == [0.036, 0.2]
    text = table(pairs, 0.05)
    assert "| cubic | 2 | 1 (50%) |" in text
    assert "| cubic | 10 Mbit/s | 50 ms | 1 BDP | 0.0% | 5.00 | 6.00 | +20.0% |" in text
    assert "2 Mbit/s" not in text


def test_runs_are_paired_by_the_losses_that_they_met() -> None:
    cell = Cell(10, 200, 4.0, 0.01, "cubic")
    # The runs differ far more among each other than the clocks do in any of them.
    linux = [row(cell, goodput, "valid", place) for place, goodput in enumerate((1e6, 2e6, 3e6, 4e6))]
    model = [row(cell, goodput, place=place) for place, goodput in enumerate((1.1e6, 2.11e6, 3.1e6, 4.09e6))]
    alone = row(cell, 9e6, place=7)
    (pair,) = compare(linux, [*model, alone])
    # The runs are 10, 5.5, 3.3 and 2.25 % apart.
    assert "half are less than 4.4% apart" in page([pair], 0.05)
    assert pair.model == (1.1e6, 2.11e6, 3.1e6, 4.09e6)
    assert pair.interval is not None
    assert pair.interval[0] == pytest.approx(0.0348, abs=0.001)
    assert pair.interval[1] == pytest.approx(0.0452, abs=0.001)
