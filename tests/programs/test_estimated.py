"""Estimates of available bandwidth by any program: what it prints is read, and set beside what the fabric counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from labs_here import needs_a_lab
from refused_studies import refusal
from study_networks import one_switch
from twinnet import programs, studies
from twinnet.errors import BadValue
from twinnet.lab_process.job import Ending
from twinnet.programs.transfer import Output
from twinnet.results.bandwidth_report import Bandwidth
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study

STUDY = """\
study: told
title: A program that estimates
question: What does it tell?
NETWORK
traffic:
  - {name: probes, app: bandwidth, method: hybrid, using: programs, from: [h1], to: h2, port: 8080, duration: 5 s,
     tool: {command: "sh -c 'sleep 1; echo free: 6.5 Mbps to {to}'", server: "python3 -m http.server {port}",
            reads: "free: ([0-9.]+) Mbps"}}
measurements:
  estimate: {of: available_bandwidth}
  error: {of: available_bandwidth_error, ports: [h1-eth0, s1-eth2]}
repetitions: 1
clock: wall
""".replace("NETWORK\n", one_switch("rate: 10 Mbit", "rate: 10 Mbit"))


def told(reads: str, client: str, server: str = "", unit: str = "1 Mbit") -> Bandwidth:
    transfer = programs.estimate_by("h1", "h2", "probe {to} {port}", reads=reads, port=99, unit=unit)
    assert transfer.argv == ("probe", "{to}", "99")
    (report,) = transfer.parse(transfer, Output(client, server, "", Ending(0, 2.0), 10**12))
    assert report.bandwidth is not None
    return report.bandwidth


def test_the_last_match_is_the_estimate_in_its_unit() -> None:
    found = told(r"([0-9.]+) Mbps", "first 3.5 Mbps\nthen 4 Mbps\n", server="9 Mbps")
    assert (found.estimate_bps, found.low_bps, found.gave_up) == (4e6, None, None)
    assert (found.window_start_ps, found.window_end_ps) == (10**12, 3 * 10**12)
    assert told("rate ([0-9]+)", "", server="rate 7", unit="1 kbit").estimate_bps == 7000


def test_two_groups_are_a_range() -> None:
    found = told(r"range: ([0-9.]+) - ([0-9.]+)", "range: 2 - 3")
    assert (found.low_bps, found.estimate_bps, found.high_bps) == (2e6, 2.5e6, 3e6)


def test_a_program_that_tells_nothing_has_no_estimate() -> None:
    found = told("rate ([0-9]+)", "cannot reach it")
    assert found.estimate_bps is None and found.gave_up == "probe wrote nothing that 'rate ([0-9]+)' matches"


@pytest.mark.parametrize(
    ("command", "reads", "said"),
    [
        ("probe", "rate", "has 0 groups"),
        ("probe", "(", "cannot be read"),
        ("probe '", "(1)", "cannot be read"),
        ("", "(1)", "a command is empty"),
    ],
)
def test_what_cannot_be_read_is_refused(command: str, reads: str, said: str) -> None:
    with pytest.raises(BadValue, match=said):
        programs.estimate_by("h1", "h2", command, reads=reads)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('reads: "free: ([0-9.]+) Mbps"', "reads: free", "has 0 groups"),
        ("app: bandwidth, method: hybrid,", "app: tcp,", "'tool' has no meaning for tcp traffic"),
        ("using: programs", "unit: 1 s", "unknown key"),
    ],
)
def test_mistakes_in_studies_are_told(
    old: str, new: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refusal(STUDY.replace(old, new), tmp_path, capsys)


def test_a_tool_changes_no_run_of_a_built_in_method(tmp_path: Path) -> None:
    path = tmp_path / "told.yaml"
    digests: list[str] = []
    for text in (STUDY, STUDY.replace("sleep 1", "sleep 2")):
        for by in ("programs", "apps"):
            path.write_text(text.replace("using: programs", f"using: {by}"))
            digests.append(plan_study(load_study(path))[0].digest)
    assert digests[1] == digests[3] and len(set(digests)) == 3


@needs_a_lab
def test_a_study_compares_it_with_what_the_fabric_counted(tmp_path: Path) -> None:
    path = tmp_path / "told.yaml"
    path.write_text(STUDY)
    results = studies.run(str(path), out=tmp_path / "out", progress=False, with_invalid=True)
    flows = results.table("flows")
    assert flows["available_bandwidth_bps"].to_list() == [6.5e6]
    # Nothing else is sent, and what the host itself sent counts as probes: all is available.
    assert flows["available_bandwidth_true_bps"].to_list() == [pytest.approx(10e6, rel=0.01)]
