"""Studies on the virtual clock, from the command line: exact repeats, side by side, stopped and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import twinnet as tn
from shared_processors import stretched_s
from study_networks import two_senders
from twinnet.cli import run as command_line

SOURCE = str(Path(tn.__file__).parent.parent)
ENVIRONMENT = {**os.environ, "PYTHONPATH": SOURCE, "LC_ALL": "C"}
TWINNET = [sys.executable, "-c", "from twinnet.cli import main; main()"]
LIMIT_S = 120
STUDY = """\
study: share
title: Two senders and one line
question: How is a line of 2 Mbit/s shared?
parameters:
  time: {default: 4 s}
  clock_load: {default: 1500 kbit}
NETWORK
factors:
  queue:
    levels:
      short: {queues: {s1-eth3: {kind: fifo, limit_frames: 5}}}
      long: {queues: {s1-eth3: {kind: fifo, limit_frames: 50}}}
traffic:
  - {name: load, app: udp, from: [h1, h2], to: h3, port: 5003, rate: "${clock_load}", duration: "${time}",
     process: poisson, payload: 500 B}
  - {name: probe, app: ping, from: [h1], to: h3, count: 10, interval: 200 ms}
measurements:
  throughput: {of: throughput, interval: 500 ms}
  line: {of: port_throughput, ports: [s1-eth3], layer: wire, interval: 500 ms}
  lost: {of: loss, only: [load]}
  round_trip: {of: rtt, only: [probe]}
repetitions: 3
settle: 100 ms
drain: 300 ms
time_limit: 100 h
statements:
  - {id: full, text: The line is full., check: "mean(line, during=[0 s, 4 s], queue=short) > 1.9 Mbit"}
""".replace("NETWORK\n", two_senders("rate: 2 Mbit, delay: 1 ms"))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "share.yaml"
    path.write_text(STUDY)
    return path


def virtual(study: Path, out: Path, *arguments: str) -> int:
    return command_line(["run", str(study), "--clock", "virtual", "--out", str(out), "--no-report", *arguments])


def records(out: Path) -> dict[str, dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in out.glob("share/*/run.json")]
    return {one["run"]: one for one in found if one["status"] == "finished"}


def hashes(out: Path) -> dict[str, str]:
    return {run: record["trace_hash"] for run, record in records(out).items()}


def test_a_run_is_exact_and_its_record_says_on_which_clock_and_what_happened(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert virtual(study, tmp_path / "a") == 0
    told = capsys.readouterr().out
    assert "Clock: virtual (simulation, model hosts)." in told
    assert "Exact: the virtual clock waits for every event" in told
    assert "✓ supported" in told
    found = records(tmp_path / "a")
    assert len(found) == 6
    for record in found.values():
        assert (record["clock"], record["fidelity"]["verdict"]) == ("virtual", "valid")
        assert len(record["trace_hash"]) == 16
        assert record["events"] > 1000
        assert record["versions"]["twinnet"]
    assert len(set(hashes(tmp_path / "a").values())) == 6
    run = next((tmp_path / "a").glob("share/long-01-*"))
    assert pl.read_parquet(run / "fidelity.parquet").is_empty()
    flows = pl.read_parquet(run / "flows.parquet")
    assert flows.filter(pl.col("role") == "sink")["payload_bytes"].min() > 100_000
    assert flows.filter(pl.col("protocol") == "icmp")["rtt_min_ms"].min() > 2.0


def test_runs_side_by_side_in_another_order_are_the_same_runs(study: Path, tmp_path: Path) -> None:
    assert virtual(study, tmp_path / "a") == 0
    assert virtual(study, tmp_path / "b", "--jobs", "3", "--order", "random") == 0
    assert hashes(tmp_path / "a") == hashes(tmp_path / "b")


def test_both_clocks_have_runs_of_their_own_in_one_folder(study: Path, tmp_path: Path) -> None:
    assert virtual(study, tmp_path / "a", "--repeat", "1") == 0
    from twinnet.study.plan import plan_study
    from twinnet.study.resolution import load_study

    wall = {run.id for run in plan_study(load_study(study))}
    assert not wall & set(records(tmp_path / "a"))


def test_the_file_may_name_the_clock(study: Path, tmp_path: Path) -> None:
    study.write_text(STUDY + "clock: virtual\n")
    assert command_line(["run", str(study), "--repeat", "1", "--out", str(tmp_path / "a"), "--no-report"]) == 0
    assert {record["clock"] for record in records(tmp_path / "a").values()} == {"virtual"}


def test_an_app_that_never_ends_is_ended_at_the_runs_time_limit(study: Path, tmp_path: Path) -> None:
    settings = ["--set", "time=2000 h", "--set", "time_limit=2 s", "--repeat", "1"]
    study.write_text(STUDY.partition("statements:")[0])
    assert virtual(study, tmp_path / "a", *settings) == 0
    ends = [pl.read_parquet(path)["end_s"].max() for path in (tmp_path / "a").glob("share/*/flows.parquet")]
    assert len(ends) == 2
    assert all(1.9 < end < 2.5 for end in ends)


def begun(study: Path, folder: Path) -> subprocess.Popen[str]:
    """A study whose second half would take hours, and whose first runs have landed."""
    arguments = ["run", str(study), "--clock", "virtual", "--no-report", "--set", "time=4 s", "--repeat", "2000"]
    process = subprocess.Popen(
        [*TWINNET, *arguments], cwd=folder, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    while "[3/" not in process.stderr.readline():
        assert process.poll() is None
    return process


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda how: how.name)
def test_a_study_that_is_stopped_at_any_moment_goes_on_where_it_was(
    study: Path, tmp_path: Path, how: signal.Signals
) -> None:
    with begun(study, tmp_path) as process:
        os.killpg(process.pid, how)
        begin = time.monotonic()
        told = process.stderr.read() if process.stderr is not None else ""
        status = process.wait(LIMIT_S)
    assert status == (130 if how == signal.SIGINT else -how), told
    assert "Traceback" not in told
    # The summary of what is there and the interpreter's end are in this too.
    assert time.monotonic() - begin < 20
    kept = records(tmp_path / "results")
    assert len(kept) >= 3
    assert virtual(study, tmp_path / "results", "--set", "time=4 s", "--repeat", "3") == 0
    after = records(tmp_path / "results")
    assert {run: record["started"] for run, record in kept.items()}.items() <= {
        run: record["started"] for run, record in after.items()
    }.items()
    assert list(tmp_path.rglob("*.partial")) == []
    assert virtual(study, tmp_path / "fresh", "--repeat", "3") == 0
    assert hashes(tmp_path / "fresh").items() <= hashes(tmp_path / "results").items()


def test_a_long_run_hears_an_interrupt_within_a_second(study: Path, tmp_path: Path) -> None:
    study.write_text(STUDY.partition("statements:")[0])
    arguments = ["run", str(study), "--clock", "virtual", "--no-report", "--set", "time=2000 h", "--repeat", "1"]
    with subprocess.Popen(
        [*TWINNET, *arguments, "--yes"], cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            assert "2 runs to make" in process.stderr.readline()
            time.sleep(0.5)  # Somewhere in the middle of the first run; wherever that is makes no difference.
            process.send_signal(signal.SIGINT)
            begin = time.monotonic()
            assert "interrupted" in process.stderr.readline()
            assert time.monotonic() - begin < stretched_s(1.0)
            assert "interrupted: 0 of 2 runs are finished" in process.stderr.read()
            assert process.wait(LIMIT_S) == 130
        finally:
            # One that did not hear would run for hours.
            process.kill()


MISTAKES = [
    ("payload: 500 B", "payload: 500 B, start: 3000 h", "traffic[0].start: the time '3000 h' is out of range"),
    ("rate: 2 Mbit", "rate: 0 Mbit", 'network.links[2].rate: the rate "0 Mbit" is out of range'),
    ("rate: 2 Mbit", "rate: 20 Tbit", "network.links[2].rate: the rate '20 Tbit' is out of range"),
    ("delay: 1 ms", "delay: 2 h", "network.links[2].delay: the delay '2 h' is out of range"),
    ("{default: 4 s}", "{default: 0 s}", "parameters.time.default: the duration '0 s' is out of range"),
    ("interval: 200 ms", "interval: 1 ps", "traffic[1].interval: the interval '1 ps' is out of range"),
    ("{of: throughput, interval: 500 ms}", "{of: throughput, interval: 10 us}", "measurements.throughput.interval: "),
    ("time_limit: 100 h", "time_limit: 2399 h\n# ", None),
    ("time_limit: 100 h", "time_limit: 2400 h", "'settle', 'time_limit' and 'drain' are more than 100 days together"),
    ("settle: 100 ms", "settle: 5000 h", "settle: the time '5000 h' is out of range"),
]


@pytest.mark.parametrize(("good", "bad", "message"), MISTAKES, ids=lambda value: str(value)[:30])
def test_what_no_clock_can_hold_is_refused_where_it_stands(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], good: str, bad: str, message: str | None
) -> None:
    assert good in STUDY
    study.write_text(STUDY.replace(good, bad, 1))
    status = virtual(study, tmp_path / "a", "--repeat", "1")
    told = capsys.readouterr().err
    if message is None:
        assert status == 0
        return
    assert status == 2
    assert message in told
    assert not (tmp_path / "a").exists()
