"""Applications in Python, on both clocks: by class, and named in a study."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import twinnet as tn
from twinnet.cli import run as command_line
from twinnet.errors import BadValue, LabError, NotAvailable
from twinnet.results.flow_report import FlowReport
from twinnet.traffic.app import Flow
from twinnet.traffic.application import Datagram
from twinnet.traffic.connection import Connection


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


PACED = '''\
"""Questions by a schedule; the other end answers each, and questions wait for no answer."""
import twinnet as tn


class Paced(tn.Application):
    def __init__(self, every_s=0.01, fail=False):
        self.every_s, self.fail, self.answers = every_s, fail, 0

    def started(self):
        self.next_s = self.now_s
        if self.sends:
            self.woken()

    def woken(self):
        if self.fail:
            raise RuntimeError("as it was told")
        self.send(b"how are you?", 400)
        self.next_s += self.every_s
        self.wake_at(self.next_s)

    def received(self, datagram):
        if self.sends:
            self.answers += 1
            if self.answers == 20:
                self.finish()
        else:
            self.send(b"fine", 100)
'''


@pytest.fixture
def paced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[tn.Application]:
    """A class in a module that the lab process can import."""
    (tmp_path / "paced_questions.py").write_text(PACED)
    monkeypatch.syspath_prepend(tmp_path)  # pyright: ignore[reportUnknownMemberType]
    return importlib.import_module("paced_questions").Paced


def asked(lab: tn.Lab, of: type[tn.Application], source: str, sink: str, **settings: float) -> FlowReport:
    flow = lab.start(tn.apps.own(source, sink, of=of, settings=settings, duration="20 s"))
    assert lab.wait([flow], until=f"{lab.now() + 25:.3f} s")
    return flow.report()


@pytest.mark.parametrize("model", [False, True], ids=["real hosts", "model hosts"])
def test_the_same_class_runs_on_both_clocks(paced: type[tn.Application], model: bool) -> None:
    net = tn.Network()
    s1 = net.switch("s1")
    net.link(net.host("h1", model=model), s1, rate="100 Mbit")
    net.link(s1, net.host("h2", model=model), rate="100 Mbit", delay="5 ms")
    with net.emulate() as lab:
        on_the_wall = asked(lab, paced, "h1", "h2", every_s=0.02)
    with net.simulate() as lab:
        virtual = asked(lab, paced, "h1", "h2", every_s=0.02)
    # The 20th answer ends it. How many more were asked by then is the machine's business on the wall clock.
    assert 20 <= virtual.packets <= 22 and on_the_wall.packets >= 20 and on_the_wall.errors == ()
    for report in (virtual, on_the_wall):
        assert report.bytes == report.packets * 400
        assert report.delay is not None and report.delay.min >= 4.9e9


def test_its_mistakes_are_told_in_the_report_on_the_wall_clock(paced: type[tn.Application]) -> None:
    with line().emulate() as lab:
        flow = lab.start(tn.apps.own("h1", "h2", of=paced, settings={"fail": True}, duration="5 s"))
        assert lab.wait([flow], until=f"{lab.now() + 10:.3f} s")
        said = [error for app in flow.reports() for row in app.flows for error in row.errors]
    assert any(
        re.match(r"Paced failed: RuntimeError: as it was told \(.*paced_questions.py, line 16\)", one) for one in said
    )


def test_what_the_lab_process_cannot_run_is_refused(paced: type[tn.Application]) -> None:
    class Here(tn.Application):
        pass

    Lost = type("Lost", (tn.Application,), {"__module__": "no_such_module"})
    with line().emulate() as lab:
        with pytest.raises(NotAvailable, match="put the class at the top of a file of its own"):
            lab.start(tn.apps.own("h1", "h2", of=Here, duration="1 s"))
        with pytest.raises(LabError, match="no_such_module") as refused:
            lab.start(tn.apps.own("h1", "h2", of=Lost, duration="1 s"))
        assert refused.value.name == "OwnCodeFailed"


ASKING = '''\
"""Asks for a file by a connection of its own, again and again, and ends after the last byte of the last one."""
import twinnet as tn


class Asking(tn.Application):
    def __init__(self, files=3, length=50_000, fail=False):
        self.files, self.length, self.fail, self.got, self.took_s = files, length, fail, 0, []

    def started(self):
        if self.sends:
            self.begin()

    def begin(self):
        self.asked_s, self.got = self.now_s, 0
        self.connect().write(b"%d\\n" % self.length, length=1000)

    def read(self, connection, data):
        if self.fail:
            raise RuntimeError("as it was told")
        self.got += len(data)
        if not self.sends and self.got % 1000 == 0:
            connection.write(length=self.length)
            connection.finish()

    def ended(self, connection):
        connection.finish()
        if self.sends:
            assert self.got == self.length, self.got
            self.took_s.append(self.now_s - self.asked_s)
            if len(self.took_s) == self.files:
                self.finish()
            else:
                self.begin()
'''


@pytest.fixture
def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[tn.Application]:
    (tmp_path / "asking_for_files.py").write_text(ASKING)
    monkeypatch.syspath_prepend(tmp_path)  # pyright: ignore[reportUnknownMemberType]
    return importlib.import_module("asking_for_files").Asking


@pytest.mark.parametrize("model", [False, True], ids=["real hosts", "model hosts"])
def test_the_same_class_connects_on_both_clocks(asking: type[tn.Application], model: bool) -> None:
    net = tn.Network()
    s1 = net.switch("s1")
    net.link(net.host("h1", model=model), s1, rate="100 Mbit")
    net.link(s1, net.host("h2", model=model), rate="100 Mbit", delay="5 ms")
    for lab_of in (net.simulate, net.emulate):
        with lab_of() as lab:
            flow = lab.start(tn.apps.own_tcp("h1", "h2", of=asking, duration="20 s", congestion_control="reno"))
            assert lab.wait([flow], until=f"{lab.now() + 25:.3f} s")
            source, sink = flow.reports()
            sent, arrived = source.flows[0], sink.flows[0]
        # Each of the three questions has 1000 bytes, and 12 that announce the connection.
        assert (sent.bytes, arrived.bytes, arrived.protocol) == (3 * 1012, 3 * 1012, "tcp")
        assert sent.errors == () and len(sink.flows) == 1
        # A handshake, the question and the answer take a round trip of 10 ms each, at least, before the last byte.
        assert sent.duration_s > 3 * 0.02


class Bulk(tn.Application):
    """Writes whenever there is room."""

    def started(self) -> None:
        if self.sends:
            self.connect()

    def connected(self, connection: Connection) -> None:
        if self.sends:
            connection.write(b"x" * 1000)

    def drained(self, connection: Connection) -> None:
        connection.write(length=100_000)


def test_writing_whenever_there_is_room_is_as_fast_as_built_in_tcp() -> None:
    def carried(start: Callable[[], Flow]) -> int:
        with line().simulate(seed=1) as lab:
            flow = lab.start(start())
            lab.wait([flow], until="30 s")
            report = flow.report()
            assert report.bytes is not None
            return report.bytes

    own = carried(lambda: tn.apps.own_tcp("h1", "h2", of=Bulk, duration="5 s"))
    built_in = carried(lambda: tn.apps.tcp_bulk("h1", "h2", duration="5 s"))
    assert own == pytest.approx(built_in, rel=0.02)


class Refused(tn.Application):
    def __init__(self, how: str = "") -> None:
        self.how = how

    def started(self) -> None:
        if self.how == "datagram":
            self.send(b"x")
        if self.how == "connect" or (self.sends and self.how == "late"):
            connection = self.connect()
            connection.finish()
            connection.write(b"x")

    def lost(self, connection: Connection, why: str) -> None:
        self.connect()


@pytest.mark.parametrize(
    ("make", "how", "said"),
    [
        (tn.apps.own_tcp, "datagram", "start it as own, or write to a connection"),
        (tn.apps.own_tcp, "connect", "connect where self.sends is true"),
        (tn.apps.own, "connect", "start it as own_tcp"),
        (tn.apps.own_tcp, "late", "write first"),
    ],
)
def test_what_the_other_transport_does_is_refused(make: Callable[..., Flow], how: str, said: str) -> None:
    with line().simulate(seed=1) as lab, pytest.raises(LabError, match=said):
        lab.wait([lab.start(make("h1", "h2", of=Refused, settings={"how": how}, duration="1 s"))])


def test_mistakes_of_connections_are_told_in_the_report_on_the_wall_clock(asking: type[tn.Application]) -> None:
    with line().emulate() as lab:
        flow = lab.start(tn.apps.own_tcp("h1", "h2", of=asking, settings={"fail": True}, duration="2 s"))
        assert lab.wait([flow], until=f"{lab.now() + 40:.3f} s")
        said = [error for app in flow.reports() for row in app.flows for error in row.errors]
    assert any(re.match(r"Asking failed: RuntimeError: as it was told", one) for one in said), said


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


FILES = STUDY.replace("app: own, ", "app: own_tcp, ").replace("  delay: {of: delay}\n  loss: {of: loss}\n", "")
WRITES = MINE.replace("self.woken()", "self.connection = self.connect()\n            self.woken()").replace(
    'self.send(b"", 1000)', "self.connection.write(length=1000)"
)


def test_a_study_measures_its_connections_as_tcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(WRITES)
    (tmp_path / "study.yaml").write_text(FILES)
    assert command_line(["run", "study.yaml", "--out", "out"]) == 0
    results = tn.results.load("out/own-application")
    for pace, expected in (("slow", 2 * 10 * 8000), ("fast", 2 * 100 * 8000)):
        assert results.value(f"mean(throughput, pace={pace})").estimate == pytest.approx(expected, rel=0.03)
    for of, said in (("delay", "it is of udp"), ("congestion_window, interval: 100 ms", "by 'app: tcp' alone")):
        (tmp_path / "study.yaml").write_text(FILES.replace("{of: throughput, interval: 1 s}", f"{{of: {of}}}"))
        assert command_line(["run", "study.yaml", "--dry-run"]) != 0
        assert said in capsys.readouterr().err


@pytest.mark.quiet
def test_a_study_runs_it_on_the_wall_clock_and_a_run_fails_when_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY)
    wall = ["run", "study.yaml", "--clock", "wall", "--set", "levels.pace=fast", "--no-report", "--out"]
    (tmp_path / "mine.py").write_text(MINE)
    assert command_line([*wall, "well"]) == 0
    # A thousand bytes each 10 ms, from two hosts; how even it was is the machine's business.
    measured = tn.results.load("well/own-application").value("mean(throughput, pace=fast)").estimate
    assert measured == pytest.approx(2 * 100 * 8000, rel=0.2)
    (tmp_path / "mine.py").write_text(MINE.replace('self.send(b"", 1000)', 'raise RuntimeError("as it was told")'))
    capsys.readouterr()
    assert command_line([*wall, "ill"]) != 0
    told = capsys.readouterr()
    assert "mine:Ticks failed: RuntimeError: as it was told (mine.py, line 13)" in told.out + told.err
