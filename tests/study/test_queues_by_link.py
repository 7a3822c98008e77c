"""Queues and ports are named by port, by direction and by link, and the dry run tells which ports have which."""

from __future__ import annotations

from pathlib import Path

import pytest
import twinnet as tn
from made_studies import made_study
from refused_studies import refusal
from study_networks import two_senders
from twinnet.cli import run as command_line
from twinnet.errors import DuplicateName, UsageError
from twinnet.network.named_ports import link_named, peers, port_named, ports_named


def network() -> tn.Network:
    net = tn.Network()
    h1, s1, s2, h2 = net.host("h1"), net.switch("s1"), net.switch("s-2"), net.host("h2")
    net.link(h1, s1)
    net.link(s1, s2, name="trunk")
    net.link(s2, h2)
    net.link(s2, h2, parallel=True, name="spare")
    return net


@pytest.mark.parametrize(
    ("name", "ports"),
    [
        ("s1-eth2", ["s1-eth2"]),
        ("s1 to s-2", ["s1-eth2"]),
        ("s-2 towards s1", ["s-2-eth1"]),
        ("trunk.queue", ["s1-eth2", "s-2-eth1"]),
        ("trunk.queue_b", ["s-2-eth1"]),
        ("links[0].queue_a", ["h1-eth0"]),
        ("links[3].queue_b", ["h2-eth1"]),
        ("s1-s-2.queue_a", ["s1-eth2"]),
        ("spare.queue_a", ["s-2-eth3"]),
    ],
)
def test_a_queue_is_named_by_port_direction_or_link(name: str, ports: list[str]) -> None:
    assert [port.name for port in ports_named(network(), name)] == ports


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("s1-eth7", "the network has no port 's1-eth7' (did you mean"),
        ("s1 to h3", "the network has no node 'h3'"),
        ("h1 to h2", "h1 and h2"),
        ("trunc.queue", "'trunc' does not name two nodes of the network, nor a link (did you mean 'trunk'?"),
        ("links[4].queue", "the network has no links[4] (it has links[0] to links[3]; they count from 0)"),
        ("s-2 to h2", "s-2 and h2 have 2 links side by side (name one of them: links[2], spare)"),
    ],
)
def test_a_name_that_means_no_queue_is_answered_with_those_that_do(name: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        ports_named(network(), name)
    assert message in str(caught.value)


def test_both_ends_are_no_single_port() -> None:
    with pytest.raises(
        UsageError, match=r"trunk.queue is two ports, one at each end \(name one: s1 to s-2 or s-2 to s1"
    ):
        port_named(network(), "trunk.queue")
    assert peers(network())["s-2-eth1"] == "s-2 to s1"
    assert link_named(network(), "spare").index == 3


def test_names_of_links_are_unique() -> None:
    net = network()
    with pytest.raises(DuplicateName, match="there is a link trunk already"):
        net.link("h1", "h2", name="trunk")


STUDY = """\
study: by-link
title: A queue by its link
question: Does a queue that is named by its link stand at the right port?
NETWORK
factors:
  queue:
    levels:
      port: {queues: {s1-eth3: {kind: fifo, limit_frames: 5}}}
      direction: {queues: {s1 to h3: {kind: fifo, limit_frames: 5}}}
      name: {queues: {trunk.queue_b: {kind: fifo, limit_frames: 5}}}
      link: {links: {trunk: {queue_b: {kind: fifo, limit_frames: 5}}}}
      number: {links: {"links[2]": {queue_b: {kind: fifo, limit_frames: 5}, rate: 2 Mbit}}}
      elsewhere: {queues: {h3 to s1: {kind: fifo, limit_frames: 5}}}
traffic:
  - {name: load, app: udp, from: [h1, h2], to: h3, port: 5003, rate: 1500 kbit, duration: 2 s, payload: 500 B,
     process: poisson}
measurements:
  lost: {of: loss}
  sent: {of: port_throughput, ports: [s1 to h3, trunk.queue_a], layer: wire, interval: 500 ms}
repetitions: 2
seeds: repetition
clock: virtual
statements:
  - {id: full, text: The line is full., check: "mean(sent[port=s1 to h3], during=[500 ms, 2 s]) > 1.9 Mbit"}
  - {id: back, text: Nothing comes back., check: "mean(sent, queue=port) > 1.5 Mbit"}
""".replace("NETWORK\n", two_senders("name: trunk, rate: 2 Mbit, delay: 1 ms"))


def test_all_names_of_a_queue_mean_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tn.results.load(made_study(STUDY, tmp_path, "--no-report"))
    lost = {level: results.value(f"mean(lost, queue={level})").estimate for level in ("port", "elsewhere")}
    assert lost["elsewhere"] < 0.9 * lost["port"]
    for level in ("direction", "name", "link", "number"):
        assert results.value(f"mean(lost, queue={level})").estimate == lost["port"]
    assert set(results.port_samples["port"]) == {"s1-eth3", "h3-eth0"}
    assert set(results.means.filter(measurement="sent")["label"]) == {"s1 to h3", "trunk.queue_a"}
    capsys.readouterr()


def test_the_dry_run_names_the_ports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "by-link.yaml"
    path.write_text(STUDY)
    assert command_line(["run", str(path), "--dry-run"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert (
        "Queue at s1-eth3 (s1 to h3): fifo limit_frames 5 (queue: port, direction, name, link, number) Queue at h3-eth0"
    ) in told
    assert "Queue at h3-eth0 (h3 to s1): fifo limit_frames 5 (queue: elsewhere)" in told
    capsys.readouterr()
    assert command_line(["graph", str(path)]) == 0
    picture = capsys.readouterr().out
    assert "queue at s1-eth3" in picture or "at s1-eth3" in picture
    assert "trunk" in picture


OFF = """\
study: off-the-bottleneck
title: Queues where nothing waits
question: Is it told?
parameters: {rate: 3 Mbit}
network:
  switches: {s1: }
  hosts: {h1: , h2: }
  links: [{between: [h1, s1], rate: 10 Mbit}, {between: [s1, h2], rate: 10 Mbit}]
factors:
  queue:
    levels:
      back: {queues: {s1 to h1: {kind: codel}}}
      there: {queues: {s1 to h2: {kind: codel}}}
  load:
    levels:
      low: {set: {rate: 3 Mbit}}
      high: {set: {rate: HIGH}}
traffic: [{name: stream, app: udp, from: [h1], to: h2, port: 5001, rate: "${rate}", duration: 1 s}]
measurements: {loss: {of: loss}}
clock: virtual
"""


@pytest.mark.parametrize(
    ("high", "said"),
    [("4 Mbit", ". At most 42 % of its line are taken: its queue has little to do."), ("9 Mbit", "")],
)
def test_the_dry_run_says_where_a_queue_has_nothing_to_do(
    high: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "off.yaml").write_text(OFF.replace("HIGH", high))
    assert command_line(["run", "off.yaml", "--dry-run"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Queue at s1-eth1 (s1 to h1): codel (queue: back). No traffic is sent there, only answers" in told
    assert f"Queue at s1-eth2 (s1 to h2): codel (queue: there){said} Clock" in told


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("trunk.queue_b: {", "trunc.queue_b: {", "levels.name.queues.trunc.queue_b: 'trunc' does not name two nodes"),
        ("{trunk: {queue_b", "{h1-h3: {queue_b", "h1 and h3"),
        ("ports: [s1 to h3,", "ports: [s1 to h4,", "the network has no node 'h4'"),
        ("ports: [s1 to h3, trunk.queue_a]", "ports: [trunk.queue]", "trunk.queue is two ports, one at each end"),
        ("{trunk: {queue_b", "{trunk: {queue: {kind: fifo}, queue_b", "'queue' is that of both ends; give it, or"),
        ("{between: [h2, s1],", "{between: [h2, s1], name: trunk,", "there is a link trunk already"),
        ("[port=s1 to h3]", "[port=s1-eth1]", "sent has no port=s1-eth1"),
    ],
)
def test_wrong_names_in_a_study_are_told_with_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    assert old in STUDY
    assert message in refusal(STUDY.replace(old, new), tmp_path, capsys)
