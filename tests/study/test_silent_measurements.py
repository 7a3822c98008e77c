"""The answer says at its top what was not measured, and which factors change nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from twinnet.cli import run as command_line
from twinnet.sockets.flow_plan import planned_flow

STUDY = """\
study: silent
title: A queue on the wrong port
question: What does the queue do?
network:
  switches: {s1: }
  hosts: {h1: , h2: }
  links:
    - {between: [h1, s1], rate: 100 Mbit}
    - {between: [s1, h2], rate: 2 Mbit}
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
"""


def told(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> str:
    path = tmp_path / "silent.yaml"
    path.write_text(text)
    assert command_line(["run", str(path), "--out", str(tmp_path / "out"), "--no-report", "--json"]) == 0
    return json.loads(capsys.readouterr().out)["answer"]


def test_what_has_no_value_or_no_effect_is_said_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = told(tmp_path, capsys, STUDY)
    assert "No run has a value of late: 4 values are too few to look for a warm-up" in said
    assert said.endswith("No run differs between the levels of queue: what they change has no effect.")


def test_a_factor_that_changes_something_is_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = told(tmp_path, capsys, STUDY.replace("h2 to s1", "s1 to h2").replace("1900 kbit", "3 Mbit"))
    assert "No run differs" not in said


@pytest.mark.parametrize(
    ("settings", "payload"), [({"to": "::1"}, 1452), ({"to": "127.0.0.1"}, 1472), ({"to": "::1", "payload": "9 B"}, 9)]
)
def test_datagrams_to_ipv6_are_not_fragmented_unless_asked_for(settings: dict[str, str], payload: int) -> None:
    assert planned_flow({**settings, "rate": "1 Mbit", "duration": "1 s"}, 1).app.fields["payload_bytes"] == payload
