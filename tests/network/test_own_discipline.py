"""Queue disciplines in Python, on the virtual clock: by class, and named in a study."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
import twinnet as tn
from study_networks import one_switch
from twinnet.cli import run as command_line
from twinnet.errors import BadQueue, LabError


class Short(tn.qos.Discipline):
    """A FIFO that drops what comes when it is full."""

    def __init__(self, frames: int = 10) -> None:
        self.frames = frames

    def arrived(self, frame: tn.qos.Waiting) -> None:
        if len(self.waiting) > self.frames:
            self.drop(frame)

    def next(self) -> tn.qos.Waiting | None:
        return next(iter(self.waiting), None)


def line(queue: tn.qos.Queue, rate: str = "10 Mbit") -> tn.Network:
    net = tn.Network()
    s1 = net.switch("s1")
    for name in ("h1", "h3"):
        net.link(net.host(name), s1, rate="1 Gbit")
    net.link(s1, net.host("h2"), rate=rate, queue=queue)
    return net


def told_of(queue: tn.qos.Queue) -> tuple[int, int, float, str]:
    """What arrives of twice what the line carries, what is lost, the mean delay in ms, and the trace."""
    with line(queue).simulate(seed=1) as lab:
        flow = lab.start(tn.apps.udp("h1", "h2", rate="20 Mbit", duration="1 s"), at="10 ms")
        lab.wait([flow])
        lab.run_until("2 s")
        report = flow.report()
        assert report.delay is not None and report.lost is not None
        return report.packets, report.lost, report.delay.mean / 1e9, lab.trace_hash


def test_a_fifo_in_python_does_what_the_built_in_one_does() -> None:
    own = told_of(tn.qos.Own(Short, {"frames": 10}))
    assert own[:3] == told_of(tn.qos.Fifo(limit_frames=10))[:3]
    # The same seed gives the same, and another limit something else.
    assert told_of(tn.qos.Own(Short, {"frames": 10})) == own
    assert told_of(tn.qos.Own(Short, {"frames": 20}))[2] > 1.5 * own[2]


class VoiceFirst(tn.qos.Discipline):
    """What has a DSCP goes first, and the rest waits for a time in which nothing of it came."""

    quiet_s = 0.05

    def begin(self, random: Random) -> None:
        super().begin(random)
        self.last_s = -1.0

    def arrived(self, frame: tn.qos.Waiting) -> None:
        if frame.dscp:
            self.last_s = self.now_s

    def next(self) -> tn.qos.Waiting | None:
        for frame in self.waiting:
            if frame.dscp:
                return frame
        if self.now_s < self.last_s + self.quiet_s:
            self.ask_again_at(self.last_s + self.quiet_s)
            return None
        return next(iter(self.waiting), None)


def test_it_may_let_frames_wait_and_tells_when_it_is_to_be_asked_again() -> None:
    with line(tn.qos.Own(VoiceFirst)).simulate(seed=1) as lab:
        voice = lab.start(tn.apps.udp("h1", "h2", rate="100 kbit", payload="100 B", duration="1 s", dscp=46, port=5001))
        bulk = lab.start(tn.apps.udp("h3", "h2", rate="1 Mbit", duration="1 s", port=5002))
        lab.wait([voice, bulk])
        lab.run_until("3 s")
        first, rest = voice.report(), bulk.report()
    assert first.delay is not None and rest.delay is not None
    # A datagram of voice each 8 ms: the rest goes when voice has been over for 50 ms.
    assert first.delay.max < 2e9 and (first.lost, rest.lost) == (0, 0)
    assert rest.delay.max > 0.9e12


class Marks(tn.qos.Discipline):
    """Marks all that comes when more than ten frames wait."""

    def arrived(self, frame: tn.qos.Waiting) -> None:
        FLOWS.add(frame.flow)
        if len(self.waiting) > 10 and frame.can_be_marked:
            self.mark(frame)

    def next(self) -> tn.qos.Waiting | None:
        return next(iter(self.waiting), None)


FLOWS: set[int] = set()


def test_it_may_mark_frames_and_tells_flows_apart() -> None:
    FLOWS.clear()
    net = tn.Network()
    s1 = net.switch("s1")
    for name, rate in (("h1", "1 Gbit"), ("h3", "1 Gbit"), ("h2", "10 Mbit")):
        host = net.host(name, model=True, sysctls={"net.ipv4.tcp_ecn": 1})
        net.link(s1, host, rate=rate, queue_a=tn.qos.Own(Marks) if name == "h2" else None)
    with net.simulate(seed=1) as lab:
        bulk = [lab.start(tn.apps.tcp_bulk(host, "h2", duration="2 s")) for host in ("h1", "h3")]
        lab.wait(bulk)
        port = next(one for one in lab.ports() if one["port"] == "s1-eth3")
        assert port["counters"]["marked"] > 10 and port["counters"]["dropped_early"] == 0
    assert 2 <= len(FLOWS) <= 5


class Wrong(tn.qos.Discipline):
    def __init__(self, how: str = "") -> None:
        self.how = how

    def next(self) -> tn.qos.Waiting | None:
        if self.how == "raise":
            raise KeyError("nothing")
        if self.how == "past":
            self.ask_again_at(self.now_s)
        return None


@pytest.mark.parametrize(
    ("how", "said"), [("raise", "KeyError"), ("past", "not later than now"), ("", "no frame while some wait")]
)
def test_its_mistakes_end_the_wait_and_are_told(how: str, said: str) -> None:
    with line(tn.qos.Own(Wrong, {"how": how})).simulate(seed=1) as lab:
        flow = lab.start(tn.apps.ping("h1", "h2", count=1))
        with pytest.raises(LabError, match=said):
            lab.wait([flow], until="5 s")


def test_what_cannot_be_is_refused_with_what_to_write() -> None:
    for of in ("mine:Short", dict, None):
        with pytest.raises(BadQueue, match=r"tn\.qos\.Discipline"):
            tn.qos.Own(of)  # type: ignore[arg-type]
    with pytest.raises(LabError, match="virtual clock"), line(tn.qos.Own(Short)).emulate():
        pass


STUDY = """\
study: own-discipline
title: A discipline of our own
question: Is a short queue short?
NETWORK
factors:
  queue:
    levels:
      built-in: {queues: {s1 to h2: {kind: fifo, limit_frames: 10}}}
      own: {queues: {s1 to h2: {kind: own, of: "mine:Short", settings: {frames: 10}}}}
traffic:
  - {name: probe, app: udp, from: [h1], to: h2, port: 5001, rate: 20 Mbit, duration: 500 ms}
measurements:
  delay: {of: delay}
repetitions: 1
clock: virtual
""".replace("NETWORK\n", one_switch("rate: 1 Gbit", "rate: 10 Mbit"))
MINE = """\
import twinnet as tn


class Short(tn.qos.Discipline):
    def __init__(self, frames):
        self.frames = frames

    def arrived(self, frame):
        if len(self.waiting) > self.frames:
            self.drop(frame)

    def next(self):
        return next(iter(self.waiting), None)
"""


def test_a_study_names_it_and_tells_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "study.yaml").write_text(STUDY)
    assert command_line(["run", "study.yaml", "--out", "out"]) == 0
    results = tn.results.load("out/own-discipline")
    own, built_in = (results.value(f"mean(delay, queue={queue})").estimate for queue in ("own", "built-in"))
    assert own == built_in and 0.011 < own < 0.014
    page = (tmp_path / "out" / "own-discipline" / "report" / "report.html").read_text()
    assert "Queues of the kind own are mine:Short, mine.py with the SHA-256" in page


def test_a_study_with_a_class_that_is_not_there_is_refused_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    for wrong, said in (("mine:Shirt", "'Short'"), ("Short", "module:Class")):
        (tmp_path / "study.yaml").write_text(STUDY.replace("mine:Short", wrong))
        assert command_line(["run", "study.yaml", "--out", "out"]) != 0
        assert said in capsys.readouterr().err
