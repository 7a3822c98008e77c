"""Studies from Python: results are tables with units, figures and text, and are loaded and compared."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import twinnet as tn
from twinnet.errors import BadValue
from twinnet.studies import StudyFailed, StudyResults

STUDY = """\
study: two
title: Two hosts
question: How long does a ping take?
answer: "Heavy load carries {mean(throughput, load=heavy)}."
clock: virtual
repetitions: 2
parameters:
  delay: {default: 1 ms}
network:
  hosts: {h1: , h2: }
  switches: {s1: }
  links:
  - {between: [h1, s1], rate: 10 Mbit, delay: "${delay}"}
  - {between: [h2, s1], rate: 10 Mbit}
factors:
  load:
    levels:
      light: {set: {rate: 1 Mbit}}
      heavy: {set: {rate: 4 Mbit}}
traffic:
- {name: udp, app: udp, from: [h1], to: h2, port: 5001, rate: "${rate}", duration: 1 s, record_packets: 10}
measurements:
  throughput: {of: throughput, interval: 250 ms, per: protocol}
  delay: {of: delay, per: protocol}
statements:
- {id: more, text: Heavy load carries more., check: "mean(throughput, load=heavy) > mean(throughput, load=light)"}
""".replace("parameters:\n", "parameters:\n  rate: {default: 1 Mbit}\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("results")
    (place / "study.yaml").write_text(STUDY)
    return place


@pytest.fixture(scope="module")
def results(folder: Path) -> StudyResults:
    return tn.studies.run(folder / "study.yaml", out=folder / "out", progress=False)


def test_the_answer_is_told_with_units(results: StudyResults) -> None:
    carried, _, judged = results.answer.partition(" Mbit/s. ")
    # 4 Mbit/s are offered for a second; the last interval counts in whole packets.
    assert float(carried.removeprefix("Heavy load carries ")) == pytest.approx(4, rel=0.05)
    assert judged == "Of 1 statement: 1 supported."
    assert results.statements["verdict"].to_list() == ["supported"]
    assert "Mbit/s" in results.statements["numbers"][0]
    assert "Heavy load carries more." in str(results)
    assert "4 runs" in repr(results)
    assert "4 valid" in results.fidelity


def test_means_have_interval_and_unit(results: StudyResults) -> None:
    heavy = results.means.filter(pl.col("factor_load") == "heavy", pl.col("measurement") == "throughput").to_dicts()
    assert [one["unit"] for one in heavy] == ["bit/s"]
    # A source sends whole datagrams: the last may fall short by one of 1472 bytes in 1 s.
    assert heavy[0]["mean"] == pytest.approx(4e6, abs=12_000)
    assert heavy[0]["repetitions"] == 2


def test_tables_of_all_runs_stand_together(results: StudyResults) -> None:
    assert results.runs.height == 4
    assert results.failures.is_empty()
    assert results.flows.columns[:3] == ["run", "factor_load", "repetition"]
    assert sorted(results.flows["factor_load"].unique()) == ["heavy", "light"]
    assert set(results.intervals["run"]) == set(results.runs["run"])
    assert results.packets.height == 4 * 10
    assert results.port_samples.is_empty()
    assert results.twin is None
    assert set(results.columns("flows")["column"]) <= set(results.flows.columns)
    units = dict(results.columns("flows").select("column", "unit").iter_rows())
    assert (units["delay_mean_ms"], units["payload_bytes"], units["start_s"]) == ("ms", "B", "s")


def test_a_notebook_shows_the_answer_and_escapes_text(results: StudyResults) -> None:
    shown = results._repr_html_()
    assert "How long does a ping take?" in shown
    assert results.answer in shown
    assert "supported" in shown
    assert "<table" in shown


def test_figures_are_matplotlibs(results: StudyResults, tmp_path: Path) -> None:
    assert results.figures[:3] == ("throughput", "levels-throughput", "levels-delay")
    figure = results.figure()
    assert len(figure.axes) == 2
    small = results.figure("throughput", colour="load", where={"load": ["heavy", "light"]}, size_mm=(88, 60), columns=1)
    assert len(small.axes) == 1
    assert small.get_figwidth() == pytest.approx(88 / 25.4)
    figure.savefig(tmp_path / "one.svg")
    assert (tmp_path / "one.svg").read_text().startswith("<?xml")
    with pytest.raises(BadValue, match="did you mean 'throughput'"):
        results.figure("througput")


def test_what_is_stored_is_loaded_and_not_made_again(results: StudyResults, folder: Path) -> None:
    again = tn.studies.run(folder / "study.yaml", out=folder / "out", progress=False)
    loaded = tn.results.load(folder / "out" / "two")
    assert again.runs["started"].to_list() == loaded.runs["started"].to_list() == results.runs["started"].to_list()
    assert loaded.means.equals(results.means)


def test_two_results_are_compared(results: StudyResults, folder: Path) -> None:
    slower = tn.studies.run(folder / "study.yaml", settings={"delay": "3 ms"}, out=folder / "slower", progress=False)
    compared = results.compare(slower)
    delays = compared.table.filter(pl.col("measurement") == "delay")
    # 2 ms more on one link, in seconds; the first of at least 85 datagrams waits 4 ms more for its neighbour's address.
    assert delays["difference"].to_list() == pytest.approx([0.002, 0.002], abs=0.004 / 85 + 1e-6)
    assert compared.only_in_one == (0, 0)
    assert "delay, udp" in str(compared)
    assert "<table" in compared._repr_html_()


def test_the_report_is_written(results: StudyResults, tmp_path: Path) -> None:
    assert results.report(tmp_path) == tmp_path / "report.html"
    assert (tmp_path / "means.csv").is_file()


def test_mistakes_name_what_is_allowed(results: StudyResults, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="did you mean 'mtu-sweep'"):
        tn.studies.run("mtu-swep")
    with pytest.raises(BadValue, match="from 1 to 256"):
        tn.studies.run("mtu-sweep", jobs=0)
    with pytest.raises(BadValue, match="did you mean 'flows'"):
        results.table("flow")
    with pytest.raises(BadValue, match="does not hold the results"):
        tn.results.load(tmp_path)
    assert "mtu-sweep" in tn.studies.names()


def test_a_study_of_which_no_run_can_be_made_fails_with_its_reason(folder: Path) -> None:
    controller = "  controller: {connect: 'tcp:127.0.0.1:6653', run: ['false'], patience: 200 ms}\n"
    wrong = STUDY.replace("  switches: {s1: }\n", "  switches: {s1: }\n" + controller)
    (folder / "wrong.yaml").write_text(wrong)
    with pytest.raises(StudyFailed, match="the controller false has ended with status 1"):
        tn.studies.run(folder / "wrong.yaml", out=folder / "wrong", progress=False)
