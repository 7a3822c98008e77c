"""Frames shown while they pass: ``twinnet capture LAB PORT``, the prompt's ``capture ... | PROGRAM``, ``analyze -``."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from twinnet.cli.prompt.session import Session
from twinnet.errors import BadValue
from twinnet.lab.lab import Lab
from twinnet.results.captures import analyze_capture

TWINNET = [sys.executable, "-c", "from twinnet.cli import main; main()"]
PATIENCE_S = 30

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


@pytest.fixture
def lab() -> Iterator[Lab]:
    with tn.templates.single(2).emulate() as running:
        yield running


def send(lab: Lab, packets: int = 20) -> None:
    """Send datagrams of 1000 B from h1 to h2, a millisecond apart."""
    assert lab.wait([lab.start(tn.apps.udp("h1", "h2", rate="8 Mbit", packets=packets, payload="1000 B"))], "60 s")


def started(*arguments: str, **streams: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*TWINNET, *arguments], stderr=subprocess.PIPE, **streams)  # type: ignore[call-overload]


@needs_a_lab
@needs_tshark
def test_tshark_shows_frames_while_they_pass_and_the_capture_ends_with_ctrl_c(lab: Lab) -> None:
    capture = started("capture", lab.name, "s1-eth2", stdout=subprocess.PIPE)
    fields = ["-l", "-i", "-", "-Y", "udp", "-T", "fields", "-e", "udp.length"]
    tshark = subprocess.Popen(
        ["tshark", *fields], stdin=capture.stdout, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert capture.stdout is not None and tshark.stdout is not None
    capture.stdout.close()
    # Longer than the two programs may take to begin; the line comes before the flow has ended.
    flow = lab.start(tn.apps.udp("h1", "h2", rate="800 kbit", duration="60 s", payload="1000 B"))
    assert tshark.stdout.readline().strip() == b"1008"
    assert not lab.wait([flow], until=f"{lab.now():.3f} s")
    flow.stop()
    capture.send_signal(signal.SIGINT)
    _, told = capture.communicate(timeout=PATIENCE_S)
    assert capture.returncode == 0
    assert "frames sent" in told.decode()
    tshark.communicate(timeout=PATIENCE_S)
    assert tshark.returncode == 0


@needs_a_lab
def test_a_capture_of_a_duration_is_analysed_from_standard_input(lab: Lab) -> None:
    capture = started("capture", lab.name, "s1-eth2", "-", "--duration", "3 s", stdout=subprocess.PIPE)
    analysis = subprocess.Popen([*TWINNET, "analyze", "--json", "-"], stdin=capture.stdout, stdout=subprocess.PIPE)
    assert capture.stdout is not None
    capture.stdout.close()
    while capture.poll() is None:
        send(lab, 200)
    found = json.loads(analysis.communicate(timeout=PATIENCE_S)[0])[0]
    assert capture.returncode == 0
    assert found["file"] == "-"
    assert found["notes"] == []
    assert [row["protocol"] for row in found["conversations"]].count("udp") >= 1
    assert found["packets"] >= 200


@needs_a_lab
def test_a_reader_that_leaves_ends_the_capture(lab: Lab) -> None:
    capture = started("capture", lab.name, "s1-eth2", stdout=subprocess.PIPE)
    assert capture.stdout is not None
    capture.stdout.close()
    _, told = capture.communicate(timeout=PATIENCE_S)
    assert capture.returncode == 0
    assert "the reader has left" in told.decode()


@needs_a_lab
def test_the_prompt_gives_a_capture_to_a_program(lab: Lab, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    session = Session(lab)
    seen = tmp_path / "seen.pcapng"
    assert session.execute(f"capture s1-eth2 | cat > {seen}")
    send(lab)
    assert session.execute("capture")
    assert session.execute("capture stop")
    told = capfd.readouterr().out
    assert f"s1-eth2 | cat > {seen}" in told
    assert f"frames sent to cat > {seen}" in told
    assert analyze_capture(seen).capture["packets"][0] >= 20


@needs_a_lab
def test_the_prompt_says_where_its_frames_can_go(lab: Lab) -> None:
    session = Session(lab)
    with pytest.raises(BadValue, match=r"capture s1-eth2 \| wireshark"):
        session.answer("capture s1-eth2 -")
    with pytest.raises(BadValue, match=r"wireshark -k -i -"):
        session.answer("capture s1-eth2")
    with pytest.raises(BadValue, match="an interface and a command"):
        session.answer("capture stop | cat")
    assert not session.captures.running


def test_a_stream_on_the_virtual_clock_takes_the_capture(tmp_path: Path) -> None:
    path = tmp_path / "out.pcapng"
    with tn.templates.single(2).simulate() as lab, path.open("wb") as file:
        with lab.capture("s1-eth2", file) as capture:
            send(lab)
        assert capture.frames >= 20
        assert capture.files == []
        with pytest.raises(BadValue, match="a ring needs the path"):
            lab.capture("s1-eth2", file, ring=(3, "8 KiB"))
    assert analyze_capture(path).capture["packets"][0] == capture.frames


def test_standard_input_is_read_once() -> None:
    done = subprocess.run([*TWINNET, "analyze", "-", "-"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert "can be read once" in done.stderr
