"""Loss is what was sent and did not arrive: after the last arrival too, before the first, and where nothing arrived."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import twinnet as tn
from made_studies import made_study
from twinnet.results.flow_report import AppReport, FlowReport
from twinnet.results.tables import table
from twinnet.study.collect import PlannedFlow, collect
from twinnet.study.lost_packets import with_all_losses
from twinnet.study.predicate import Aggregate
from twinnet.study.resolution import load_study
from twinnet.study.run_quantities import RunTables
from twinnet.study.specification import Measurement, Traffic
from twinnet.study.store import ResultStore

STUDY = """\
study: outage
title: A line that dies
question: How much is lost?
network:
  hosts: {h1: , h2: }
  links:
    - {between: [h1, h2], rate: 10 Mbit, LINK}
  SCHEDULE
traffic:
  - {name: load, app: udp, from: [h1], to: h2, port: 5003, rate: 800 kbit, payload: 1000 B, duration: 4 s}
  - {name: video, app: rtp, from: [h1], to: h2, port: 5004, rate: 800 kbit, frames_per_second: 25, paced: true,
     duration: 4 s}
measurements:
  lost: {of: loss, only: [load]}
  lost_video: {of: loss, only: [video]}
  lost_frames: {of: frame_loss, only: [video]}
repetitions: 1
settle: 100 ms
drain: 500 ms
clock: virtual
statements:
  - {id: lossy, text: The share of what was lost is no less than nothing., check: "mean(lost) >= 0"}
"""


def made(tmp_path: Path, link: str = "delay: 1 ms", schedule: str = "") -> tuple[pl.DataFrame, dict[str, float]]:
    """The table of flows and the share of lost packets by measurement."""
    text = STUDY.replace("LINK", link).replace("SCHEDULE", schedule)
    (run,) = ResultStore(made_study(text, tmp_path, "--no-report")).all_runs()
    study = load_study(tmp_path / "study.yaml")
    tables = RunTables(run, study.specification.measurements, 4.0)
    values = {
        name: tables.value(Aggregate("mean", name, (), None, ())) for name in ("lost", "lost_video", "lost_frames")
    }
    return tables.flows, values


def row(flows: pl.DataFrame, name: str, role: str) -> dict[str, Any]:
    (found,) = flows.filter((pl.col("name") == name) & (pl.col("role") == role)).iter_rows(named=True)
    return found


def test_what_is_sent_into_a_link_that_died_is_lost(tmp_path: Path) -> None:
    flows, lost = made(tmp_path, schedule="schedule: [{at: 1255 ms, link: [h1, h2], set: {up: false}}]")
    for name in ("load", "video"):
        sent, arrived = row(flows, name, "source"), row(flows, name, "sink")
        assert arrived["lost_packets"] == sent["packets"] - arrived["packets"] > 0
    # Traffic begins at 250 ms, the next bound of its intervals after the settling, and the line goes a second later.
    assert lost["lost"] == pytest.approx(0.75, abs=0.01)
    assert lost["lost_video"] == pytest.approx(0.75, abs=0.02)
    # One frame may be cut in two by the end of the line.
    assert lost["lost_frames"] == pytest.approx(0.75, abs=0.02)


def test_a_flow_of_which_nothing_arrives_is_lost_as_a_whole(tmp_path: Path) -> None:
    flows, lost = made(tmp_path, link="loss: 100 %")
    assert lost == {"lost": 1.0, "lost_video": 1.0, "lost_frames": 1.0}
    arrived = row(flows, "load", "sink")
    assert (arrived["packets"], arrived["lost_packets"]) == (0, row(flows, "load", "source")["packets"])
    assert arrived["errors"] == "nothing of this flow arrived"


def test_duplicates_make_no_loss_and_hide_none(tmp_path: Path) -> None:
    flows, lost = made(tmp_path, link="duplicate: 100 %")
    arrived = row(flows, "load", "sink")
    assert (arrived["lost_packets"], arrived["duplicate_packets"]) == (0, row(flows, "load", "source")["packets"])
    assert lost == {"lost": 0.0, "lost_video": 0.0, "lost_frames": 0.0}


def seen(sink_packets: int) -> list[tuple[PlannedFlow, FlowReport]]:
    entry = Traffic.model_construct(name="load", app="udp", using="apps", to="h2", sends={"port": 5003})
    flow = PlannedFlow(entry, "h1", 7, "10.0.0.1")
    source = FlowReport(flow=7, protocol="udp", role="source", source="10.0.0.1:40000", packets=10)
    sink = FlowReport(flow=7, protocol="udp", role="sink", source="10.0.0.1:40000", packets=sink_packets, lost=0)
    forged = FlowReport(flow=7, protocol="udp", role="sink", source="10.0.0.9:1", packets=1, lost=3)
    return [(flow, source), (flow, forged), (flow, sink)]


def test_the_sink_of_the_sender_counts_and_late_duplicates_make_no_loss_negative() -> None:
    for arrived, lost in ((8, 2), (12, 0)):
        rows = seen(arrived)
        found = with_all_losses(rows, [rows[0][0]])
        assert [report.lost for _, report in found] == [None, 3, lost]


def test_what_befell_a_whole_receiver_stands_beside_each_of_its_flows() -> None:
    (flow, source), _, (_, sink) = seen(10)
    full = "a datagram was dropped in the receiving host: its socket's buffer was full (7 times)"
    apart = FlowReport(flow=None, protocol="udp", role="sink", errors=(full,))
    reports = [
        AppReport(1, "h2", "udp_sink", True, [sink, apart]),
        AppReport(2, "h1", "udp_source", True, [source]),
    ]
    flows = collect(reports, [flow], None, 0, 1).flows
    assert dict(zip(flows["role"], flows["errors"], strict=True)) == {"sink": full, "source": None}


def test_loss_of_echoes_is_over_the_requests_sent() -> None:
    columns = {"role": "source", "packets": 10, "lost_packets": 4, "protocol": "icmp", "name": "probe"}

    def stored_table(name: str) -> pl.DataFrame:
        return table(name, [columns])

    stored: Any = SimpleNamespace(table=stored_table)
    tables = RunTables(stored, {"lost": Measurement(of="loss")}, 1.0)
    assert tables.value(Aggregate("mean", "lost", (), None, ())) == pytest.approx(0.4)


def test_a_receiver_that_starts_late_says_how_much_it_missed() -> None:
    network = tn.Network()
    network.link(network.host("h1"), network.host("h2"), rate="10 Mbit")
    with network.simulate() as lab:
        source = lab.start(tn.apps.udp_source("h1", "10.0.0.2", rate="800 kbit", payload="1000 B", duration="2 s"))
        lab.run_until("505 ms")
        sink = lab.start(tn.apps.udp_sink("h2", port=5003))
        lab.wait([source])
        lab.run_until("3 s")
        heard = sink.report()
    assert (heard.packets, heard.lost, heard.first_number) == (149, 51, 51)
    assert heard.errors == (
        "the first 51 datagrams were lost or sent before this receiver listened; they are counted as lost",
    )
