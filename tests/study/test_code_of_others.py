"""To read, plan, show, draw, pack or check what others wrote runs nothing of theirs: a module that leaves a file when
it is run has left none."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import twinnet as tn
from twinnet.cli import run as command_line
from twinnet.own_modules import found_module
from twinnet.study import consent
from twinnet.study.consent import CodeNotRun

MARK = "was-run"
CODE = """\
open({mark!r}, "w").close()
import twinnet as tn
from twinnet.policies import TrafficClass


def longest(run):
    return run.flows["packets"].max()


def policy(network, load):
    return [TrafficClass("all", minimum=0.1)]


class Ticks(tn.Application):
    def started(self):
        if self.sends:
            self.send(b"", 1000)


class Half(tn.Estimator):
    def probe(self):
        heard = yield self.train(10, self.most_rate_bps / 2)
        self.estimate_bps = heard.arrived_bps


class Fixed(tn.CongestionControl):
    def __init__(self, initial_window, seed):
        super().__init__(initial_window, seed)
        self.window = 4


class First(tn.qos.Discipline):
    def next(self):
        return next(iter(self.waiting), None)


class Learning(tn.control.LearningSwitch):
    pass
"""
STUDY = """\
study: theirs
title: A study of somebody else
question: What does it run?
network:
  switches: {s1: }
  hosts: {h1: , h2: }
  links: [{between: [h1, s1], rate: 2 Mbit}, {between: [s1, h2], rate: 2 Mbit}]
traffic:
  - {name: load, app: udp, from: [h1], to: h2, port: 5003, rate: 500 kbit, duration: 200 ms, payload: 500 B}
measurements:
  delay: {of: delay}
  rate: {of: throughput, interval: 100 ms}
  length: {of: queue_length, ports: [s1 to h2], interval: 50 ms}
clock: virtual
repetitions: 2
settle: 100 ms
drain: 100 ms
statements:
  - {id: late, text: It takes time., check: "mean(delay) > 1 us"}
"""
BROUGHT = {
    "a metric": ("measurements:", 'measurements:\n  own: {of: "WHERE:longest", unit: packets}'),
    "a policy": ("traffic:", 'policy: {use: "WHERE:policy"}\ntraffic:'),
    "an application": (
        "traffic:",
        'traffic:\n  - {name: ticks, app: own, of: "WHERE:Ticks", from: [h1], to: h2, port: 6000, duration: 100 ms}',
    ),
    "an estimator": (
        "traffic:",
        "traffic:\n  - {name: free, app: bandwidth, method: \"WHERE:Half\", from: [h1], to: h2, port: 6000}",
    ),
    "a congestion control": (
        "traffic:",
        "traffic:\n  - {name: file, app: tcp, from: [h1], to: h2, port: 6000, duration: 100 ms, "
        'congestion_control: "WHERE:Fixed"}',
    ),
    "a queue discipline": (
        "{between: [s1, h2], rate: 2 Mbit}",
        '{between: [s1, h2], rate: 2 Mbit, queue: {kind: own, of: "WHERE:First"}}',
    ),
    "a controller": ("  links: [", '  controller: {app: "WHERE:Learning"}\n  links: ['),
}  # fmt: skip


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Code of somebody else, in a file beside the study and in a package that is installed, that leaves a mark."""
    mark = tmp_path / MARK
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(consent, "_given", set[str]())
    package = tmp_path / "site" / "theirs_of_this_test"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    (package / "inner.py").write_text(CODE.format(mark=str(mark)))
    (tmp_path / "mine_of_this_test.py").write_text(CODE.format(mark=str(mark)))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site")])

    def has() -> bool:
        for name in [
            name for name in sys.modules if name.startswith(("theirs_of_this", "mine_of_this", "twinnet_own_"))
        ]:
            del sys.modules[name]
        return mark.exists()

    return has


def study_with(tmp_path: Path, what: str, where: str) -> Path:
    old, new = BROUGHT[what]
    assert STUDY.count(old) == 1
    folder = tmp_path / "study"
    folder.mkdir(exist_ok=True)
    (folder / "study.yaml").write_text(STUDY.replace(old, new.replace("WHERE", where)))
    shutil.copy(tmp_path / "mine_of_this_test.py", folder / "mine_of_this_test.py")
    return folder / "study.yaml"


WHERE = ["mine_of_this_test", "theirs_of_this_test.inner"]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("what", BROUGHT)
def test_reading_planning_and_drawing_a_study_runs_nothing(
    tmp_path: Path, ran: Callable[[], bool], what: str, where: str
) -> None:
    study = study_with(tmp_path, what, where)
    for command in (
        ["run", str(study), "--dry-run", "--out", "out"],
        ["run", str(study), "--dry-run", "--json", "--out", "out"],
        ["run", str(study), "--help"],
        ["graph", str(study), "--out", "network.svg"],
        ["schema", "study"],
        ["studies"],
        ["completion", "bash"],
    ):
        assert command_line(command) == 0, command
        assert not ran(), command


@pytest.mark.parametrize("what", BROUGHT)
def test_a_dry_run_names_what_a_study_would_run(
    tmp_path: Path, ran: Callable[[], bool], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    study = study_with(tmp_path, what, "mine_of_this_test")
    capsys.readouterr()
    assert command_line(["run", str(study), "--dry-run", "--json", "--out", "out"]) == 0
    (brought,) = json.loads(capsys.readouterr().out)["brings"]
    digest = hashlib.sha256((tmp_path / "mine_of_this_test.py").read_bytes()).hexdigest()
    file = str(tmp_path / "mine_of_this_test.py") if what == "a policy" else "mine_of_this_test.py"
    assert brought == (
        "the controller mine_of_this_test:Learning" if what == "a controller" else f"{file} (SHA-256 {digest})"
    )
    assert command_line(["run", str(study), "--dry-run", "--out", "out"]) == 0
    assert brought in " ".join(capsys.readouterr().out.split()) and not ran()


@pytest.mark.parametrize("what", BROUGHT)
def test_showing_packing_and_checking_results_of_others_runs_nothing(
    tmp_path: Path, ran: Callable[[], bool], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_with(tmp_path, what, "mine_of_this_test")
    assert command_line(["run", str(study), "--out", "out", "--no-report"]) == 0
    assert ran()
    results = tmp_path / "out" / "theirs"
    assert command_line(["pack", str(results), "--out", "theirs.zip"]) == 0
    # Somebody else, who has never run it.
    (tmp_path / MARK).unlink()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    monkeypatch.setattr(consent, "_given", set[str]())
    evaluates = what == "a metric"
    name = next(path.parent.name for path in results.glob("*/run.json"))
    for command, refused in (
        (["report", str(results)], evaluates),
        (["compare", str(results), str(results)], evaluates),
        (["figure", str(results)], evaluates),
        (["pack", str(results), "--out", "again.zip"], evaluates),
        (["check", "theirs.zip"], False),
        (["live", str(results), "--run", name, "--out", "page.html"], False),
        (["gather", str(results), "--out", "gathered"], False),
    ):
        assert command_line(command) == (2 if refused else 0), command
        assert not ran(), command
    if evaluates:
        with pytest.raises(CodeNotRun, match=r"mine_of_this_test\.py is Python that has never been run here"):
            _ = tn.results.load(results).means
    assert not ran()
    assert command_line(["check", "theirs.zip", "--run-code"]) == 0
    assert ran()


def test_what_a_check_leaves_out_is_told_and_its_files_are_kept_to_be_read(
    tmp_path: Path, ran: Callable[[], bool], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = study_with(tmp_path, "a metric", "mine_of_this_test")
    assert command_line(["run", str(study), "--out", "out", "--no-report"]) == 0
    assert command_line(["pack", "out/theirs", "--out", "theirs.zip"]) == 0
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    monkeypatch.setattr(consent, "_given", set[str]())
    capsys.readouterr()
    assert command_line(["check", "theirs.zip", "--into", "read"]) == 0
    told = capsys.readouterr().out
    assert "mine_of_this_test.py (SHA-256 " in told and "then check with --run-code" in told
    assert "was not evaluated again" in told and told.splitlines()[-1].startswith("Unchanged since it was packed.")
    assert (tmp_path / "read" / "mine_of_this_test.py").read_bytes() == (
        study.parent / "mine_of_this_test.py"
    ).read_bytes()


def test_what_was_run_once_needs_no_word_more(
    tmp_path: Path, ran: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_with(tmp_path, "a metric", "mine_of_this_test")
    assert command_line(["run", str(study), "--out", "out"]) == 0
    # Another process of the same user.
    monkeypatch.setattr(consent, "_given", set[str]())
    assert command_line(["report", "out/theirs"]) == 0
    assert tn.results.load("out/theirs").means.filter(measurement="own").height
    beside = tmp_path / "out" / "theirs" / "mine_of_this_test.py"
    beside.write_text(beside.read_text() + "\n")
    assert command_line(["report", "out/theirs"]) == 2
    assert command_line(["report", "out/theirs", "--run-code"]) == 0
    beside.write_text(beside.read_text() + "\n")
    assert tn.results.load("out/theirs", run_code=True).means.filter(measurement="own").height
    assert ran()


@pytest.mark.parametrize("name", ["theirs_of_this_test", "theirs_of_this_test.inner"])
def test_a_module_is_found_without_running_its_package(ran: Callable[[], bool], name: str) -> None:
    found = found_module(name)
    assert found is not None and found.origin is not None and found.origin.endswith(".py")
    assert not ran()


def test_what_is_nowhere_is_not_found(ran: Callable[[], bool]) -> None:
    for name in ("theirs_of_this_test.none", "none_of_this_test", "theirs_of_this_test.inner.more", "this.x", "sys.x"):
        assert found_module(name) is None
    assert found_module("mine_of_this_test") is None
    here = found_module("mine_of_this_test", also_here=True)
    assert here is not None and here.origin == str(Path.cwd() / "mine_of_this_test.py")
    assert not ran()
