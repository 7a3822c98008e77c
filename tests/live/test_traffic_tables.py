"""What the page's tables say of traffic, programs and controllers."""

from __future__ import annotations

import twinnet as tn
from twinnet.live.traffic import controllers_now, traffic_now


def test_flows_have_their_ends_their_window_and_what_came() -> None:
    net = tn.templates.single(2, rate="10 Mbit", delay="5 ms")
    with net.simulate() as lab:
        lab.start(tn.apps.tcp_bulk("h1", "h2", duration="2 s", info_interval="100 ms"))
        lab.start(tn.apps.udp("h2", "h1", rate="1 Mbit", duration="0.5 s"))
        lab.run_until("1 s")
        told = traffic_now(lab)
    assert (told["now_s"], told["programs"]) == (1.0, [])
    rows = {(row["host"], row["what"]): row for row in told["flows"]}
    assert set(rows) == {("h1", "tcp source"), ("h2", "tcp sink"), ("h2", "udp source"), ("h1", "udp sink")}
    sender, receiver = rows["h1", "tcp source"], rows["h2", "tcp sink"]
    assert 0.8e6 < receiver["bytes"] < 10e6 / 8
    # Two lines of 5 ms there and back, and what waits before the first.
    assert sender["rtt_ms"] > 20 and sender["window"] > 10 and not sender["finished"]
    assert receiver["window"] is None and sender["ends"].startswith("10.0.0.1")
    assert rows["h2", "udp source"]["finished"] and rows["h1", "udp sink"]["lost"] == 0


def test_packets_that_a_host_sends_are_followed_by_the_row_of_its_flow() -> None:
    net = tn.templates.single(2, rate="10 Mbit", delay="5 ms")
    with net.simulate() as lab:
        lab.start(tn.apps.tcp_bulk("h1", "h2", duration="2 s", port=7001))
        lab.start(tn.apps.udp("h2", "h1", rate="1 Mbit", duration="2 s", port=7002))
        lab.start(tn.apps.ping("h1", "h2", count=9))
        lab.start(tn.apps.tcp_sink("h2", port=7003))
        lab.start(tn.apps.tcp_source("h1", "fd00::2", duration="2 s", port=7003))
        lab.run_until("1 s")
        flows = traffic_now(lab)["flows"]
        rows = {(row["what"], row["ends"].rpartition(":")[2].rpartition(" ")[2]): row["follow"] for row in flows}
        followed = [row for row in rows.values() if row is not None]
        for row in followed:
            ports = {name: int(row[name]) for name in ("port", "source_port") if name in row}
            way = lab.follow(row["from"], row["to"], row["protocol"], **ports)
            assert way.arrives and way.hops[0].node == row["from"]
    # The receiver of UDP sends nothing.
    assert len(rows) == 7 and len(followed) == 6
    there, back = rows["tcp source", "7001"], rows["tcp sink", "7001"]
    assert (there["from"], there["to"], there["protocol"], there["port"]) == ("h1", "10.0.0.2", "tcp", "7001")
    assert (back["from"], back["to"], back["source_port"]) == ("h2", "10.0.0.1", "7001")
    assert back["port"] == there["source_port"]
    assert (rows["tcp source", "7003"]["to"], rows["tcp sink", "7003"]["to"]) == ("fd00::2", "fd00::1")
    assert rows["udp source", "7002"]["to"] == "10.0.0.1" and "source_port" not in rows["icmp source", "10.0.0.2"]


def test_controllers_of_all_switches_are_listed() -> None:
    net = tn.templates.linear(2, rate="10 Mbit")
    net.controller(tn.control.LearningSwitch)
    with net.simulate() as lab:
        lab.wait_for_controllers()
        lab.run_until("0.1 s")
        rows = controllers_now(lab)
    assert [row["switch"] for row in rows] == ["s1", "s2"]
    for row in rows:
        assert row["version"] in ("1.0", "1.3") and row["messages"] > 0 and row["trouble"] is None


def test_a_lab_without_traffic_has_empty_tables() -> None:
    with tn.templates.single(2).simulate() as lab:
        assert controllers_now(lab) == []
        assert traffic_now(lab)["flows"] == []
