"""The study of available bandwidth: its file, its measurements, its published figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from labs_here import needs_a_lab
from made_studies import made_study
from twinnet import studies
from twinnet.study.resolution import built_in_studies, load_study, read_study
from twinnet.yaml_source import SourceError, parse_yaml

from bench.abw import AS_PUBLISHED, METHODS, published

TEXT = """
study: one-estimate
title: One estimate
question: Is it right?
network:
  hosts: {h1: , h2: , x1: , x2: }
  switches: {s1: , s2: }
  links:
    - {between: [h1, s1], rate: 100 Mbit}
    - {between: [x1, s1], rate: 100 Mbit}
    - {between: [h2, s2], rate: 100 Mbit}
    - {between: [x2, s2], rate: 100 Mbit}
    - {between: [s1, s2], rate: 10 Mbit}
traffic:
  - {name: cross, app: udp, from: [x1], to: x2, port: 5003, rate: 4 Mbit, duration: 5 s}
  - {name: probes, app: bandwidth, from: [h1], to: h2, method: hybrid, most_rate: 20 Mbit, start: 500 ms}
measurements:
  estimate: {of: available_bandwidth}
  error: {of: available_bandwidth_error, ports: [h1-eth0, s1-eth3, s2-eth3]}
  cost: {of: probe_bytes}
repetitions: 5
clock: virtual
settle: 100 ms
drain: 100 ms
statements:
  - {id: right, text: It is right., check: "max(error) < 0.1 and min(error) > -0.1"}
  - {id: cheap, text: It is cheap., check: "max(cost) < 500 kB"}
  - {id: rate, text: It has a unit., check: "5 Mbit < mean(estimate) < 7 Mbit"}
"""


def test_a_study_measures_an_estimate_and_its_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_study(TEXT, tmp_path, "--json", "--no-report")
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {one["id"]: one["verdict"] for one in record["statements"]} == dict.fromkeys(
        ("right", "cheap", "rate"), "supported"
    )


def test_the_built_in_study_has_all_rows_and_methods() -> None:
    study = load_study("available-bandwidth")
    assert len(study.specification.factors["row"].levels) == 8
    methods = study.specification.factors["estimator"].levels
    as_published = {f"{name}-published" for name in AS_PUBLISHED}
    assert set(methods) == {*METHODS, *as_published, "program"} and len(methods) == 18
    rows = {(capacity, cross) for _, capacity, cross in published()}
    levels = {tuple(float(part[1:]) for part in name.split("-")) for name in study.specification.factors["row"].levels}
    assert rows == levels
    assert built_in_studies()["available-bandwidth"].name == "study.yaml"


def test_published_errors_are_those_of_the_figures() -> None:
    found = published()
    assert found["assolo", 10, 2] == pytest.approx(325)
    assert found["stab", 1000, 74] == pytest.approx(-87, abs=0.5)
    assert len(found) == 11


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("method: hybrid", "method: guess", "is not known"),
        ("method: hybrid", "method: spruce", "needs 'capacity'"),
        ("method: hybrid, ", "", "needs 'method'"),
        (", ports: [h1-eth0, s1-eth3, s2-eth3]", "", "need 'ports'"),
    ],
)
def test_mistakes_in_a_study_are_told(old: str, new: str, said: str) -> None:
    text = TEXT.replace(old, new)
    with pytest.raises(SourceError, match=said):
        read_study(parse_yaml(text, "study.yaml"), {}, None, text)


@needs_a_lab
@pytest.mark.judged
@pytest.mark.quiet
def test_a_row_of_the_built_in_study_on_real_hosts(tmp_path: Path) -> None:
    results = studies.run(
        "available-bandwidth",
        preset="tiny",
        clock="wall",
        settings={"levels.row": "c10-x4", "levels.estimator": "hybrid", "duration": "8 s"},
        out=tmp_path,
        with_invalid=True,
        progress=False,
    )
    flows = results.table("flows")
    (told,) = flows.filter(flows["available_bandwidth_bps"].is_not_null()).iter_rows(named=True)
    # The goal of `hybrid` on every published row. An invalid run is made again.
    assert told["available_bandwidth_bps"] == pytest.approx(told["available_bandwidth_true_bps"], rel=0.05)


@pytest.mark.long
def test_the_study_of_conditions_runs_and_tells_what_probes_cost_others(tmp_path: Path) -> None:
    results = studies.run(
        "bandwidth-conditions",
        preset="tiny",
        settings={"levels.condition": "poisson-30 tcp-long mobile", "duration": "12 s", "patience": "10 s"},
        out=tmp_path,
        progress=False,
    )
    flows = results.table("flows")
    told = flows.filter(flows["available_bandwidth_bps"].is_not_null())
    # Over the mobile link there is no estimate by probes.
    assert told.height == 2
    assert any("as over a mobile link" in why for why in flows["probe_gave_up"].drop_nulls())
    # Exponential gaps and TCP leave some percent in a short estimate.
    low, high, true = (told[f"available_bandwidth_{name}_bps"] for name in ("low", "high", "true"))
    errors = (told["available_bandwidth_bps"] / true - 1).to_list()
    assert max(map(abs, errors)) < 0.1
    assert ((low <= true) & (true <= high)).all()
    assert min(told["probe_trains"].to_list()) >= 6
    # A link of 100 Mbit/s with a third of it taken: probes add less than the goal of 1 ms at the median.
    delays = told["probe_added_delay_ms"].drop_nulls().to_list()
    assert delays and min(map(abs, delays)) < 1


def test_harm_is_the_median_delay_and_the_loss_in_the_window_less_those_outside() -> None:
    from twinnet.results.bandwidth_report import Bandwidth
    from twinnet.results.flow_report import FlowReport
    from twinnet.study.probe_harm import harm_to_others

    def report(role: str, delays_ms: list[float | None], lost: list[int]) -> FlowReport:
        count = len(delays_ms)
        orders = {"lost": lost, "reordered": [0] * count, "duplicates": [0] * count}
        spec = {
            "interval_ps": 10**11,
            "first": 10,
            "bytes": [1000] * count,
            "packets": [10] * count,
            "times_ps": {"delay_mean": [None if one is None else one * 1e9 for one in delays_ms]},
            "orders": orders,
        }
        return FlowReport.from_spec({"protocol": "udp", "role": role, "intervals": spec})

    def window(start_ms: int, end_ms: int) -> Bandwidth:
        return Bandwidth("hybrid", "wire", 1e6, None, None, None, None, None, (), start_ms * 10**9, end_ms * 10**9)

    # Intervals of 100 ms from 1.0 s on; the first and the last are not whole.
    seen = report("sink", [9, 1, 1, 3, 5, None, 1, 9], [9, 0, 0, 10, 0, 0, 0, 9])
    harm = harm_to_others(window(1290, 1510), [seen, report("source", [0] * 8, [0] * 8)])
    # Within: 3 and 5 ms, 10 of 30 lost; whole and outside: 1 ms twice.
    assert harm.delay_ms == pytest.approx(3)
    assert harm.loss == pytest.approx(10 / 30)
    assert harm_to_others(window(1310, 1390), [seen]).delay_ms is None
    assert harm_to_others(window(1000, 2000), [seen]).loss is None
