"""Captures that a study keeps: on both clocks, in the results, found again by `twinnet analyze` and the report."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import twinnet as tn
from fluid_lab import FluidLab
from refused_studies import refusal
from study_networks import one_switch
from twinnet.cli import run as command_line
from twinnet.cluster.messages import made_from, packed_made
from twinnet.study.kept_captures import captures_in
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study
from twinnet.study.runner import Made, Progress, make_run
from twinnet.study.store import Measured, ResultStore

STUDY = """\
study: kept
title: A call over one switch
question: Which packets does the call have?
NETWORK
traffic:
  - {name: call, app: udp, from: [h1], to: h2, port: 5006, rate: 400 kbit, payload: 500 B, duration: 1 s}
measurements:
  lost: {of: loss, only: [call]}
vary_starts: 10 ms
repetitions: 2
clock: virtual
settle: 100 ms
drain: 200 ms
capture: {at: [h2, s1 to h2], limit: 200 kB, snap: 96 B}
""".replace("NETWORK\n", one_switch("rate: 10 Mbit", "rate: 10 Mbit"))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "kept.yaml"
    path.write_text(STUDY)
    return path


@pytest.mark.parametrize("clock", ["virtual", "wall"])
def test_runs_keep_captures_beside_their_tables(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], clock: str
) -> None:
    asked = ["run", str(study), "--clock", clock, "--with-invalid", "--out", str(tmp_path)]
    assert command_line(asked) == 0
    results = tmp_path / "kept"
    kept = sorted(path.relative_to(results).as_posix() for path in results.glob("*/captures/*"))
    (folder,) = {name.partition("/")[0] for name in kept}
    assert folder.startswith("01-") and kept == [
        f"{folder}/captures/h2-eth0.pcapng",
        f"{folder}/captures/s1-eth2.pcapng",
    ]
    notes = json.loads((results / folder / "run.json").read_text())["notes"]["captures"]
    assert [one["port"] for one in notes] == ["h2-eth0", "s1-eth2"]
    # 400 kbit/s in datagrams of 500 bytes are 100; hosts also ask for addresses.
    assert all(one["frames"] >= 100 and one["not_kept"] == 0 for one in notes)
    assert [(results / folder / one["file"]).stat().st_size for one in notes] == [one["bytes"] for one in notes]
    page = (results / "report" / "report.html").read_text()
    assert f"{folder}/captures/h2-eth0.pcapng" in page and f"twinnet analyze {results / folder}" in page
    for place in (results, results / folder):
        capsys.readouterr()
        assert command_line(["analyze", str(place), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert [Path(one["file"]).name for one in told] == ["h2-eth0.pcapng", "s1-eth2.pcapng"]
        assert all(any(row["packets"] >= 100 for row in one["conversations"]) for one in told)


def test_a_pack_has_the_captures_and_gives_them_back(study: Path, tmp_path: Path) -> None:
    assert command_line(["run", str(study), "--no-report", "--out", str(tmp_path)]) == 0
    results, pack, back = tmp_path / "kept", tmp_path / "kept.zip", tmp_path / "back"
    assert command_line(["pack", str(results), "--out", str(pack)]) == 0
    assert command_line(["check", str(pack), "--runs", "2", "--into", str(back)]) == 0
    kept = [path.relative_to(results) for path in captures_in(results)]
    assert len(kept) == 2 and [path.relative_to(back) for path in captures_in(back)] == kept
    assert all((back / path).read_bytes() == (results / path).read_bytes() for path in kept)


def test_a_dry_run_tells_how_large_captures_may_become(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command_line(["run", str(study), "--dry-run"]) == 0
    assert (
        "Captures of h2-eth0, s1-eth2 in repetition 1 of each combination: 2 files of at most 200 kB, 400 kB together."
        in (" ".join(capsys.readouterr().out.split()))
    )
    assert command_line(["run", str(study), "--dry-run", "--json", "--set", "capture.repetitions=2"]) == 0
    told = json.loads(capsys.readouterr().out)["captures"]
    assert told == {"ports": ["h2-eth0", "s1-eth2"], "files": 4, "most_bytes": 800_000}


def test_a_full_capture_counts_what_it_does_not_keep(study: Path, tmp_path: Path) -> None:
    assert (
        command_line(["run", str(study), "--no-report", "--out", str(tmp_path), "--set", "capture.limit=4096 B"]) == 0
    )
    (record,) = [
        notes
        for path in (tmp_path / "kept").glob("*/run.json")
        if (notes := json.loads(path.read_text())["notes"].get("captures"))
    ]
    assert all(one["bytes"] < 5000 and one["not_kept"] > 0 for one in record)


def test_only_runs_that_keep_captures_have_other_names(study: Path) -> None:
    with_captures = plan_study(load_study(study))
    study.write_text(STUDY.partition("capture:")[0])
    without = plan_study(load_study(study))
    assert with_captures[0].id != without[0].id and with_captures[1].id == without[1].id
    assert [run.seed for run in with_captures] == [run.seed for run in without]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[h2, s1 to h2]", "[h3]", "the network has no port 'h3'"),
        ("[h2, s1 to h2]", "[s1 to h9]", "the network has no node 'h9'"),
        ("[h2, s1 to h2]", "[]", "capture.at"),
        ("limit: 200 kB", "limit: 250 MB", "more than the 400 MB that a run may keep"),
        ("limit: 200 kB", "limit: 100 B", "capture.limit"),
        ("snap: 96 B", "snapp: 96 B", "did you mean 'snap'"),
    ],
)
def test_captures_that_cannot_be_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    assert old in STUDY
    assert message in refusal(STUDY.replace(old, new), tmp_path, capsys)


def test_a_folder_without_captures_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["analyze", str(tmp_path)]) == 2
    assert "holds no captures" in capsys.readouterr().err


def test_captures_travel_and_are_copied_with_their_run(tmp_path: Path) -> None:
    tiny = load_study("tcp-udp-queues", {"clock": "virtual", "repetitions": "1"}, preset="tiny")
    run = plan_study(tiny)[0]
    made = make_run(run, FluidLab(), Progress(threading.Event()), 1)
    assert isinstance(made.result, Measured)
    captures = {"s1-eth1.pcapng": b"first", "s1-eth2.pcapng": b"second"}
    came = made_from(packed_made(run, Made(made.record, replace(made.result, captures=captures))), run)
    assert isinstance(came, Made) and isinstance(came.result, Measured)
    assert came.result.captures == captures
    record = {"levels": dict(run.levels), "repetition": 1, "seed": run.seed, "digest": run.digest, **came.record}
    stored = ResultStore(tmp_path / "first").write_finished(run, record, came.result)
    copied = ResultStore(tmp_path / "second").copy_run(stored)
    assert {path.name: path.read_bytes() for path in (copied.folder / "captures").iterdir()} == captures
    with pytest.raises(tn.TwinnetError, match="cannot be read"):
        made_from(packed_made(run, Made(made.record, replace(made.result, captures={"../x.pcapng": b""}))), run)
