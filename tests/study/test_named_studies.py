"""Studies of installed packages have names; twinnet's own keep theirs."""

from __future__ import annotations

from pathlib import Path

import pytest
import twinnet as tn
from twinnet.study.named_studies import STUDIES_FOLDER, brought_studies, named_studies
from twinnet.study.resolution import load_study

STUDY = """\
study: late-calls
title: Late calls
question: How late?
network:
  hosts: {h1: , h2: }
  links: [{between: [h1, h2], rate: 1 Mbit}]
traffic:
- {name: a, app: udp, from: [h1], to: h2, port: 5001, rate: 100 kbit, duration: 100 ms}
measurements:
  half: {of: "my_lab.metrics:half"}
clock: virtual
repetitions: 1
"""
POINTS = """\
[twinnet.studies]
late-calls = my_lab.late_calls
mtu-sweep = my_lab.late_calls
gone = my_lab.gone
absent = no_such_package.study
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package as pip installs one, which brings a study and a metric."""
    package = tmp_path / "my_lab"
    (package / "late_calls").mkdir(parents=True)
    # A study is found without running its package.
    (package / "late_calls" / "__init__.py").write_text("raise RuntimeError")
    (package / "late_calls" / "study.yaml").write_text(STUDY)
    (package / "__init__.py").write_text("")
    (package / "metrics.py").write_text("def half(run):\n    return 0.5 * run.flows.height\n")
    about = tmp_path / "my_lab-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-lab\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(tmp_path)  # pyright: ignore[reportUnknownMemberType]
    return package


def test_a_study_of_a_package_has_its_name_and_its_own_metric(installed: Path, tmp_path: Path) -> None:
    assert brought_studies() == {"late-calls": installed / "late_calls" / "study.yaml"}
    assert "late-calls" in tn.studies.names()
    results = tn.studies.run("late-calls", out=tmp_path / "out", progress=False)
    # Each flow has a row for the end that sends and one for the end that receives.
    assert results.value("mean(half)").estimate == 1.0


def test_a_built_in_study_keeps_its_name(installed: Path) -> None:
    assert named_studies()["mtu-sweep"] == STUDIES_FOLDER / "mtu-sweep" / "study.yaml"
    assert load_study("mtu-sweep").name == "mtu-sweep"
