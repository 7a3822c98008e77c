"""What commands print fits the terminal: 80 columns of a projector, 120 of a wide window."""

from __future__ import annotations

import os
import re
import socket
import sys
from pathlib import Path

import pytest
from labs_here import needs_a_lab
from terminal_session import TerminalSession
from twinnet.cli.prompt.answer import Answer

PROGRAM = f"{sys.executable} -c 'from twinnet.cli import main; main()'"
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
STUDY = "run tcp-udp-queues --preset tiny --clock virtual --yes --jobs 2"
NETWORK = (
    "lab linear:6 -c dump -c net -c ports -c links -c fidelity -c help -c 'h1 true' -c pingall -c 'switch s2 stop'"
)


def free_udp_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def shown(command: str, columns: int, folder: Path, wanted: int = 0) -> list[str]:
    """The lines that `command` leaves on a terminal of `columns`."""
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "xterm"}
    session = TerminalSession(["/bin/sh", "-c", f"cd {folder} && {command}"], environment, columns=columns)
    status = session.status()
    text = CONTROL.sub("", session.screen.decode())
    assert status == wanted, text
    # What a line was before it was written over (progress) is gone from the screen.
    return [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n")]


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", ["doctor", "studies", "policy list", "labs"])
def test_lists_fit(command: str, columns: int, tmp_path: Path) -> None:
    assert max(map(len, shown(f"{PROGRAM} {command}", columns, tmp_path))) <= columns


@pytest.mark.parametrize("columns", [80, 120])
def test_a_study_fits(columns: int, tmp_path: Path) -> None:
    lines = shown(f"{PROGRAM} {STUDY} --no-report", columns, tmp_path)
    assert max(map(len, lines)) <= columns
    assert any("Throughput" in line for line in lines)


@pytest.mark.parametrize("columns", [80, 120])
def test_a_report_ends_with_the_answer_and_its_files(columns: int, tmp_path: Path) -> None:
    lines = [line for line in shown(f"{PROGRAM} {STUDY}", columns, tmp_path) if line]
    assert max(map(len, lines)) <= columns
    assert lines[-1] == "Report: results/tcp-udp-queues/report/report.html"


@needs_a_lab
@pytest.mark.parametrize("columns", [80, 120])
def test_answers_of_the_prompt_fit(columns: int, tmp_path: Path) -> None:
    lines = shown(f"{PROGRAM} {NETWORK} </dev/null", columns, tmp_path)
    assert max(map(len, lines)) <= columns
    # A table that is too wide comes in parts, each with the names of the ports.
    assert sum(line.startswith("port ") for line in lines) == (2 if columns == 80 else 1)


@pytest.mark.parametrize("columns", [80, 120])
def test_what_was_sent_and_received_fits(columns: int, tmp_path: Path) -> None:
    port = free_udp_port()
    receive = f"{PROGRAM} recv --udp {port} --no-clock --duration '4 s' & sleep 1"
    send = f"{PROGRAM} send 127.0.0.1 --port {port} --no-clock --pps 100 --duration '500 ms' --parallel 3"
    lines = shown(f"{receive}; {send}; wait", columns, tmp_path)
    assert max(map(len, lines)) <= columns
    assert any("goodput" in line for line in lines)


def test_what_is_copied_stays_on_one_line() -> None:
    flow = "priority=1," * 12 + " actions=drop"
    assert Answer({}, flow, verbatim=True).text_for(80) == flow
    assert len(Answer({}, flow).text_for(80).splitlines()) == 2
    assert Answer({}, flow).text_for(None) == flow


def test_an_error_breaks_between_words(tmp_path: Path) -> None:
    lines = shown(f"{PROGRAM} lab tcp-udp-queues", 80, tmp_path, wanted=2)
    assert max(map(len, lines)) <= 80
    assert "twinnet run tcp-udp-queues" in " ".join(line.strip() for line in lines)
