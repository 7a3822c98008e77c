"""Queues of ports, states of TCP, completion times and fairness as measurements of a study."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import twinnet as tn
from made_studies import made_study
from refused_studies import refusal
from study_networks import two_senders
from twinnet.results.tables import table
from twinnet.study.measurement import Measurement
from twinnet.study.predicate import aggregate_of
from twinnet.study.run_quantities import RunTables
from twinnet.study.value_functions import parse_function

TABLES: dict[str, list[dict[str, Any]]] = {
    "port_samples": [
        {"port": "s1-eth1", "start_s": 0.1 * place, "length_s": 0.1, "frames": 10, "marked": place}
        | {"dropped_overlimit": 1, "dropped_early": 2, "dropped_unclassified": 0, "dropped_loss": 7}
        | {"backlog_bytes": 1000 * place, "backlog_frames": place}
        for place in range(10)
    ],
    "tcp": [
        {"name": "bulk", "protocol": "tcp", "from_host": host, "at_s": 0.1 * place, "smoothed_rtt_ms": 10.0 + place}
        | {"congestion_window_packets": 10 * place + more, "retransmitted_packets": place * (1 + more)}
        for host, more in (("h1", 0), ("h2", 1))
        for place in range(10)
    ],
    "intervals": [
        {"name": "bulk", "protocol": "tcp", "role": "sink", "from_host": host, "start_s": 0.5 * place, "length_s": 0.5}
        | {"payload_bytes": size}
        for host, sizes in (("h1", (100, 300)), ("h2", (300, 300)))
        for place, size in enumerate(sizes)
    ],
    "flows": [
        {"name": name, "protocol": "tcp", "role": role, "from_host": "h1", "start_s": start, "end_s": end}
        | {"completed": completed}
        for name, role, start, end, completed in (
            ("one", "source", 1.0, 1.2, True),
            ("one", "sink", 1.1, 1.5, True),
            ("two", "source", 2.0, 2.1, True),
            ("two", "sink", 2.1, 3.5, True),
            ("endless", "source", 3.0, 9.0, False),
            ("stream", "source", 0.0, 1.0, None),
        )
    ],
    "packets": [],
}


def value(of: str, function: str = "mean", **settings: Any) -> float:
    run: Any = SimpleNamespace(table=lambda name: table(name, TABLES[name]), record={})
    measurement = Measurement.model_validate({"of": of, **settings})
    aggregate = aggregate_of("it", function=parse_function(function, measurement.unit))
    return RunTables(run, {"it": measurement}, 1.0).value(aggregate)


PORT = {"interval": "100 ms", "ports": ["s1-eth1"]}
STATE = {"interval": "100 ms"}


@pytest.mark.parametrize(
    ("of", "function", "settings", "expected"),
    [
        ("backlog", "mean", PORT, 4500.0),
        ("backlog", "p90", PORT, 8000.0),
        ("backlog", "max", PORT | {"during": "0 s to 500 ms"}, 4000.0),
        ("queue_length", "share < 5", PORT, 0.5),
        # 30 dropped by the queue of 130; what the line lost is none of its.
        ("queue_drops", "mean", PORT, 30 / 130),
        ("queue_marks", "mean", PORT | {"after": "500 ms"}, 35 / 50),
        ("congestion_window", "max", STATE, 91.0),
        ("congestion_window", "mean", STATE | {"during": "200 ms to 400 ms"}, (20 + 30 + 21 + 31) / 4),
        ("smoothed_rtt", "median", STATE, 14.5e-3),
        # The first flow sent 9 segments again, the other one 18.
        ("retransmissions", "mean", STATE, 13.5),
        ("retransmissions", "max", STATE | {"during": "350 ms to 650 ms"}, 6.0),
        ("throughput_fairness", "mean", {}, 1000**2 / (2 * (400**2 + 600**2))),
        ("throughput_fairness", "mean", {"after": "500 ms"}, 1.0),
        ("completion_time", "p33", {}, 0.5),
        ("completion_time", "p60", {}, 1.5),
        ("completion_time", "p99", {}, math.inf),
        ("completion_time", "share < 1 s", {}, 1 / 3),
        # One of three had not ended, and no mean of the other two is that of all.
        ("completion_time", "mean", {}, math.inf),
        ("completion_time", "max", {}, math.inf),
        ("completion_time", "min", {}, 0.5),
        ("transfer_time", "mean", {}, math.inf),
        ("transfer_time", "max", {"only": ["one", "two", "stream"]}, 1.4),
        ("completion_time", "mean", {"only": ["one", "two"]}, 1.0),
        ("completion_time", "mean", {"during": "1800 ms to 2500 ms"}, 1.5),
    ],
)
def test_values_are_those_of_the_tables(of: str, function: str, settings: dict[str, Any], expected: float) -> None:
    assert value(of, function, **settings) == pytest.approx(expected)


def test_what_has_no_value_says_so() -> None:
    with pytest.raises(LookupError, match="1 of 3 values are infinite, and std is of finite ones"):
        value("completion_time", "std")
    with pytest.raises(LookupError, match="no sender reported the state of its TCP between 2 s and inf s"):
        value("congestion_window", **STATE, after="2 s")
    with pytest.raises(LookupError, match="no transfer has an end of its own"):
        value("completion_time", only=["stream"])


STUDY = """\
study: states
title: Two senders, a file and a queue
question: What does the queue do?
NETWORK
factors:
  queue:
    levels:
      short: {queues: {s1 to h3: {kind: fifo, limit_frames: 10}}}
      long: {queues: {trunk.queue_b: {kind: fifo, limit_frames: 60}}}
traffic:
  - {name: bulk, app: tcp, from: [h1, h2], to: h3, port: 5002, duration: 8 s}
  - {name: file, app: tcp, from: [h2], to: h3, port: 5003, bytes: 100 kB, start: 2 s}
  - {name: huge, app: tcp, from: [h2], to: h3, port: 5004, bytes: 20 MB, start: 2 s}
  - {name: web, app: http, from: [h2], to: h3, port: 80, bytes: 20 kB, count: 2}
measurements:
  waiting: {of: backlog, interval: 100 ms, ports: [s1 to h3], during: 2 s to 8 s, show: p90}
  dropped: {of: queue_drops, interval: 100 ms, ports: [s1 to h3]}
  cwnd: {of: congestion_window, interval: 50 ms, only: [bulk], show: max}
  srtt: {of: smoothed_rtt, interval: 50 ms, only: [bulk], show: median}
  again: {of: retransmissions, interval: 50 ms, only: [bulk], during: 1 s to 5 s}
  done: {of: completion_time, only: [file, huge, web], per: flow, show: median}
  jain: {of: throughput_fairness, only: [bulk]}
vary_starts: 100 ms
repetitions: 3
clock: virtual
time_limit: 10 s
statements:
  - {id: full, text: The longer queue holds more., check: "p90(waiting, queue=long) > 3 * p90(waiting, queue=short)"}
  - {id: drops, text: The shorter one drops more., check: "mean(dropped, queue=short) > 2 * mean(dropped, queue=long)"}
  - {id: slow, text: It makes round trips., check: "median(srtt, queue=long) > median(srtt, queue=short) + 50 ms"}
  - {id: window, text: And lets windows grow., check: "mean(cwnd, queue=long) > mean(cwnd, queue=short)"}
  - {id: again, text: Who drops sends again., check: "mean(again, queue=short) > mean(again, queue=long)"}
  - {id: done, text: The file arrives., check: "mean(done[flow=file]) < 6 s and mean(done[flow=web]) < 6 s"}
  - {id: jain, text: Both senders get a share., check: "mean(jain) > 70 %"}
""".replace("NETWORK\n", two_senders("name: trunk, rate: 5 Mbit, delay: 10 ms"))


def test_a_study_measures_queues_and_states(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tn.results.load(made_study(STUDY, tmp_path))
    verdicts = dict(results.statements.select("id", "verdict").rows())
    assert verdicts == dict.fromkeys(("full", "drops", "slow", "window", "again", "done", "jain"), "supported")
    # A transfer that had not ended is not left out.
    assert results.means.filter(pl.col("label") == "huge")["mean"].to_list() == [math.inf] * 2
    assert set(results.tcp["name"]) == {"bulk"}
    assert results.columns("tcp").filter(column="smoothed_rtt_ms")["unit"].item() == "ms"
    # Every look at the queue is within what it holds: 60 frames of at most 1514 bytes.
    assert results.port_samples["backlog_bytes"].max() <= 60 * 1514
    assert "infinite" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{of: backlog, interval: 100 ms, ports", "{of: backlog, ports", "backlog needs 'interval', the time between"),
        ("interval: 100 ms, ports: [s1 to h3], during", "interval: 100 ms, during", "need 'ports', and nothing else"),
        ("{of: queue_drops,", "{of: queue_drops, only: [bulk],", "queue_drops counts all that the port sends"),
        ("interval: 50 ms, only: [bulk], show: max", "interval: 50 ms, only: [web]", "it is of tcp, and web is http"),
        ("only: [file, huge, web], per", "only: [bulk], per", "no traffic of done completes: a time ends it; give TCP"),
        ("port: 5002, duration: 8 s", "port: 5002, duration: 8 s, using: programs", "give bulk 'using: apps'"),
        ("mean(dropped, queue=short)", "p90(dropped, queue=short)", "p90(dropped): a run has one value of queue_drops"),
        ("{of: throughput_fairness, only: [bulk]}", "{of: throughput_fairness, show: p9}", "one value of throughput_f"),
    ],
)
def test_what_cannot_be_measured_is_refused_when_the_file_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    assert old in STUDY
    assert message in refusal(STUDY.replace(old, new), tmp_path, capsys)
