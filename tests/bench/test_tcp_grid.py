"""The grid of TCP flows: which cells there are, how they share labs, and how two measurements are compared."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

import pytest
from kernels_here import needs_a_kernel

from bench import host_turnaround, tcp_grid, tcp_grid_table
from bench.host_turnaround import Frame, turnarounds_us
from bench.tcp_grid import PROCESSING, Cell, batches, grid, measure, network
from bench.tcp_grid_table import compare, page, summary


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
    told = {"fidelity": {"verdict": verdict}, "clock": "wall"} if verdict else {"clock": "virtual"}
    of_run = {"seed": 1, "lab": "l", "place": place, "seconds": 30, "processing": None if verdict else "none"}
    return {**asdict(cell), "goodput_bps": goodput_bps, **of_run, **told}


def test_cells_outside_of_the_tolerance_are_listed_and_missed_schedules_left_out() -> None:
    near, far, doubted = (Cell(rate, 50, 1.0, 0.0, "cubic") for rate in (2, 10, 100))
    record = {
        "rows": [
            row(near, 1.0e6, "valid"),
            row(near, 1.2e6, "valid", place=1),
            row(far, 5e6, "valid"),
            row(doubted, 1e6, "invalid"),
            row(near, 1.15e6),
            row(near, 1.13e6, place=1),
            row(far, 6e6),
            row(doubted, 9e7),
        ]
    }
    pairs = compare(record, "none")
    assert [pairs[cell].difference for cell in (near, far)] == pytest.approx([0.036, 0.2], abs=0.001)
    assert pairs[doubted].linux is None
    assert "| cubic | 81 | 2 | 1 (50% of the measured, 1% of all) |" in summary(pairs)
    text = page(record)
    assert "| cubic | 10 Mbit/s | 50 ms | 1 BDP | 0.0% | 5.00 | 6.00 | +20.0% | not known" in text
    assert "241 of 243 cells have no valid run" in text
    assert "- cubic, 100 Mbit/s, 50 ms, 1 BDP, 0.0% loss" in text
    assert sum(line.startswith("| ") and "BDP" in line for line in text.split("## Every cell")[1].splitlines()) == 243


def test_a_doubtful_run_is_no_agreement_and_gives_way_to_a_valid_one() -> None:
    only, both = (Cell(rate, 50, 1.0, 0.0, "cubic") for rate in (2, 10))
    record = {
        "rows": [
            row(only, 1.8e6, "doubtful"),
            row(only, 1.8e6),
            row(both, 1e6, "doubtful"),
            row(both, 9.5e6, "valid", place=1),
            row(both, 9.5e6),
            row(both, 9.5e6, place=1),
        ]
    }
    pairs = compare(record, "none")
    assert (pairs[only].basis, pairs[only].difference, pairs[only].within(0.05)) == ("doubtful runs", 0, False)
    assert (pairs[both].basis, pairs[both].by_run) == ("valid runs", ((9.5e6, 9.5e6),))
    assert pairs[both].within(0.05)
    text = page(record)
    assert "| easy: Linux fills 90% of the line | 2 | 1 (50%) |" in text
    assert "| doubtful runs | 1 | 1 | not as agreement |" in text and "| valid runs | 1 | 1 | yes |" in text
    listed = text.split("## Cells of which only doubtful runs tell")[1].split("## Cells that are not measured")[0]
    assert "| cubic | 2 Mbit/s |" in listed and "| cubic | 10 Mbit/s |" not in listed
    assert "seed 1: doubtful, commit not kept |" in text


def test_more_runs_are_made_where_the_clocks_differ_or_no_run_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alike, apart, doubted, absent = (Cell(2, rtt, 4.0, 0.0, "reno") for rtt in (10, 50, 200, 10))
    absent = Cell(10, 10, 4.0, 0.0, "reno")
    rows = [row(alike, 1e6, "valid"), row(alike, 1.04e6), row(apart, 1e6, "valid"), row(apart, 1.06e6)]
    rows += [row(doubted, 1e6, "doubtful"), row(doubted, 1e6)]
    for one in rows:
        one.update(lab=tcp_grid.lab_name([(tcp_grid.cell_of(one), 0)]), replica=0)
        one["processing"] = "measured" if one["clock"] == "virtual" else None
    path = tmp_path / "grid.json"
    path.write_text(json.dumps({"machines": [], "rows": rows}))
    asked: list[tuple[Cell, int]] = []

    def measured(flows: list[Any], clock: str, seed: int, *_: object) -> list[dict[str, Any]]:
        ((cell, replica),) = flows
        asked.append((cell, seed))
        return [{**row(cell, 1e6, "valid"), "seed": seed, "lab": tcp_grid.lab_name(flows), "replica": replica}]

    monkeypatch.setattr(tcp_grid, "measure", measured)
    monkeypatch.setattr(tcp_grid.Quiet, "wait", lambda self: None)
    only = ["--only", "rate_mbit=2,10", "--only", "buffer_bdp=4.0", "--only", "loss=0.0", "--only", "algorithm=reno"]
    monkeypatch.setattr("sys.argv", ["tcp_grid", "--alone", "--differing", "3", "--json", str(path), *only])
    assert tcp_grid.main() == 0
    assert {seed for cell, seed in asked if cell == alike} == set()
    assert {seed for cell, seed in asked if cell == apart} == {2, 3}
    # A doubtful run of the first seed is there; valid ones of others stand beside it.
    assert {seed for cell, seed in asked if cell == doubted} == {2, 3}
    # What has no run yet is for --missing.
    assert {seed for cell, seed in asked if cell == absent} == set()


def test_a_mean_without_its_runs_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell(10, 50, 1.0, 0.0, "reno")
    earlier = [{**asdict(cell), "runs": 1, "mean_mbit": 8.0, "least_mbit": 8.0, "most_mbit": 8.0}]
    path = tmp_path / "grid.json"
    path.write_text(json.dumps({"machines": [], "earlier": earlier, "rows": []}))
    asked: list[Cell] = []

    def measured(flows: list[Any], clock: str, seed: int, *_: object) -> list[dict[str, Any]]:
        asked.append(flows[0][0])
        return [{**row(flows[0][0], 8e6, "valid"), "lab": tcp_grid.lab_name(flows), "replica": 0}]

    monkeypatch.setattr(tcp_grid, "measure", measured)
    monkeypatch.setattr(tcp_grid.Quiet, "wait", lambda self: None)
    only = ["rate_mbit=10", "rtt_ms=50", "buffer_bdp=1.0", "loss=0.0", "algorithm=reno"]
    narrowed = [word for condition in only for word in ("--only", condition)]
    monkeypatch.setattr("sys.argv", ["tcp_grid", "--alone", "--missing", "--json", str(path), *narrowed])
    for _ in range(2):
        assert tcp_grid.main() == 0
        assert asked == [cell]


def test_runs_are_paired_by_the_losses_that_they_met() -> None:
    cell = Cell(10, 200, 4.0, 0.01, "cubic")
    # The runs differ far more among each other than the clocks do in any of them.
    linux = [row(cell, goodput, "valid", place) for place, goodput in enumerate((1e6, 2e6, 3e6, 4e6))]
    model = [row(cell, goodput, place=place) for place, goodput in enumerate((1.1e6, 2.11e6, 3.1e6, 4.09e6))]
    record = {"rows": [*linux, *model, row(cell, 9e6, place=7)]}
    pair = compare(record, "none")[cell]
    # The runs are 10, 5.5, 3.3 and 2.25 % apart.
    assert "half are less than 4.4% apart" in page(record)
    assert [model for _, model in pair.by_run] == [1.1e6, 2.11e6, 3.1e6, 4.09e6]
    assert pair.interval is not None
    assert pair.interval[0] == pytest.approx(0.0348, abs=0.001)
    assert pair.interval[1] == pytest.approx(0.0452, abs=0.001)


def test_a_mean_of_an_earlier_measurement_counts_until_a_run_is_on_record() -> None:
    cell = Cell(10, 50, 1.0, 0.0, "reno")
    earlier = [{**asdict(cell), "runs": 1, "mean_mbit": 8.0, "least_mbit": 8.0, "most_mbit": 8.0}]
    model = {**row(cell, 8.4e6), "lab": "then"}
    assert compare({"earlier": earlier, "rows": [model]}, "none")[cell].difference == pytest.approx(0.05)
    later = [row(cell, 8.1e6), row(cell, 9e6, "valid")]
    assert compare({"earlier": earlier, "rows": [model, *later]}, "none")[cell].difference == pytest.approx(-0.1)


def test_runs_of_other_lengths_are_not_compared() -> None:
    cell = Cell(10, 50, 1.0, 0.0, "cubic")
    short = {**row(cell, 9e6, "valid"), "seconds": 10}
    alike = {**row(cell, 8.1e6), "seconds": 10}
    found = compare({"rows": [short, row(cell, 9e6), alike]}, "none")[cell]
    assert found.by_run == ((9e6, 8.1e6),)


def test_the_page_says_what_the_record_says() -> None:
    record = json.loads(tcp_grid_table.RECORD.read_text())
    # Make it anew: python -m bench.tcp_grid_table --page docs/explanation/tcp-beside-linux.md
    assert page(record) == tcp_grid_table.PAGE.read_text()


@pytest.mark.parametrize("processing", list(PROCESSING))
def test_the_models_goodput_in_the_record_is_what_the_model_gives(processing: str) -> None:
    record = json.loads(tcp_grid_table.RECORD.read_text())
    labs: dict[str, list[dict[str, Any]]] = {}
    for one in record["rows"]:
        if one["clock"] == "virtual" and one["processing"] == processing:
            labs.setdefault(one["lab"], []).append(one)
    # The lab of one flow of 2 Mbit/s for 60 s takes a second; all labs together take minutes.
    (lab,) = min(labs.values(), key=lambda rows: (len(rows), rows[0]["rate_mbit"]))
    cell = Cell(**{name: lab[name] for name in Cell.__dataclass_fields__})
    (found,) = measure([(cell, lab["replica"])], "virtual", lab["seed"], processing=processing)
    assert found["goodput_bps"] == lab["goodput_bps"]


def test_a_hosts_time_is_that_between_an_acknowledgement_and_the_first_segment_after_it() -> None:
    frames = [
        Frame(0.0, False, 0),
        # 12.3 us of it are the line's.
        Frame(42.304e-6, True, 1448),
        Frame(55e-6, True, 1448),
        Frame(1.0, False, 0),
        Frame(1.1, False, 0),
        Frame(1.2, True, 1448),
        Frame(2.0, False, 0),
        Frame(2.00005, True, 100),
    ]
    (found,) = turnarounds_us(frames)
    assert found == pytest.approx((0.0, 30.0))


def test_the_processing_time_of_the_grid_is_what_was_measured() -> None:
    values = [value for run in host_turnaround.read(host_turnaround.FILE).values() for value in run]
    assert len(values) > 1000
    # Rounded to 10 us: three runs of one sitting are that far apart from each other.
    assert PROCESSING["measured"]["processing"] == f"{round(mean(values), -1):.0f} us"
    assert PROCESSING["measured"]["processing_jitter"] == f"{round(pstdev(values), -1):.0f} us normal"


def test_a_flow_alone_is_measured_until_its_lab_keeps_its_schedule_and_then_never_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "grid.json"
    verdicts = iter(["invalid", "invalid", "invalid", "doubtful"])
    asked: list[Cell] = []

    def measured(flows: list[Any], clock: str, seed: int, *_: object) -> list[dict[str, Any]]:
        ((cell, replica),) = flows
        asked.append(cell)
        told = row(cell, 1e6, next(verdicts))
        return [{**told, "lab": tcp_grid.lab_name(flows), "seconds": 30, "replica": replica}]

    monkeypatch.setattr(tcp_grid, "measure", measured)
    monkeypatch.setattr(tcp_grid.Quiet, "wait", lambda self: None)
    only = ["rate_mbit=2", "rtt_ms=10", "buffer_bdp=4.0", "loss=0.0", "algorithm=reno"]
    narrowed = [word for condition in only for word in ("--only", condition)]
    monkeypatch.setattr(
        "sys.argv", ["tcp_grid", "--alone", "--missing", "--json", str(path), "--attempts", "2", *narrowed]
    )
    for expected_runs, verdict in ((2, "invalid"), (4, "doubtful"), (4, "doubtful")):
        assert tcp_grid.main() == 0
        assert len(asked) == expected_runs
        (kept,) = json.loads(path.read_text())["rows"]
        assert kept["fidelity"]["verdict"] == verdict


def test_linux_on_the_virtual_clock_goes_before_linux_on_the_wall() -> None:
    cell = Cell(10, 50, 1.0, 0.0, "reno")
    exact = {**row(cell, 9e6), "clock": "programs", "processing": None, "trace": "00ff", "date": "d", "commit": "c"}
    record = {"rows": [row(cell, 8e6, "valid"), exact, row(cell, 9.1e6)]}
    pair = compare(record, "none")[cell]
    assert (pair.basis, pair.by_run) == ("runs on the virtual clock", ((9e6, 9.1e6),))
    text = page(record)
    assert "| runs on the virtual clock | 1 | 1 | yes |" in text
    assert "| valid runs | 1 | 0 | +12.5% | +12.5% |" in text.split("## Linux on both clocks")[1]
    assert "seed 1: trace 00ff, d, c" in text


def test_only_random_losses_are_drawn_again_on_the_virtual_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[float, int]] = []

    def measured(flows: list[Any], clock: str, seed: int, *_: object) -> list[dict[str, Any]]:
        ((cell, replica),) = flows
        asked.append((cell.loss, seed))
        told = {"clock": clock, "processing": None, "seed": seed, "replica": replica, "lab": tcp_grid.lab_name(flows)}
        return [{**row(cell, 1e6), **told}]

    monkeypatch.setattr(tcp_grid, "measure", measured)
    only = ["--only", "rate_mbit=2", "--only", "rtt_ms=10", "--only", "buffer_bdp=4.0", "--only", "algorithm=reno"]
    words = ["tcp_grid", "--clock", "programs", "--alone", "--repetitions", "3", "--json", str(tmp_path / "g"), *only]
    monkeypatch.setattr("sys.argv", words)
    for _ in range(2):
        assert tcp_grid.main() == 0
        assert sorted(asked) == [(0.0, 1), *((loss, seed) for loss in (0.001, 0.01) for seed in (1, 2, 3))]
    assert {one["machine"] for one in json.loads((tmp_path / "g").read_text())["rows"]} == {0}


@needs_a_kernel
def test_linux_on_the_virtual_clock_fills_a_line_and_is_the_same_twice() -> None:
    cell = Cell(2, 10, 4.0, 0.0, "reno")
    (first,), (second,) = (measure([(cell, 0)], "programs", 1, short=True) for _ in range(2))
    # 1448 of 1538 bytes are payload: 1.883 Mbit/s.
    assert 1.8e6 < first["goodput_bps"] <= 1.884e6
    assert (first["goodput_bps"], first["trace"]) == (second["goodput_bps"], second["trace"])
