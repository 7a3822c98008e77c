"""What is told of every interval: loss, reordering, duplicates, delay variation and round trips."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import twinnet as tn
from made_studies import made_study
from study_networks import one_switch

STUDY = """\
study: disordered
title: A line that loses, repeats and reorders
question: When?
NETWORK
traffic:
  - {name: load, app: udp, from: [h1], to: h2, port: 5003, rate: 4 Mbit, payload: 500 B, duration: 2 s}
  - {name: probe, app: ping, from: [h1], to: h2, count: 20, interval: 100 ms}
measurements:
  throughput: {of: throughput, interval: 200 ms, only: [load]}
settle: 100 ms
drain: 300 ms
time_limit: 10 s
statements:
  - {id: some, text: Something arrives., check: "mean(throughput) > 1 Mbit"}
""".replace(
    "NETWORK\n", one_switch("rate: 100 Mbit", "rate: 100 Mbit, delay: 5 ms, jitter: 3 ms, loss: 5 %, duplicate: 3 %")
)


def disordered() -> tn.Network:
    net = tn.Network(seed=5)
    h1, h2 = net.host("h1"), net.host("h2")
    net.link(h1, h2, rate="100 Mbit", delay="5 ms", jitter="3 ms", loss="5 %", duplicate="3 %")
    return net


def test_intervals_add_up_to_the_flow():
    with disordered().simulate() as lab:
        flow = lab.start(tn.apps.udp("h1", "h2", rate="4 Mbit", payload="500 B", duration="2 s", interval="100 ms"))
        lab.wait([flow])
        lab.run_until("3 s")
        report = flow.report()
    counts = report.intervals
    assert counts is not None and report.delay_variation_rfc3393 is not None
    assert sum(counts.lost) == report.lost > 0
    assert sum(counts.duplicates) == report.duplicates > 0
    assert sum(counts.reordered) == report.reordered
    assert len(counts.lost) == len(counts.bytes) == len(counts.delay_variations_ps) >= 20
    greatest = [value for value in counts.delay_variations_max_ps if value is not None]
    assert max(greatest) == report.delay_variation_rfc3393.max
    assert min(v for v in counts.delay_variations_min_ps if v is not None) == report.delay_variation_rfc3393.min


def test_round_trips_of_each_interval_lie_within_those_of_all():
    with disordered().simulate() as lab:
        ping = lab.start(tn.apps.ping("h1", "h2", count=20, interval="100 ms", count_interval="500 ms"))
        lab.wait([ping])
        report = ping.report()
    counts = report.intervals
    assert counts is not None and report.rtt is not None
    assert sum(counts.packets) == report.rtt.count
    assert len(counts.rtts_ps) == 4
    assert min(counts.rtts_min_ps) == report.rtt.min
    assert max(counts.rtts_max_ps) == report.rtt.max
    weighted = sum(mean * number for mean, number in zip(counts.rtts_ps, counts.packets, strict=True))
    assert weighted / report.rtt.count == pytest.approx(report.rtt.mean)


def test_a_study_has_them_in_its_table(tmp_path: Path):
    out = made_study(STUDY, tmp_path, "--clock", "virtual", "--no-report")
    intervals = pl.read_parquet(next(out.glob("**/intervals.parquet")))
    flows = pl.read_parquet(next(out.glob("**/flows.parquet")))
    sink = flows.filter((pl.col("name") == "load") & (pl.col("role") == "sink")).row(0, named=True)
    load = intervals.filter((pl.col("name") == "load") & (pl.col("role") == "sink"))
    for name in ("lost_packets", "reordered_packets", "duplicate_packets"):
        assert load[name].sum() == sink[name]
    assert load["delay_variation_max_ms"].max() > 0
    probe = intervals.filter(pl.col("name") == "probe")
    assert probe["rtt_min_ms"].min() >= 10 - 6
    assert probe["packets"].sum() == flows.filter(pl.col("name") == "probe")["rtt_count"].sum()
