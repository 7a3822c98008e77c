"""Series and layer conversions, against values worked out by hand."""

import numpy as np
import pytest
from twinnet.results.layers import carried_bytes, payload_limit_bytes
from twinnet.results.series import Cumulative, band, flow_bytes, port_bytes, rates_between_arrivals
from twinnet.results.tables import table


def intervals(*rows):
    columns = ("protocol", "role", "from_host", "start_s", "length_s", "payload_bytes", "packets")
    return table("intervals", [dict(zip(columns, row, strict=True), flow=1, name=row[0]) for row in rows])


def test_a_full_tcp_segment_is_1538_bytes_on_the_wire():
    one = np.array([1448.0])
    assert payload_limit_bytes("tcp") == 1448
    assert carried_bytes(one, None, "tcp", "link") == pytest.approx([1514])
    assert carried_bytes(one, None, "tcp", "wire") == pytest.approx([1538])


def test_udp_datagrams_are_counted_each_with_its_headers():
    payload, packets = np.array([14_700.0, 0.0]), np.array([10.0, 0.0])
    assert carried_bytes(payload, packets, "udp", "link") == pytest.approx([10 * 1512, 0])
    assert carried_bytes(payload, packets, "udp", "wire") == pytest.approx([10 * 1536, 0])


def test_a_small_datagram_is_padded_to_the_smallest_frame():
    assert carried_bytes(np.array([16.0]), np.array([1.0]), "udp", "wire") == pytest.approx([84])


def test_a_datagram_larger_than_the_mtu_travels_as_fragments():
    # 8 + 4000 bytes in three fragments of at most 1480, each with IP and Ethernet headers.
    assert carried_bytes(np.array([4000.0]), np.array([1.0]), "udp", "link") == pytest.approx([4008 + 3 * 34])
    # One byte over the edge: the last fragment is 21 bytes of IP, padded on the wire.
    assert carried_bytes(np.array([1473.0]), np.array([1.0]), "udp", "wire") == pytest.approx([1538 + 84])


def test_a_jumbo_path_carries_a_long_datagram_whole():
    one, payload = np.array([1.0]), np.array([7999.0])
    assert carried_bytes(payload, one, "udp", "network", 9000) == pytest.approx([8027])
    assert carried_bytes(payload, one, "udp", "wire", 9000) == pytest.approx([8065])
    assert carried_bytes(np.array([8948.0]), None, "tcp", "link", 9000) == pytest.approx([9014])


def test_the_headers_of_ipv6_are_twice_as_long_and_fragments_have_their_own():
    one = np.array([1.0])
    assert carried_bytes(np.array([1452.0]), one, "udp", "network", 1500, 6) == pytest.approx([1500])
    # 1461 bytes after the header in fragments of 1448, each with 48 bytes of headers.
    assert carried_bytes(np.array([1453.0]), one, "udp", "network", 1500, 6) == pytest.approx([1461 + 96])
    assert payload_limit_bytes("tcp", 1500, 6) == 1428


def test_what_the_receiver_counted_packet_by_packet_goes_before_an_estimate():
    row = {"flow": 1, "name": "udp", "protocol": "udp", "role": "sink", "from_host": "h1", "start_s": 0.0}
    # One datagram of 10 bytes and one of 1473: their mean size is under both edges, they are not.
    row |= {"length_s": 1.0, "payload_bytes": 1483, "packets": 2, "frames": 3}
    row |= {"network_bytes": 38 + 1521, "wire_bytes": 84 + 1538 + 84}
    frame = table("intervals", [row])
    assert flow_bytes(frame, {}, "network").bytes[-1] == pytest.approx(1559)
    assert flow_bytes(frame, {}, "link").bytes[-1] == pytest.approx(1559 + 3 * 14)
    assert flow_bytes(frame, {}, "wire").bytes[-1] == pytest.approx(1706)


def test_what_was_not_counted_is_estimated_for_its_own_path():
    row = {"flow": 1, "name": "t", "protocol": "tcp", "role": "sink", "from_host": "h1", "start_s": 0.0}
    row |= {"length_s": 1.0, "payload_bytes": 8928, "path_mtu": 9000, "ip_version": 6}
    frame = table("intervals", [row])
    assert flow_bytes(frame, {}, "network").bytes[-1] == pytest.approx(9000)
    assert flow_bytes(frame.drop("frames"), {}, "network").bytes[-1] == pytest.approx(8928 * 1500 / 1448)


def test_flows_of_a_protocol_are_added_and_senders_are_not_counted():
    rows = intervals(
        ("tcp", "sink", "h1", 0.0, 1.0, 1000, None),
        ("tcp", "sink", "h3", 0.0, 1.0, 500, None),
        ("tcp", "source", "h1", 0.0, 1.0, 9999, None),
        ("udp", "sink", "h1", 0.0, 1.0, 77, 1),
    )
    assert flow_bytes(rows, {"protocol": "tcp"}).mean_bps(0, 1) == pytest.approx(1500 * 8)
    assert flow_bytes(rows, {"protocol": "tcp", "from": "h3"}).mean_bps(0, 1) == pytest.approx(500 * 8)


def test_fine_intervals_add_up_to_coarse_ones_and_nothing_is_lost():
    generator = np.random.default_rng(1)
    sizes = generator.integers(0, 10_000, 40)
    rows = intervals(*[("udp", "sink", "h1", i * 0.125, 0.125, int(size), 1) for i, size in enumerate(sizes)])
    starts, rates = flow_bytes(rows, {}).rates_bps(0.5, 5.0)
    assert starts.tolist() == pytest.approx([0.5 * i for i in range(10)])
    assert (rates * 0.5 / 8).tolist() == pytest.approx(sizes.reshape(10, 4).sum(axis=1).tolist())


def test_an_interval_that_a_window_cuts_counts_by_its_share():
    line = flow_bytes(intervals(("udp", "sink", "h1", 0.0, 1.0, 1000, 1)), {})
    assert line.mean_bps(0.25, 0.5) == pytest.approx(8000)
    assert line.mean_bps(1.0, 2.0) == 0


def test_nothing_selected_is_told():
    with pytest.raises(LookupError, match="no flow with protocol=sctp was received"):
        flow_bytes(intervals(("udp", "sink", "h1", 0.0, 1.0, 1000, 1)), {"protocol": "sctp"})


def test_ports_are_added_at_the_layer_asked_for():
    rows = [
        {"port": port, "start_s": 0.0, "length_s": 1.0, "frames": 1, "link_bytes": 1514, "wire_bytes": 1538}
        for port in ("s1-eth1", "s1-eth2", "s1-eth3")
    ]
    samples = table("port_samples", rows)
    assert port_bytes(samples, ["s1-eth1", "s1-eth2"], "link").mean_bps(0, 1) == pytest.approx(2 * 1514 * 8)
    assert port_bytes(samples, ["s1-eth1"], "wire").mean_bps(0, 1) == pytest.approx(1538 * 8)


def test_the_band_is_the_t_interval_at_each_moment():
    found = band(np.array([0.0, 1.0]), [np.array([1.0, 5.0]), np.array([2.0, 5.0]), np.array([3.0, 5.0])])
    # t(0.975, 2) = 4.302653, standard error 1 / sqrt(3).
    assert found.high[0] - found.mean[0] == pytest.approx(4.302653 / np.sqrt(3), rel=1e-6)
    assert (found.low[1], found.high[1]) == (5.0, 5.0)


def test_one_repetition_has_no_band():
    assert np.isnan(band(np.array([0.0]), [np.array([1.0])]).low).all()


def test_the_line_is_flat_before_and_after():
    line = Cumulative(np.array([0.0, 1.0]), np.array([0.0, 10.0]))
    assert line.at(np.array([-1.0, 0.5, 9.0])).tolist() == [0.0, 5.0, 10.0]


def test_an_interval_that_is_bounded_by_arrivals_never_exceeds_the_line():
    # A line that takes 0.3 s for a datagram of 30 bytes: 800 bit/s. A second of the clock holds 3 or 4.
    arrivals = [0.05 + 0.3 * place for place in range(30)]
    rows = []
    for second in range(9):
        here = [at for at in arrivals if second <= at < second + 1]
        row = {"flow": 1, "name": "a", "protocol": "udp", "role": "sink", "from_host": "h1", "start_s": float(second)}
        counted = {"payload_bytes": 30 * len(here), "packets": len(here), "last_arrival_s": max(here)}
        rows.append(row | {"length_s": 1.0} | counted)
    frame = table("intervals", rows)
    _, by_clock = flow_bytes(frame, {}).rates_bps(1.0, 9.0)
    assert by_clock.max() == pytest.approx(960.0)
    starts, between = rates_between_arrivals(frame, {}, "payload", 1.0, (0.0, 9.0))
    # The first interval is not whole: when its first datagram began to arrive is not known.
    assert starts.tolist() == [float(second) for second in range(1, 9)]
    assert between == pytest.approx([800.0] * 8)
    # When its source began it is known: 0.3 s before that datagram had arrived.
    begun = {(1, "h1"): -0.25}
    starts, between = rates_between_arrivals(frame, {}, "payload", 1.0, (0.0, 9.0), begun)
    assert starts.tolist() == [float(second) for second in range(9)]
    assert between == pytest.approx([4 * 30 * 8 / 1.2, *[800.0] * 8])
    halves, _ = rates_between_arrivals(frame, {}, "payload", 2.0, (0.0, 9.0))
    assert halves.tolist() == [2.0, 4.0, 6.0]


def test_a_burst_in_the_interval_in_which_a_flow_begins_is_seen():
    row = {"name": "a", "protocol": "udp", "role": "sink", "length_s": 1.0, "packets": 1}
    rows = [
        row | {"flow": flow, "from_host": host, "start_s": float(second), "payload_bytes": size}
        | {"last_arrival_s": second + at}
        for flow, host, second, at, size in [
            (1, "h1", 0, 0.9, 900), (1, "h1", 1, 0.9, 100), (2, "h2", 1, 0.9, 90), (2, "h2", 2, 0.9, 10)
        ]
    ]  # fmt: skip
    frame = table("intervals", rows)
    starts, rates = rates_between_arrivals(frame, {"from": "h1"}, "payload", 1.0, (0.0, 3.0), {(1, "h1"): 0.4})
    assert starts[0] == 0.0
    assert rates.max() == pytest.approx(900 * 8 / 0.5)
    # Both together: the second began at 1.8 s, and what it sent counts over the interval, not over 0.1 s.
    begun = {(1, "h1"): 0.4, (2, "h2"): 1.8}
    _, both = rates_between_arrivals(frame, {}, "payload", 1.0, (0.0, 3.0), begun)
    assert both[1] == pytest.approx(100 * 8 / 1.0 + 90 * 8 / 0.9)
