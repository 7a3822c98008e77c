"""Captures with rings, limits and directions, on both clocks; their files read together as one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import twinnet as tn
from click.testing import CliRunner
from labs_here import can_run_labs
from twinnet.cli.analyze_command import analyze
from twinnet.lab.lab import Lab
from twinnet.results.captures import analyze_capture

wall_clock = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
Start = Callable[[tn.Network], Lab]


@pytest.fixture(params=[pytest.param("wall", marks=wall_clock), "virtual"])
def start(request: pytest.FixtureRequest) -> Start:
    """What starts a network on one of the clocks."""
    return tn.Network.emulate if request.param == "wall" else tn.Network.simulate


def flow(lab: Lab, packets: int = 500) -> None:
    """Send packets of 1000 bytes from h1 to h2, a millisecond apart."""
    source = lab.start(tn.apps.udp("h1", "h2", rate="8 Mbit", packets=packets, payload="1000 B"))
    assert lab.wait([source], until="20 s")


def test_a_ring_keeps_its_newest_files_and_they_are_one_capture(start: Start, tmp_path: Path) -> None:
    with start(tn.templates.single(2)) as lab:
        with lab.capture(
            "s1-eth2", str(tmp_path / "out.pcapng"), ring=(3, "8 KiB"), snap="60 B", direction="out"
        ) as capture:
            flow(lab)
        files = sorted(tmp_path.iterdir())
    assert [str(path) for path in files] == capture.files
    assert len(files) == 3
    assert capture.dropped == 0
    assert capture.frames >= 500
    assert all(path.stat().st_size < (8 << 10) + 200 for path in files)
    each = [analyze_capture(path) for path in files]
    joined = analyze_capture(files)
    assert joined.notes == ()
    packets = sum(one.capture["packets"][0] for one in each)
    assert joined.capture["packets"][0] == packets
    # A file has some 80 blocks of 104 bytes; all but ARP are the flow's.
    udp = joined.conversations.filter(joined.conversations["protocol"] == "udp")
    assert packets - 10 <= udp["packets_a_to_b"].sum() <= packets
    told = CliRunner().invoke(analyze, ["--join", "--json", *map(str, files)])
    assert told.exit_code == 0, told.output
    assert [one["packets"] for one in json.loads(told.output)] == [packets]


def test_a_ring_of_time_has_a_file_for_each_interval(tmp_path: Path) -> None:
    with tn.templates.single(2).simulate() as lab:
        with lab.capture("s1-eth2", str(tmp_path / "out.pcapng"), ring=(10, "100 ms")) as capture:
            flow(lab)
        assert len(capture.files) == 5
    begins = [analyze_capture(path).capture["start_ns"][0] for path in capture.files]
    assert begins == sorted(begins)


def test_the_way_of_frames_that_is_not_asked_for_is_left_out(start: Start, tmp_path: Path) -> None:
    with start(tn.templates.single(2)) as lab:
        received = lab.capture("s1-eth1", str(tmp_path / "in.pcapng"), direction="in")
        sent = lab.capture("s1-eth1", str(tmp_path / "out.pcapng"), direction="out", snap="60 B")
        flow(lab, packets=100)
        assert received.stop().frames >= 100
        assert sent.stop().frames < 50
    udp = analyze_capture(tmp_path / "in.pcapng").conversations
    assert udp.filter(udp["protocol"] == "udp")["packets_a_to_b"].sum() >= 99


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_counted_and_the_run_goes_on(start: Start) -> None:
    with start(tn.templates.single(2)) as lab, lab.capture("s1-eth2", "/dev/full") as capture:
        flow(lab, packets=300)
    assert capture.frames == 0
    assert capture.dropped >= 300
    assert capture.failure is not None
    assert "No space left" in capture.failure


def test_files_of_an_earlier_ring_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out-00000007.pcapng").write_bytes(b"precious")
    with tn.templates.single(2).simulate() as lab, pytest.raises(tn.UsageError, match="earlier ring"):
        lab.capture("s1-eth2", str(tmp_path / "out.pcapng"), ring=(3, "64 KiB"))
    assert (tmp_path / "out-00000007.pcapng").read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ring": (1, "1 MB")}, "2 to 10000"),
        ({"ring": (3, "10 B")}, "too small"),
        ({"ring": (3, 1000)}, "how many files"),
        ({"ring": (3, "10 Mbit")}, "10 Mbit"),
        ({"ring": 3}, "how many files"),
        ({"ring": (True, "1 MB")}, "2 to 10000"),
        ({"ring": (3, "1 us")}, "out of range"),
        ({"limit": "10 B"}, "too small"),
        ({"limit": "1 MB", "ring": (3, "1 MB")}, "limit or a ring"),
        ({"snap": "0 B"}, "14 B"),
        ({"direction": "up"}, "'both', 'in' and 'out'"),
    ],
)
def test_nonsense_is_refused_before_a_file_is_touched(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    with tn.templates.single(2).simulate() as lab, pytest.raises(tn.UsageError, match=words):
        lab.capture("s1-eth2", str(tmp_path / "out.pcapng"), **settings)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_joined_and_are_no_captures_are_named(tmp_path: Path) -> None:
    with tn.templates.single(2).simulate() as lab, lab.capture("s1-eth2", str(tmp_path / "good.pcapng")):
        flow(lab, packets=5)
    (tmp_path / "bad.pcapng").write_bytes(b"no capture")
    with pytest.raises(tn.UsageError, match=r"bad\.pcapng"):
        analyze_capture([tmp_path / "good.pcapng", tmp_path / "bad.pcapng"])
    with pytest.raises(tn.UsageError, match="missing: No such file or directory"):
        analyze_capture([tmp_path / "good.pcapng", tmp_path / "missing"])
    refused = CliRunner().invoke(analyze, ["--join", "--match", str(tmp_path / "good.pcapng")])
    assert refused.exit_code == 2
