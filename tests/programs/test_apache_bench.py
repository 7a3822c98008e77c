"""ApacheBench: its report as it was recorded, and in a lab beside the built-in HTTP load."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from labs_here import a_lab_can_run
from twinnet import programs
from twinnet.errors import ReportUnreadable
from twinnet.network import templates
from twinnet.programs.apache_bench import read_report
from twinnet.units import Picoseconds

RECORDED = Path(__file__).parents[1] / "support" / "recorded"


def test_requests_bytes_and_times_are_read() -> None:
    requests, failed, payload, seconds, times = read_report((RECORDED / "ab_ok.txt").read_text())
    assert (requests, failed, payload, seconds) == (50, 0, 5_000_000, 0.079)
    assert times is not None
    assert (times.count, times.mean, times.min, times.max) == (50, 9e9, 1e9, 29e9)
    assert (times.p50, times.p90, times.p99) == (8e9, 22e9, 29e9)


def test_a_report_that_was_cut_off_is_told() -> None:
    with pytest.raises(ReportUnreadable, match="has no requests"):
        read_report("This is ApacheBench, Version 2.3\n")


def test_connections_bound_the_requests_from_below_and_a_duration_interrupts_them() -> None:
    argv = programs.apache_bench("h1", "h2", size="1 kB", count=7, connections=10, duration=Picoseconds(10**12)).argv
    assert argv[:5] == ("timeout", "-s", "INT", "1", "ab")
    assert argv[argv.index("-n") :] == ("-n", "10", "-c", "10", "http://{to}:8080/bytes/1000")


@pytest.mark.skipif(shutil.which("ab") is None, reason="ab is not installed")
@pytest.mark.skipif(not a_lab_can_run(), reason="no lab can run on this machine; see `twinnet doctor`")
def test_apache_bench_fetches_all_from_the_built_in_server() -> None:
    with templates.single(2, rate="100 Mbit").emulate() as lab:
        transfer = programs.apache_bench("h1", "h2", size="20 kB", count=40, connections=4)
        (report,) = programs.start(lab, transfer).wait("30 s")
    assert (report.packets, report.lost, report.bytes) == (40, 0, 800_000)
    assert report.rtt is not None and report.rtt.count == 40


@pytest.mark.skipif(shutil.which("ab") is None, reason="ab is not installed")
@pytest.mark.skipif(not a_lab_can_run(), reason="no lab can run on this machine; see `twinnet doctor`")
def test_a_duration_ends_requests_that_are_far_from_complete_and_refusals_are_lost() -> None:
    with templates.single(2, rate="2 Mbit").emulate() as lab:
        # 10 MB at 2 Mbit/s are 40 s.
        limited = programs.apache_bench("h1", "h2", size="10 MB", count=9, connections=2, duration=Picoseconds(10**12))
        (report,) = programs.start(lab, limited).wait("30 s")
        assert (report.packets, report.rtt) == (0, None)
        refused = programs.apache_bench("h1", "h2", size="1 kB", count=1, port=9999).without_server()
        (report,) = programs.start(lab, refused).wait("30 s")
        assert (report.lost or 0) >= 1 and report.bytes == 0
