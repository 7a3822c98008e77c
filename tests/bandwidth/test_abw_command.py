"""``twinnet abw`` on the loopback of a namespace of its own, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from twinnet.cli.abw_command import abw

NAMESPACES = ["unshare", "--user", "--map-root-user", "--net"]
TWINNET = Path(sys.executable).with_name("twinnet")


def in_a_namespace(script: str) -> subprocess.CompletedProcess[str]:
    """Run `script` by sh where nobody else is."""
    command = [*NAMESPACES, "sh", "-c", f"ip link set lo up; {script}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def can_have_namespaces() -> bool:
    """Whether this machine permits them."""
    return subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False).returncode == 0


needs_namespaces = pytest.mark.skipif(not can_have_namespaces(), reason="this machine permits no namespaces")


def answer(*arguments: str) -> dict[str, Any]:
    """What ``twinnet abw 127.0.0.1`` prints beside a listener, as JSON."""
    probe = f"{TWINNET} abw 127.0.0.1 {' '.join(arguments)} --json"
    # The prober greets again when its first greeting came before the listener was there; a refusal by ICMP ends it.
    script = f"{TWINNET} abw --listen --duration '20 s' 2>listening & n=$!; "
    script += "for i in $(seq 100); do grep -q Listening listening 2>/dev/null && break; sleep 0.1; done; "
    script += f"{probe}; s=$?; kill $n; wait $n 2>/dev/null >/dev/null; exit $s"
    with_place = f"cd $(mktemp -d) && {script}"
    done = in_a_namespace(with_place)
    told = [line for line in done.stdout.splitlines() if '"client"' in line]
    assert told, (done.stdout, done.stderr)
    return json.loads(told[0])


@pytest.mark.quiet
@needs_namespaces
@pytest.mark.parametrize("method", ["hybrid", "ptr", "pathload"])
def test_a_prober_and_a_listener_understand_each_other_on_real_sockets(method: str) -> None:
    told = answer("--method", method, "--most-rate", "'50 Mbit'", "--duration", "'4 s'", "--record")
    bandwidth = told["bandwidth"]
    assert bandwidth["method"] == method and bandwidth["trains"] > 0
    # How much is lost and how well gaps are kept is the machine's business; that all stamps come back is ours.
    assert len(bandwidth["record"]) == bandwidth["trains"]
    arrived = [one for train in bandwidth["record"] for one in train["arrived_ns"] if one is not None]
    assert arrived and bandwidth["probe_packets"] > 0
    assert "processor" in told and "doubts" in told
    # The loopback interface stamps what it takes. A train is left out where a packet did not go.
    assert bandwidth["kernel_stamped_trains"] >= 0.9 * bandwidth["trains"]
    for train in bandwidth["record"]:
        pairs = zip(train["sent_ns"], train.get("handed_over_ns") or train["sent_ns"], strict=True)
        assert all(left > handed_over - 10_000 for left, handed_over in pairs)


@pytest.mark.quiet
@needs_namespaces
def test_nobody_listening_is_told_at_once_with_the_remedy() -> None:
    begun = time.monotonic()
    done = in_a_namespace(f"{TWINNET} abw 127.0.0.1")
    assert done.returncode == 1
    assert "start twinnet abw --listen there" in done.stdout
    # The kernel's refusal comes back, so nothing is waited for: half of the 16 s that silence takes.
    assert time.monotonic() - begun < 8


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give a host"),
        (["10.0.0.1", "--listen"], "leave HOST out"),
        (["10.0.0.1", "--allow", "10.0.0.2"], "belongs to --listen"),
        (["10.0.0.1", "--method", "guess"], "is not one of"),
        (["10.0.0.1", "--setting", "packets"], "is not NAME=NUMBER"),
        (["10.0.0.1", "--setting", "packets=many"], "is no number"),
    ],
)
def test_what_cannot_be_is_refused(arguments: list[str], said: str) -> None:
    found = CliRunner().invoke(abw, arguments)
    assert found.exit_code == 2
    assert said in found.output


HALF = """\
import twinnet as tn


class Half(tn.Estimator):
    def __init__(self, trains):
        self.trains = trains

    def probe(self):
        for _ in range(self.trains):
            heard = yield self.train(10, self.most_rate_bps / 2, idle_s=0.02)
            self.estimate_bps = heard.arrived_bps
"""


@pytest.mark.quiet
@needs_namespaces
def test_an_estimator_of_ones_own_probes_real_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_of_it.py").write_text(HALF)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    told = answer("--method", "half_of_it:Half", "--setting", "trains=7", "--most-rate", "'20 Mbit'")
    assert told["bandwidth"]["method"] == "half_of_it:Half" and told["bandwidth"]["trains"] == 7
    # What is sent at is the machine's business; that the trains are those of the class is ours.
    assert {round(one["requested_bps"] / 1e4) for one in told["bandwidth"]["rates"]} == {1000}


def test_an_estimator_that_is_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(HALF)
    for wrong, said in (("mine:Halve", "did you mean 'Half'"), ("other:Half", "no file 'other.py' in this folder")):
        found = CliRunner().invoke(abw, ["10.0.0.1", "--method", wrong])
        assert found.exit_code == 2 and said in found.output
