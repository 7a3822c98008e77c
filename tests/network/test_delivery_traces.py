"""Links whose capacity follows a trace of deliveries: what is read and refused, what passes, and what is true of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from twinnet import bandwidth
from twinnet.deliveries import TracedCapacity
from twinnet.errors import BadFile, BadValue
from twinnet.network.link_settings import describe_direction, direction_spec


def traced(trace: Any, **settings: Any) -> tn.Network:
    """Two hosts; what the first sends follows `trace`."""
    net = tn.Network(seed=1)
    net.link(net.host("h1"), net.host("h2"), a_to_b={"delivery_trace": trace}, **settings)
    return net


def test_full_size_packets_arrive_at_the_moments_of_the_trace() -> None:
    with traced([2, 3, 3, 10]).simulate() as lab:
        flow = lab.start(tn.apps.udp("h1", "h2", rate="20 Mbit", duration="1 s", record_packets=100), at="0 s")
        lab.run_until("2 s")
        samples = flow.report().samples
        assert samples is not None
        arrived_ms = [moment // 10**9 for moment in samples.arrived_ps[:20]]
    # The first round may serve the neighbours' addresses; then four packets leave in each round of 10 ms.
    assert {moment % 10 for moment in arrived_ms} == {0, 2, 3}
    assert arrived_ms[8:16] == [moment + 20 for moment in arrived_ms[:8]]


def test_a_trace_carries_as_many_full_size_packets_as_it_has_moments_over_any_time() -> None:
    trace = tn.DeliveryTrace.fading("10 Mbit", duration="2 s", seed=4)
    with traced(trace).simulate() as lab:
        sampler = lab.sample(["h1-eth0"], "100 ms")
        lab.start(tn.apps.udp("h1", "h2", rate="30 Mbit", duration="5 s"))
        lab.run_until("5 s")
        samples = sampler.read()
    capacity = TracedCapacity(trace)
    for place in range(5, 45):
        start = samples.start_ps + place * samples.interval_ps
        carried = samples["h1-eth0"].wire_bytes[place] * 8 / 0.1
        # A busy line misses no moment; one packet may stand on the other side of each end.
        assert abs(carried - capacity.over_bps(start, start + samples.interval_ps)) <= 2 * 1538 * 8 / 0.1


def test_tcp_fills_a_traced_link_and_trains_of_segments_are_taken_apart() -> None:
    trace = tn.DeliveryTrace(list(range(1, 1001)))
    with traced(trace, delay="5 ms").simulate() as lab:
        flow = lab.start(tn.apps.tcp_bulk("h1", "h2", duration="10 s"))
        lab.run_until("11 s")
        # 1448 of 1538 bytes on the wire are payload; slow start costs some of the first second.
        assert flow.report().throughput_bps == pytest.approx(trace.mean_bps() * 1448 / 1538, rel=0.03)


def test_a_rate_takes_the_place_of_a_running_trace_and_gives_it_back() -> None:
    with traced([1]).simulate() as lab:
        flow = lab.start(tn.apps.udp("h1", "h2", rate="30 Mbit", duration="9 s"))
        sampler = lab.sample(["h1-eth0"], "1 s")
        lab.run_until("3 s")
        lab.link("h1", "h2").set("ab", rate="2 Mbit")
        lab.run_until("6 s")
        lab.link("h1", "h2").set("ab", rate=None)
        lab.run_until("9 s")
        sent = [count * 8 / 1e6 for count in sampler.read()["h1-eth0"].wire_bytes]
        assert flow.report().bytes
    assert sent[1] == pytest.approx(12.304, rel=0.01)
    assert sent[4] == pytest.approx(2, rel=0.02)
    assert sent[7] == pytest.approx(12.304, rel=0.01)


def test_the_truth_about_a_traced_link_is_its_moments_less_its_traffic() -> None:
    with traced([1, 2, 3, 4, 10]).simulate() as lab:
        ports = bandwidth.path_ports(lab, ["h1", "h2"])
        sampler = lab.sample(list(ports), "10 ms")
        lab.start(tn.apps.udp("h1", "h2", rate="2 Mbit", duration="5 s"))
        lab.run_until("4 s")
        true = bandwidth.available(sampler.read(), ports, 10**12, 3 * 10**12)
    # Five moments in 10 ms are 6.152 Mbit/s; 2 Mbit/s of payload are 2.09 on the wire.
    assert true.available_bps == pytest.approx(6.152e6 - 2e6 * 1538 / 1472, rel=0.005)


def test_the_same_trace_gives_the_same_run() -> None:
    def run() -> str:
        with traced([1, 2, 2, 7]).simulate() as lab:
            lab.start(tn.apps.udp("h1", "h2", rate="5 Mbit", process="poisson", duration="2 s"))
            lab.run_until("3 s")
            return lab.trace_hash

    assert run() == run()


def test_a_file_of_mahimahi_is_read(tmp_path: Path) -> None:
    file = tmp_path / "cell.down"
    file.write_bytes(b"0\n1\r\n 1\n\n12\n")
    assert tn.DeliveryTrace.read(file).times_ms == (0, 1, 1, 12)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "0 moments"),
        (b"1\n2.5\n", "line 2: '2.5' is no moment"),
        (b"1\n-2\n", "line 2"),
        (b"5\n4\n", "moment 2 of a delivery trace, 4 ms, is before 5 ms"),
        (b"0\n0\n", "at least 1"),
        (b"1\n99999999999\n", "line 2"),
        (b"1\n9999999999\n", "moment 2 of a delivery trace is 9999999999"),
        (b"\xff\xfe\n", "line 1"),
        (b"1\n" * 1_000_001, "more than 1000000 moments"),
    ],
)
def test_a_file_that_holds_no_trace_is_refused_with_the_place(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "cell.down"
    file.write_bytes(content)
    with pytest.raises(BadFile, match=said):
        tn.DeliveryTrace.read(file)


def test_a_file_that_is_not_there_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="cannot be read"):
        tn.DeliveryTrace.read(tmp_path / "none")
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(BadFile, match="larger than"):
        tn.DeliveryTrace.read(large)


@pytest.mark.parametrize("value", ["cell.down", [], [3, 1], [0], [1.5], [True], [-1], {"speed": 3}, {"users": 2}, 7])
def test_what_is_no_trace_is_refused(value: Any) -> None:
    with pytest.raises(BadValue):
        direction_spec({"delivery_trace": value})


def test_a_rate_and_a_trace_are_refused_together() -> None:
    with pytest.raises(BadValue, match="has a rate and a delivery_trace"):
        traced([1], rate="1 Mbit")


def test_a_trace_is_shown_by_its_mean() -> None:
    assert describe_direction(direction_spec({"delivery_trace": [1]})) == "by a trace of 12.304 Mbit/s on average"


def test_a_modelled_trace_has_its_mean_changes_with_the_channel_and_is_repeatable() -> None:
    trace = tn.DeliveryTrace.fading("20 Mbit", duration="20 s", doppler_hz=2, users=3, seed=9)
    assert trace.mean_bps() == pytest.approx(20e6, rel=0.001)
    assert trace.times_ms[-1] == 20_000
    assert trace == tn.DeliveryTrace.fading("20 Mbit", duration="20 s", doppler_hz=2, users=3, seed=9)
    assert trace != tn.DeliveryTrace.fading("20 Mbit", duration="20 s", doppler_hz=2, users=3, seed=10)
    capacity = TracedCapacity(trace)
    rates = [capacity.over_bps(start * 10**11, (start + 1) * 10**11) for start in range(200)]
    # At 2 Hz a channel goes up and down in a quarter of a second: tenths of a second differ much.
    assert min(rates) < 10e6 and max(rates) > 30e6


@pytest.mark.parametrize(
    "settings",
    [{"mean": "1 bit"}, {"doppler_hz": 0.0}, {"users": 0}, {"duration": "1 h"}, {"snr_db": -20.0}],
)
def test_a_model_beyond_its_ranges_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(BadValue, match="allowed are"):
        tn.DeliveryTrace.fading(settings.pop("mean", "5 Mbit"), **settings)


@needs_a_lab
@pytest.mark.judged
@pytest.mark.quiet
def test_a_traced_link_carries_its_trace_to_real_hosts() -> None:
    trace = tn.DeliveryTrace.fading("10 Mbit", duration="2 s", seed=4)
    with traced(trace).emulate() as lab:
        sampler = lab.sample(["h1-eth0"], "500 ms")
        flow = lab.start(tn.apps.udp("h1", "h2", rate="30 Mbit", duration="3 s"))
        lab.wait([flow], until="20 s")
        samples = sampler.stop()
    capacity = TracedCapacity(trace)
    for place in range(2, 5):
        start = samples.start_ps + place * samples.interval_ps
        carried = samples["h1-eth0"].wire_bytes[place] * 8 / 0.5
        # A sender that loses its processor leaves moments unused; none is used twice. Ends are known to two packets.
        allowed = capacity.over_bps(start, start + samples.interval_ps)
        assert 0.9 * allowed <= carried <= allowed + 2 * 1538 * 8 / 0.5
