"""The ports that traffic fills, worked out by hand on small networks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import twinnet as tn
from study_networks import one_switch
from twinnet.cli import run as command_line
from twinnet.network.network import Network
from twinnet.qos.queue import Queue
from twinnet.study.filled_ports import PortLoad, port_loads
from twinnet.study.traffic import Traffic


def chain(*rates: str | None) -> Network:
    """Host a, a switch between each two links, host b; each link has one of `rates`, both ways."""
    network = Network()
    nodes = [network.host("a"), *(network.switch(f"s{number}") for number in range(1, len(rates))), network.host("b")]
    for one, other, rate in zip(nodes, nodes[1:], rates, strict=False):
        network.link(one, other, **({"rate": rate} if rate else {}))
    return network


def traffic(app: str, name: str = "load", sources: tuple[str, ...] = ("a",), **settings: object) -> Traffic:
    fields = {"name": name, "app": app, "from": list(sources), "to": "b", "port": 5003, "duration": "10 s"}
    return Traffic.model_validate(fields | settings)


def filled(network: Network, *entries: Traffic) -> dict[str, tuple[str, ...]]:
    return {load.port.name: load.filled_by for load in port_loads(network, entries) if load.filled_by}


def load_at(network: Network, port: str, *entries: Traffic) -> PortLoad:
    (found,) = [load for load in port_loads(network, entries) if load.port.name == port]
    return found


def test_tcp_fills_the_slowest_line_and_no_other() -> None:
    network = chain("100 Mbit", "10 Mbit", "100 Mbit")
    assert filled(network, traffic("tcp")) == {"s1-eth2": ("load",)}
    assert load_at(network, "s2-eth2", traffic("tcp")).load == pytest.approx(0.1)


def test_of_lines_that_are_equally_fast_the_first_is_filled() -> None:
    assert filled(chain("10 Mbit", "10 Mbit"), traffic("tcp")) == {"a-eth0": ("load",)}


def test_two_senders_fill_the_line_that_they_share() -> None:
    network = chain("10 Mbit", "10 Mbit")
    network.link(network.host("c"), network.nodes["s1"], rate="10 Mbit")
    both = traffic("tcp", sources=("a", "c")), traffic("udp", "noise", rate="1 Mbit", payload="1000 B")
    assert filled(network, *both) == {"s1-eth2": ("load", "noise")}


def test_datagrams_fill_each_line_that_is_slower_than_what_comes() -> None:
    network = chain("20 Mbit", "10 Mbit", "5 Mbit")
    udp = traffic("udp", rate="30 Mbit", payload="1000 B")
    assert filled(network, udp) == {"a-eth0": ("load",), "s1-eth2": ("load",), "s2-eth2": ("load",)}
    assert load_at(network, "s2-eth2", udp).load == pytest.approx(2)


def test_datagrams_below_the_rate_fill_nothing_and_answers_do_not_count() -> None:
    network = chain("100 Mbit", "10 Mbit")
    udp = traffic("udp", rate="4 Mbit", payload="1000 B")
    assert filled(network, udp) == {}
    # 1000 bytes take 1066 of the line: IP 20, UDP 8, Ethernet 38.
    assert load_at(network, "s1-eth2", udp).load == pytest.approx(0.4 * 1066 / 1000)
    assert load_at(network, "s1-eth1", traffic("tcp")).load == 0


def test_a_line_without_a_rate_is_never_filled() -> None:
    assert filled(chain(None, None), traffic("tcp"), traffic("udp", rate="1 Gbit")) == {}


def test_traffic_at_other_times_does_not_add_up() -> None:
    parts = [traffic("udp", f"load{at}", rate="6 Mbit", start=f"{20 * at} s") for at in (0, 1)]
    assert filled(chain("100 Mbit", "10 Mbit"), *parts) == {}


def test_of_a_network_whose_links_change_no_queue_is_said_to_have_little_to_do() -> None:
    network = chain("100 Mbit", "10 Mbit")
    assert load_at(network, "s1-eth1").has_little_to_do
    network.at("5 s").link("s1", "b").set(rate="1 Mbit")
    assert not load_at(network, "s1-eth1").has_little_to_do


@pytest.mark.parametrize(
    ("queue", "little"),
    [
        (tn.qos.Codel(), True),
        (tn.qos.Htb("10 Mbit", queues={0: tn.qos.HtbQueue(max_rate="2 Mbit")}), False),
        (tn.qos.Htb("10 Mbit", queues={0: tn.qos.HtbQueue(min_rate="2 Mbit")}), True),
        (tn.qos.Delay("5 ms"), False),
        (tn.qos.Priority([tn.qos.Fifo(), tn.qos.Tbf("1 Mbit", "3 kB")]), False),
    ],
)
def test_a_class_may_be_full_where_the_line_is_not(queue: Queue, little: bool) -> None:
    network = chain("100 Mbit", "10 Mbit")
    network.nodes["s1"].ports[1].queue = queue
    udp = traffic("udp", rate="3 Mbit", payload="1000 B")
    assert load_at(network, "s1-eth2", udp).has_little_to_do == little


WRONG = """\
study: wrong-port
title: Disciplines at the wrong port
question: Is it told before the runs?
NETWORK
factors:
  queue:
    levels:
      fifo: {queues: {s1 to h1: {kind: fifo}}}
      codel: {links: {h1-s1: {queue_b: {kind: codel}}}}
      none: {}
  line:
    levels:
      slow: {links: {s1-h2: {rate: 5 Mbit}}}
      fast: {links: {s1-h2: {rate: 10 Mbit}}}
traffic: [{name: bulk, app: tcp, from: [h1], to: h2, port: 5001, duration: 1 s}]
measurements: {got: {of: throughput, interval: 100 ms}}
clock: virtual
""".replace("NETWORK\n", one_switch("rate: 100 Mbit", "rate: 10 Mbit"))
WARNING = (
    "Warning: no traffic of the study fills s1-eth1, where queue: fifo, codel has its queue; "
    "traffic fills s1-eth2 (s1 to h2, port 2, 5 Mbit/s), s1-eth2 (s1 to h2, port 2, 10 Mbit/s)."
)


def test_the_dry_run_names_the_bottleneck_and_warns_of_queues_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wrong.yaml").write_text(WRONG)
    assert command_line(["run", "wrong.yaml", "--dry-run"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Traffic fills s1-eth2 (s1 to h2, port 2, 5 Mbit/s): bulk (line: slow) Traffic fills s1-eth2" in told
    assert WARNING in told
    assert command_line(["run", "wrong.yaml", "--dry-run", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["warnings"] == [WARNING] and len(record["fills"]) == 6
    assert record["fills"][0] == {
        "levels": {"queue": "fifo", "line": "slow"},
        "ports": [
            {"port": "s1-eth2", "node": "s1", "number": 2, "to": "h2", "rate_bps": 5e6, "load": 1.0}
            | {"filled_by": ["bulk"]}
        ],
    }
    # Whoever does not look at the plan is told, too.
    assert command_line(["run", "wrong.yaml", "--no-report"]) == 0
    assert WARNING in " ".join(capsys.readouterr().err.split())


def test_a_queue_at_the_bottleneck_is_not_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("right.yaml").write_text(WRONG.replace("s1 to h1", "s1 to h2").replace("h1-s1: {queue_b", "s1-h2: {queue_a"))
    assert command_line(["run", "right.yaml", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == []


def test_what_is_not_known_beforehand_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command_line(["run", "bandwidth-conditions", "--dry-run"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Traffic fills s2-eth5 (s2 to s3, port 5, 100 Mbit/s): cross" in told
    assert "Not known beforehand is what is sent by probes." in told
    assert "Looked at are the first 100 of 220 combinations of levels." in told
