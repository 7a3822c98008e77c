"""What a guest has, what can be chosen of it, and what is refused: none of it depends on how fast the machine is."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import twinnet as tn
from kernels_here import needs_a_kernel
from twinnet.errors import BadValue, LabError
from twinnet.lab import client_streams
from twinnet.lab.guest_options import GuestOptions
from twinnet.lab_process.job import check_stream

STARTS = """
import twinnet as tn
net = tn.Network()
net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
print("now", flush=True)
net.simulate(hosts="programs").open()
print("stands", flush=True)
"""


def two_hosts() -> tn.Network:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
    return net


@needs_a_kernel
def test_a_program_may_fill_memory_however_long_the_machine_takes_for_it() -> None:
    # The machine takes some 0.1 ms for each of 64,000 pages: ten times the patience.
    fills = "kept = bytearray(250 << 20); kept[::4096] = bytes(len(kept[::4096])); print(len(kept) >> 20)"
    with two_hosts().simulate(hosts="programs", patience="0.5 s") as lab:
        assert lab["h1"].run([sys.executable, "-c", fills], check=True).stdout == "250\n"


@needs_a_kernel
def test_a_program_that_computes_long_needs_more_patience_and_gets_it() -> None:
    computes = ["python3", "-c", "for _ in range(30_000_000): pass\nprint('done')"]
    with two_hosts().simulate(hosts="programs", patience="1000 s") as lab:
        assert lab["h1"].run(computes, check=True).stdout == "done\n"
        assert lab.started["guest"] == {"patience_s": 1000.0}
    with two_hosts().simulate(hosts="programs", patience="10 ms") as lab, pytest.raises(LabError) as told:
        lab["h1"].run(["sh", "-c", "while :; do :; done"])
    assert told.value.name == "ProgramSpins" and "patience" in told.value.remedy


@needs_a_kernel
def test_the_least_memory_is_enough_for_a_program() -> None:
    with two_hosts().simulate(hosts="programs", memory="64 MiB") as lab:
        assert lab["h1"].run("true").returncode == 0


@needs_a_kernel
def test_memory_is_as_much_as_was_asked_for_and_is_in_the_record() -> None:
    asks = "awk '/MemTotal/ {print $2}' /proc/meminfo; df -k --output=size / | tail -1"
    with two_hosts().simulate(hosts="programs", memory="1 GiB") as lab:
        memory_kib, root_kib = (int(word) for word in lab["h1"].run(asks, shell=True, check=True).stdout.split())
        assert 0.9 * (1 << 20) < memory_kib < 1 << 20
        assert 0.45 * (1 << 20) < root_kib < 0.5 * (1 << 20)
        assert lab.started["guest"] == {"memory_bytes": 1 << 30}
    with two_hosts().simulate(hosts="programs") as lab:
        assert lab.started["guest"] == {}


@needs_a_kernel
def test_a_program_that_needs_more_memory_than_there_is_is_told_so_and_gets_it() -> None:
    fills = [sys.executable, "-c", "kept = [bytes([1]) * (1 << 20) for _ in range(128)]; print(len(kept))"]
    with two_hosts().simulate(hosts="programs", memory="128 MiB") as lab:
        done = lab["h1"].run(fills)
        assert done.returncode == -signal.SIGKILL and "memory is full" in done.stderr and "--memory" in done.stderr
    with two_hosts().simulate(hosts="programs", memory="256 MiB") as lab:
        assert lab["h1"].run(fills, check=True).stdout == "128\n"


@needs_a_kernel
def test_the_date_is_the_one_that_was_asked_for_and_another_trace_may_follow_from_it() -> None:
    def date(given: str | None) -> str:
        with two_hosts().simulate(hosts="programs", date=given) as lab:
            begins_s = GuestOptions.read(date=given).begins_s
            assert lab.started["guest"] == ({} if given is None else {"begins_s": begins_s})
            return lab["h1"].run("date -u +%FT%H:%M", check=True).stdout.strip()

    assert date(None) == "2026-01-01T00:00"
    assert date("2026-11-28") == "2026-11-28T00:00"
    assert date("2031-02-03 04:05") == "2031-02-03T04:05"
    assert date("2031-02-03T04:05+01:00") == "2031-02-03T03:05"


@needs_a_kernel
def test_the_command_line_has_the_same_settings_and_refuses_them_on_the_wall_clock() -> None:
    run = "import sys; from twinnet.cli import run; sys.exit(run(sys.argv[1:]))"
    lab = [sys.executable, "-c", run, "lab", "single:2", "--rate", "10 Mbit", "--date", "2030-05-06"]
    given = [*lab, "--memory", "256 MiB", "--patience", "9 s", "-c", "py lab.started['guest']", "-c", "h1 date -u +%F"]
    done = subprocess.run([*given, "--clock", "virtual", "--programs"], capture_output=True, text=True, check=False)
    record = str(GuestOptions.read("256 MiB", "2030-05-06", "9 s").to_record())
    assert record in done.stdout and "2030-05-06" in done.stdout.split(record)[1], done
    refused = subprocess.run([*lab, "-c", "nodes"], capture_output=True, text=True, check=False)
    assert refused.returncode != 0 and "--date is for --clock virtual --programs" in refused.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"memory": "1 MB"}, "memory"),
        ({"memory": "65 GiB"}, "memory"),
        ({"date": "soon"}, "the date 'soon' is none"),
        ({"date": "1969-01-01"}, "out of range"),
        ({"date": "2100-01-01"}, "out of range"),
        ({"patience": "4.5"}, "no unit"),
    ],
)
def test_what_a_guest_cannot_have_is_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(BadValue, match=said):
        two_hosts().simulate(hosts="programs", **given)  # type: ignore[arg-type]


def test_model_hosts_have_no_guest() -> None:
    with pytest.raises(BadValue, match="memory, date is for hosts that run programs"):
        two_hosts().simulate(memory="1 GB", date="2026-11-28")


def test_a_moment_that_a_program_has_added_up_is_taken() -> None:
    with two_hosts().simulate() as lab:
        lab.run_until(f"{0.1 + 0.2} s")
        assert lab.now_ps() == 300_000_000_000
        for _ in range(20):
            lab.run_until(f"{lab.now() + 0.2} s")
        assert lab.now_ps() == 4_300_000_000_000


@pytest.mark.parametrize("stream", ["file", -2, True, None, object(), Path("file")])
def test_a_stream_that_is_none_is_refused_with_what_is_one(stream: object) -> None:
    with pytest.raises(BadValue, match=r"stdout is .*; allowed are tn.lab.PIPE, tn.lab.DEVNULL, a file that is open"):
        check_stream(stream, "stdout")


@needs_a_kernel
def test_popen_refuses_the_name_of_a_file() -> None:
    with two_hosts().simulate(hosts="programs") as lab, pytest.raises(BadValue, match="open it: stdout=open"):
        lab["h1"].popen("hostname", stdout="file")  # type: ignore[arg-type]


@needs_a_kernel
def test_what_a_program_is_given_to_read_is_there_when_it_starts(tmp_path: Path) -> None:
    (tmp_path / "given").write_bytes(bytes(300_000))
    read, write = os.pipe()
    os.write(write, b"from a pipe\n")
    os.close(write)
    with two_hosts().simulate(hosts="programs") as lab:
        with (tmp_path / "given").open("rb") as given:
            assert lab["h1"].popen("wc -c", stdin=given).communicate()[0] == b"300000\n"
        assert lab["h1"].popen("cat", stdin=read).communicate()[0] == b"from a pipe\n"
        assert lab["h1"].popen("cat", stdin=tn.lab.DEVNULL).communicate()[0] == b""
    os.close(read)


@needs_a_kernel
@pytest.mark.parametrize("kind", ["a pipe that stays open", "a terminal", "a device without an end"])
def test_what_has_no_end_is_refused_before_the_program_starts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_streams, "_ENDS_WITHIN_S", 0.2)
    monkeypatch.setattr(client_streams, "_MOST_BYTES", 4 << 20)
    with contextlib.ExitStack() as opened, two_hosts().simulate(hosts="programs") as lab:
        ends = os.pipe() if kind == "a pipe that stays open" else pty.openpty()
        for end in ends:
            opened.callback(os.close, end)
        given = ends[0]
        if kind == "a device without an end":
            given = os.open("/dev/zero", os.O_RDONLY)
            opened.callback(os.close, given)
        with pytest.raises(BadValue, match="stdin is read whole before it starts") as refused:
            lab["h1"].popen("cat", stdin=given)
        assert "job.stdin" in refused.value.remedy
        assert lab.jobs() == []


@needs_a_kernel
def test_kill_9_while_the_guest_boots_leaves_no_file(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    left: list[Path] = []
    owners: list[int] = []
    for number in range(12):
        owned = subprocess.Popen([sys.executable, "-c", STARTS], stdout=subprocess.PIPE, env=environment)
        with owned as owner:
            assert owner.stdout is not None and owner.stdout.readline() == b"now\n"
            time.sleep(0.03 * number)
            owner.kill()
            owners.append(owner.pid)
    patience = time.monotonic() + 10
    while time.monotonic() < patience:
        memory = [path for pid in owners for path in Path("/dev/shm").glob(f"twinnet-guest-{pid}-*")]
        if not (left := [*tmp_path.iterdir(), *memory]):
            break
        time.sleep(0.05)
    assert left == []
