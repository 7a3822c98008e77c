"""How long a run on the virtual clock is expected to take: by the frames that pass its lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from twinnet.network import Network, templates
from twinnet.study.execute import LabExecutor
from twinnet.study.expected_time import PASSAGE_S, passages
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study
from twinnet.study.traffic import Traffic

ROW = templates.linear(2, rate="10 Mbit")
"""Three lines from h1 to h2."""


def traffic(app: str, source: str = "h1", **settings: object) -> Traffic:
    ports = {} if app == "ping" else {"port": 5003}
    return Traffic.model_validate({"name": app, "app": app, "from": [source], "to": "h2", **ports, **settings})


def test_a_datagram_passes_each_line() -> None:
    stream = traffic("udp", packets_per_second=100, payload="100 B", duration="2 s")
    assert passages(ROW, [stream]) == pytest.approx(3 * 200)


def test_what_a_queue_drops_passes_the_first_line() -> None:
    slow = Network()
    s1 = slow.switch("s1")
    slow.link(slow.host("h1"), s1, rate="10 Mbit")
    slow.link(s1, slow.host("h2"), rate="1 Mbit")
    stream = traffic("udp", packets_per_second=200, payload="1470 B", duration="2 s")
    assert passages(slow, [stream]) == pytest.approx(2 * (200 + 1e6 / (1536 * 8)))


def test_acknowledgements_and_answers_count() -> None:
    segments = 10e6 / (1538 * 8)
    assert passages(ROW, [traffic("tcp", duration="4 s")]) == pytest.approx(4 * segments * 3 * 1.5)
    assert passages(ROW, [traffic("ping", count=10, interval="100 ms")]) == pytest.approx(10 * 2 * 3)


def test_what_is_shared_changes_when_a_flow_begins_and_ends() -> None:
    """UDP takes half of the line from 1 s to 2 s; TCP has the rest of it, and all of it before and after."""
    bulk = traffic("tcp", duration="4 s")
    stream = traffic("udp", rate="4785156 bit", payload="1470 B", duration="1 s", start="1 s")
    segments, datagrams = 10e6 / (1538 * 8), 5e6 / (1536 * 8)
    assert passages(ROW, [bulk, stream]) == pytest.approx(3 * (3.5 * segments * 1.5 + datagrams), rel=1e-4)


def test_what_has_no_known_end_counts_nothing() -> None:
    assert passages(ROW, [traffic("tcp", bytes="1 GB")]) == 0


def test_a_study_at_full_size_is_expected_to_take_long() -> None:
    executor = LabExecutor()
    times = {}
    for seconds in (3, 300):
        settings = {"duration": f"{seconds} s", "seconds": str(seconds), "levels.profile": "basic-leaf"}
        (run,) = plan_study(load_study("qos-class-profiles", {**settings, "repetitions": "1"}))
        times[seconds] = executor.expected_s(run)
    assert times[300] == pytest.approx(100 * times[3], rel=0.2)
    # 10 Gbit/s in full segments over six lines, and an acknowledgement for every second one.
    assert times[300] == pytest.approx(300 * 10e9 / (1538 * 8) * 6 * 1.5 * PASSAGE_S, rel=0.2)


def test_a_run_of_next_to_nothing_takes_its_time_to_be_built_and_kept(tmp_path: Path) -> None:
    (tmp_path / "little.yaml").write_text(LITTLE)
    runs = plan_study(load_study(tmp_path / "little.yaml"))
    executor = LabExecutor()
    assert sum(map(executor.expected_s, runs)) == pytest.approx(36 * 0.085, rel=0.05)


LITTLE = """\
study: little
title: Next to nothing, often
question: Does it take any time?
network:
  switches: {s1: }
  hosts: {h1: , h2: }
  links: [{between: [h1, s1], rate: 10 Mbit}, {between: [s1, h2], rate: 10 Mbit}]
traffic: [{name: little, app: udp, from: [h1], to: h2, port: 5001, rate: 64 kbit, payload: 160 B, duration: 1 s}]
measurements: {loss: {of: loss}}
repetitions: 36
clock: virtual
"""
