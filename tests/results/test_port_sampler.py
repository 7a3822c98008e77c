"""Samples of ports on both clocks, and watching them at the prompt."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
import twinnet as tn
from twinnet.cli.prompt.session import Session
from twinnet.errors import LabError, UsageError
from twinnet.results.port_samples import PortSamples


def narrow() -> tn.Network:
    """Two hosts; what goes to h2 has 1 Mbit/s and a queue of five frames."""
    net = tn.Network(seed=2)
    h1, h2, s1 = net.host("h1"), net.host("h2"), net.switch("s1")
    net.link(h1, s1, rate="100 Mbit")
    net.link(s1, h2, rate="1 Mbit", queue=tn.qos.Fifo(limit_frames=5))
    return net


def flood() -> tn.apps.Flow:
    return tn.apps.udp("h1", "h2", rate="4 Mbit", payload="958 B", duration="500 ms")


def check_samples(samples: PortSamples) -> None:
    out, into = samples["s1-eth2"], samples["s1-eth1"]
    assert samples.interval_s == 0.05
    assert not samples.full
    # 4 Mbit/s of payload, 500 ms: 261 datagrams of 1000 bytes with their Ethernet headers.
    assert sum(into.received_frames) >= 261
    assert sum(into.received_bytes) >= 261 * 1000
    # 1 Mbit/s: 0.5 s and a queue hold 61 of 1024 bytes, and those of the queue; the rest are dropped for its limit.
    assert sum(out.dropped["overlimit"]) == sum(out.drops) > 150
    assert not any(sum(out.dropped[reason]) for reason in out.dropped if reason != "overlimit")
    assert 3 <= max(out.backlog_frames) <= 5
    assert 3000 <= max(out.backlog_bytes) <= 5000
    assert max(out.wire_bytes) * 8 / 0.05 <= 1e6 + 8 * 1024 / 0.05


def test_both_ways_and_drops_by_reason_on_the_virtual_clock():
    with narrow().simulate() as lab:
        with lab.sample(["s1-eth1", "s1-eth2"], "50 ms") as sampler:
            lab.wait([lab.start(flood())])
            lab.run_until("1 s")
            assert len(sampler.read()) == 20
            skipped = lab.connection.samples_read(sampler=0, skip=17)
            assert skipped["start_ps"] == 850_000_000_000
            whole = lab.connection.samples_read(sampler=0)["ports"]
            assert skipped["ports"] == {
                port: {name: numbers[17:] for name, numbers in columns.items()} for port, columns in whole.items()
            }
            beyond = lab.connection.samples_read(sampler=0, skip=2**40)
            assert beyond["start_ps"] == 10**12 and not any(beyond["ports"]["s1-eth2"].values())
        check_samples(sampler.read())
        assert sampler.stop().starts_s[:3] == pytest.approx((0.0, 0.05, 0.1))
        with pytest.raises(LabError, match="no sampler 0 runs"):
            lab.connection.samples_read(sampler=0)


def test_both_ways_and_drops_by_reason_on_the_wall_clock():
    with narrow().emulate() as lab:
        with lab.sample(["s1-eth1", "s1-eth2"], "50 ms") as sampler:
            lab.wait([lab.start(flood())])
            lab.run_until(f"{lab.now() + 0.3:.6f} s")
        check_samples(sampler.read())


def test_watch_shows_rates_as_time_passes(capsys: pytest.CaptureFixture[str]):
    with narrow().simulate() as lab:
        lab.start(flood())
        session = Session(lab)
        assert session.execute("watch s1-eth1 s1-eth2 50ms 200ms")
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].split() == ["s1-eth1", "s1-eth2"]
        assert len(lines) == 2 + 4
        # The queue of the narrow port is full: the last figure before the drops.
        assert re.search(r" [1-9]\d* \(dropped", lines[3])
        assert "Mbit" in lines[3] and "overlimit)" in lines[3]
        assert lab.now() == pytest.approx(0.2, abs=1e-6)


def test_watch_writes_a_file_in_the_background_until_it_is_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "ports.csv"
    with narrow().simulate() as lab:
        session = Session(lab, as_json=True)
        assert session.execute(f"watch s1-eth2 100ms {path}")
        assert not session.execute(f"watch s1-eth2 100ms {path}")
        assert session.execute("iperf h1 h2 500ms udp 4Mbit")
        assert session.execute("watch stop")
        told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert told[-1]["result"][str(path)]["full"] is False
    rows = list(csv.DictReader(path.open()))
    assert len(rows) == told[-1]["result"][str(path)]["intervals"] >= 4
    assert sum(int(row["dropped_overlimit"]) for row in rows) > 50
    assert float(rows[1]["sent_bps"]) == pytest.approx(1e6, rel=0.1)


def test_what_is_still_watched_is_written_at_the_end(tmp_path: Path):
    path = tmp_path / "ports.csv"
    with narrow().simulate() as lab:
        session = Session(lab)
        session.execute(f"watch s1-eth2 100ms {path}")
        lab.run_until("1 s")
        session.end()
    assert len(list(csv.DictReader(path.open()))) == 10


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("watch s1-eth2", "needs interfaces and an interval"),
        ("watch 100ms", "needs interfaces and an interval"),
        ("watch s1-eth9 100ms", "no interface 's1-eth9'"),
        ("watch s1-eth2 100ms 10ms", "shorter than the interval"),
        ("watch s1-eth2 100ms 1s 2s", "does not understand '2s'"),
        ("watch s1-eth2 100ms /nowhere/x.csv", "cannot be written"),
        ("watch s1-eth2 1ns", "too short"),
    ],
)
def test_wrong_usage_of_watch_is_told(line: str, message: str):
    with narrow().simulate() as lab, pytest.raises(UsageError, match=message):
        Session(lab).answer(line)
