"""Datagrams of generators: what the observer and the keeper of accounts tell becomes a report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from labs_here import needs_a_lab
from twinnet import programs
from twinnet.errors import NotAvailable, ProgramFailed, ReportUnreadable
from twinnet.lab_process.job import Ending
from twinnet.network.network import Network
from twinnet.programs.generated import generated
from twinnet.programs.generators import GENERATORS
from twinnet.programs.processor_limit import ProcessorLimit, why_no_limit
from twinnet.results.flow_report import FlowReport

METERED = Path(programs.__file__).parent / "metered.py"
COST = {"source": "10.0.0.1", "status": 0, "ended": False, "took_s": 2.0, "processor_s": 0.5}
COST |= {"switches": 180, "involuntary_switches": 20}
GAPS = {"count": 999, "mean": 1e9, "min": 0.9e9, "max": 1.2e9, "std": 1e6, "p50": 1e9, "p90": 1e9, "p99": 1.1e9}
SEEN = {"packets": 1000, "bytes": 28_000, "first_ns": 0, "last_ns": 999_000_000, "together": 0.25}
SEEN |= {"gap_ps": GAPS, "gap_error_ps": {**GAPS, "mean": 2e6, "p99": 9e6}}


def reports(cost: object, told: object, generator: str = "mgen") -> list[FlowReport]:
    transfer = generated("h1", "h2", generator, packets_per_second=1000, payload_bytes=1, duration_s=1, flow=7)
    output = programs.Output(json.dumps(cost), json.dumps(told), "the last line", Ending(0, 2.0), 0)
    return transfer.parse(transfer, output)


def test_both_ends_report_the_pace_and_the_toll() -> None:
    source, sink = reports(COST, {"senders": {"10.0.0.1": SEEN}, "missed": 0})
    assert source.pacing is not None and source.pacing.achieved_packets_per_second == pytest.approx(1000)
    assert source.pacing.kept_up
    assert source.pacing.gap_error is not None and source.pacing.gap_error.p99 == 9e6
    assert source.toll is not None
    assert (source.toll.processors, source.toll.switches_per_second) == (0.25, 100)
    assert (source.toll.involuntary_per_second, source.toll.together_share) == (10, 0.25)
    assert (sink.role, sink.flow, sink.packets, sink.bytes) == ("sink", 7, 1000, 28_000)


def test_a_payload_below_the_generators_least_is_told() -> None:
    source, _ = reports(COST, {"senders": {"10.0.0.1": SEEN}, "missed": 0})
    assert source.errors == ("mgen sends no payload below 28 B",)


def test_of_senders_that_share_a_receiver_each_has_its_own() -> None:
    told = {"senders": {"10.0.0.3": {**SEEN, "packets": 5}, "10.0.0.1": SEEN}, "missed": 0}
    assert [one.packets for one in reports(COST, told)] == [1000, 1000]


@pytest.mark.parametrize(
    ("cost", "told", "error", "said"),
    [
        ({**COST, "status": 3}, {"senders": {"10.0.0.1": SEEN}}, ProgramFailed, "the last line"),
        (COST, {"senders": {}}, ProgramFailed, "nothing of what"),
        (COST, {"senders": {"10.0.0.1": SEEN}, "missed": 4}, ProgramFailed, "missed 4 datagrams"),
        ("no account", {}, ReportUnreadable, "reported nothing of its cost"),
    ],
)
def test_what_cannot_be_a_report_is_an_error(cost: object, told: object, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        reports(cost, told)


def test_our_sender_that_could_not_keep_its_rate_is_measured_all_the_same() -> None:
    source, _ = reports({**COST, "status": 1}, {"senders": {"10.0.0.1": {**SEEN, "packets": 500}}}, "twinnet")
    assert source.pacing is not None and not source.pacing.kept_up


def test_iperf3_has_no_exponential_gaps() -> None:
    with pytest.raises(NotAvailable, match="exponential"):
        generated("h1", "h2", "iperf3", packets_per_second=9, payload_bytes=99, duration_s=1, poisson=True)


def test_every_generator_is_told_where_how_fast_how_much_and_how_long() -> None:
    for name, one in GENERATORS.items():
        words = " ".join(one.sender("10.0.0.2", 1234, 1450, 7))
        assert "10.0.0.2" in words and "1450" in words, name
        assert "1234" in words or str(1234 * 1450 * 8) in words, name
        assert "7" in words.split() or "7.0" in words or "7000" in words, name


def test_a_program_that_does_not_end_is_ended_and_told() -> None:
    command = [sys.executable, str(METERED), "10.0.0.1", "0.2", "sleep", "60"]
    told = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=30).stdout)
    assert told["ended"]
    assert told["took_s"] < 30


def test_the_account_holds_the_processor_time_of_the_program() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    command = [sys.executable, str(METERED), "10.0.0.1", "60", sys.executable, "-c", busy]
    told = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=90).stdout)
    # What Python takes to start comes on top.
    assert 0.3 <= told["processor_s"] < 1.0
    assert (told["status"], told["source"], told["ended"]) == (0, "10.0.0.1", False)


@pytest.mark.skipif(why_no_limit() is not None, reason="needs root and control groups")
def test_a_limited_program_gets_its_share_and_leaves_no_group() -> None:
    limit = ProcessorLimit(0.2)
    busy = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass"
    command = [sys.executable, str(METERED), "10.0.0.1", "60", "--confined", sys.executable, "-c", busy]
    done = subprocess.run(command, stdin=limit.entrance, capture_output=True, check=True, timeout=90)
    limit.end()
    told = json.loads(done.stdout)
    # 0.2 of a processor, and at most one period of 100 ms more at the begin and at the end.
    assert told["processor_s"] / told["took_s"] < 0.35
    assert not limit.folder.exists()


@needs_a_lab
def test_a_generator_on_its_own_loopback_is_observed_datagram_by_datagram() -> None:
    network = Network()
    network.link(network.host("h1"), network.host("h2"))
    transfer = generated("h1", "h1", "twinnet", packets_per_second=500, payload_bytes=100, duration_s=1)
    with network.emulate() as lab:
        source, sink = programs.start(lab, transfer).wait()
    assert (sink.packets, sink.bytes) == (500, 50_000)
    assert source.pacing is not None and source.pacing.requested_packets_per_second == 500
    assert source.toll is not None and source.toll.processors > 0
