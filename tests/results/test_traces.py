"""Traces that are written: equal runs are equal line by line, and others are told by their first event that differs."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import twinnet as tn
from kernels_here import needs_a_kernel
from twinnet.cli import run
from twinnet.errors import LabError
from twinnet.results.frame_fields import frame_fields
from twinnet.results.traces import part


def tcp(sequence: int, options: bytes = b"", kind: int = 0x0800) -> bytes:
    """A frame from 10.0.0.1 to 10.0.0.2, or of the same over IPv6."""
    header = struct.pack("!HHIIBBHHH", 40000, 5201, sequence, 0, (20 + len(options)) << 2, 2, 64240, 0, 0) + options
    if kind == 0x86DD:
        address = bytes.fromhex("fe80000000000000")
        addresses = address + bytes(7) + b"\1" + address + bytes(7) + b"\2"
        network = struct.pack("!IHBB", 6 << 28, len(header), 6, 64) + addresses
    else:
        network = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(header), 7, 0, 64, 6, 0) + bytes(
            [10, 0, 0, 1, 10, 0, 0, 2]
        )
    return bytes(12) + struct.pack("!H", kind) + network + header


def trace(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in ("twinnet trace 1", *lines)))
    return path


def sends(at_ps: int, frame: bytes) -> str:
    return f"{at_ps} sends h1-eth0 {len(frame)} {hash(frame) & (1 << 64) - 1:016x} {frame.hex()}"


def test_the_first_frame_that_differs_is_named_with_its_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = trace(tmp_path / "a", "0 begins h2", sends(1_000_000, tcp(7)), "2000000 receives h2-eth0")
    second = trace(tmp_path / "b", "0 begins h2", sends(1_200_000, tcp(8)), "2200000 receives h2-eth0")
    assert run(["traces", str(first), str(second)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "The traces part after 1 equal events, in: the time, by 0.2 us, TCP sequence number.",
        "both: at 0.000000000000 s an app begins in h2",
        f"{first}: at 0.000001000000 s h1-eth0 sends 54 bytes: "
        "IPv4 10.0.0.1 > 10.0.0.2 TCP 40000 > 5201 SYN seq 7 ack 0",
        f"{second}: at 0.000001200000 s h1-eth0 sends 54 bytes: "
        "IPv4 10.0.0.1 > 10.0.0.2 TCP 40000 > 5201 SYN seq 8 ack 0",
    ]
    assert run(["traces", str(first), str(second), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["equal_events"], told["equal"]) == (1, False)
    assert told["first"]["who"] == "h1-eth0" and told["second"]["at_ps"] == 1_200_000


def test_a_trace_that_ends_and_other_events_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = trace(tmp_path / "long", "5 forwards s1", '6 starts h1 3 ["ping", "h2"]', "7 ended program 3 0")
    short = trace(tmp_path / "short", "5 forwards s1", '6 starts h1 3 ["ping", "h2"]')
    other = trace(tmp_path / "other", "5 wakes h1")
    assert run(["traces", str(long), str(short)]) == 1
    told = capsys.readouterr().out
    assert "both: at 0.000000000006 s program 3 is started in h1: ping h2" in told
    assert "program 3 has ended with status 0" in told and f"{short}: ends before" in told
    assert run(["traces", str(long), str(other)]) == 1
    assert "part after 0 equal events, in: other events." in capsys.readouterr().out
    assert run(["traces", str(long), str(long), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"equal_events": 3, "equal": True}


@pytest.mark.parametrize("kind", [0x0800, 0x86DD])
def test_fields_of_frames_have_names(kind: int) -> None:
    one, other = tcp(7, b"\x08\x0a" + bytes(10), kind), tcp(7, b"\x08\x0a" + bytes(9) + b"\1", kind)
    assert frame_fields(one).differences(one, other) == ["TCP options"]
    assert frame_fields(one).differences(one, one + b"x") == ["content"]
    tagged = one[:12] + struct.pack("!HH", 0x8100, 5) + one[12:]
    assert str(frame_fields(tagged)).startswith("VLAN 5 IPv")
    for length in range(len(tagged)):
        # What is cut off is described as far as it goes.
        assert str(frame_fields(tagged[:length]))


def test_what_is_no_trace_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = trace(tmp_path / "good", "5 forwards s1")
    (tmp_path / "none").write_text("hello\n")
    wrong = trace(tmp_path / "wrong", "5 dances s1")
    cut = tmp_path / "cut"
    cut.write_text("twinnet trace 1\n5 sends h1-eth0 60")
    for path, said in ((tmp_path / "none", "is no trace of twinnet"), (wrong, "line 2 is none of a trace"),
                       (cut, "line 2 is cut off"), (tmp_path / "missing", "cannot be read")):  # fmt: skip
        assert run(["traces", str(good), str(path)]) == 2
        assert said in capsys.readouterr().err


def ping(path: Path, count: int) -> str:
    net = tn.Network(seed=3)
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="1 ms")
    with net.simulate(trace=path) as lab:
        lab.wait([lab.start(tn.apps.ping("h1", "h2", count=count))])
        return lab.trace_hash


def test_equal_runs_of_models_have_equal_traces(tmp_path: Path) -> None:
    assert ping(tmp_path / "a", 2) == ping(tmp_path / "b", 2) != ping(tmp_path / "c", 3)
    equal, parting = part(tmp_path / "a", tmp_path / "b")
    assert parting is None and equal > 4
    _, parting = part(tmp_path / "a", tmp_path / "c")
    assert parting is not None and parting.second is not None and parting.second.at_ps >= 10**12


def test_a_trace_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="No such file or directory") as refused:
        ping(tmp_path / "none" / "trace", 1)
    assert refused.value.name == "TraceFailed"
    with pytest.raises(LabError, match="No space left"):
        ping(Path("/dev/full"), 1)


def test_the_prompt_writes_a_trace_on_the_virtual_clock_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["lab", "single:2", "-c", "pingall"]
    assert run([*words, "--clock", "virtual", "--trace", str(tmp_path / "trace")]) == 0
    assert part(tmp_path / "trace", tmp_path / "trace")[0] > 0
    assert run([*words, "--trace", str(tmp_path / "other")]) == 2
    assert "--trace is for --clock virtual" in capsys.readouterr().err


def test_runs_of_a_study_write_their_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "tcp-udp-queues", "--preset", "tiny", "--repeat", "1", "--no-report"]
    for name in ("a", "b"):
        made = [
            *words,
            "--clock",
            "virtual",
            "--out",
            str(tmp_path / name),
            "--traces",
            str(tmp_path / f"{name}-traces"),
        ]
        assert run(made) == 0
    runs = sorted(path.name for path in (tmp_path / "a-traces").iterdir())
    assert runs and runs == sorted(path.name for path in (tmp_path / "b-traces").iterdir())
    for name in runs:
        equal, parting = part(tmp_path / "a-traces" / name, tmp_path / "b-traces" / name)
        assert parting is None and equal > 100
    assert run([*words, "--clock", "wall", "--out", str(tmp_path / "c"), "--traces", str(tmp_path)]) == 2
    assert "only runs on the virtual clock have traces" in capsys.readouterr().err
    assert run([*words, "--on", "127.0.0.1:1", "--traces", str(tmp_path)]) == 2
    assert "--traces is given with --on" in capsys.readouterr().err


@needs_a_kernel
def test_frames_of_programs_are_told_with_what_is_in_them(tmp_path: Path) -> None:
    def connect(name: str, seed: int) -> str:
        net = tn.Network()
        net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="1 ms")
        with net.simulate(hosts="programs", seed=seed, trace=tmp_path / name) as lab:
            lab["h1"].run(
                ["python3", "-c", "import socket\ntry: socket.create_connection(('h2', 5000))\nexcept OSError: pass"]
            )
            return lab.trace_hash

    assert connect("a", 3) == connect("b", 3) != connect("c", 4)
    assert part(tmp_path / "a", tmp_path / "b")[1] is None
    _, parting = part(tmp_path / "a", tmp_path / "c")
    assert parting is not None and parting.first is not None and parting.first.frame
    lines = (tmp_path / "a").read_text()
    assert " starts h1 1 " in lines and " ended program 1 0\n" in lines
