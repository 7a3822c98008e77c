"""Congestion controls in Python, in model hosts on the virtual clock: by class, and named in a study."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import twinnet as tn
from study_networks import one_switch
from twinnet.cli import run as command_line
from twinnet.errors import BadValue, LabError, NotAvailable
from twinnet.lab import Lab


def line(loss: str | None = None, queue: str = "100 kB") -> tn.Network:
    net = tn.Network()
    s1 = net.switch("s1")
    net.link(net.host("h1", model=True), s1, rate="1 Gbit")
    net.link(s1, net.host("h2", model=True), rate="20 Mbit", delay="20 ms", queue=tn.qos.Fifo(limit=queue), loss=loss)
    return net


class Reno(tn.CongestionControl):
    """RFC 5681, as an example has it."""

    def __init__(self, initial_window: int, seed: int) -> None:
        super().__init__(initial_window, seed)
        self.threshold = None

    def acknowledged(self, told: object) -> None:
        if told.in_recovery or not told.window_limited:  # type: ignore[attr-defined]
            return
        for _ in range(told.acknowledged):  # type: ignore[attr-defined]
            slow_start = self.threshold is None or self.window < self.threshold
            self.window += 1 if slow_start else 1 / self.window

    def congested(self, why: str, in_flight: int, now_s: float) -> None:
        self.threshold = max(self.window / 2, 2)
        self.window = 1 if why == "timeout" else self.threshold


class Fixed(tn.CongestionControl):
    """Ten segments, whatever happens."""

    def established(self, round_trip_s: float | None, segment_bytes: int, now_s: float) -> None:
        self.window = 10


class Paced(tn.CongestionControl):
    once_a_round_trip = True

    def __init__(self, initial_window: int, seed: int) -> None:
        super().__init__(initial_window, seed)
        self.window, self.pacing_bps, self.calls = 1000, 5e6, 0


def carried(control: type[tn.CongestionControl] | str, net: tn.Network | None = None, seed: int = 1) -> float:
    with (net or line()).simulate(seed=seed) as lab:
        flow = lab.start(tn.apps.tcp_bulk("h1", "h2", duration="10 s", congestion_control=control))
        lab.wait([flow])
        return flow.report().throughput_bps / 1e6


def test_a_window_that_stands_still_gives_one_window_a_round_trip() -> None:
    # 10 segments of 1448 B in 40 ms, and the 0.6 ms that a segment takes on the line: 2.85 Mbit/s.
    net = line()
    assert carried(Fixed, net) == pytest.approx(10 * 1448 * 8 / 0.0406 / 1e6, rel=0.02)


def test_a_pacing_rate_is_kept_whatever_the_window() -> None:
    # 5 Mbit/s of the network layer are 1448 of 1500 bytes of payload.
    assert carried(Paced) == pytest.approx(5 * 1448 / 1500, rel=0.02)


def test_reno_in_python_does_what_reno_in_rust_does() -> None:
    for net in (line(queue="60 kB"), line(loss="0.1 %")):
        ours, own = carried("reno", net), carried(Reno, net)
        # The own one has no proportional rate reduction, so that windows differ during a repair.
        assert own == pytest.approx(ours, rel=0.15)
        assert own > 2


def test_the_same_seed_does_the_same() -> None:
    def trace() -> str:
        with line(loss="1 %").simulate(seed=3) as lab:
            lab.start(tn.apps.tcp_bulk("h1", "h2", duration="5 s", congestion_control=Reno))
            lab.run_until("6 s")
            return str(lab.fidelity().raw["trace_hash"])

    assert trace() == trace()


def test_once_a_round_trip_it_is_told_the_sum_of_all() -> None:
    told: dict[bool, list[int]] = {True: [], False: []}

    def of(each_round: bool) -> type[tn.CongestionControl]:
        class Counts(tn.CongestionControl):
            once_a_round_trip = each_round

            def established(self, round_trip_s: float | None, segment_bytes: int, now_s: float) -> None:
                assert round_trip_s is not None and 0.04 < round_trip_s < 0.09 and segment_bytes == 1448

            def acknowledged(self, ack: object) -> None:
                told[each_round].append(ack.delivered)  # type: ignore[attr-defined]

        return Counts

    assert carried(of(True)) == carried(of(False))
    # 10 segments a round trip of 40.6 ms for 10 s; the last round's may be on their way.
    assert abs(sum(told[True]) - sum(told[False])) <= 10
    assert len(told[True]) == pytest.approx(10 / 0.0406, rel=0.03)
    assert len(told[False]) > 3 * len(told[True])


def failing(what: Callable[[tn.CongestionControl], None]) -> type[tn.CongestionControl]:
    class Fails(tn.CongestionControl):
        def acknowledged(self, told: object) -> None:
            what(self)

    return Fails


def test_what_it_raises_ends_the_wait_with_its_place_and_leaves_the_lab_usable() -> None:
    with line().simulate(seed=1) as lab:
        flow = lab.start(
            tn.apps.tcp_bulk("h1", "h2", duration="90 s", congestion_control=failing(lambda _: print(1 // 0)))
        )
        with pytest.raises(LabError, match=r"Fails-\w+ failed: ZeroDivisionError.*test_own_congestion.*line \d+"):
            lab.wait([flow])
        assert lab.now_ps() < 9 * 10**12
        lab.wait([flow])


def test_a_decision_that_is_none_is_told() -> None:
    for value, said in ((0.0, "window is 0"), (float("nan"), "window is"), ("many", "TypeError")):
        with pytest.raises(LabError, match=said):
            carried(failing(lambda control, value=value: setattr(control, "window", value)))
    with pytest.raises(LabError, match=r"pacing_bps is -1"):
        carried(failing(lambda control: setattr(control, "pacing_bps", -1.0)))


def test_it_cannot_ask_the_lab_that_waits_for_it() -> None:
    labs: list[Lab] = []
    with line().simulate(seed=1) as lab:
        labs.append(lab)
        lab.start(
            tn.apps.tcp_bulk("h1", "h2", duration="5 s", congestion_control=failing(lambda _: labs[0].run_until("9 s")))
        )
        with pytest.raises(LabError, match="the lab waits for the code that asks it"):
            lab.run_until("6 s")


def test_what_is_no_class_of_ours_is_refused_with_what_to_write() -> None:
    with pytest.raises(BadValue, match=r"tn\.CongestionControl"):
        tn.apps.tcp_bulk("h1", "h2", duration="5 s", congestion_control=dict)  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="such as cubic"):
        tn.apps.tcp_bulk("h1", "h2", duration="5 s", congestion_control="mine:Control")


STUDY = """\
study: own-control
title: A congestion control of our own
question: Does it leave the queue empty?
parameters:
  control: cubic
NETWORK
factors:
  by:
    levels:
      own: {set: {control: "mine:Four"}}
      usual: {set: {control: reno}}
traffic:
  - {name: bulk, app: tcp, from: [h1], to: h2, port: 5002, duration: 3 s, congestion_control: "${control}"}
measurements:
  throughput: {of: throughput, interval: 1 s}
  waiting: {of: backlog, ports: [s1 to h2], interval: 100 ms}
repetitions: 1
clock: virtual
""".replace("NETWORK\n", one_switch("rate: 1 Gbit", "rate: 10 Mbit, delay: 10 ms"))
MINE = """\
import twinnet as tn


class Four(tn.CongestionControl):
    def established(self, round_trip_s, segment_bytes, now_s):
        self.window = 4


helper = 3
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    return path


def test_a_study_names_it_as_it_names_metrics(study: Path) -> None:
    assert command_line(["run", str(study), "--out", "out", "--no-report"]) == 0
    results = tn.results.load("out/own-control")
    own = results.value("mean(throughput, by=own)").estimate
    # 4 segments in 20 ms, and the 2.5 ms that two of them, which are acknowledged together, take on the line.
    assert own == pytest.approx(4 * 1448 * 8 / 0.0225, rel=0.03)
    assert results.value("mean(throughput, by=usual)").estimate > 2 * own
    assert results.value("max(waiting, by=own)").estimate < 6100
    assert (study.parent / "out" / "own-control" / "mine.py").read_text() == MINE


def test_another_source_makes_other_runs(study: Path) -> None:
    from twinnet.study.plan import plan_study
    from twinnet.study.resolution import load_study

    first = [run.id for run in plan_study(load_study(study))]
    (study.parent / "mine.py").write_text(MINE.replace("= 4", "= 5"))
    second = [run.id for run in plan_study(load_study(study))]
    assert first[0] != second[0] and first[1] == second[1]


def test_a_study_with_it_is_refused_where_it_cannot_be_and_when_it_is_none(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = study.read_text()
    assert command_line(["run", str(study), "--clock", "wall", "--out", "wall"]) != 0
    assert "--clock virtual" in capsys.readouterr().err
    for wrong, said in (
        ("mine:Fours", "'Four'"),
        ("nowhere:Four", "nowhere"),
        ("mine:helper", "no congestion control"),
    ):
        study.write_text(text.replace("mine:Four", wrong))
        assert command_line(["run", str(study), "--out", "wrong", "--no-report"]) != 0
        told = capsys.readouterr()
        assert said in told.err + told.out


def test_on_the_wall_clock_it_is_refused_by_name() -> None:
    with line().emulate() as lab, pytest.raises(NotAvailable, match="virtual clock"):
        lab.start(tn.apps.tcp_bulk("h1", "h2", duration="1 s", congestion_control=Fixed))
