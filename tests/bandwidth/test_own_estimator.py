"""Estimators of available bandwidth in Python: by class and named in a study, on both clocks."""

from __future__ import annotations

import importlib
import math
import statistics
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

import pytest
import twinnet as tn
from study_networks import one_switch
from twinnet import bandwidth
from twinnet.bandwidth import Heard, Train
from twinnet.cli import run as command_line
from twinnet.errors import BadValue, LabError, NotAvailable
from twinnet.results.bandwidth_report import Bandwidth
from two_switches import Watched, answer_of, cross_traffic, two_switches


class Line(tn.Estimator):
    """TOPP's line (Melander, Björkman, Gunningberg, GLOBECOM 2000): over the available bandwidth A, the rate at which
    trains are sent over the rate at which they arrive is (R + C - A) / C."""

    def __init__(self, trains: int = 40) -> None:
        self.trains = trains

    def probe(self) -> Generator[Train, Heard, None]:
        rates: list[float] = []
        strains: list[float] = []
        for _ in range(self.trains):
            rate_bps = self.random.uniform(0.7, 1) * self.most_rate_bps
            heard = yield self.train(40, rate_bps, idle_s=0.05)
            SEEN.append(heard)
            rates.append(heard.sent_bps)
            strains.append(heard.sent_bps / heard.arrived_bps)
        slope, start = statistics.linear_regression(rates, strains)
        self.capacity_bps = 1 / slope
        self.estimate_bps = (1 - start) / slope
        self.notes = [f"{len(rates)} trains"]


SEEN: list[Heard] = []


def estimate(method: type[tn.Estimator], cross: float = 4, **settings: object) -> tuple[Bandwidth, float]:
    """What it tells of a line of 10 Mbit/s with traffic, and what was available."""
    with two_switches(10).simulate() as lab:
        watched = Watched(lab)
        lab.start(cross_traffic(cross))
        lab.run_until("1 s")
        given = {"most_rate": "20 Mbit", "record": True, **settings}
        told = answer_of(lab, lab.start(bandwidth.bandwidth("h1", "h2", method, **given)))  # type: ignore[arg-type]
        return told, watched.truth(told).available_bps


def test_its_trains_are_sent_and_its_answer_is_that_of_the_report() -> None:
    SEEN.clear()
    told, true_bps = estimate(Line)
    assert (told.method, told.trains, told.gave_up, told.notes) == ("Line", 40, None, ("40 trains",))
    assert told.estimate_bps == pytest.approx(true_bps, rel=0.1)
    assert told.capacity_bps == pytest.approx(10e6, rel=0.1)
    assert (told.low_bps, told.confidence) == (None, None)
    # What it heard is what is on record, and the trains are those that it asked for.
    first, record = SEEN[0], told.record[0]
    assert first.packet_bytes == 1538 and first.lost == 0
    sent = [one - record["sent_ns"][0] for one in record["sent_ns"]]
    assert list(first.sent_s * 1e9) == pytest.approx(sent, abs=1e-3)
    assert told.rates[0].generated_bps == pytest.approx(first.sent_bps, rel=1e-6)
    assert told.rates[0].received_bps == pytest.approx(first.arrived_bps, rel=1e-6)
    assert min(first.delays_s) == 0 and all(heard.arrived_bps < heard.sent_bps for heard in SEEN)


def test_the_same_seed_draws_the_same_and_settings_are_those_of_its_init() -> None:
    one, again, other = (estimate(Line, settings={"trains": trains})[0] for trains in (5, 5, 6))
    assert (one.trains, other.trains) == (5, 6)
    assert one.record == again.record and one.record[:5] == other.record[:5]


def test_a_budget_that_ends_it_leaves_what_it_knew() -> None:
    class Sure(tn.Estimator):
        def probe(self) -> Generator[Train, Heard, None]:
            for count in range(1, 100):
                heard = yield self.train(10, 5e6)
                self.estimate_bps, self.low_bps, self.confidence = heard.arrived_bps, float(count), 0.95

    told, _ = estimate(Sure, budget="100 kB")
    assert told.estimate_bps is not None and told.low_bps == told.trains < 10
    assert told.gave_up == "the next train would exceed the budget of bytes"


def heard_of(arrived_ns: list[int | None]) -> Heard:
    """A train of packets that were sent 1 ms apart, by a clock that shows another time."""
    packets = [{"at_ns": place * 1_000_000, "payload": 1000} for place in range(len(arrived_ns))]
    sent_ns = [10**18 + place * 1_000_000 for place in range(len(arrived_ns))]
    return Heard.of({"plan": {"packets": packets}, "sent_ns": sent_ns, "arrived_ns": arrived_ns}, 66)


def test_times_of_two_clocks_keep_their_nanoseconds_and_lost_packets_their_places() -> None:
    heard = heard_of([7, None, 2_000_008, 3_000_107])
    assert heard.lost == 1 and math.isnan(heard.arrived_s[1]) and math.isnan(heard.delays_s[1])
    assert [heard.delays_s[place] for place in (0, 2, 3)] == [0, 1e-9, 1e-7]
    assert heard.arrived_bps == pytest.approx(2 * 1066 * 8 / 3.0001e-3, rel=1e-9)
    assert heard.sent_bps == pytest.approx(3 * 1066 * 8 / 3e-3, rel=1e-9)
    nothing = heard_of([None, None])
    assert nothing.lost == 2 and math.isnan(nothing.arrived_bps)


def test_trains_are_checked_before_they_are_sent() -> None:
    estimator = tn.Estimator()
    estimator.most_rate_bps = 1e6
    burst = estimator.train(3, packet_bytes=100, idle_s=0.2)
    assert burst.to_spec() == {"plan": {"packets": [{"at_ns": 0, "payload": 34}] * 3}, "idle_ns": 2e8}
    apart = estimator.train(3, 1e6, packet_bytes=1000).to_spec()["plan"]["packets"]
    assert [one["at_ns"] for one in apart] == [0, 8_000_000, 16_000_000]
    for wrong in (
        lambda: estimator.train(3, 2e6),
        lambda: estimator.train(3, packet_bytes=2000),
        lambda: estimator.train(3, packet_bytes=50),
        lambda: estimator.train(1025).to_spec(),
        lambda: estimator.train_at([0, 2, 1]).to_spec(),
        lambda: estimator.train_at([0, math.nan]).to_spec(),
    ):
        with pytest.raises(BadValue):
            wrong()


class Wrong(tn.Estimator):
    def __init__(self, how: str) -> None:
        self.how = how

    def probe(self) -> Generator[Train, Heard, None]:
        if self.how == "raise":
            raise KeyError("nothing")
        yield self.train(2) if self.how != "number" else 3  # type: ignore[misc]
        self.estimate_bps = math.inf


@pytest.mark.parametrize(("how", "said"), [("raise", "KeyError"), ("number", "yields 3"), ("", "estimate_bps is inf")])
def test_its_mistakes_end_the_wait_and_are_told(how: str, said: str) -> None:
    with pytest.raises(LabError, match=said):
        estimate(Wrong, settings={"how": how})


def test_one_without_an_answer_says_so() -> None:
    class Silent(tn.Estimator):
        def probe(self) -> Generator[Train, Heard, None]:
            yield self.train(2)

    told, _ = estimate(Silent)
    assert (told.estimate_bps, told.gave_up) == (None, "it has found no estimate")


def test_what_belongs_to_built_in_methods_is_refused() -> None:
    for given, said in (({"capacity": "10 Mbit"}, "does not use a capacity"), ({"preset": "published"}, "no preset")):
        with pytest.raises(BadValue, match=said):
            bandwidth.bandwidth("h1", "h2", Line, **given)  # type: ignore[arg-type]
    for of in ("mine:Line", dict, None):
        with pytest.raises(BadValue, match=r"tn\.Estimator"):
            bandwidth.bandwidth("h1", "h2", of)  # type: ignore[arg-type]


def test_recorded_trains_go_through_it_too() -> None:
    told, _ = estimate(Line)
    again = bandwidth.replay(told.record, Line, most_rate_bps=20e6)
    assert (again.method, again.estimate_bps) == ("Line", told.estimate_bps)
    with pytest.raises(BadValue, match="KeyError"):
        bandwidth.replay(told.record, Wrong, settings={"how": "raise"})


MINE = '''\
"""Trains at half of what may be sent."""
import twinnet as tn


class Half(tn.Estimator):
    def __init__(self, trains=10, fail=False):
        self.trains, self.fail = trains, fail

    def probe(self):
        for _ in range(self.trains):
            heard = yield self.train(10, self.most_rate_bps / 2, packet_bytes=500, idle_s=0.02)
            if self.fail:
                raise RuntimeError("as it was told")
            self.estimate_bps = min(heard.sent_bps, heard.arrived_bps)
'''


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module that the lab process can import."""
    (tmp_path / "half_of_it.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)  # pyright: ignore[reportUnknownMemberType]
    return importlib.import_module("half_of_it")


def on_the_wall_clock(method: type[tn.Estimator], **settings: object) -> Bandwidth:
    with two_switches(10).emulate() as lab:
        probes = bandwidth.bandwidth("h1", "h2", method, most_rate="4 Mbit", settings=settings, duration="20 s")
        handle = lab.start(probes)
        assert lab.wait([handle], until=f"{lab.now() + 30:.3f} s")
        told = handle.report().bandwidth
        assert told is not None
        return told


@pytest.mark.quiet
@pytest.mark.judged
def test_the_same_class_estimates_on_the_wall_clock(mine: ModuleType) -> None:
    told = on_the_wall_clock(mine.Half)
    assert (told.method, told.trains, told.gave_up) == ("Half", 10, None)
    assert told.estimate_bps == pytest.approx(2e6, rel=0.2)


def test_its_mistakes_are_told_in_the_report_on_the_wall_clock(mine: ModuleType) -> None:
    told = on_the_wall_clock(mine.Half, fail=True)
    assert told.estimate_bps is None and told.trains == 1
    assert told.gave_up is not None and "Half failed: RuntimeError: as it was told" in told.gave_up
    assert "half_of_it.py, line 13" in told.gave_up


def test_a_class_that_the_lab_process_cannot_import_is_refused_with_what_to_do() -> None:
    class Here(tn.Estimator):
        pass

    with two_switches(10).emulate() as lab, pytest.raises(NotAvailable, match="put the class at the top of a file"):
        lab.start(bandwidth.bandwidth("h1", "h2", Here))


STUDY = """\
study: own-estimator
title: An estimator of our own
question: Is it as good as hybrid?
answer: "Half errs by {mean(error, method=half)}, hybrid by {mean(error, method=hybrid)}."
parameters:
  method: hybrid
NETWORK
factors:
  method:
    levels:
      hybrid: {set: {method: hybrid}}
      half: {set: {method: "mine:Half"}}
traffic:
  - {name: probes, app: bandwidth, method: "${method}", from: [h1], to: h2, most_rate: 16 Mbit}
measurements:
  estimate: {of: available_bandwidth}
  error: {of: available_bandwidth_error, ports: [s1 to h2]}
statements:
  - {id: worse, text: Half is further off., check: "mean(error, method=half) < mean(error, method=hybrid) - 0.1"}
repetitions: 1
clock: virtual
""".replace("NETWORK\n", one_switch("rate: 100 Mbit", "rate: 10 Mbit"))


def test_a_study_names_it_and_tells_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "study.yaml").write_text(STUDY)
    assert command_line(["run", "study.yaml", "--out", "out"]) == 0
    folder = tmp_path / "out" / "own-estimator"
    results = tn.results.load(folder)
    assert results.value("mean(estimate, method=half)").estimate == pytest.approx(8e6, rel=0.01)
    assert results.value("mean(error, method=half)").estimate == pytest.approx(-0.2, abs=0.02)
    assert (folder / "mine.py").read_text() == MINE
    page = (folder / "report" / "report.html").read_text()
    assert "the own estimator mine:Half, mine.py with the SHA-256" in page
    before = set(folder.glob("*/run.json"))
    # A changed file makes other runs, of that level alone.
    (tmp_path / "mine.py").write_text(MINE.replace("500", "600"))
    assert command_line(["run", "study.yaml", "--out", "out", "--no-report"]) == 0
    assert len(set(folder.glob("*/run.json")) - before) == 1 and len(before) == 2


def test_a_study_with_a_class_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    for wrong, said in (("mine:Halve", "'Half'"), ("Half", "module:Class"), ("other:Half", "no module 'other'")):
        (tmp_path / "study.yaml").write_text(STUDY.replace("mine:Half", wrong))
        assert command_line(["run", "study.yaml", "--out", "out"]) != 0
        assert said in capsys.readouterr().err
