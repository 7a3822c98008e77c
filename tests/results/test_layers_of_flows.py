"""What carried a flow, told by its receiver packet by packet, is what the last port sent."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import twinnet as tn
from twinnet.cli import run as command_line
from twinnet.cli.received_table import print_received
from twinnet.errors import BadValue
from twinnet.results.flow_report import FlowReport
from twinnet.sockets.receiving import Received, ReceivedFlow

STUDY = """\
study: layers
title: Sizes on both sides of the MTU
question: What does the wire carry?
parameters:
  mtu: {default: 1500}
  narrow: {default: 1500}
network:
  switches: {s1: }
  hosts: {h1: , h2: , h3: }
  links:
    - {between: [h1, s1], rate: 1 Gbit, mtu: "${mtu}"}
    - {between: [h3, s1], rate: 1 Gbit, mtu: "${narrow}"}
    - {between: [h2, s1], rate: 1 Gbit, mtu: "${mtu}"}
traffic:
  - {name: load, app: udp, from: [h1, h3], to: h2, port: 5003, gap: {distribution: constant, value: 1 ms},
     duration: 1 s, size: {distribution: uniform, low: 16 B, high: 4000 B}}
measurements:
  wire: {of: throughput, layer: wire, interval: 1 s}
  link: {of: throughput, layer: link, interval: 1 s}
  network: {of: throughput, layer: network, interval: 1 s}
  wire_sent: {of: port_throughput, ports: [s1-eth3], layer: wire, interval: 1 s}
  link_sent: {of: port_throughput, ports: [s1-eth3], layer: link, interval: 1 s}
settle: 100 ms
drain: 300 ms
time_limit: 10 s
statements:
  - {id: same, text: Counted is what was sent., check: "mean(wire) <= 1 Gbit"}
"""


@pytest.mark.parametrize(("version", "mtu"), [(4, 1500), (4, 9000), (6, 1500), (6, 4000)])
def test_frames_and_bytes_of_random_sizes_are_those_of_the_last_port(version: int, mtu: int):
    net = tn.Network(seed=3)
    h1, h2, s1 = net.host("h1"), net.host("h2"), net.switch("s1")
    net.link(h1, s1, rate="1 Gbit", mtu=mtu)
    net.link(s1, h2, rate="1 Gbit", mtu=mtu)
    size = {"distribution": "uniform", "low": "16 B", "high": "4000 B"}
    with net.simulate(static_neighbours=True) as lab:
        sampler = lab.sample(["s1-eth2"], "100 ms")
        target = lab.layout.address("h2", version)
        sender = tn.apps.udp_source(
            "h1", target, gap={"distribution": "constant", "value": "1 ms"}, size=size, packets=300
        )
        receiver = tn.apps.udp_sink("h2", path_mtu=mtu)
        flow = lab.start(tn.apps.Flow(receiver, sender))
        lab.wait([flow])
        lab.run_until(f"{lab.now() + 0.2:.6f} s")
        sent = sampler.stop()["s1-eth2"]
        counts = flow.report().intervals
    assert counts is not None
    assert sum(counts.packets) == 300
    assert sum(counts.frames) == sum(sent.frames)
    assert sum(counts.wire_bytes) == sum(sent.wire_bytes)
    assert sum(counts.network_bytes) + 14 * sum(counts.frames) == sum(sent.link_bytes)


def test_an_mtu_that_no_path_has_is_refused():
    with pytest.raises(BadValue, match="path_mtu is 20; allowed are whole numbers from 68 to 65535"):
        tn.apps.udp_sink("h1", path_mtu=20)


@pytest.mark.parametrize("mtu", [1500, 9000])
def test_a_study_measures_at_every_layer_what_its_network_carries(tmp_path: Path, mtu: int):
    study = tmp_path / "layers.yaml"
    study.write_text(STUDY)
    out = tmp_path / "out"
    arguments = [
        "--clock",
        "virtual",
        "--out",
        str(out),
        "--no-report",
        "--set",
        f"mtu={mtu}",
        "--set",
        f"narrow={mtu}",
    ]
    assert command_line(["run", str(study), *arguments]) == 0
    run = next(out.glob("**/intervals.parquet")).parent
    intervals = pl.read_parquet(run / "intervals.parquet").filter(pl.col("role") == "sink")
    samples = pl.read_parquet(run / "port_samples.parquet")
    assert set(intervals["path_mtu"]) == {mtu} and set(intervals["ip_version"]) == {4}
    assert intervals["wire_bytes"].sum() == pytest.approx(samples["wire_bytes"].sum(), rel=1e-3)
    if mtu == 9000:
        assert intervals["frames"].to_list() == intervals["packets"].to_list()


def test_one_receiver_cannot_count_by_two_mtus(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    study = tmp_path / "layers.yaml"
    study.write_text(STUDY)
    assert command_line(["run", str(study), "--clock", "virtual", "--set", "mtu=9000"]) != 0
    assert "paths with MTUs of 1500, 9000 bytes" in capsys.readouterr().err


def test_recv_says_at_which_layer_its_rate_is(capsys: pytest.CaptureFixture[str]):
    report = FlowReport(1, "udp", "sink", "127.0.0.1:4000", start_ps=0, end_ps=10**12, packets=1000, bytes=125_000)
    print_received(Received([ReceivedFlow(5003, report, None)], []))
    head, row = capsys.readouterr().out.splitlines()[:2]
    # Of payload alone: 125,000 bytes in a second.
    assert "goodput" in head and "1 Mbit" in row
    assert command_line(["recv", "--help"]) == 0
    assert "(goodput)" in capsys.readouterr().out
