"""Controllers that network and study files name."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import polars
import pytest
import twinnet as tn
from labs_here import needs_a_lab
from twinnet.cli import run as command_line
from twinnet.errors import BadValue, NotAvailable
from twinnet.network.topology_file import parse_network
from twinnet.yaml_source import SourceError

CONTROLLERS = Path(__file__).parents[1] / "support" / "controllers"
STUDY = """\
study: controlled
title: What a controller costs
question: How long does the first answer take?
network:
  controller: {controller}
  hosts: {{h1: , h2: }}
  switches: {{s1: {{fail_mode: secure}}}}
  links:
    - {{between: [h1, s1], delay: 1 ms}}
    - {{between: [h2, s1], delay: 1 ms}}
traffic:
  - {{name: probe, app: ping, from: [h1], to: h2, count: 4, interval: 100 ms}}
measurements:
  round_trip: {{of: rtt}}
repetitions: 2
clock: {clock}
"""


def network(controller: str) -> tn.Network:
    text = f"""\
controller: {controller}
hosts: {{h1: , h2: }}
switches: {{s1: {{fail_mode: secure}}}}
links:
  - between: [h1, s1]
  - between: [h2, s1]
"""
    return parse_network(text, "net.yaml")


@pytest.mark.parametrize("name", ["learning", "shortest-path", "tree-flooding", "own_controller:Flooding"])
def test_an_app_is_named_and_made_when_the_lab_starts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(CONTROLLERS)
    with network(f"{{app: '{name}', delay: 1 ms}}").simulate() as lab:
        lab.wait_for_controllers()
        ping = lab.start(tn.apps.ping("h1", "h2", count=2))
        lab.run_until("5 s")
        assert ping.report().lost == 0
        assert lab.switch("s1").controller_state[0]["target"] == f"app:{name}"


def test_an_app_in_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flooding_here.py").write_text((CONTROLLERS / "own_controller.py").read_text())
    with network("{app: 'flooding_here:Flooding'}").simulate() as lab:
        lab.wait_for_controllers()
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize(
    ("controller", "message"),
    [
        ("{app: lerning}", "there is no controller 'lerning'.*did you mean 'learning'"),
        ("{app: learning, run: 'true'}", "give app, or connect and run"),
        ("{app: learning, delay: 5}", "no unit"),
        ("{app: learning, delay: 5 h}", "out of range"),
        ("{connect: '127.0.0.1:6653'}", "names no controller"),
        ("{patience: 1 ms}", "no longer than the quiet"),
        ("{quite: 5 ms}", "quite"),
    ],
)
def test_mistakes_are_told_with_their_place(controller: str, message: str) -> None:
    with pytest.raises(SourceError, match=rf"(?s)net.yaml:1.*{message}"):
        network(controller)


def test_no_code_is_run_before_a_lab_starts_and_what_is_missing_is_told_then() -> None:
    missing = network("{app: 'no_such_module:Controller'}")
    with pytest.raises(NotAvailable, match="current folder"):
        missing.simulate().open()


def test_a_class_that_is_no_controller_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(CONTROLLERS)
    with pytest.raises(BadValue, match="is no controller"):
        network("{app: 'own_controller:NoController'}").simulate().open()


def run_study(tmp_path: Path, controller: str, clock: str, *words: str) -> tuple[int, Path]:
    tmp_path.mkdir(exist_ok=True)
    file, results = tmp_path / "study.yaml", tmp_path / "results"
    file.write_text(STUDY.format(controller=controller, clock=clock))
    return command_line(["run", str(file), "--out", str(results), "--no-report", *words]), results


def longest_round_trips_ms(results: Path) -> list[float]:
    tables = [polars.read_parquet(path) for path in results.glob("controlled/*/flows.parquet")]
    return [float(table["rtt_max_ms"].drop_nulls().item()) for table in tables]


def test_a_study_on_the_virtual_clock_waits_for_its_controller_and_repeats_exactly(tmp_path: Path) -> None:
    status, results = run_study(tmp_path, "{app: learning, delay: 5 ms}", "virtual")
    assert status == 0
    # 4 ms each for ARP and ping, and three questions of 10 ms each.
    assert longest_round_trips_ms(results) == pytest.approx([38.0, 38.0])
    hashes = sorted(json.loads(one.read_text())["trace_hash"] for one in results.glob("controlled/*/run.json"))
    assert run_study(tmp_path / "again", "{app: learning, delay: 5 ms}", "virtual")[0] == 0
    again = (tmp_path / "again").glob("results/controlled/*/run.json")
    assert sorted(json.loads(one.read_text())["trace_hash"] for one in again) == hashes and len(hashes) == 2


def test_a_study_runs_with_a_controller_that_is_a_program(tmp_path: Path) -> None:
    run = json.dumps([sys.executable, str(CONTROLLERS / "small_learning_13.py"), "{port}"])
    controller = f"{{run: {run}, quiet: 0 s, delay: 1 ms}}"
    for clock, words in (("virtual", ["--jobs", "2"]), ("wall", [])):
        status, _ = run_study(tmp_path / clock, controller, clock, *words)
        assert status == 0


def test_a_run_that_has_lost_its_controller_has_failed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = json.dumps([sys.executable, str(CONTROLLERS / "small_learning_13.py"), "{port}", "die"])
    status, _ = run_study(tmp_path, f"{{run: {run}, quiet: 0 s}}", "virtual")
    assert status == 1
    assert "lost its controller" in "".join(capfd.readouterr())


@pytest.mark.parametrize("clock", ["virtual", pytest.param("wall", marks=needs_a_lab)])
def test_a_run_ends_at_once_when_its_controllers_program_ends(
    clock: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = json.dumps([sys.executable, str(CONTROLLERS / "small_learning_13.py"), "{port}", "die"])
    began_s = time.monotonic()
    endless = ["--set", "traffic.probe.count=36000", "--set", "repetitions=1"]
    status, _ = run_study(tmp_path, f"{{run: {run}, quiet: 0 s}}", clock, *endless)
    assert status == 1
    told = " ".join("".join(capfd.readouterr()).split())
    assert "has ended with status 1; its last output: it was told to die" in told
    # The pings would go on for an hour; half a minute allows for a slow start on a busy machine.
    assert time.monotonic() - began_s < 30
