"""Reports of real programs, as they were recorded, give the columns of the built-in apps."""

from __future__ import annotations

from pathlib import Path

import pytest
from twinnet import programs
from twinnet.errors import BadValue, ProgramFailed, ProgramMissing, ReportUnreadable
from twinnet.lab_process.job import Ending
from twinnet.programs import Output, Transfer
from twinnet.programs.iperf2 import read_rows, reported_interval_ps
from twinnet.programs.iperf3 import read_report
from twinnet.programs.ping import read_report as read_ping
from twinnet.programs.transfer import require
from twinnet.programs.wget import read_bytes
from twinnet.results.flow_report import FlowReport

RECORDED = Path(__file__).parents[1] / "support" / "recorded"
TWO_SECONDS = 2 * 10**12


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def reports(transfer: Transfer, client: str, server: str = "", errors: str = "") -> list[FlowReport]:
    output = Output(client, server, errors, Ending(0, 2.5), TWO_SECONDS)
    return transfer.parse(transfer, output)


def test_iperf2_tcp_is_reported_by_both_ends() -> None:
    transfer = programs.iperf2("h1", "h4", duration="2 s", flow=7)
    source, sink = reports(transfer, recorded("iperf2_tcp_client.csv"), recorded("iperf2_tcp_server.csv"))
    assert (source.role, source.bytes, source.flow) == ("source", 4344774716, 7)
    assert sink.bytes == 4344774716
    assert sink.intervals is not None
    assert (sink.intervals.first, sink.intervals.bytes) == (2, (1814138412, 2530636304))
    assert source.throughput_bps == pytest.approx(17.38e9, rel=0.001)


def test_iperf2_udp_has_loss_and_jitter_where_it_was_received() -> None:
    transfer = programs.iperf2("h1", "h4", rate="5 Mbit", duration="2 s")
    source, sink = reports(transfer, recorded("iperf2_udp_client.csv"), recorded("iperf2_udp_server.csv"))
    assert (source.packets, source.lost, source.jitter_rfc3550_ps) == (893, None, None)
    assert (sink.packets, sink.lost, sink.reordered) == (895, 0, 0)
    assert sink.jitter_rfc3550_ps == pytest.approx(1e6)
    assert sink.intervals is not None
    assert sink.intervals.packets == (449, 446)


def test_iperf2_takes_only_its_own_connection_from_a_shared_server() -> None:
    other = recorded("iperf2_tcp_server.csv").replace(",48392,", ",50000,").replace("4344774716", "999")
    transfer = programs.iperf2("h1", "h4", duration="2 s")
    _, sink = reports(transfer, recorded("iperf2_tcp_client.csv"), other + recorded("iperf2_tcp_server.csv"))
    assert sink.bytes == 4344774716


def test_iperf2_that_wrote_no_line_while_it_got_nothing_is_placed_by_its_own_times() -> None:
    def line(begin: str, end: str, count: int) -> str:
        return f"20261120000000,10.0.0.4,5001,10.0.0.1,48392,1,{begin}-{end},{count},0\n"

    server = line("0.0", "0.5", 500) + line("1.5", "2.0", 300) + line("2.0", "3.0", 100) + line("3.0", "3.0", 7)
    client = line("0.0", "3.0", 907).replace("10.0.0.4,5001,10.0.0.1,48392", "10.0.0.1,48392,10.0.0.4,5001")
    transfer = programs.iperf2("h1", "h4", duration="3 s", interval="500 ms")
    _, sink = reports(transfer, client, server + line("0.0", "3.0", 907))
    assert sink.intervals is not None
    assert (sink.intervals.interval_ps, sink.intervals.first) == (5 * 10**11, 4)
    assert sink.intervals.bytes == (500, 0, 0, 300, 50, 50, 7)


def test_iperf3_tcp_is_reported_by_both_ends() -> None:
    transfer = programs.iperf3("h1", "h4", duration="2 s")
    source, sink = reports(transfer, recorded("iperf3_tcp_client.json"), recorded("iperf3_tcp_server.json"))
    assert (source.bytes, sink.bytes) == (12582912, 12582912)
    assert sink.throughput_bps == pytest.approx(50.3e6, rel=0.01)
    assert source.rtt is not None
    assert source.rtt.mean == 65e6
    assert sink.intervals is not None
    assert (sink.intervals.interval_ps, sink.intervals.first) == (10**12, 2)


def test_iperf3_udp_has_loss_and_jitter_where_it_was_received() -> None:
    transfer = programs.iperf3("h1", "h4", udp=True, rate="5 Mbit", duration="2 s")
    source, sink = reports(transfer, recorded("iperf3_udp_client.json"), recorded("iperf3_udp_server.json"))
    assert (source.protocol, source.packets, source.lost) == ("udp", 39, None)
    assert (sink.packets, sink.lost) == (39, 0)
    assert sink.jitter_rfc3550_ps == pytest.approx(24.958e6, rel=0.001)


def test_wget_tells_bytes_and_time() -> None:
    (report,) = reports(programs.wget("h2", "h4", size="3 MB"), "", errors=recorded("wget_ok.txt"))
    assert (report.bytes, report.duration_s) == (3_000_000, 2.5)


def test_ping_tells_loss_and_round_trip_times() -> None:
    (report,) = reports(programs.ping("h1", "h4"), recorded("ping_ok.txt"))
    assert (report.packets, report.lost) == (3, 0)
    assert report.rtt is not None
    assert (report.rtt.min, report.rtt.max, report.rtt.p50) == pytest.approx((20e6, 655e6, 21e6))
    assert read_ping(recorded("ping6.txt"))[:2] == (2, 2)


def test_failures_are_told_in_the_programs_own_words() -> None:
    with pytest.raises(ProgramFailed, match="iperf3: unable to connect to server: Connection refused"):
        read_report(recorded("iperf3_refused.json"))
    with pytest.raises(ProgramFailed, match="ERROR 404: File not found"):
        read_bytes(recorded("wget_404.txt"))
    with pytest.raises(ProgramFailed, match=r"failed: Connection refused\."):
        read_bytes(recorded("wget_refused.txt"))
    with pytest.raises(ProgramFailed, match="ping: connect: Network is unreachable"):
        read_ping("", recorded("ping_unreachable.txt"))


@pytest.mark.parametrize("text", ["", "no report", "{}", "[1]", '{"end": {}, "intervals": [], "start": {}}'])
def test_nonsense_is_unreadable(text: str) -> None:
    with pytest.raises(ReportUnreadable):
        reports(programs.iperf3("h1", "h4"), text)
    with pytest.raises(ReportUnreadable):
        read_rows(text)
    with pytest.raises(ReportUnreadable):
        read_rows("20261120083047,a,1,b,2,1,x-y,z,0")


def test_a_missing_program_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ProgramMissing, match="apt install iputils-ping"):
        require("ping")


def test_iperf2_is_asked_only_for_intervals_whose_times_its_report_can_tell() -> None:
    with pytest.raises(BadValue, match="tenth of a second"):
        programs.iperf2("h1", "h4", duration="3 s", interval="125 ms")
    asked = [reported_interval_ps(milliseconds * 10**9) // 10**9 for milliseconds in (0, 62, 100, 125, 250, 1000)]
    assert asked == [100, 100, 100, 100, 200, 1000]
