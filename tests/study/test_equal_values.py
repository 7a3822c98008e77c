"""Runs that chance has a part in and that all have one value: they have the spread of one step of what is counted."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from made_studies import made_study
from study_networks import one_switch
from twinnet.study.analysis import Analysis
from twinnet.study.predicate import Aggregate, parse_side
from twinnet.study.resolution import read_study
from twinnet.study.store import ResultStore
from twinnet.yaml_source import parse_yaml

LOST = """\
study: rare
title: Rare losses
question: Is less than one datagram in ten thousand lost?
NETWORK
factors:
  radio:
    levels:
      good: {links: {s1-h2: {loss: 0.02 %}}}
      bad: {links: {s1-h2: {loss: 0.1 %}}}
traffic:
  - {name: load, app: udp, from: [h1], to: h2, port: 5001, packets_per_second: 100, process: poisson, payload: 500 B,
     duration: 200 ms, record_packets: 100}
measurements:
  loss: {of: loss}
  delay: {of: delay}
  rate: {of: throughput, interval: 100 ms}
  egress: {of: port_throughput, interval: 50 ms, ports: [s1 to h2], layer: wire}
  waiting: {of: queue_length, interval: 50 ms, ports: [s1 to h2]}
  drops: {of: queue_drops, interval: 50 ms, ports: [s1 to h2]}
  packets: {of: packet_rate}
  fair: {of: fairness}
settle: 10 ms
drain: 50 ms
clock: virtual
repetitions: 5
statements:
  - {id: low, text: Less than 0.01 % is lost on the bad radio (truth 0.1 %), check: "mean(loss, radio=bad) < 0.01 %"}
  - {id: every, text: No run loses more than 0.01 %, check: "max(loss, radio=bad) < 0.01 %"}
  - id: same
    text: Both lose the same (truth 5 times)
    check: "mean(loss, radio=bad) = mean(loss, radio=good) within 0.01 %"
  - {id: tenth, text: Less than a tenth is lost, check: "mean(loss, radio=bad) < 10 %"}
""".replace("NETWORK\n", one_switch("rate: 100 Mbit", "rate: 10 Mbit, delay: 1 ms"))


def judged(folder: Path, capsys: pytest.CaptureFixture[str], text: str, *options: str) -> dict[str, Any]:
    made_study(text, folder, "--no-report", "--json", *options)
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("seed", range(1, 5))
def test_runs_that_lost_none_of_22_datagrams_do_not_show_that_one_in_ten_thousand_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    found = {one["id"]: one for one in judged(tmp_path, capsys, LOST, "--set", f"seed={seed}")["statements"]}
    verdicts = [found[name]["verdict"] for name in ("low", "every", "same")]
    # In the runs of some seeds a datagram is lost, and that refutes that none is.
    assert "supported" not in verdicts
    if seed == 1:
        assert verdicts == ["undecided"] * 3
        assert found["tenth"]["verdict"] == "supported"


def test_each_quantity_has_the_step_of_what_it_counts(tmp_path: Path) -> None:
    made_study(LOST, tmp_path, "--no-report", "--json")
    study = read_study(parse_yaml(LOST, "study.yaml"), {}, None, LOST)
    (folder,) = [path for path in tmp_path.rglob("rare") if path.is_dir()]
    analysis = Analysis(study, ResultStore(folder))
    run = analysis.used[0]
    sent = run.flows.filter(run.flows["role"] == "source")
    count = int(sent["packets"].sum())
    assert count > 10

    def grain(side: str) -> float | None:
        (term,) = parse_side(side, study.names())
        assert isinstance(term.aggregate, Aggregate)
        return run.grain(term.aggregate)

    frame = 1538 * 8
    assert grain("mean(loss)") == pytest.approx(1 / count)
    assert grain("share(delay < 2 ms)") == pytest.approx(1 / count)
    # On the slowest link, of 10 Mbit/s, in one of its values.
    assert grain("p99(delay)") == grain("max(delay)") == pytest.approx(frame / 10e6 / count)
    assert grain("mean(rate)") == pytest.approx(frame / 0.2)
    assert grain("max(rate)") == pytest.approx(frame / 0.1)
    assert grain("mean(egress)") == pytest.approx(frame / 0.2)
    assert grain("max(waiting)") == 1 and grain("mean(waiting)") == pytest.approx(1 / 4)
    assert grain("mean(packets)") == pytest.approx(1 / 0.2)
    assert grain("normality(delay)") == pytest.approx(1e-3)
    assert grain("mean(fair)") is None
    assert 0 < (grain("mean(drops)") or math.nan) <= 1


def test_where_nothing_is_drawn_equal_values_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The seed decides which of two frames goes first that arrive at one moment, so runs differ; the loss does not."""
    fixed = LOST.replace("process: poisson, ", "").replace("loss: 0.02 %", "loss: 0").replace("loss: 0.1 %", "loss: 0")
    fixed = fixed.replace("h2: }", "h2: , h3: }").replace(
        "links:\n", "links:\n    - {between: [h3, s1], rate: 100 Mbit}\n"
    )
    fixed = fixed.replace("from: [h1]", "from: [h1, h3]")
    found = judged(tmp_path, capsys, fixed, "--repeat", "2")
    assert {one["verdict"] for one in found["statements"]} == {"supported"}


METRIC = """\
def rare(run):
    \"\"\"20 ms in one run of seven, by the number of datagrams that were sent.\"\"\"
    return [0.02 if sum(run.flows["packets"]) % 7 == 0 else 0.0]
"""


def test_an_own_metric_that_is_zero_in_every_run_bounds_no_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rare_metric.py").write_text(METRIC.replace("% 7 == 0", "< 0"), encoding="utf-8")
    text = LOST[: LOST.index("statements:")].replace(
        "  loss: {of: loss}\n", '  loss: {of: loss}\n  own: {of: "rare_metric:rare", unit: s}\n'
    )
    text += 'statements:\n  - {id: own, text: It is below 1 ms, check: "mean(own, radio=bad) < 1 ms"}\n'
    (one,) = judged(tmp_path, capsys, text)["statements"]
    assert one["verdict"] == "undecided"
    assert "bounds no mean" in json.dumps(one)
