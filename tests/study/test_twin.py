"""A study on both clocks compared: verdicts, tolerances, where they part, and that a bad emulation blames no model."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from fluid_lab import FluidLab
from twinnet.cli import run as command_line
from twinnet.cli.twin_command import run_twin
from twinnet.errors import UsageError
from twinnet.report.twin_figures import twin_figures
from twinnet.report.twin_report import twin_record
from twinnet.study.campaign import Campaign
from twinnet.study.parting import find_parting
from twinnet.study.predicate import Names
from twinnet.study.quantity import parse_quantity
from twinnet.study.resolution import Study, built_in_studies, load_study, read_study
from twinnet.study.store import ResultStore
from twinnet.study.tolerance import Tolerance, parse_tolerance
from twinnet.study.twin import Twin, TwinResult, _difference, _incomplete, _judged, study_on
from twinnet.yaml_source import parse_yaml

NEAR = "{tolerance: {throughput: 3 % or 100 kbit, egress: 3 %}}"
Shares = Callable[[str, str, float], float]


def tiny(repetitions: int = 4, twin: str = "") -> Study:
    """The built-in study at its smallest size, with another block `twin` when one is given."""
    text = built_in_studies()["tcp-udp-queues"].read_text(encoding="utf-8")
    if twin:
        # Without its statements, which are of no concern here.
        text = f"{text[: text.index('twin:')]}twin: {twin}\n"
    return read_study(parse_yaml(text, "study.yaml"), {"repetitions": str(repetitions)}, "tiny", text)


def equal(clock: str, protocol: str, time_s: float) -> float:
    return 1.0


def tcp_is_slower_on_the_wall_after_a_second(clock: str, protocol: str, time_s: float) -> float:
    return 0.7 if (clock, protocol) == ("wall", "tcp") and time_s >= 1.0 else 1.0


def made(folder: Path, study: Study, shares: Shares = equal, verdict: str = "valid") -> Twin:
    store = ResultStore(folder)
    assert (
        run_twin(Campaign(study, FluidLab(verdict, share=shares), store.folder), with_report=False, as_json=True) == 0
    )
    return Twin(study, store)


def of(twin: Twin, measurement: str, label: str, **levels: str) -> list[TwinResult]:
    return [
        one
        for one in twin.results
        if (one.measurement, one.label) == (measurement, label) and dict(one.levels) == levels
    ]


def test_both_clocks_have_the_same_levels_and_seeds() -> None:
    study = tiny()
    wall, virtual = (Twin(study, ResultStore(Path("nowhere"))).wall, Twin(study, ResultStore(Path("nowhere"))).virtual)
    assert [(run.levels, run.seed) for run in wall.planned] == [(run.levels, run.seed) for run in virtual.planned]
    assert not {run.id for run in wall.planned} & {run.id for run in virtual.planned}


def test_equal_clocks_agree_and_the_table_says_so(tmp_path: Path) -> None:
    twin = made(tmp_path, tiny(twin=NEAR))
    verdicts = {one.verdict for one in twin.results if one.unit == "bit/s"}
    assert verdicts == {"agrees"}
    table = pl.read_parquet(tmp_path / "twin.parquet")
    assert table.height == len(twin.results)
    assert set(table["wall_runs"]) == {4}
    assert set(table.filter(pl.col("unit") == "bit/s")["tolerance_stated"]) == {True}


def test_a_difference_is_told_with_where_it_begins_and_what_fidelity_measured_there(tmp_path: Path) -> None:
    twin = made(tmp_path, tiny(twin=NEAR), tcp_is_slower_on_the_wall_after_a_second)
    early, late = of(twin, "throughput", "tcp", queues="separate")
    assert (early.phase, late.phase) == ((0.0, 2.0), (2.0, 3.0))
    assert (early.verdict, late.verdict) == ("differs", "differs")
    assert early.difference.high < -early.allowed < 0
    assert early.parting is not None
    assert early.parting.first_s == 1.0
    assert (early.parting.sustained_from_s, early.parting.sustained_s) == (1.0, 1.0)
    assert early.parting.share == pytest.approx(0.5)
    assert 1.0 <= early.parting.worst_s < 2.0
    assert early.moment is not None
    # The fluid lab's record slips by 3 ms more in each half second.
    assert early.moment.slipped_ms == pytest.approx(3.0 * int(early.parting.worst_s / 0.5))
    assert early.test is not None
    assert early.test.statistic == pytest.approx(0.5, abs=0.2)
    assert {one.verdict for one in of(twin, "throughput", "udp", queues="shared")} == {"agrees"}


@pytest.mark.parametrize("state", ["doubtful", "invalid"])
def test_an_emulation_that_did_not_keep_its_schedule_is_never_held_against_the_model(
    tmp_path: Path, state: str
) -> None:
    twin = made(tmp_path, tiny(twin='{default: "3 %"}'), tcp_is_slower_on_the_wall_after_a_second, state)
    slow = of(twin, "throughput", "tcp", queues="separate")
    assert {one.verdict for one in slow} == {"cannot tell"}
    assert all(state in one.why for one in slow)
    assert "differs" not in {one.verdict for one in twin.results}
    # It is shown all the same.
    assert slow[0].parting is not None
    assert slow[0].parting.first_s == 1.0


def test_agreement_with_a_doubtful_emulation_is_worth_as_little_as_a_difference(tmp_path: Path) -> None:
    twin = made(tmp_path, tiny(twin='{default: "90 %"}'), verdict="doubtful")
    assert {one.verdict for one in twin.results} == {"cannot tell"}


def test_one_repetition_cannot_tell(tmp_path: Path) -> None:
    twin = made(tmp_path, tiny(1))
    assert {one.verdict for one in twin.results} == {"cannot tell"}
    assert all("repeat at least twice" in one.why for one in twin.results)


def test_a_metric_has_its_own_tolerance_or_its_measurements_or_the_default(tmp_path: Path) -> None:
    stated = "{tolerance: {throughput_udp: 2 %, throughput: 0.01 * link_rate}, default: 50 %}"
    twin = made(tmp_path, tiny(twin=stated))
    (udp, *_), (tcp, *_) = (of(twin, "throughput", name, queues="shared") for name in ("udp", "tcp"))
    assert (udp.tolerance.text, udp.tolerance.stated) == ("2 %", True)
    assert tcp.allowed == pytest.approx(1e6)
    lost = of(twin, "lost", "udp", queues="shared")[0]
    assert (lost.tolerance.text, lost.tolerance.stated) == ("50 %", False)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("{tolerance: {throughputs: 2 %}}", "twin.tolerance.throughputs: there is no such metric; did you mean"),
        ("{tolerance: {throughput_sctp: 2 %}}", "twin.tolerance.throughput_sctp: there is no such metric"),
        ("{tolerance: {throughput: 2 furlongs}}", "twin.tolerance.throughput: "),
        ("{tolerance: {throughput: mean(throughput)}}", "holds a measured quantity"),
        (
            "{tolerance: {throughput: 5}}",
            "5 has no unit, and what is wanted here is a rate; write for example '3 Mbit'",
        ),
        ("{tolerance: {http_time: 5 kbit}}", "5 kbit is a rate, and what is wanted here is a time"),
        ("{default: 5 ms}", "'5 ms' is not a share"),
        ("{default: 0 %}", "twin.default: '0 %' allows no difference at all"),
        ("{defualt: 2 %}", "did you mean 'default'?"),
    ],
)
def test_a_tolerance_that_cannot_be_meant_is_refused_at_its_place(block: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        tiny(twin=block)
    assert message in str(caught.value)
    assert "study.yaml:" in str(caught.value)


def test_a_tolerance_is_a_share_an_amount_or_the_larger_of_both() -> None:
    names = Names({"link_rate": parse_quantity("100 Mbit")}, {})
    assert parse_tolerance("2 %", names, "bit/s").allowed(100.0, -50.0) == pytest.approx(2.0)
    assert parse_tolerance("5 ms", names, "s").allowed(1.0, 2.0) == pytest.approx(0.005)
    both = parse_tolerance("2 % or 0.01 * link_rate", names, "bit/s")
    assert both.allowed(1e6, 0.0) == pytest.approx(1e6)
    assert both.allowed(1e9, 0.0) == pytest.approx(2e7)


def test_the_longest_unbroken_time_apart_is_found() -> None:
    start_s = np.arange(8, dtype=np.float64)
    wall = np.array([1.0, 2.0, 1.0, 2.0, 2.5, 2.0, 1.0, 1.0])
    parting = find_parting(start_s, [wall], [np.ones(8)], Tolerance("10 %", 0.1, 0.0, True), 0.95)
    assert parting is not None
    assert (parting.first_s, parting.sustained_from_s, parting.sustained_s) == (1.0, 3.0, 3.0)
    assert (parting.worst_s, parting.worst_difference, parting.share) == (4.0, 1.5, 0.5)


def test_series_that_never_part_have_a_worst_interval_only() -> None:
    start_s = np.arange(3, dtype=np.float64)
    parting = find_parting(start_s, [np.ones(3)], [np.array([1.0, 1.01, 1.0])], Tolerance("5 %", 0.05, 0.0, True), 0.95)
    assert parting is not None
    assert (parting.first_s, parting.sustained_s, parting.worst_s, parting.share) == (None, None, 1.0, 0.0)


def test_the_same_twin_again_makes_nothing_and_the_runs_of_one_clock_are_used(tmp_path: Path) -> None:
    study = tiny(2)
    store = ResultStore(tmp_path)
    lab = FluidLab()
    assert run_twin(Campaign(study, lab, store.folder), with_report=False, as_json=True) == 0
    assert len(lab.made) == 8
    # The virtual clock's runs come first, so that a simulation never disturbs an emulation.
    clocks = [run.rsplit("-", 1)[1] for run in lab.made]
    virtual = {run.id.rsplit("-", 1)[1] for run in Twin(study, store).virtual.planned}
    assert [digest in virtual for digest in clocks] == [True] * 4 + [False] * 4
    again = FluidLab()
    assert run_twin(Campaign(study, again, store.folder), with_report=False, as_json=True) == 0
    assert again.made == []


def test_a_failed_run_is_status_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(run: object, progress: object) -> None:
        raise RuntimeError("the model fell over")

    store = ResultStore(tmp_path)
    assert run_twin(Campaign(tiny(1), FluidLab(before=fail), store.folder), with_report=False, as_json=True) == 1
    assert "the model fell over" in capsys.readouterr().err


def test_the_report_shows_both_clocks_and_can_be_written_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, store = tiny(3, twin='{default: "3 %"}'), ResultStore(tmp_path)
    status = run_twin(Campaign(study, FluidLab(share=tcp_is_slower_on_the_wall_after_a_second), store.folder))
    told = capsys.readouterr().out
    assert status == 0
    assert "✗ differs" in told
    assert "apart from 1 s" in told
    assert "Fidelity then:" in told
    assert "default tolerance of 3 %" in told
    page = (tmp_path / "report" / "twin.html").read_text(encoding="utf-8")
    assert "both clocks" in page
    assert "throughput-tcp-quantiles" in page
    for name in ("twin-differences", "twin-throughput-tcp", "twin-throughput-tcp-quantiles", "twin-fidelity"):
        assert (tmp_path / "report" / f"{name}.svg").stat().st_size > 1000
    assert command_line(["report", str(tmp_path), "--out", str(tmp_path / "again"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["counts"]["differs"] > 0
    assert record["comparisons"][0]["measurement"] == "throughput"
    assert (tmp_path / "again" / "twin.html").exists()


def with_statements() -> Study:
    """The built-in study at the size of the demo, which makes claims, with few of them."""
    return load_study("tcp-udp-queues", {"repetitions": "2"}, "demo")


@pytest.mark.parametrize("verdict", ["valid", "doubtful", "invalid"])
def test_a_twin_answers_on_the_virtual_clock_first_and_says_what_this_machine_adds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verdict: str
) -> None:
    study, store = with_statements(), ResultStore(tmp_path)
    assert run_twin(Campaign(study, FluidLab(verdict), store.folder)) == 0
    told = capsys.readouterr()
    answer = "With a queue of its own TCP gets"
    assert told.out.index(answer) < told.out.index("both clocks") and told.out.count(answer) == 1
    page = (tmp_path / "report" / "twin.html").read_text(encoding="utf-8")
    assert answer in page and "Statements on both clocks" in page
    twin = Twin(study, store)
    record = twin_record(twin)["statements"]
    on_virtual = {one.statement.id: one.verdict for one in twin.virtual.statements}
    assert {one["id"]: one["virtual"] for one in record} == on_virtual
    if verdict == "invalid":
        assert {one["wall"] for one in record} == {None}
        assert "No run kept its schedule on this machine" in told.out and "no run can be used" in page
    else:
        # The fluid lab gives the same on both clocks.
        assert {one["id"]: one["wall"] for one in record} == on_virtual
        assert f"All {len(record)} statements come out alike on both clocks." in told.out


def test_a_twin_without_statements_speaks_of_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_twin(Campaign(tiny(2), FluidLab(), ResultStore(tmp_path).folder)) == 0
    assert "statements come out" not in capsys.readouterr().out
    assert "Statements on both clocks" not in (tmp_path / "report" / "twin.html").read_text(encoding="utf-8")


def test_the_first_figure_of_a_twin_has_every_difference_over_what_is_allowed(tmp_path: Path) -> None:
    study, store = tiny(3, twin='{default: "3 %"}'), ResultStore(tmp_path)
    campaign = Campaign(study, FluidLab(share=tcp_is_slower_on_the_wall_after_a_second), store.folder)
    assert run_twin(campaign, with_report=False, as_json=True) == 0
    twin = Twin(study, store)
    first, *others = twin_figures(twin)
    (panel,) = first.panels
    compared = [one for one in twin.results if one.allowed > 0]
    shares = {int(place): share for line in panel.lines for place, share in zip(line.time_s, line.mean, strict=True)}
    assert sorted(shares.values()) == pytest.approx(
        sorted(min(10, max(-10, one.difference.estimate / one.allowed)) for one in compared)
    )
    # Each row has its verdict beside it; headings have no number, and name what is measured.
    assert shares.keys() == panel.numbers.keys() == set(range(len(first.cases))) - first.headings
    signs = {"agrees": "✓", "differs": "✗", "cannot tell": "?"}
    assert sorted(text[0] for text in panel.numbers.values()) == sorted(signs[one.verdict] for one in compared)
    assert not any("_" in words or "=" in words for words in first.cases)
    # Nothing is drawn that is zero throughout, and no axis is shared by what differs by more than ten.
    for figure in others:
        for panel in figure.panels:
            assert any(np.nan_to_num(line.mean).any() for line in panel.lines)
            assert "=" not in panel.title


def test_a_study_run_after_a_twin_is_reported_as_a_study(tmp_path: Path) -> None:
    study, store = tiny(1), ResultStore(tmp_path)
    store.write_study(study, twin=True)
    assert store.holds_twin
    store.write_study(study_on(study, "virtual"))
    assert not store.holds_twin
    assert store.read_study().specification.clock == "virtual"


def test_a_twin_of_real_programs_needs_a_kernel_for_the_virtual_clock(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINNET_KERNEL", "/no/such/kernel")
    arguments = ["twin", "tcp-udp-queues", "--preset", "tiny", "--set", "tools=programs", "--out", str(tmp_path)]
    assert command_line(arguments) == 1
    told = capsys.readouterr().err
    assert "/no/such/kernel" in told and "`twinnet kernel build`" in told
    assert list(tmp_path.iterdir()) == []


def test_the_built_in_study_states_its_tolerances() -> None:
    specification = load_study("tcp-udp-queues").specification
    assert specification.twin.tolerance


@pytest.mark.parametrize(
    ("wall", "missing", "virtual", "why"),
    [
        (
            [1.0, 1.1],
            {2: "nothing arrived"},
            [1.0, 1.1],
            "1 of 3 runs of the wall clock have no value: nothing arrived",
        ),
        ([1.0, math.inf, 1.1], {}, [1.0, 1.1], "the value of 1 of 3 runs of the wall clock is infinite"),
        ([1.0, 1.1], {}, [1.0, 1.1], ""),
    ],
)
def test_clocks_do_not_agree_by_the_runs_that_did_not_fail(
    wall: list[float], missing: dict[int, str], virtual: list[float], why: str
) -> None:
    incomplete = _incomplete(wall, missing, "the wall clock")
    assert incomplete == why
    verdict, said = _judged(wall, virtual, _difference(wall, virtual, 0.95, None), 10.0, "valid", True, incomplete)
    assert (verdict, said) == (("cannot tell", why) if why else ("agrees", ""))
