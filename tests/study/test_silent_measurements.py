"""The answer says at its top what was not measured, and which factors change nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_studies import made_study
from study_networks import one_switch
from twinnet.sockets.flow_plan import planned_flow

STUDY = """\
study: silent
title: A queue on the wrong port
question: What does the queue do?
NETWORK
factors:
  queue:
    levels:
      short: {queues: {h2 to s1: {kind: fifo, limit_frames: 5}}}
      long: {queues: {h2 to s1: {kind: fifo, limit_frames: 50}}}
traffic:
  - {name: load, app: udp, from: [h1], to: h2, port: 5003, rate: 1900 kbit, duration: 1 s}
measurements:
  lost: {of: loss}
  late: {of: throughput, interval: 1 s, after: warm-up}
repetitions: 2
clock: virtual
""".replace("NETWORK\n", one_switch("rate: 100 Mbit", "rate: 2 Mbit"))


def answer(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> str:
    made_study(text, tmp_path, "--no-report", "--json")
    return json.loads(capsys.readouterr().out)["answer"]


def test_what_has_no_value_or_no_effect_is_said_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = answer(tmp_path, capsys, STUDY)
    assert "No run has a value of late: 4 values are too few to look for a warm-up" in said
    assert said.endswith("No run differs between the levels of queue: what they change has no effect.")


def test_a_factor_that_changes_something_is_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = answer(tmp_path, capsys, STUDY.replace("h2 to s1", "s1 to h2").replace("1900 kbit", "3 Mbit"))
    assert "No run differs" not in said
    assert "nothing that is measured differs" not in said


def test_ties_that_seeds_break_do_not_hide_a_factor_without_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Frames of two hosts arrive at one moment. Which goes first depends on the seed; how long both wait does not."""
    tied = STUDY.replace("h2: }", "h2: , h3: }").replace(
        "links:\n", "links:\n    - {between: [h3, s1], rate: 100 Mbit}\n"
    )
    tied = tied.replace("from: [h1]", "from: [h1, h3]").replace("1900 kbit,", "400 kbit, record_packets: 1000,")
    tied = tied.replace("late: {of: throughput, interval: 1 s, after: warm-up}", "late: {of: delay}")
    said = answer(tmp_path, capsys, tied)
    assert "No run differs" not in said
    assert "Between the levels of queue nothing that is measured differs in any repetition" in said
    assert "repetitions differ only by which of two frames goes first" in said


@pytest.mark.parametrize(
    ("settings", "payload"), [({"to": "::1"}, 1452), ({"to": "127.0.0.1"}, 1472), ({"to": "::1", "payload": "9 B"}, 9)]
)
def test_datagrams_to_ipv6_are_not_fragmented_unless_asked_for(settings: dict[str, str], payload: int) -> None:
    assert planned_flow({**settings, "rate": "1 Mbit", "duration": "1 s"}, 1).app.fields["payload_bytes"] == payload
