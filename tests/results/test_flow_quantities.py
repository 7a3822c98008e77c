"""Measurements of whole flows beside loss and delay: packet rate, order, delay variation, bursts, video quality."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from made_studies import made_study
from study_networks import one_switch
from twinnet.report.wording import worded_value
from twinnet.results.tables import table
from twinnet.study.measurement import Measurement
from twinnet.study.predicate import Aggregate
from twinnet.study.run_quantities import RunTables

ROWS: list[dict[str, Any]] = [
    {"name": "a", "role": "sink", "packets": 101, "start_s": 1.0, "end_s": 2.0, "reordered_packets": 5}
    | {"duplicate_packets": 3, "loss_burst_count": 3, "loss_burst_mean": 2.0, "loss_burst_max": 4}
    | {"delay_variation_count": 90, "delay_variation_mean_ms": 0.5, "delay_variation_min_ms": -2.0}
    | {"delay_variation_max_ms": 3.0, "delay_variation_std_ms": 1.0},
    {"name": "b", "role": "sink", "packets": 99, "start_s": 1.0, "end_s": 1.5, "reordered_packets": 0}
    | {"duplicate_packets": 0, "loss_burst_count": 1, "loss_burst_mean": 6.0, "loss_burst_max": 6}
    | {"psnr_db": 31.5, "ssim": 0.91},
    {"name": "a", "role": "source", "packets": 999, "start_s": 0.0, "end_s": 9.0},
]


def value(of: str, function: str = "mean") -> float:
    run: Any = SimpleNamespace(table=lambda _: table("flows", ROWS))
    tables = RunTables(run, {"it": Measurement.model_validate({"of": of})}, 10.0)
    return tables.value(Aggregate(function, "it", (), None, ()))


@pytest.mark.parametrize(
    ("of", "function", "expected"),
    [
        ("packet_rate", "mean", (100 + 196) / 2),
        ("packet_rate", "max", 196),
        ("reordering", "mean", 5 / 200),
        ("duplicates", "mean", 3 / 203),
        ("delay_variation", "mean", 0.5e-3),
        ("delay_variation", "min", -2e-3),
        ("loss_burst", "mean", (3 * 2 + 6) / 4),
        ("loss_burst", "max", 6),
        ("psnr", "mean", 31.5),
        ("ssim", "min", 0.91),
    ],
)
def test_a_quantity_of_whole_flows_is_what_its_receivers_counted(of: str, function: str, expected: float):
    assert value(of, function) == pytest.approx(expected)


def test_what_is_not_known_is_not_made_up():
    with pytest.raises(LookupError, match="mean and max are known, not min"):
        value("loss_burst", "min")


def test_every_unit_is_worded():
    said = {of: worded_value(2.5, Measurement.model_validate({"of": of}).unit) for of in ("packet_rate", "psnr")}
    assert said == {"packet_rate": "2.50 1/s", "psnr": "2.50 dB"}


STUDY = """\
study: disordered
title: A line that loses and repeats
question: How much?
NETWORK
traffic:
  - {name: load, app: udp, from: [h1], to: h2, port: 5003, rate: 4 Mbit, payload: 500 B, duration: 2 s}
measurements:
  rate: {of: packet_rate}
  twice: {of: duplicates}
  late: {of: reordering}
  variation: {of: delay_variation}
  burst: {of: loss_burst}
settle: 100 ms
drain: 300 ms
time_limit: 10 s
statements:
  - id: all
    text: Each is where the line's settings put it.
    check: >-
      900 < mean(rate) < 1000 and 0.01 < mean(twice) < 0.06 and 0 <= mean(late) < 1 and
      max(variation) > 1 ms and mean(burst) >= 1
""".replace(
    "NETWORK\n", one_switch("rate: 100 Mbit", "rate: 100 Mbit, delay: 5 ms, jitter: 3 ms, loss: 5 %, duplicate: 3 %")
)


def test_a_study_measures_them_and_its_table_holds_what_the_sink_reports(tmp_path: Path):
    out = made_study(STUDY, tmp_path, "--clock", "virtual")
    flows = pl.read_parquet(next(out.glob("**/flows.parquet")))
    sink = flows.filter(pl.col("role") == "sink").row(0, named=True)
    assert sink["delay_variation_count"] > 1000 and sink["delay_variation_std_ms"] > 0.5
    assert sink["loss_burst_count"] * sink["loss_burst_mean"] == pytest.approx(sink["lost_packets"])
    assert sink["reordered_share"] == sink["reordered_packets"] / sink["packets"]
    summary = "".join(path.read_text() for path in out.glob("**/*.csv"))
    assert "rate" in summary and "1/s" in summary
