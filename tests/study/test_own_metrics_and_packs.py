"""A study's own metrics in Python, and packs of results that others check with one command."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
import twinnet as tn
from study_networks import two_senders
from twinnet.cli import run as command_line
from twinnet.errors import BadValue
from twinnet.study.own_metric import find_metric

METRICS = '''\
"""Metrics of our own."""


def longest_gap(run):
    """The longest time in which no packet arrived, in seconds."""
    arrived = run.packets.sort("arrived_s")["arrived_s"]
    if run.window_s is not None:
        arrived = arrived.filter(arrived.is_between(*run.window_s))
    if arrived.len() < 2:
        raise LookupError("fewer than two packets arrived")
    return arrived.diff().max()


def delays(run):
    return run.packets["delay_ms"].drop_nulls() / 1e3


def drops(run):
    return run.port_samples["drops"].sum() + 0 * run.end_s + (run.levels["queue"] == "nothing")


def wrong(run):
    return 1 / 0


def words(run):
    return "many"
'''
STUDY = """\
study: own
title: A metric of our own
question: How long is it silent?
NETWORK
factors:
  queue:
    levels:
      short: {queues: {s1 to h3: {kind: fifo, limit_frames: 5}}}
      long: {queues: {s1 to h3: {kind: fifo, limit_frames: 50}}}
traffic:
  - {name: load, app: udp, from: [h1], to: h3, port: 5003, rate: 1950 kbit, duration: 2 s, payload: 500 B,
     process: poisson}
  - {name: call, app: voice, from: [h2], to: h3, port: 5006, duration: 2 s, record_packets: 1000}
measurements:
  silence: {of: "metrics:longest_gap", unit: s, only: [call], text: The longest silence.}
  mine: {of: "metrics:delays", unit: s, only: [call], show: p90}
  theirs: {of: delay, only: [call], show: p90}
  dropped: {of: "metrics:drops", unit: packets}
  port: {of: queue_drops, ports: [s1 to h3], interval: 100 ms}
repetitions: 3
clock: virtual
statements:
  - {id: slow, text: The queue holds the call up., check: "mean(mine, queue=short) > 5 ms"}
""".replace("NETWORK\n", two_senders("rate: 2 Mbit, delay: 1 ms"))


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Dry runs write their picture there.
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "metrics.py").write_text(METRICS)
    (folder / "study.yaml").write_text(STUDY)
    return folder


def made(study: Path) -> Path:
    out = study.parent / "out"
    assert command_line(["run", str(study), "--out", str(out)]) == 0
    return out / "own"


def test_a_metric_is_shown_judged_and_recorded(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(study)
    results = tn.results.load(folder)
    assert results.statements["verdict"].to_list() == ["supported"]
    assert results.value("max(mine)").estimate == pytest.approx(results.value("max(theirs)").estimate)
    assert results.value("max(silence, after=1 s)").estimate <= results.value("max(silence)").estimate
    assert results.value("min(dropped, queue=short)").estimate > 10
    gap = max(
        frame.sort("arrived_s")["arrived_s"].diff().max()
        for _, frame in results.packets.filter(name="call").group_by("run")
    )
    assert results.value("max(silence)").estimate == pytest.approx(gap)
    assert set(results.means.filter(measurement="silence")["label"]) == {"all"}
    # The source is kept with the results, and the report tells its hash.
    assert (folder / "metrics.py").read_text() == METRICS
    source = find_metric("metrics:longest_gap", {"metrics.py": METRICS})
    assert source.sha256 in (folder / "report" / "report.html").read_text()
    # It is made of what the others measure, so a new one needs no new runs.
    (study / "study.yaml").write_text(STUDY.replace("\n  mine:", '\n  more: {of: "metrics:delays", unit: s}\n  mine:'))
    capsys.readouterr()
    made(study)
    assert "6 finished before and kept" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("metrics:longest_gap", "metrics:longest_gep", "defines no 'longest_gep'; did you mean 'longest_gap'"),
        ("metrics:longest_gap", "metrix:longest_gap", "no module 'metrix' is installed, and"),
        ("metrics:longest_gap", "no.such.module:x", "no module 'no.such.module' is installed"),
        ("metrics:longest_gap", "metrics:", "measurements.silence.of"),
        ("{of: delay, only", "{of: delay, unit: s, only", "'unit' has no meaning for delay, whose unit is s"),
        ("unit: s, only: [call], text", "unit: m, only: [call], text", "measurements.silence.unit"),
        ("max(silence) ", "max(silence) ", ""),
    ],
)  # fmt: skip
def test_wrong_metrics_are_refused_when_the_file_is_read(
    study: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    assert old in STUDY or not message
    (study / "study.yaml").write_text(STUDY.replace(old, new))
    status = command_line(["run", str(study), "--dry-run", "--out", str(study.parent / "out")])
    assert (status != 0) == bool(message)
    assert message in capsys.readouterr().err


def test_reading_a_study_runs_no_code(study: Path) -> None:
    (study / "metrics.py").write_text(METRICS + f"\nopen({str(study / 'was-run')!r}, 'w').close()\n")
    assert command_line(["run", str(study), "--dry-run", "--out", str(study.parent / "out")]) == 0
    assert not (study / "was-run").exists()
    (study / "metrics.py").write_text("def longest_gap(run:\n")
    assert command_line(["run", str(study), "--dry-run", "--out", str(study.parent / "out")]) != 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wrong", "the metric metrics:wrong failed: ZeroDivisionError: division by zero (metrics.py, line 23)"),
        ("words", "the metric metrics:words gave 'many' (return a number or a list of numbers"),
    ],
)
def test_a_metric_that_fails_is_told_with_its_line(
    study: Path, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    (study / "study.yaml").write_text(STUDY.replace("metrics:longest_gap", f"metrics:{name}"))
    assert command_line(["run", str(study), "--out", str(study.parent / "out")]) != 0
    assert message in capsys.readouterr().err


def test_a_pack_holds_and_its_runs_are_made_again(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(study)
    pack = study.parent / "own.zip"
    assert command_line(["pack", str(folder), "--out", str(pack)]) == 0
    first = pack.read_bytes()
    assert command_line(["pack", str(folder), "--out", str(pack), "--json"]) == 0
    # The same results make the same pack.
    assert pack.read_bytes() == first
    capsys.readouterr()
    kept = study.parent / "kept"
    assert command_line(["check", str(pack), "--json", "--runs", "3", "--into", str(kept)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["study"], told["runs"], len(told["made_again"]), told["wrong"]) == ("own", 6, 3, [])
    assert tn.results.load(kept).answer == tn.results.load(folder).answer
    assert command_line(["check", str(pack), "--into", str(kept)]) != 0


def changed(pack: Path, name: str, change: bytes, rehash: bool) -> Path:
    """A pack with one file changed, and its hash with it if `rehash`."""
    import hashlib

    other = pack.with_name("changed.zip")
    with zipfile.ZipFile(pack) as source, zipfile.ZipFile(other, "w") as target:
        manifest = json.loads(source.read("MANIFEST.json"))
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename == name:
                old, new = change.split(b"->")
                assert old in content
                content = content.replace(old, new)
                if rehash:
                    manifest["files"][name] = hashlib.sha256(content).hexdigest()
            if entry.filename != "MANIFEST.json":
                target.writestr(entry.filename, content)
        target.writestr("MANIFEST.json", json.dumps(manifest))
    return other


def test_a_pack_that_was_changed_does_not_hold(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(study)
    pack = study.parent / "own.zip"
    assert command_line(["pack", str(folder), "--out", str(pack)]) == 0
    capsys.readouterr()
    assert command_line(["check", str(changed(pack, "study.yaml", b"The queue->A queue", rehash=False))]) == 1
    assert "study.yaml is not the file that was packed: its hash differs" in capsys.readouterr().err
    # Whoever changes the hash, too, cannot change what the tables come to.
    assert command_line(["check", str(changed(pack, "study.yaml", b"short) > 5 ms->short) > 5 s", True))]) == 1
    assert "statement slow: the pack says supported" in capsys.readouterr().err
    run = next(path.name for path in folder.iterdir() if path.name.startswith("short-01"))
    told = json.loads((folder / run / "run.json").read_text())["trace_hash"]
    other = changed(pack, f"{run}/run.json", f"{told}->{told[::-1]}".encode(), rehash=True)
    assert command_line(["check", str(other), "--runs", "6"]) == 1
    assert f"{run} made again has the trace {told}, and {told[::-1]} packed" in capsys.readouterr().err


def test_what_is_no_pack_is_refused(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    none = study.parent / "none.zip"
    assert command_line(["check", str(none)]) != 0
    assert "there is no file" in capsys.readouterr().err
    none.write_bytes(b"no archive")
    assert command_line(["check", str(none)]) != 0
    assert "is no pack of results" in capsys.readouterr().err
    with zipfile.ZipFile(none, "w") as archive:
        archive.writestr("MANIFEST.json", json.dumps({"format": 1, "study": "x", "files": {"../evil": ""}}))
        archive.writestr("../evil", "")
    assert command_line(["check", str(none)]) != 0
    assert "which no results have" in capsys.readouterr().err
    assert not (study.parent / "evil").exists()
    assert command_line(["pack", str(study)]) != 0


def test_unfinished_results_are_not_packed(study: Path) -> None:
    folder = made(study)
    import shutil

    shutil.rmtree(next(path for path in folder.iterdir() if path.name.startswith("long-02")))
    from twinnet.report.pack import write_pack

    with pytest.raises(BadValue, match="1 of 6 runs are not finished"):
        write_pack(folder, study.parent / "own.zip")
