"""The command line as a process: its exit status, its one-line errors, its speed."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import twinnet
from twinnet.cli.registry import COMMANDS

SOURCE = str(Path(twinnet.__file__).parent.parent)


def run(*arguments: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``twinnet`` with `arguments` in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": SOURCE, **variables}
    program = [sys.executable, "-c", "from twinnet.cli import main; main()", *arguments]
    return subprocess.run(
        program, input=stdin, capture_output=True, text=True, env=environment, timeout=60, check=False
    )


def test_help_names_every_command() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_and_json(name: str) -> None:
    done = run(name, "--help")
    assert done.returncode == 0
    # What scripts and options of Mininet print is theirs.
    assert ("--json" in done.stdout) == (name not in ("mininet", "mn"))


@pytest.mark.parametrize(
    "variables", [{}, {"_TWINNET_COMPLETE": "bash_complete", "COMP_WORDS": "twinnet la", "COMP_CWORD": "1"}]
)
def test_help_and_completion_answer_at_once(variables: dict[str, str]) -> None:
    times: list[float] = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = run(*([] if variables else ["--help"]), **variables)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.stdout
    # Processor time, and the best of five: the promise is about the program, not about what else the machine was doing.
    assert min(times) < 0.2


def test_completion_offers_the_commands() -> None:
    done = run(_TWINNET_COMPLETE="bash_complete", COMP_WORDS="twinnet la", COMP_CWORD="1")
    assert done.stdout.split() == ["plain,lab", "plain,labs"]


def test_nothing_heavy_is_loaded_for_help() -> None:
    code = (
        "import sys, twinnet\nfrom twinnet.cli import run\nrun(['--help'])\n"
        "heavy = {'typer', 'rich', 'pydantic', 'numpy', 'scipy', 'polars', 'yaml', 'prompt_toolkit', 'matplotlib'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["labz"], "there is no command 'labz': did you mean 'lab'"),
        (["lab"], "Missing argument 'NETWORK'"),
        (["lab", "singel:4"], "there is no topology template 'singel' (did you mean 'single'?)"),
        (["lab", "single:0"], "allowed are whole numbers from 1"),
        (["lab", "single:4", "--rate", "10"], 'the rate "10" has no unit'),
        (["lab", "single:4", "--delay", "-5ms"], "is negative"),
        (["lab", "single:4", "--loss", "120 %"], "outside 0 to 1"),
        (["lab", "single:4", "--interface", "tun"], "'tun' is not one of"),
        (["lab", "absent.yaml"], "absent.yaml:1:1: cannot be read"),
        (["exec", "lab"], "Missing argument 'HOST'"),
        (["flows", "lab", "s1", "add"], "no flow to add was given"),
        (["run", "tcp-udp-queues", "--clock", "virtual", "--shard", "0/4"], "there is no shard 0 of 4"),
        (["run", "tcp-udp-queues", "--clock", "virtual", "--shard", "a/b"], "'a/b' is no shard"),
        (["run", "tcp-udp-queues", "--clock", "virtual", "--deal", "run"], "--deal is given without --shard"),
        (
            ["run", "tcp-udp-queues", "--clock", "virtual", "--shard", "1/4", "--with-invalid"],
            "give it to `twinnet report`",
        ),
        (["run", "tcp-udp-queues", "--clock", "virtual", "--twice", "2 %"], "--twice is given without --shard"),
        (
            ["run", "tcp-udp-queues", "--clock", "virtual", "--shard", "1/1", "--twice", "2 %"],
            "--twice is given with one shard",
        ),
        (["run", "tcp-udp-queues", "--clock", "virtual", "--shard", "1/4", "--twice", "0"], "allowed is more than 0"),
        (["run", "tcp-udp-queues", "--clock", "virtual", "--shard", "1/4", "--twice", "120 %"], "outside 0 to 1"),
        (
            ["run", "tcp-udp-queues", "--clock", "virtual", "--shard", "1/4", "--twice", "few"],
            "share of runs made twice",
        ),
        (
            ["switch", "--port", "e1", "--listen", "ptcp:6655", "--listen", "ptcp:6656"],
            "a switch listens in one place, and ptcp:6655 and ptcp:6656 were given",
        ),
        (["gather"], "Missing argument 'RESULTS...'"),
        (["gather", "absent"], "there is no folder absent"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("twinnet: ")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_bad_file_is_told_line_by_line_and_nothing_is_built(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_text("switches: {s1: }\nhosts: {h1: }\nlinks:\n- {between: [h1, s1], rate: 10, dely: 5 ms}\n")
    done = run("lab", str(path), "-c", "nodes")
    assert (done.returncode, done.stdout) == (2, "")
    assert [line.split(": ")[2] for line in done.stderr.splitlines()] == ["links[0].rate", "links[0].dely"]


def test_an_unknown_lab_is_status_1() -> None:
    done = run("exec", "absent-lab", "h1", "--", "true")
    assert done.returncode == 1
    assert "no lab 'absent-lab' of this user is running" in done.stderr


def test_labs_in_json_is_a_list() -> None:
    done = run("labs", "--json")
    assert done.returncode == 0
    assert isinstance(json.loads(done.stdout), list)


STUDY_WITH_UMLAUTS = """\
study: last
title: Eine Last auf einer Leitung, größer
question: Wie viel kommt über?
clock: virtual
repetitions: 1
network:
  hosts: {h1: , h2: }
  links:
    - {between: [h1, h2], rate: 10 Mbit, delay: 1 ms}
traffic:
  - {name: last, app: udp, from: [h1], to: h2, port: 5003, rate: 2 Mbit, duration: 1 s, payload: 500 B}
measurements:
  throughput: {of: throughput, interval: 500 ms}
"""


def test_names_with_umlauts_do_where_the_locale_has_ascii_alone(tmp_path: Path) -> None:
    ascii_alone = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
    study = tmp_path / "größe.yaml"
    study.write_text(STUDY_WITH_UMLAUTS, encoding="utf-8")
    out = tmp_path / "ergebnisse-ö"
    done = run("run", str(study), "--out", str(out), "--no-report", "--yes", "--json", **ascii_alone)
    assert done.returncode == 0, done.stderr
    assert json.loads((out / "last" / "study.json").read_text(encoding="utf-8"))["file"] == str(study)
    told = run("report", str(out / "last"), **ascii_alone)
    assert told.returncode == 0 and f"{out}/last/report/report.html" in told.stdout, told.stderr
    missing = run("run", "fehlt-ä.yaml", **ascii_alone)
    assert missing.returncode == 2 and "'fehlt-ä.yaml' is neither" in missing.stderr


def test_a_name_that_is_no_text_is_told_and_kept(tmp_path: Path) -> None:
    study = tmp_path / "b\udcff.yaml"
    study.write_text(STUDY_WITH_UMLAUTS, encoding="utf-8")
    done = run("run", str(study), "--out", str(tmp_path / "out"), "--no-report", "--yes")
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "out" / "last" / "study.json").read_text(encoding="utf-8"))
    assert record["file"] == str(study)


def test_a_second_place_to_listen_is_refused() -> None:
    done = run("switch", "--port", "lo", "--listen", "ptcp:6654", "--listen", "ptcp:6655")
    assert done.returncode == 2
    assert "a switch listens in one place, and ptcp:6654 and ptcp:6655 were given" in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_the_caller_has_closed_are_empty_ones(closed: str) -> None:
    command = [sys.executable, "-P", "-c", "from twinnet.cli import main; main()", "labs", "--json"]
    done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (">&-" in closed.replace("2>&-", "")) == (done.stdout == "")
