"""Sources of one entry of traffic that begin one after the other."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from twinnet.errors import UsageError
from twinnet.study.execute import LabExecutor
from twinnet.study.forecast import needed_frames
from twinnet.study.network_of import network_of
from twinnet.study.plan import PlannedRun, plan_study
from twinnet.study.resolution import Study, load_study
from twinnet.study.runner import Progress

MS, S = 10**9, 10**12
STUDY = """
study: apart
title: One after the other
question: When does each source begin?
parameters:
  apart: {default: 40 ms}
network: {template: "single:4", link_defaults: {rate: 10 Mbit, delay: 1 ms}}
traffic:
  - {name: load, app: udp, from: [h1, h2, h3], to: h4, start: 100 ms, apart: "${apart}", port: 5003, rate: 1 Mbit,
     duration: 2 s}
measurements:
  rate: {of: throughput, interval: 1 s}
clock: virtual
settle: 100 ms
drain: 100 ms
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "study.yaml"
    file.write_text(STUDY, encoding="utf-8")
    return str(file)


def first_run(study: Study) -> PlannedRun:
    return plan_study(study)[0]


def test_each_source_begins_so_long_after_the_one_before_it_and_lasts_as_long(path: str) -> None:
    measured = LabExecutor()(first_run(load_study(path)), Progress(threading.Event()))
    senders = measured.flows.filter(measured.flows["role"] == "source").sort("from_host")
    assert senders["from_host"].to_list() == ["h1", "h2", "h3"]
    assert senders["start_s"].to_list() == pytest.approx([0.1, 0.14, 0.18], abs=1e-6)
    # Until the last datagram: one gap before the duration is over. 1472 bytes at 1 Mbit/s are 12 ms.
    lasts = (senders["end_s"] - senders["start_s"]).to_list()
    assert lasts == pytest.approx([2.0] * 3, abs=0.013)


def test_the_runs_name_changes_with_it_and_not_where_it_is_nothing(path: str) -> None:
    without = Path(path).with_name("without.yaml")
    without.write_text(
        STUDY.replace(' apart: "${apart}",', "").replace("parameters:\n  apart: {default: 40 ms}\n", ""),
        encoding="utf-8",
    )
    nothing = first_run(load_study(path, {"apart": "0 s"}))
    assert nothing.id == first_run(load_study(str(without))).id
    assert first_run(load_study(path)).id != nothing.id


def needed(path: str, apart: str) -> float:
    run = first_run(load_study(path, {"apart": apart}))
    return needed_frames(network_of(run.specification, run.levels, run.seed), run.specification.traffic)


def test_the_forecast_counts_sources_together_only_while_they_are_together(path: str) -> None:
    at_once = needed(path, "0 s")
    assert needed(path, "40 ms") == at_once
    # Each lasts two seconds.
    assert needed(path, "1500 ms") == pytest.approx(at_once * 2 / 3)
    assert needed(path, "5 s") == pytest.approx(at_once / 3)


def test_a_moment_that_is_none_is_refused_with_its_place(path: str) -> None:
    for wrong in ("-5 ms", "soon"):
        with pytest.raises(UsageError, match="apart"):
            load_study(path, {"apart": wrong})


@pytest.mark.parametrize("preset", ["hundredth", "small", "tiny"])
def test_no_two_pings_of_the_study_of_classes_go_off_together_at_the_sizes_for_the_wall_clock(preset: str) -> None:
    traffic = load_study("qos-class-profiles", {}, preset).specification.traffic
    moments = sorted(start_ps % S for entry in traffic if entry.app == "ping" for start_ps in entry.starts_ps.values())
    gaps = [after - before for before, after in zip(moments, [*moments[1:], moments[0] + S], strict=True)]
    # An echo takes the agent some tens of microseconds.
    assert min(gaps) >= MS
