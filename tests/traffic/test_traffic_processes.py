"""Sources draw what they are asked for: on model hosts exactly, judged by Kolmogorov and Smirnov."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twinnet as tn
from scipy import stats  # pyright: ignore[reportMissingTypeStubs]
from twinnet.cli import run as command_line
from twinnet.errors import BadFile, BadQuantity, BadValue
from twinnet.results.captures import analyze_capture
from twinnet.results.flow_report import FlowReport
from twinnet.results.flow_series import Samples
from twinnet.traffic import distributions
from twinnet.traffic.distributions import Distribution

PACKETS = 10_000
CRITICAL = 1.95 / np.sqrt(PACKETS)
"""The 0.1 % level of the distance of Kolmogorov and Smirnov."""

CONTINUOUS = {
    "uniform": (distributions.uniform("0.5 ms", "1.5 ms"), stats.uniform(0.5, 1)),
    "exponential": (distributions.exponential("1 ms"), stats.expon(scale=1)),
    "normal": (distributions.normal("1 ms", "0.1 ms"), stats.norm(1, 0.1)),
    "normal cut at zero": (distributions.normal("1 ms", "1 ms"), stats.truncnorm(-1, np.inf, 1, 1)),
    "lognormal": (
        distributions.lognormal("1 ms", "0.5 ms"),
        stats.lognorm(np.sqrt(np.log(1.25)), scale=1 / np.sqrt(1.25)),
    ),
    "pareto": (distributions.pareto(2.5, "0.6 ms"), stats.pareto(2.5, scale=0.6)),
    "cauchy": (distributions.cauchy("1 ms", "0.1 ms"), stats.cauchy(1, 0.1)),
    "gamma": (distributions.gamma(0.5, "2 ms"), stats.gamma(0.5, scale=2)),
    "weibull": (distributions.weibull(0.7, "1 ms"), stats.weibull_min(0.7, scale=1)),
}


def two_hosts() -> tn.Network:
    network = tn.Network(seed=3)
    network.link(network.host("h1"), network.host("h2"), rate="1 Gbit", mtu=1500)
    return network


def report_of(flow: tn.apps.Flow, seed: int = 1, until: str = "20 h") -> FlowReport:
    with two_hosts().simulate(seed=seed) as lab:
        handle = lab.start(flow)
        assert lab.wait([handle], until=until)
        lab.run_until(tn.units.Picoseconds(lab.now_ps() + 10**12))
        return handle.report()


def samples(seed: int = 1, **settings: Any) -> Samples:
    settings = {"packets": PACKETS, "record_packets": PACKETS} | settings
    found = report_of(tn.apps.udp("h1", "h2", **settings), seed).samples
    assert found is not None and found.more == 0
    return found


def gaps_ms(found: Samples) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.diff(np.array(found.sent_ps, dtype=np.int64)) / 1e9


def within(cumulative: Any, low: float, high: float) -> Any:
    """A cumulative function, cut to bounds."""
    below, above = cumulative(low), cumulative(high)
    return lambda value: (cumulative(value) - below) / (above - below)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_gaps_have_the_distribution_that_was_asked_for(name: str) -> None:
    gap, theory = CONTINUOUS[name]
    # Datagrams of 60 bytes do not wait for each other's time on the line: what is read is when they were sent.
    drawn = gaps_ms(samples(gap=gap, payload="60 B"))
    found = stats.kstest(drawn, within(theory.cdf, 0.0, 3.6e6)).statistic
    assert found < CRITICAL


SIZES = {
    "uniform": (distributions.uniform("100 B", "1400 B"), stats.uniform(100, 1300)),
    "exponential": (distributions.exponential("900 B"), stats.expon(scale=900)),
    "normal": (distributions.normal("800 B", "300 B", most="1400 B"), stats.norm(800, 300)),
    "lognormal": (
        distributions.lognormal("1000 B", "500 B"),
        stats.lognorm(np.sqrt(np.log(1.25)), scale=1000 / np.sqrt(1.25)),
    ),
    "pareto": (distributions.pareto(1.2, "40 B"), stats.pareto(1.2, scale=40)),
    "cauchy": (distributions.cauchy("1 kB", "200 B"), stats.cauchy(1000, 200)),
    "gamma": (distributions.gamma(2, "300 B"), stats.gamma(2, scale=300)),
    "weibull": (distributions.weibull(0.7, "600 B"), stats.weibull_min(0.7, scale=600)),
}


def test_every_random_distribution_is_judged_as_gaps_and_as_sizes() -> None:
    names = ("uniform", "exponential", "normal", "lognormal", "pareto", "cauchy", "gamma", "weibull")
    assert set(names) == set(SIZES) == {name.split()[0] for name in CONTINUOUS}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_have_the_distribution_that_was_asked_for_also_beyond_the_mtu(name: str) -> None:
    size, theory = SIZES[name]
    drawn = np.array(samples(gap=distributions.constant("1 ms"), size=size).bytes)
    assert len(drawn) == PACKETS
    most = 1400.0 if name == "normal" else 65_507.0
    values, counts = np.unique(drawn, return_counts=True)
    # Sizes are rounded: a whole number stands for the half above it. Those cut at a bound have only a half there.
    expected = within(theory.cdf, 16.0, most)(np.minimum(values + 0.5, most))
    assert np.abs(np.cumsum(counts) / PACKETS - expected).max() < CRITICAL
    assert name in ("uniform", "normal") or drawn.max() > 1472


def test_the_same_seed_gives_the_same_draws_and_sizes_do_not_shift_gaps() -> None:
    gap = distributions.weibull(0.7, "1 ms")
    even, varied = (
        samples(gap=gap, packets=500, **size) for size in ({}, {"size": distributions.exponential("300 B")})
    )
    assert even.sent_ps == varied.sent_ps
    assert samples(gap=gap, packets=500) == even
    assert samples(seed=2, gap=gap, packets=500).sent_ps != even.sent_ps


@pytest.mark.parametrize("size", ["16 B", "1472 B", "1473 B", "9000 B", "65507 B"])
def test_payloads_of_every_size_arrive_whole_over_an_mtu_of_1500(size: str) -> None:
    report = report_of(tn.apps.udp("h1", "h2", payload=size, gap=distributions.constant("10 ms"), packets=20))
    assert (report.packets, report.bytes, report.lost) == (20, 20 * int(size.split()[0]), 0)


def test_a_trace_is_sent_as_it_stands() -> None:
    trace = list(itertools.islice(itertools.cycle([("1 ms", "100 B"), ("0 s", "200 B"), ("7 us", "50 B")]), 30))
    found = samples(trace=trace, packets=None)
    assert found.bytes == (100, 200, 50) * 10
    assert set(gaps_ms(found).tolist()) == {0.0, 0.007, 1.0}


def test_traces_and_frame_sizes_are_read_from_files(tmp_path: Path) -> None:
    trace, frames = tmp_path / "trace.csv", tmp_path / "frames.txt"
    trace.write_text("# gap, payload\n1 ms, 100 B\n0 s, 200 B\n")
    frames.write_text("9 kB  # an I frame\n900 B\n")
    found = samples(trace=trace, packets=20, repeat=True)
    assert found.bytes == (100, 200) * 10
    assert samples(trace=str(trace), packets=20, repeat=True) == found
    video = tn.apps.rtp_source("h1", "h2", frame_sizes=str(frames))
    assert video.fields["frame_bytes"] == [9000, 900]
    trace.write_text("1 ms\n")
    with pytest.raises(BadFile, match=r"trace.csv, line 1: '1 ms' is no gap and payload"):
        tn.apps.udp_source("h1", "h2", trace=trace)


def test_a_source_tells_requested_and_achieved_gaps() -> None:
    with two_hosts().simulate() as lab:
        handle = lab.start(tn.apps.udp("h1", "h2", packets_per_second=1000, payload="100 B", packets=100))
        lab.wait([handle], until="1 s")
        pacing = handle.reports()[0].flows[0].pacing
    assert pacing is not None and pacing.gap_error is not None
    assert (pacing.gap_error.count, pacing.gap_error.max, pacing.kept_up) == (99, 0, True)
    assert pacing.requested_rate_bps == pacing.achieved_rate_bps == 800_000


@pytest.mark.parametrize(("codec", "packets", "size"), [("G.711", 500, 172), ("G.723.1", 334, 36), ("G.729", 500, 32)])
def test_voice_has_the_packets_of_its_codec(codec: str, packets: int, size: int) -> None:
    report = report_of(tn.apps.voice("h1", "h2", codec, duration="10 s"))
    assert (report.packets, report.bytes) == (packets, packets * size)


def test_silence_suppression_leaves_the_share_of_talk() -> None:
    report = report_of(tn.apps.voice("h1", "h2", "G.729", silence_suppression=True, duration="1 h"))
    # 1.004 s of talk in 2.591 s; a talkspurt has a packet at its begin, half a gap more than its length in the mean.
    # Some 1390 cycles: five standard errors are about 13 %.
    expected = 3600 / 2.591 * (1.004 / 0.02 + 0.5)
    assert report.packets == pytest.approx(expected, rel=0.13)


@pytest.mark.parametrize("name", ["dns", "telnet", "game-client", "game-server"])
def test_presets_send_what_a_host_can_take(name: str) -> None:
    report = report_of(tn.apps.preset("h1", "h2", name, duration="5 min"))
    assert report.packets is not None and report.packets > 100 and report.lost == 0


def test_the_stream_of_the_studies_agrees_with_the_analysis_of_its_capture(tmp_path: Path) -> None:
    path = tmp_path / "stream.pcapng"
    with two_hosts().simulate(seed=5) as lab:
        capture = lab.capture("h2-eth0", str(path))
        handle = lab.start(tn.apps.rtp("h1", "h2", duration="20 s"))
        assert lab.wait([handle], until="30 s")
        lab.run_until("31 s")
        capture.stop()
        report = handle.report()
    (row,) = analyze_capture(path).rtp_streams.to_dicts()
    assert report.rtp is not None and report.rtp.jitter is not None and report.gap is not None
    assert report.rtp.bandwidth is not None
    assert (row["packets"], row["lost"], row["ssrc"]) == (report.packets, report.lost, f"0x{report.rtp.ssrc:08X}")
    # The capture has stamps of whole nanoseconds.
    assert row["max_delta_ms"] == pytest.approx(report.gap.max / 1e9, abs=2e-6)
    assert row["mean_delta_ms"] == pytest.approx(report.gap.mean / 1e9, abs=2e-6)
    assert row["max_jitter_ms"] == pytest.approx(report.rtp.jitter.max / 1e9, abs=1e-5)
    assert row["mean_jitter_ms"] == pytest.approx(report.rtp.jitter.mean / 1e9, abs=1e-5)
    assert row["max_bandwidth_kbps"] == pytest.approx(report.rtp.bandwidth.max / 1e3, rel=1e-9)
    assert (report.rtp.frames_complete, report.rtp.frames_damaged, report.rtp.frames_lost) == (1200, 0, 0)
    assert report.bytes is not None
    # 1026 kbit/s of video; the transport stream takes 4 of 188 bytes and fills up each frame.
    assert report.bytes * 8 / 20 == pytest.approx(1_026_000 * 188 / 184 * 1.052, rel=0.05)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"gap": distributions.exponential("10 ms"), "rate": "1 Mbit"}, "one of them"),
        ({"gap": distributions.exponential("10 B")}, "gap's mean"),
        ({"gap": Distribution("exponential", {"scale": "1 ms"})}, "it takes mean"),
        ({"gap": Distribution("zipf", {})}, "'zipf' is not known"),
        ({"gap": distributions.pareto(0.0, "1 ms")}, "0.05 to 1000"),
        ({"gap": distributions.constant("1 ms"), "dscp": 64}, "0 to 63"),
        ({"rate": "1 Mbit", "size": distributions.constant("100 B")}, "one payload"),
        ({"trace": [("1 ms", "100 B")], "rate": "1 Mbit"}, "trace"),
    ],
)
def test_impossible_processes_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises((BadValue, BadQuantity), match=told):
        tn.apps.udp("h1", "h2", **({"packets": 10} | settings))


STUDY = """\
study: video
title: Video, a call and bursts over one line
question: What becomes of them?
network:
  hosts: {h1: , h2: }
  links:
    - {between: [h1, h2], rate: 4 Mbit, delay: 1 ms}
traffic:
  - {name: video, app: rtp, from: [h1], to: h2, port: 5004, duration: 3 s}
  - {name: call, app: voice, from: [h1], to: h2, port: 5006, duration: 3 s, codec: G.729}
  - {name: bursts, app: udp, from: [h1], to: h2, port: 5003, duration: 3 s, dscp: 10,
     gap: {distribution: exponential, mean: 20 ms}, size: {distribution: uniform, low: 100 B, high: 900 B}}
measurements:
  throughput: {of: throughput, interval: 1 s, layer: link}
  delay: {of: delay}
  gap: {of: gap, only: [video]}
  jitter: {of: jitter_rfc3550, only: [video]}
  variation: {of: jitter_rfc4689, per: flow}
repetitions: 5
settle: 100 ms
drain: 300 ms
statements:
  # A packet of 1370 bytes with its preamble and gap takes 2.788 ms at 4 Mbit/s: none arrives sooner after another.
  - {id: serialised, text: No two arrive at once., check: min(gap) > 2.7 ms}
  - {id: jitter, text: There is jitter., check: mean(jitter) > 0.5 ms}
  - {id: variation, text: The call waits for the video., check: "mean(variation[flow=call]) > 0.5 ms"}
  - {id: delay, text: Nothing waits for a second., check: max(delay) < 2 s}
"""


def test_a_study_has_video_calls_and_processes_and_measures_their_delays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(STUDY)
    assert command_line(["run", str(study), "--clock", "virtual", "--out", str(tmp_path / "out"), "--no-report"]) == 0
    told = "".join(capsys.readouterr())
    assert "not supported" not in told and "undecided" not in told and "supported" in told, told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("app: udp, duration: 3 s", "either 'rate', 'gap' or 'trace'"),
        ("app: udp, duration: 3 s, gap: {distribution: exponential, mean: 5}", "gap's mean"),
        ("app: udp, duration: 3 s, gap: {distribution: zipf}", "'zipf' is not known"),
        ("app: rtp, duration: 3 s, using: programs, paced: true", "streamers pace themselves"),
        ("app: voice, duration: 3 s, codec: G.722", "G.729"),
    ],
)
def test_mistakes_in_the_traffic_of_a_study_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, told: str
) -> None:
    study = tmp_path / "study.yaml"
    begin, end = STUDY.index("  - {name: video"), STUDY.index("measurements:")
    study.write_text(STUDY[:begin] + f"  - {{name: video, {line}, from: [h1], to: h2, port: 5004}}\n" + STUDY[end:])
    assert command_line(["run", str(study), "--clock", "virtual", "--out", str(tmp_path / "out"), "--no-report"]) == 2
    assert told in "".join(capsys.readouterr())
