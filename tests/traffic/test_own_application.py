"""Applications in Python, in model hosts on the virtual clock: by class, and named in a study."""

from __future__ import annotations

from pathlib import Path

import pytest
import twinnet as tn
from twinnet.cli import run as command_line
from twinnet.errors import BadValue, LabError, NotAvailable
from twinnet.traffic.application import Datagram


def line(loss: str | None = None) -> tn.Network:
    net = tn.Network()
    s1 = net.switch("s1")
    net.link(net.host("h1", model=True), s1, rate="1 Gbit")
    net.link(s1, net.host("h2", model=True), rate="20 Mbit", delay="20 ms", loss=loss)
    return net


class Ticks(tn.Application):
    """A datagram every so often; the other end answers each."""

    def __init__(self, every_s: float = 0.1, length: int = 500) -> None:
        self.every_s, self.length = every_s, length

    def started(self) -> None:
        if self.sends:
            self.woken()

    def woken(self) -> None:
        self.send(b"tick", self.length)
        self.wake_in(self.every_s)

    def received(self, datagram: Datagram) -> None:
        SEEN.append((self.sends, datagram, self.now_s))
        if not self.sends:
            self.send(b"tock")


SEEN: list[tuple[bool, Datagram, float]] = []


def test_both_ends_are_told_and_what_arrives_is_counted_as_udp_is() -> None:
    SEEN.clear()
    with line().simulate(seed=1) as lab:
        flow = lab.start(tn.apps.own("h1", "h2", of=Ticks, settings={"every_s": 0.05}, duration="1 s"), at="1 s")
        lab.wait([flow])
        lab.run_until("3 s")
        report = flow.report()
    # At 0, 50, ... and 950 ms; at 1 s it is over.
    assert (report.packets, report.lost, report.bytes) == (20, 0, 20 * 500)
    assert report.delay is not None
    # 20 ms, and 546 bytes with all headers (566 on the line of Ethernet) at 20 Mbit/s and at 1 Gbit/s.
    assert report.delay.p50 / 1e9 == pytest.approx(20 + 566 * 8 / 20e6 * 1e3 + 566 * 8 / 1e9 * 1e3, abs=0.05)
    there = [(datagram, now_s) for sends, datagram, now_s in SEEN if not sends]
    back = [(datagram, now_s) for sends, datagram, now_s in SEEN if sends]
    assert len(there) == 20 and there[1][0].data == b"tick" and there[1][0].length == 500
    assert there[1][0].sent_s == pytest.approx(1.05, abs=1e-9)
    # The last answer comes after its end.
    assert 18 <= len(back) <= 20 and {datagram.data for datagram, _ in back} == {b"tock"}
    assert back[1][1] - there[1][1] == pytest.approx(0.02, abs=0.001)


class Reliable(tn.Application):
    """Stop and wait: sends again what is not answered within 100 ms, and ends after 50 answers."""

    def __init__(self) -> None:
        self.answered = 0

    def started(self) -> None:
        if self.sends:
            self.woken()

    def woken(self) -> None:
        self.send(self.answered.to_bytes(2), 1000)
        self.wake_in(0.1)

    def received(self, datagram: Datagram) -> None:
        if not self.sends:
            self.send(datagram.data)
        elif int.from_bytes(datagram.data) == self.answered:
            self.answered += 1
            if self.answered == 50:
                self.finish()
            else:
                self.woken()


def ended(loss: str | None, seed: int = 1) -> tuple[float, str]:
    with line(loss).simulate(seed=seed) as lab:
        flow = lab.start(tn.apps.own("h1", "h2", of=Reliable))
        assert lab.wait([flow], until="60 s")
        return lab.now(), lab.trace_hash


def test_it_ends_when_it_says_so_and_the_same_seed_does_the_same() -> None:
    without, _ = ended(None)
    # The first asks for the other's hardware address.
    assert without == pytest.approx(50 * 0.0408, rel=0.05)
    lossy, trace = ended("5 %")
    assert lossy > without + 0.1
    assert ended("5 %") == (lossy, trace)
    assert ended("5 %", seed=2)[1] != trace


class Random(tn.Application):
    drawn: list[float]

    def started(self) -> None:
        DRAWN.append(self.random.random())
        self.finish()


DRAWN: list[float] = []


def test_each_source_draws_its_own_numbers_by_the_seed() -> None:
    def drawn(seed: int) -> list[float]:
        DRAWN.clear()
        with line().simulate(seed=seed) as lab:
            flows = [lab.start(tn.apps.own(a, b, of=Random)) for a, b in (("h1", "h2"), ("h2", "h1"))]
            lab.wait(flows)
        return list(DRAWN)

    first = drawn(1)
    assert len(set(first)) == len(first) == 4
    assert drawn(1) == first and drawn(2) != first


class Wrong(tn.Application):
    def __init__(self, how: str = "") -> None:
        self.how = how

    def started(self) -> None:
        if self.sends and self.how == "raise":
            raise KeyError("nothing")
        if self.how == "now":
            self.wake_at(self.now_s)
        if self.sends and self.how == "short":
            self.send(b"x" * 100, 50)


@pytest.mark.parametrize(
    ("how", "said"), [("raise", "KeyError"), ("now", "not later than now"), ("short", "16 bytes stand before")]
)
def test_its_mistakes_end_the_wait_and_are_told(how: str, said: str) -> None:
    with line().simulate(seed=1) as lab:
        flow = lab.start(tn.apps.own("h1", "h2", of=Wrong, settings={"how": how}, duration="1 s"))
        with pytest.raises(LabError, match=said):
            lab.wait([flow])


def test_what_cannot_be_is_refused_with_what_to_write() -> None:
    for of in ("mine:Chat", dict, None):
        with pytest.raises(BadValue, match=r"tn\.Application"):
            tn.apps.own("h1", "h2", of=of, duration="1 s")  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="a number, a text or a truth value"):
        tn.apps.own("h1", "h2", of=Ticks, settings={"rates": [1]}, duration="1 s")  # type: ignore[dict-item]
    with line().simulate(seed=1) as lab, pytest.raises(LabError, match="every"):
        lab.wait([lab.start(tn.apps.own("h1", "h2", of=Ticks, settings={"every": 3}, duration="1 s"))])


def test_on_the_wall_clock_it_is_refused_by_name() -> None:
    with line().emulate() as lab, pytest.raises(NotAvailable, match="virtual clock"):
        lab.start(tn.apps.own("h1", "h2", of=Ticks, duration="1 s"))


STUDY = """\
study: own-application
title: An application of our own
question: How late are its datagrams?
parameters:
  every: 0.01
network:
  switches: {s1: }
  hosts: {h1: , h2: , h3: }
  links:
    - {between: [h1, s1], rate: 1 Gbit}
    - {between: [h3, s1], rate: 1 Gbit}
    - {between: [s1, h2], rate: 10 Mbit, delay: 10 ms}
factors:
  pace:
    levels:
      slow: {set: {every: 0.1}}
      fast: {set: {every: 0.01}}
traffic:
  - {name: mine, app: own, of: "mine:Ticks", from: [h1, h3], to: h2, port: 5020, duration: 2 s,
     settings: {every_s: "${every}"}}
measurements:
  throughput: {of: throughput, interval: 1 s}
  delay: {of: delay}
  loss: {of: loss}
repetitions: 1
clock: virtual
"""
MINE = """\
import twinnet as tn


class Ticks(tn.Application):
    def __init__(self, every_s):
        self.every_s = float(every_s)

    def started(self):
        if self.sends:
            self.woken()

    def woken(self):
        self.send(b"", 1000)
        self.wake_in(self.every_s)
"""


def test_a_study_names_it_and_measures_it_as_udp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "study.yaml").write_text(STUDY)
    assert command_line(["run", "study.yaml", "--out", "out"]) == 0
    results = tn.results.load("out/own-application")
    for pace, expected in (("slow", 2 * 10 * 8000), ("fast", 2 * 100 * 8000)):
        assert results.value(f"mean(throughput, pace={pace})").estimate == pytest.approx(expected, rel=0.03)
        # 10 ms and 0.85 ms of the line, which one of two that are sent at one moment waits for twice.
        assert results.value(f"mean(delay, pace={pace})").estimate == pytest.approx(0.0115, abs=0.001)
        assert results.value(f"max(loss, pace={pace})").estimate == 0
    assert (tmp_path / "out" / "own-application" / "mine.py").read_text() == MINE


def test_a_study_with_a_class_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    for wrong, said in (("mine:Tick", "'Ticks'"), ("Ticks", "module:Class")):
        (tmp_path / "study.yaml").write_text(STUDY.replace("mine:Ticks", wrong))
        assert command_line(["run", "study.yaml", "--out", "out"]) != 0
        assert said in capsys.readouterr().err
