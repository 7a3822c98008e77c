"""Metrics, estimators, applications, congestion controls and queue disciplines of installed packages have names in
studies."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import twinnet as tn
from click.testing import CliRunner
from study_networks import one_switch
from twinnet import own_modules
from twinnet.cli import run as command_line
from twinnet.cli.abw_command import abw
from twinnet.study.named_code import named_code, own_disciplines, own_name
from twinnet.study.resolution import load_study

CODE = """\
import twinnet as tn


def packets(run):
    return run.flows["packets"].max()


class Ticks(tn.Application):
    def started(self):
        if self.sends:
            self.woken()

    def woken(self):
        self.send(b"", 1000)
        self.wake_in(0.1)


class Half(tn.Estimator):
    def probe(self):
        heard = yield self.train(10, self.most_rate_bps / 2)
        self.estimate_bps = heard.arrived_bps


class Fixed(tn.CongestionControl):
    def __init__(self, initial_window, seed):
        super().__init__(initial_window, seed)
        self.window = 4


class Never(tn.qos.Discipline):
    def arrived(self, frame):
        if frame.dscp == 8:
            self.drop(frame)

    def next(self):
        return next(iter(self.waiting), None)
"""
POINTS = """\
[twinnet.metrics]
most-packets = my_code.code:packets
delay = my_code.code:packets

[twinnet.applications]
ticks = my_code.code:Ticks

[twinnet.estimators]
half = my_code.code:Half
hybrid = my_code.code:Half

[twinnet.congestion_controls]
fixed = my_code.code:Fixed
cubic = my_code.code:Fixed

[twinnet.disciplines]
never-8 = my_code.code:Never
"""
STUDY = """\
study: of-a-package
title: All of a package
question: Does it run?
NETWORK
traffic:
  - {name: scavenger, app: udp, from: [h1], to: h2, port: 5001, rate: 1 Mbit, duration: 1 s, dscp: 8}
  - {name: ticks, app: own, of: ticks, from: [h1], to: h2, port: 5020, duration: 1 s}
  - {name: probes, app: bandwidth, method: half, from: [h1], to: h2, most_rate: 4 Mbit}
  - {name: bulk, app: tcp, from: [h1], to: h2, port: 5002, start: 2 s, duration: 2 s, congestion_control: fixed}
measurements:
  packets: {of: most-packets, only: [ticks]}
  estimate: {of: available_bandwidth}
  throughput: {of: throughput, interval: 100 ms, only: [bulk], during: 2.5 s to 3.5 s}
  delay: {of: delay, only: [ticks]}
  scavenged: {of: throughput, interval: 1 s, only: [scavenger]}
repetitions: 1
clock: virtual
""".replace("NETWORK\n", one_switch("rate: 100 Mbit", "rate: 10 Mbit, delay: 10 ms, queue: {kind: own, of: never-8}"))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "site")  # pyright: ignore[reportUnknownMemberType]
    install(tmp_path / "site")


def install(site: Path) -> None:
    """Do as pip does with a package."""
    package = site / "my_code"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "code.py").write_text(CODE)
    about = site / "my_code-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-code\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)


def test_names_of_packages_are_known_and_built_in_ones_stay(installed: None) -> None:
    assert named_code("metric") == {"most-packets": "my_code.code:packets"}
    assert named_code("estimator") == {"half": "my_code.code:Half"}
    assert named_code("congestion control") == {"fixed": "my_code.code:Fixed"}
    assert named_code("queue discipline") == {"never-8": "my_code.code:Never"}
    assert own_name("ticks", "application") == "my_code.code:Ticks"
    assert own_name("mine:Ticks", "application") == "mine:Ticks"
    assert own_name("hybrid", "estimator") is own_name("nothing", "metric") is own_name(3, "metric") is None


def test_a_package_that_is_installed_meanwhile_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)  # pyright: ignore[reportUnknownMemberType]
    assert named_code("metric") == {}
    install(tmp_path)
    assert named_code("metric") == {"most-packets": "my_code.code:packets"}
    (tmp_path / "my_code-1.0.dist-info" / "entry_points.txt").unlink()
    (tmp_path / "my_code-1.0.dist-info" / "METADATA").unlink()
    (tmp_path / "my_code-1.0.dist-info").rmdir()
    assert named_code("metric") == {}


def test_a_study_uses_them_by_their_names(installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY)
    assert command_line(["run", "study.yaml", "--out", "out"]) == 0
    results = tn.results.load("out/of-a-package")
    assert results.value("mean(packets)").estimate == 10
    assert results.value("mean(estimate)").estimate == pytest.approx(2e6, rel=0.05)
    # Four segments of 1448 bytes in a round trip of 20 ms and that of two on the line.
    assert results.value("mean(throughput)").estimate == pytest.approx(4 * 1448 * 8 / 0.022, rel=0.1)
    # The discipline drops all of it, and nothing else.
    assert results.value("mean(scavenged)").estimate == 0
    page = (tmp_path / "out" / "of-a-package" / "report" / "report.html").read_text()
    for what in (
        "application my_code.code:Ticks",
        "estimator my_code.code:Half",
        "congestion control my_code.code:Fixed",
    ):
        assert f"the own {what}, " in page


def test_the_command_takes_an_estimator_of_a_package(installed: None) -> None:
    # Nobody listens there: what it says is that it began.
    found = CliRunner().invoke(abw, ["127.0.0.1", "--method", "half", "--port", "9", "--json"])
    assert '"my_code.code:Half"' in found.output, found.output


def test_a_switch_of_its_own_kind_is_no_code_of_yours() -> None:
    specification = load_study("multimedia-delivery").specification
    switches = [one for model in specification.networks.values() for one in model.switches.values() if one is not None]
    assert "own" in {one.kind for one in switches}
    assert own_disciplines(specification) == []


def test_packages_are_read_once_for_a_study_that_names_many_policies(monkeypatch):
    read = []

    def counted(group):
        read.append((group, *sys.path))
        return entry_points(group=group)

    monkeypatch.setattr(own_modules, "entry_points", counted)
    monkeypatch.syspath_prepend("/nowhere")
    assert load_study("qos-policies").checks()
    assert "twinnet.policies" in {group for group, *_ in read}
    assert len(read) == len(set(read)) < 5
