"""Networks that a factor chooses, seeds that levels share, and measurements of packets: what is allowed and refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from twinnet.study.network_of import network_of
from twinnet.study.plan import plan_study
from twinnet.study.resolution import Study, load_study
from twinnet.yaml_source import SourceError

STUDY = """\
study: two
title: Two networks
question: Which is it?
networks:
  short:
    hosts: {h1: , h2: }
    links: [{between: [h1, h2]}]
  long:
    hosts: {h1: , h2: }
    switches: {s1: }
    links: [{between: [h1, s1]}, {between: [s1, h2]}]
factors:
  way:
    levels:
      short: {network: short}
      long: {network: long}
traffic:
  - {name: video, app: rtp, from: [h1], to: h2, port: 5004, duration: 1 s, record_packets: 100}
measurements:
  distance: {of: gap, minimum_after: 5, describe: true}
repetitions: 2
"""


def read(folder: Path, text: str) -> Study:
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    return load_study(folder)


def test_a_level_chooses_the_network(tmp_path: Path) -> None:
    study = read(tmp_path, STUDY)
    switches = {
        run.levels["way"]: len(list(network_of(run.specification, run.levels, 1).switches)) for run in plan_study(study)
    }
    assert switches == {"short": 0, "long": 1}


def test_a_change_of_one_network_leaves_the_runs_on_the_other_alone(tmp_path: Path) -> None:
    before = {run.id for run in plan_study(read(tmp_path, STUDY))}
    changed = STUDY.replace("[{between: [h1, s1]}", "[{between: [h1, s1], rate: 1 Mbit}")
    same = before & {run.id for run in plan_study(read(tmp_path, changed))}
    assert {name.split("-")[0] for name in same} == {"short"} and len(same) == 2


def test_seeds_by_repetition_are_the_same_for_all_levels(tmp_path: Path) -> None:
    own = [run.seed for run in plan_study(read(tmp_path, STUDY))]
    shared = [(run.repetition, run.seed) for run in plan_study(read(tmp_path, STUDY + "seeds: repetition\n"))]
    assert len(set(own)) == 4
    assert len(set(shared)) == 2


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("{network: long}", "{network: lang}", "did you mean 'long'"),
        ("{network: long}", "{}", "chooses no network"),
        ("      short: {network: short}\n      long: {network: long}", "      a: {}\n      b: {}", "has no network"),
        (", record_packets: 100", "", "needed: give the traffic video 'record_packets'"),
        ("of: gap", "of: loss", "'minimum_after' has no meaning for loss"),
        ("of: gap, minimum_after: 5, describe: true", "of: frame_loss, describe: true", "'describe' has no meaning"),
        ("of: gap,", "of: gap, bounds: arrivals,", "'bounds' has no meaning for gap"),
        ("duration: 1 s,", "duration: 1 s, shaping: 1 s, paced: true,", "paced or shaped, not both"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in STUDY
    with pytest.raises(SourceError) as refused:
        read(tmp_path, STUDY.replace(old, new))
    assert told in str(refused.value)


def test_two_factors_cannot_both_choose(tmp_path: Path) -> None:
    second = STUDY.replace("traffic:\n", "  other: {levels: {x: {network: short}}}\ntraffic:\n", 1)
    with pytest.raises(SourceError, match="both choose the network"):
        read(tmp_path, second)
