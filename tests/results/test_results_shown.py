"""What a lab measured shows itself: a line with units when it is printed, a table in polars, HTML in a notebook."""

from __future__ import annotations

from pathlib import Path

import pytest
import twinnet as tn
from twinnet.results.captures import analyze_capture, match_captures
from twinnet.results.distributions import Summary
from twinnet.results.flow_report import FlowReport
from twinnet.results.port_samples import PortSamples


@pytest.fixture(scope="module")
def measured() -> tuple[FlowReport, FlowReport, PortSamples]:
    with tn.templates.single(2, rate="10 Mbit", delay="1 ms").simulate() as lab:
        flow = lab.start(tn.apps.udp("h1", "h2", rate="5 Mbit", duration="2 s", record_packets=100))
        ping = lab.start(tn.apps.ping("h1", "h2", count=3))
        samples = lab.sample(["s1-eth2"], "500 ms")
        lab.run_until("3 s")
        return flow.report(), ping.report(), samples.stop()


def test_a_summary_prints_with_units() -> None:
    assert str(Summary(3, 1.31e9, 0.9e9, 2.2e9)) == "1.31 ms (0.9 to 2.2)"
    assert str(Summary(1, 250e3, 250e3, 250e3)) == "250 ns (250 to 250)"


def test_a_flow_prints_what_was_measured(measured: tuple[FlowReport, FlowReport, PortSamples]) -> None:
    flow, ping, _ = measured
    assert str(flow).startswith("udp sink 1, 850 packets, 1.25 MB in 2 s, 5.0")
    assert "0 lost, delay 4." in str(flow)
    assert "rtt " in str(ping)
    assert " ms (" in str(ping)


def test_a_flow_is_a_table(measured: tuple[FlowReport, FlowReport, PortSamples]) -> None:
    flow, ping, _ = measured
    row = flow.table.to_dicts()[0]
    assert (row["packets"], row["payload_bytes"], row["lost_packets"]) == (850, 850 * 1472, 0)
    assert flow.delay is not None
    assert row["delay_mean_ms"] == pytest.approx(flow.delay.mean / 1e9)
    assert flow.interval_table["payload_bytes"].sum() == 850 * 1472
    assert flow.packet_table.height == 100
    assert ping.packet_table.is_empty()


def test_samples_of_ports_are_a_table(measured: tuple[FlowReport, FlowReport, PortSamples]) -> None:
    samples = measured[2]
    assert str(samples) == "6 intervals of 0.5 s at s1-eth2"
    assert samples.table.height == 6
    assert samples.table["link_bytes"].sum() == sum(samples["s1-eth2"].link_bytes)


def test_a_notebook_leaves_empty_columns_out(measured: tuple[FlowReport, FlowReport, PortSamples]) -> None:
    flow, _, samples = measured
    assert "delay_mean_ms" in flow._repr_html_()
    assert "psnr_db" not in flow._repr_html_()
    assert "sent_bps" in samples._repr_html_()


def test_every_result_shows_its_text_where_python_shows_a_value(tmp_path: Path) -> None:
    path = str(tmp_path / "out.pcapng")
    with tn.templates.single(2, rate="10 Mbit").simulate() as lab:
        with lab.capture("s1-eth1", path) as capture, lab.sample(["s1-eth1"], "100 ms") as sampler:
            flow = lab.start(tn.apps.udp("h1", "h2", rate="1 Mbit", duration="1 s"))
            assert "running" in repr(capture)
            assert "running" in repr(sampler)
            lab.wait([flow])
        shown = [flow.report(), flow.report().delay, flow.reports()[0], sampler.read(), lab.fidelity()]
        assert [repr(one) for one in shown] == [f"<{type(one).__name__} {one}>" for one in shown]
        assert repr(lab.link("s1", "h1")) == "<LabLink s1 - h1>"
        assert repr(lab["h1"]) == "<LabHost h1>"
        assert repr(lab.switch("s1")) == "<LabSwitch s1>"
        assert repr(flow) == "<AppHandle of app 2, flow 1>"
        assert str(lab.fidelity()).startswith("valid: exact")
    assert repr(analyze_capture(path)).startswith(f"<CaptureAnalysis {path}: ")
    assert "sent, 0 lost" in repr(match_captures([path, path]))
    assert repr(capture) == f"<Capture {path}: {capture.frames} frames, 0 dropped>"
