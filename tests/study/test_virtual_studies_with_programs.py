"""Studies whose traffic real programs make, on the virtual clock: hosts in a guest kernel, and runs that repeat."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from kernels_here import needs_a_kernel
from twinnet.cli import run as command_line

NETWORK = """\
network:
  switches: {s1: }
  hosts: {h1: , h2: , h3: , h4: , h5: }
  links:
    - {between: [h1, s1], rate: 10 Mbit}
    - {between: [h2, s1], rate: 10 Mbit}
    - {between: [h3, s1], rate: 4 Mbit, delay: 5 ms}
    - {between: [h4, s1], rate: 10 Mbit}
    - {between: [h5, s1], rate: 10 Mbit}
"""
HEAD = """\
study: programs
title: Programs in virtual time
question: What do programs get?
repetitions: 2
settle: 100 ms
drain: 300 ms
"""
QUEUES = f"""\
{HEAD}
{NETWORK}
factors:
  queue:
    levels:
      short: {{queues: {{s1-eth3: {{kind: fifo, limit_frames: 5}}}}}}
      long: {{queues: {{s1-eth3: {{kind: fifo, limit_frames: 50}}}}}}
traffic:
  - {{name: bulk, app: tcp, using: programs, from: [h1], to: h3, port: 5002, duration: 3 s}}
  - {{name: load, app: udp, using: programs, from: [h2], to: h3, port: 5003, rate: 1 Mbit, duration: 3 s}}
measurements:
  throughput: {{of: throughput, interval: 500 ms, per: protocol}}
  line: {{of: port_throughput, ports: [s1-eth3], layer: wire, interval: 500 ms}}
  lost: {{of: loss, only: [load]}}
"""
WEB = f"""\
{HEAD}
{NETWORK}
traffic:
  - {{name: page, app: http, using: programs, from: [h1], to: h3, port: 8080, bytes: 500 kB}}
  - {{name: probe, app: ping, using: programs, from: [h2], to: h3, count: 5, interval: 200 ms}}
  - {{name: model, app: udp, from: [h4], to: h5, port: 5003, rate: 1 Mbit, duration: 1 s}}
measurements:
  page_time: {{of: transfer_time, only: [page]}}
  round_trip: {{of: rtt, only: [probe]}}
  throughput: {{of: throughput, interval: 500 ms, only: [model]}}
"""


def needs(*programs: str) -> pytest.MarkDecorator:
    absent = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(absent), reason=f"{', '.join(absent)} not installed")


def written(folder: Path, text: str) -> Path:
    path = folder / "programs.yaml"
    path.write_text(text)
    return path


def make(study: Path, out: Path, *more: str) -> int:
    return command_line(["run", str(study), "--clock", "virtual", "--out", str(out), "--no-report", *more])


def records(out: Path) -> dict[str, dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in out.glob("programs/*/run.json")]
    return {one["run"]: one for one in found if one["status"] == "finished"}


def hashes(out: Path) -> dict[str, str]:
    return {run: record["trace_hash"] for run, record in records(out).items()}


@needs_a_kernel
@needs("iperf")
def test_iperf_shares_a_queue_and_leaves_the_same_traces_twice_alone_and_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = written(tmp_path, QUEUES)
    assert make(study, tmp_path / "one") == 0
    assert "virtual (real hosts in a guest kernel)" in capsys.readouterr().out
    assert make(study, tmp_path / "two", "--jobs", "2") == 0
    first = hashes(tmp_path / "one")
    assert first == hashes(tmp_path / "two")
    # Each repetition and level has a seed and so a trace of its own.
    assert len(set(first.values())) == 4
    for record in records(tmp_path / "one").values():
        assert record["notes"]["lab"]["kernel"]
        flows = pl.read_parquet(tmp_path / "one" / "programs" / record["run"] / "flows.parquet")
        assert set(flows["tool"]) == {"programs"}
    # What is there is kept, as of any study.
    assert make(study, tmp_path / "one") == 0
    assert "4 finished before and kept" in capsys.readouterr().err


@needs_a_kernel
@needs("wget", "ping")
def test_fetches_and_pings_beside_models_take_what_arithmetic_says(tmp_path: Path) -> None:
    study = written(tmp_path, WEB)
    assert make(study, tmp_path / "one") == 0
    assert make(study, tmp_path / "two") == 0
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")
    for record in records(tmp_path / "one").values():
        flows = pl.read_parquet(tmp_path / "one" / "programs" / record["run"] / "flows.parquet")
        tools = dict(flows.select("name", "tool").unique().iter_rows())
        assert tools == {"page": "programs", "probe": "programs", "model": "apps"}
        page = flows.filter(pl.col("name") == "page").row(0, named=True)
        # 345 segments of 1538 bytes at 4 Mbit/s are 1.06 s; before them connecting and asking, and pings between.
        took_s = page["end_s"] - page["start_s"]
        assert page["payload_bytes"] == 500_000 and 1.06 < took_s < 1.3


@needs_a_kernel
@needs("iperf3")
def test_the_accuracy_of_senders_is_that_of_their_timers_and_the_same_twice(tmp_path: Path) -> None:
    def sent(out: Path) -> dict[str, tuple[str, list[float | None]]]:
        chosen = ["--preset", "tiny", "--set", "levels.generator=twinnet iperf3", "--clock", "virtual", "--no-report"]
        assert command_line(["run", "sending-accuracy", *chosen, "--out", str(out)]) == 0
        found: dict[str, tuple[str, list[float | None]]] = {}
        for path in (out / "sending-accuracy").glob("*/run.json"):
            gaps = pl.read_parquet(path.parent / "flows.parquet")["gap_std_ms"].to_list()
            found[path.parent.name] = (json.loads(path.read_text())["trace_hash"], gaps)
        return found

    once = sent(tmp_path / "one")
    assert len(once) == 4
    assert sent(tmp_path / "two") == once
    ours = [gap for name, (_, gaps) in once.items() if name.startswith("twinnet-") for gap in gaps if gap is not None]
    # No machine is late: what is left is what readings of the clock and system calls take.
    assert len(ours) == 2 and all(0 < gap < 0.005 for gap in ours), ours


def first_runs(study: str, out: Path, *chosen: str) -> dict[str, str]:
    """The traces of the runs of a built-in study at its smallest size."""
    words = ["--preset", "tiny", "--clock", "virtual", "--no-report", "--out", str(out)]
    assert command_line(["run", study, *words, *(word for one in chosen for word in ("--set", one))]) == 0
    return {path.parent.name: json.loads(path.read_text())["trace_hash"] for path in out.glob(f"{study}/*/run.json")}


def test_clients_that_fetch_by_programs_cannot_ping_by_apps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "qos-class-profiles", "--preset", "tiny", "--clock", "virtual", "--set", "load_by=programs"]
    assert command_line([*words, "--out", str(tmp_path / "out")]) == 2
    assert "h1 is to run both" in capsys.readouterr().err


@needs_a_kernel
@needs("ab", "ffmpeg", "ping")
@pytest.mark.long
def test_clients_that_fetch_watch_and_ping_by_programs_are_the_same_twice(tmp_path: Path) -> None:
    chosen = ("load_by=programs", "ping_by=programs", "levels.profile=basic-leaf", "clients=3", "duration=1 s")
    once = first_runs("qos-class-profiles", tmp_path / "one", *chosen, "seconds=1")
    assert len(once) == 1 and first_runs("qos-class-profiles", tmp_path / "two", *chosen, "seconds=1") == once
    (run,) = once
    folder = tmp_path / "one" / "qos-class-profiles" / run
    assert json.loads((folder / "run.json").read_text())["status"] == "finished"
    flows = pl.read_parquet(folder / "flows.parquet")
    assert set(flows["tool"]) == {"programs"} and set(flows["protocol"]) == {"http", "icmp"}


@needs_a_kernel
@needs("iperf")
def test_an_estimator_meets_cross_traffic_of_a_program(tmp_path: Path) -> None:
    chosen = ("cross_by=programs", "levels.row=c10-x4", "levels.estimator=yaz")
    once = first_runs("available-bandwidth", tmp_path / "one", *chosen)
    assert len(once) == 1 and first_runs("available-bandwidth", tmp_path / "two", *chosen) == once
    (run,) = once
    record = json.loads((tmp_path / "one" / "available-bandwidth" / run / "run.json").read_text())
    assert record["status"] == "finished"


def test_a_host_for_apps_and_programs_and_limits_of_the_processor_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = WEB.replace("from: [h4], to: h5, port: 5003", "from: [h4], to: h3, port: 5003")
    assert make(written(tmp_path, both), tmp_path / "out") == 2
    told = capsys.readouterr().err
    assert "h3 is to run both" in told and "write the same 'using' for all traffic of a host" in told
    confined = QUEUES.replace(
        "rate: 1 Mbit,", "packets_per_second: 100, payload: 1470 B, generator: iperf3, processors: 0.5,"
    )
    assert make(written(tmp_path, confined), tmp_path / "out") == 2
    assert "'processors' has no effect: traffic load" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@needs("iperf")
def test_without_a_kernel_the_study_is_refused_with_what_to_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TWINNET_KERNEL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("twinnet.guest.kernel.PACKAGE", "no_such_package_of_a_kernel")
    assert make(written(tmp_path, QUEUES), tmp_path / "out") == 1
    told = capsys.readouterr().err
    assert "`twinnet kernel build`" in told and "`twinnet kernel install FILE`" in told and "using: apps" in told
    assert not (tmp_path / "out").exists()


@needs_a_kernel
@needs("ping")
def test_programs_that_go_on_are_ended_at_the_time_limit(tmp_path: Path) -> None:
    endless = WEB.replace("count: 5, interval: 200 ms", "count: 1000, interval: 1 s").replace(
        "repetitions: 2", "repetitions: 1\ntime_limit: 3 s"
    )
    make(written(tmp_path, endless), tmp_path / "out")
    (record,) = [json.loads(path.read_text()) for path in (tmp_path / "out").glob("programs/*/run.json")]
    assert record["status"] == "failed", record
