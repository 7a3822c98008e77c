"""What is random in a run is known before it is made: repetitions differ where it is, and are one run elsewhere."""

from __future__ import annotations

import click.testing
import pytest
from twinnet.cli.group import cli
from twinnet.report.progress import SilentObserver
from twinnet.study.analysis import Analysis
from twinnet.study.execute import LabExecutor
from twinnet.study.plan import plan_study
from twinnet.study.resolution import Study, read_study
from twinnet.study.runner import run_plan
from twinnet.study.store import ResultStore
from twinnet.study.what_varies import what_varies
from twinnet.yaml_source import parse_yaml

STUDY = """
study: chance
title: Chance
question: Is there any?
network:
  hosts: {{h1: , h2: }}
  switches: {{s1: }}
  links:
    - {{between: [h1, s1], rate: 20 Mbit}}
    - {{between: [s1, h2], rate: 10 Mbit, delay: 1 ms{link}}}
traffic:
  - {{name: one, from: [h1], to: h2, {traffic}}}
measurements: {{throughput: {{of: throughput, interval: 100 ms}}}}
repetitions: 2
settle: 10 ms
drain: 10 ms
clock: virtual
{more}
"""
UDP = "app: udp, port: 5002, duration: 300 ms, rate: 3 Mbit"
FLOOD = "app: tcp, port: 5001, duration: 1 s"

CASES = {
    "datagrams at a constant rate": (UDP, "", "", ""),
    "one CUBIC flow": (FLOOD, "", "", ""),
    "one CUBIC flow through CoDel": (FLOOD, ", queue: {kind: codel}", "", ""),
    "one CUBIC flow through FQ-CoDel": (FLOOD, ", queue: {kind: fq_codel}", "", ""),
    "a web page": ("app: http, port: 80, bytes: 100 kB", "", "", ""),
    "a film": ("app: video, port: 81, duration: 2 s, ladder: [235 kbit, 560 kbit]", "", "", ""),
    "a call": ("app: voice, port: 5006, duration: 500 ms", "", "", ""),
    "datagrams at exponential gaps": (UDP + ", process: poisson", "", "", "exponential gaps of one"),
    "a call with silence": (
        "app: voice, port: 5006, duration: 20 s, silence_suppression: true", "", "", "distribution of one",
    ),
    "coded video": ("app: rtp, port: 5004, duration: 1 s", "", "", "sizes of frames of one"),
    "jitter of a link": (UDP, ", jitter: 1 ms", "", "distribution"),
    "loss of a link": (UDP, ", loss: 10 %", "", "loss"),
    "RED": (FLOOD, ", queue: {kind: red, min: 10 kB, max: 20 kB, limit: 60 kB}", "", "the discipline red"),
    "starts that vary": (UDP, "", "vary_starts: 20 ms", "the start of traffic"),
}  # fmt: skip


def study(case: str) -> Study:
    traffic, link, more, _ = CASES[case]
    text = STUDY.format(traffic=traffic, link=link, more=more)
    return read_study(parse_yaml(text, "chance.yaml"), text=text)


@pytest.mark.parametrize("case", list(CASES))
def test_repetitions_differ_exactly_where_something_is_random(case, tmp_path) -> None:
    chosen = study(case)
    plan = plan_study(chosen)
    said = CASES[case][3]
    found = what_varies(plan[0])
    assert any(one.endswith(said) for one in found) if said else found == []
    store = ResultStore(tmp_path)
    store.write_study(chosen)
    assert not run_plan(plan, store, LabExecutor(), SilentObserver()).failed
    one, other = Analysis(chosen, store).used
    assert (one.fingerprint == other.fingerprint) == (not said)


def test_a_plan_without_chance_is_warned_of(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for case, warned in (("one CUBIC flow", True), ("RED", False)):
        (tmp_path / "chance.yaml").write_text(study(case).text)
        told = click.testing.CliRunner().invoke(cli, ["run", "chance.yaml", "--dry-run"])
        assert told.exit_code == 0, told.output
        assert ("Nothing in this study is random" in told.output) == warned


def test_starts_vary_within_what_is_allowed_and_by_the_seed() -> None:
    plan = plan_study(study("starts that vary"))
    starts = [run.specification.traffic[0].starts_ps["h1"] for run in plan]
    assert starts[0] != starts[1] and all(0 <= one <= 20 * 10**9 for one in starts)
    assert starts == [run.specification.traffic[0].starts_ps["h1"] for run in plan_study(study("starts that vary"))]
