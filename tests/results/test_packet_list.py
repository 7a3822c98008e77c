"""The packet list of a capture: what a line says, on a terminal, in a page, and beside tshark's own list."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from capture_files import Stamped, udp, write_pcap
from click.testing import CliRunner
from twinnet.cli.analyze_command import analyze
from twinnet.errors import BadValue
from twinnet.results.captures import analyze_capture

START_NS = 1_700_000_000_000_000_000
A, B = ("10.0.0.1", 4000), ("10.0.0.2", 53)


def datagrams(count: int) -> list[Stamped]:
    return [
        (START_NS + number * 1_000_000, udp(*((A, B) if number % 2 else (B, A)), bytes(number % 900)))
        for number in range(count)
    ]


def rows_of_page(path: Path) -> list[list[object]]:
    found = re.search(r'<script type="application/json" id="packet-rows">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def test_packets_are_listed_only_when_asked_for(tmp_path: Path) -> None:
    path = write_pcap(tmp_path / "a.pcap", datagrams(5))
    assert analyze_capture(path).packet_list.is_empty()
    listed = analyze_capture(path, list_packets=3).packet_list
    assert listed.select("packet", "since_start_ns", "source", "length", "info").rows() == [
        (1, 0, "10.0.0.2", 42, "53 → 4000 Len=0"),
        (2, 1_000_000, "10.0.0.1", 43, "4000 → 53 Len=1"),
        (3, 2_000_000, "10.0.0.2", 44, "53 → 4000 Len=2"),
    ]
    assert listed.select("source_port", "destination_port").rows() == [(53, 4000), (4000, 53), (53, 4000)]


@pytest.mark.parametrize("number", [-1, 1_000_001])
def test_a_number_of_packets_out_of_range_is_refused(tmp_path: Path, number: int) -> None:
    path = write_pcap(tmp_path / "a.pcap", datagrams(1))
    with pytest.raises(BadValue, match="packets to list are 0 to 1000000"):
        analyze_capture(path, list_packets=number)


def test_the_terminal_lists_packets_and_says_how_many_are_left(tmp_path: Path) -> None:
    path = write_pcap(tmp_path / "a.pcap", datagrams(5))
    done = CliRunner().invoke(analyze, [str(path), "--packets", "2"], catch_exceptions=False)
    lines = done.output.splitlines()
    begin = lines.index("Packets")
    assert lines[begin + 2].split() == [
        "1",
        "0.000000",
        "10.0.0.2",
        "10.0.0.1",
        "UDP",
        "42",
        "53",
        "→",
        "4000",
        "Len=0",
    ]
    assert lines[begin + 4] == "... and 3 more (--packets 5)"


def test_a_page_holds_the_first_packets_and_stays_small(tmp_path: Path) -> None:
    path, page = write_pcap(tmp_path / "a.pcap", datagrams(30_000)), tmp_path / "page.html"
    done = CliRunner().invoke(analyze, [str(path), "--html", str(page)], catch_exceptions=False)
    assert "Packets" not in done.output
    assert len(rows_of_page(page)) == 2000
    assert "The first 2000 of 30000 packets." in page.read_text()
    CliRunner().invoke(analyze, [str(path), "--html", str(page), "--packets", "30000"], catch_exceptions=False)
    listed = len(rows_of_page(page))
    assert 2000 < listed < 30_000
    assert f"The first {listed} of 30000 packets." in page.read_text()
    assert page.stat().st_size < 1_500_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.pcap", "b.pcap", "--match", "--packets", "3"], "--packets and --html show one capture"),
        (["a.pcap", "b.pcap", "--html", "page.html"], "--html is the page of one capture"),
    ],
)
def test_a_list_of_several_captures_is_refused(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(analyze, arguments)
    assert done.exit_code == 2 and said in done.output


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_lines_agree_with_those_of_tshark(tmp_path: Path) -> None:
    path = write_pcap(tmp_path / "a.pcap", datagrams(40))
    fields = [part for name in ("frame.number", "ip.src", "ip.dst", "frame.len", "udp.length") for part in ("-e", name)]
    run = subprocess.run(
        ["tshark", "-r", str(path), "-T", "fields", *fields], capture_output=True, text=True, check=True
    )
    theirs = [line.split("\t") for line in run.stdout.splitlines()]
    ours = analyze_capture(path, list_packets=100).packet_list.to_dicts()
    assert [[str(row["packet"]), row["source"], row["destination"], str(row["length"])] for row in ours] == [
        row[:4] for row in theirs
    ]
    assert [int(row["info"].rpartition("=")[2]) + 8 for row in ours] == [int(row[4]) for row in theirs]
