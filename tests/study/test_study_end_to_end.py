"""The first study at its smallest size, on a network of real hosts: from the command line to the page."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from labs_here import needs_a_lab
from twinnet.study.capacity import measure_capacity, this_machine
from twinnet.study.forecast import forecast_runs
from twinnet.study.plan import plan_study
from twinnet.study.resolution import load_study

pytestmark = needs_a_lab


def twinnet(folder, *arguments):
    code = "from twinnet.cli import main; main()"
    package = str(Path(__file__).parents[2] / "python")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    done = twinnet(folder, "run", "tcp-udp-queues", "--preset", "tiny", "--with-invalid")
    assert done.returncode == 0, done.stderr
    return folder, done


def run_folders(folder):
    return sorted(path.parent for path in (folder / "results" / "tcp-udp-queues").glob("*/run.json"))


def test_both_levels_are_run_and_the_answer_is_printed(ran):
    folder, done = ran
    assert [path.name.rsplit("-", 1)[0] for path in run_folders(folder)] == ["separate-01", "shared-01"]
    assert "TCP and UDP in a shared queue and in separate queues" in done.stdout
    assert "Fidelity of 2 runs" in done.stdout
    assert (folder / "results/tcp-udp-queues/report/report.html").stat().st_size > 1_000_000


def test_the_port_never_sends_more_than_its_rate(ran):
    # Whatever the load of the machine: a quarter of an interval at 100 Mbit/s, a thousandth more while the line regains
    # what the machine took (docs/explanation/fidelity.md), and one frame of the largest size.
    for path in run_folders(ran[0]):
        samples = pl.read_parquet(path / "port_samples.parquet")
        limit = 1.001 * 100e6 / 8 * samples["length_s"].to_numpy() + 1538
        assert samples["wire_bytes"].sum() > 1_000_000
        assert (samples["wire_bytes"].to_numpy() <= limit).all()


def test_every_flow_is_in_the_tables_and_nobody_received_more_than_was_sent(ran):
    for path in run_folders(ran[0]):
        flows = pl.read_parquet(path / "flows.parquet")
        received = flows.filter(pl.col("role") == "sink")
        sent = flows.filter(pl.col("role") == "source")
        both = received.join(sent, on=["name", "from_host"], suffix="_sent")
        assert sorted(zip(both["name"], both["from_host"], strict=True)) == [
            ("tcp", "h1"),
            ("tcp", "h3"),
            ("udp", "h1"),
            ("udp", "h3"),
        ]
        assert (both["payload_bytes"] <= both["payload_bytes_sent"]).all()
        client = flows.filter(pl.col("role") == "client")
        assert client["payload_bytes"].to_list() == [500_000]


def test_the_intervals_add_up_to_the_totals(ran):
    folders = run_folders(ran[0])
    assert folders
    for path in folders:
        totals = pl.read_parquet(path / "flows.parquet").filter(pl.col("role") == "sink")
        parts = pl.read_parquet(path / "intervals.parquet").filter(pl.col("role") == "sink")
        summed = parts.group_by("flow").agg(pl.col("payload_bytes").sum().alias("parts"))
        both = totals.join(summed, on="flow")
        assert both.height == 4
        assert both["payload_bytes"].to_list() == both["parts"].to_list()


def test_the_same_command_again_makes_nothing_and_says_so(ran):
    folder, _ = ran
    before = {path.name: path.stat().st_mtime_ns for path in run_folders(folder)}
    done = twinnet(folder, "run", "tcp-udp-queues", "--preset", "tiny", "--no-report", "--json")
    assert done.returncode == 0
    assert "nothing to make, 2 finished before and kept" in done.stderr
    assert json.loads(done.stdout)["runs"] == {"planned": 2, "finished": 2, "failed": 0}
    assert {path.name: path.stat().st_mtime_ns for path in run_folders(folder)} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "no-such-study"), "neither a built-in study nor a study file"),
        (("run", "tcp-udp-queues", "--set", "link_rate=10"), "link_rate is a rate such as '1 Gbit'; '10' is a number"),
        (("run", "tcp-udp-queues", "--clock", "virtual", "--interface", "tap"), "no interfaces of the kernel"),
        (("report", "nowhere"), "does not hold the results of a study"),
    ],
)
def test_wrong_usage_is_one_message_and_leaves_nothing(tmp_path, arguments, message):
    done = twinnet(tmp_path, *arguments)
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
    assert done.returncode == 2


def test_what_each_run_needs_and_whether_it_exceeds_this_machine_is_stored_and_told(ran):
    folder, done = ran
    study = load_study("tcp-udp-queues", {}, "tiny")
    needed = forecast_runs(plan_study(study), None).needed
    records = [json.loads((path / "run.json").read_text()) for path in run_folders(folder)]
    told = {record["run"]: record["forecast"] for record in records}
    assert {run: one["needed_frames_per_second"] for run, one in told.items()} == {
        run: round(one) for run, one in needed.items()
    }
    for one in told.values():
        assert one["exceeds"] == (one["needed_frames_per_second"] > one["carried_frames_per_second"])
    exceeding = sum(one["exceeds"] for one in told.values())
    assert ("Forecast: no run was" if not exceeding else f"Forecast: {exceeding} of 2 runs") in done.stdout
    assert ("2 of 2 runs need about" in done.stderr) == (exceeding == 2)


def test_this_machine_is_measured_in_whole_pairs_of_hosts_at_most_as_many_as_there_are():
    capacity = measure_capacity()
    for frames in (capacity.small_frames_per_second, capacity.large_frames_per_second):
        assert frames % 9750 == 0
        assert 0 <= frames <= 32 * 9750
    assert capacity.holds(this_machine(), datetime.now(UTC))
