"""Our numbers beside those of tshark, one by one: RTP with jitter, loss, reordering and wraps, and real traffic."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import twinnet as tn
from capture_files import noisy_rtp, write_pcap
from labs_here import can_run_labs
from twinnet.results.captures import CaptureAnalysis, analyze_capture

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

COUNTED = ("lost_segment", "out_of_order", "duplicate_ack", "zero_window", "keep_alive")
OURS = ("gaps", "out_of_order", "duplicate_acks", "zero_windows", "keep_alives")


def tshark(path: Path, *arguments: str) -> str:
    argv = ["tshark", "-r", str(path), "-n", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout


def rtp_rows(path: Path) -> list[dict[str, str]]:
    """The table of ``-z rtp,streams``; the payload's name may have spaces."""
    output = tshark(path, "-q", "-z", "rtp,streams", "-d", "udp.port==5004,rtp")
    pattern = re.compile(
        r"^\s*(?P<start>[\d.]+)\s+(?P<end>[\d.]+)\s+(?P<source>\S+)\s+(?P<port>\d+)\s+(?P<destination>\S+)\s+\d+\s+"
        r"(?P<ssrc>0x\w+)\s+\S.*?\s+(?P<packets>\d+)\s+(?P<lost>-?\d+) \(.*?%\)\s+(?P<min_delta>[\d.]+)\s+"
        r"(?P<mean_delta>[\d.]+)\s+(?P<max_delta>[\d.]+)\s+(?P<min_jitter>[\d.]+)\s+(?P<mean_jitter>[\d.]+)\s+"
        r"(?P<max_jitter>[\d.]+)",
        re.MULTILINE,
    )
    return [found.groupdict() for found in pattern.finditer(output)]


def assert_streams_agree(path: Path) -> CaptureAnalysis:
    ours = analyze_capture(path, rtp_ports=[5004])
    theirs = {row["ssrc"]: row for row in rtp_rows(path)}
    assert len(theirs) == ours.rtp_streams.height > 0
    for row in ours.rtp_streams.to_dicts():
        other = theirs[row["ssrc"]]
        assert (row["packets"], row["lost"] - row["duplicates"]) == (int(other["packets"]), int(other["lost"]))
        for name in ("min_delta", "mean_delta", "max_delta", "min_jitter", "mean_jitter", "max_jitter"):
            # tshark prints three decimals.
            assert row[f"{name}_ms"] == pytest.approx(float(other[name]), abs=0.00051), name
    return ours


@pytest.mark.parametrize(
    ("payload_type", "rate_hz", "loss", "swap"),
    [(33, 90_000, 0.0, 0.0), (33, 90_000, 0.02, 0.0), (33, 90_000, 0.05, 0.03), (0, 8000, 0.01, 0.01)],
)
def test_streams_with_jitter_loss_and_reordering(
    tmp_path: Path, payload_type: int, rate_hz: int, loss: float, swap: float
) -> None:
    packets = noisy_rtp(4000, seed=5, payload_type=payload_type, rate_hz=rate_hz, loss=loss, swap=swap)
    ours = assert_streams_agree(write_pcap(tmp_path / "a.pcap", packets))
    assert ours.rtp_streams["lost"][0] == 4000 - len(packets)
    assert (ours.rtp_streams["late"][0] > 0) == (swap > 0)


def conversations(path: Path, protocol: str) -> dict[tuple[str, str], tuple[int, int, float]]:
    """Frames both ways and the duration of each conversation, as tshark's table has them."""
    rows = re.findall(
        r"^(\S+)\s+<->\s+(\S+)\s+(\d+) [\d.]+ \S+\s+(\d+) [\d.]+ \S+\s+\d+ [\d.]+ \S+\s+[\d.]+\s+([\d.]+)",
        tshark(path, "-q", "-z", f"conv,{protocol}"),
        re.MULTILINE,
    )
    return {(a, b): (int(back), int(there), float(duration)) for a, b, back, there, duration in rows}


def assert_conversations_agree(ours: CaptureAnalysis, protocol: str) -> None:
    theirs = conversations(ours.path, protocol)
    rows = ours.conversations.filter(ours.conversations["protocol"] == protocol).to_dicts()
    assert len(theirs) == len(rows) > 0
    for row in rows:
        a, b = f"{row['a_address']}:{row['a_port']}", f"{row['b_address']}:{row['b_port']}"
        there, back = row["packets_a_to_b"], row["packets_b_to_a"]
        other = theirs.get((a, b)) or (theirs[b, a][1], theirs[b, a][0], theirs[b, a][2])
        assert (back, there) == other[:2]
        assert row["duration_ns"] / 1e9 == pytest.approx(other[2], abs=0.000051)


@pytest.mark.quiet
@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_a_real_transfer_over_a_lossy_link(tmp_path: Path) -> None:
    net = tn.Network()
    switch = net.switch("s1")
    net.link(net.host("h1"), switch, rate="20 Mbit", delay="5 ms")
    net.link(net.host("h2"), switch, rate="20 Mbit", delay="5 ms", loss="0.5 %")
    path = tmp_path / "transfer.pcapng"
    with net.emulate() as lab, lab.capture("s1-eth1", path):
        server = lab["h2"].popen("iperf3 -s -1")
        ready = "until ss -Hltn sport = :5201 | grep -q .; do :; done"
        lab["h2"].run(ready, shell=True, timeout="10 s", check=True)
        lab["h1"].run("iperf3 -c h2 -t 1 -P 2", timeout="20 s", check=True)
        server.wait("10 s")
    ours = analyze_capture(path)
    assert_conversations_agree(ours, "tcp")
    for name, column in zip(COUNTED, OURS, strict=True):
        frames = tshark(path, "-Y", f"tcp.analysis.{name}", "-T", "fields", "-e", "frame.number").split()
        assert ours.tcp[column].sum() == len(frames), name
    again = tshark(path, "-Y", "tcp.analysis.retransmission", "-T", "fields", "-e", "frame.number").split()
    kinds = ("retransmissions", "fast_retransmissions", "spurious_retransmissions")
    assert sum(ours.tcp[kind].sum() for kind in kinds) == len(again)
    # The way from the switch to h2 and back is 10 ms, and frames take their time.
    assert ours.tcp.filter(ours.tcp["payload_bytes"] > 100_000)["min_round_trip_ms"].min() == pytest.approx(
        10.2, abs=0.3
    )
    first = float(
        tshark(path, "-Y", "tcp.analysis.initial_rtt", "-T", "fields", "-e", "tcp.analysis.initial_rtt").split()[0]
    )
    (handshake,) = ours.tcp.head(1).select("syn_to_synack_ms", "synack_to_ack_ms").rows()
    assert sum(handshake) == pytest.approx(first * 1000, abs=0.001)


@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
def test_a_real_stream(tmp_path: Path) -> None:
    path = tmp_path / "video.pcapng"
    with tn.templates.single(2, rate="10 Mbit").emulate() as lab, lab.capture("s1-eth2", path):
        source = "-re -f lavfi -i testsrc=size=320x240:rate=30 -t 2 -c:v mpeg2video -b:v 500k"
        lab["h1"].run(f"ffmpeg -nostdin {source} -f rtp_mpegts rtp://10.0.0.2:5004", timeout="20 s", check=True)
    assert_streams_agree(path)
    assert_conversations_agree(analyze_capture(path), "udp")
