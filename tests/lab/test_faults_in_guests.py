"""Faults of a lab with programs on the virtual clock: each is told with what to do, and leaves nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import twinnet as tn
from child_processes import children, living_group
from kernels_here import a_kernel_is_here
from twinnet.errors import LabError

if not a_kernel_is_here():
    pytest.skip("there is no kernel for programs on the virtual clock", allow_module_level=True)

HOSTNAME = """
import twinnet as tn
net = tn.Network()
net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
with net.simulate(hosts="programs") as lab:
    print(lab["h1"].run("hostname", check=True).stdout, flush=True)
"""
STARTS = """
import twinnet as tn
net = tn.Network()
net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
with net.simulate(hosts="programs") as lab:
    print("ready", flush=True)
    lab["h1"].run(["sh", "-c", "while :; do /bin/true; done"])
"""
BREAKS_THE_FIRST_PROCESS = """
with open("/proc/1/maps") as maps, open("/proc/1/mem", "r+b", buffering=0) as memory:
    for line in maps:
        place, rights, *_, path = line.split()
        if "w" in rights and path == "[stack]":
            begin, end = (int(one, 16) for one in place.split("-"))
            memory.seek(begin)
            memory.write(bytes(end - begin))
"""
ALL_MEMORY = "all = [bytes(1) * (1 << 20) for _ in range(2000)]"


def two_hosts() -> tn.Network:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
    return net


def _works(*command: str) -> bool:
    return shutil.which(command[0]) is not None and subprocess.run(command, capture_output=True).returncode == 0


def owner(python: str = sys.executable, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(tn.__file__).parent.parent), **environment}
    return subprocess.run(
        [python, "-c", HOSTNAME], capture_output=True, text=True, env=environment, timeout=100, check=False
    )


def test_a_folder_for_temporary_files_may_have_a_long_name(tmp_path: Path) -> None:
    # Longer than the path of a socket may be.
    deep = tmp_path / "/".join(["a-folder-with-a-long-name"] * 6)
    deep.mkdir(parents=True)
    done = owner(TMPDIR=str(deep))
    assert done.stdout == "h1\n\n", done.stderr
    assert list(deep.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named() -> None:
    done = owner(TMPDIR="/proc/no/such/folder")
    assert done.returncode == 1 and "GuestNotStarted" not in done.stdout
    assert "making a folder" in done.stderr and "TMPDIR" in done.stderr, done.stderr


def test_the_interpreter_may_stand_where_the_first_line_of_a_script_cannot_name_it(tmp_path: Path) -> None:
    place = tmp_path / "with blanks" / ("x" * 250)
    place.mkdir(parents=True)
    (place / "python").symlink_to(sys.executable)
    done = owner(str(place / "python"), PYTHONPATH=os.pathsep.join([str(Path(tn.__file__).parent.parent), *sys.path]))
    assert done.stdout == "h1\n\n", done.stderr


def test_an_interpreter_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(LabError, match="cannot read the interpreter /no/such/python") as refused:
        two_hosts().simulate(hosts="programs").open()
    assert refused.value.remedy


def test_a_program_of_another_c_library_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    program = tmp_path / "program"
    binary = Path(shutil.which("true") or "/bin/true").resolve().read_bytes()
    assert b"/lib64/ld-linux-x86-64.so.2\0" in binary, "a guest of another C library needs another program here"
    program.write_bytes(binary.replace(b"/lib64/ld-linux-x86-64.so.2\0", b"/lib64/ld-musls-x86-64.so.2\0"))
    program.chmod(0o755)
    with two_hosts().simulate(hosts="programs") as lab:
        with pytest.raises(LabError, match=r"its loader /lib64/ld-musls.* is not here.*another C library") as refused:
            lab["h1"].run([str(program)])
        assert refused.value.name == "ProgramNotExecutable"
        with pytest.raises(LabError, match="no such program"):
            lab["h1"].run([str(tmp_path / "none")])
        assert lab["h1"].run("hostname").stdout == "h1\n"


def test_a_program_that_takes_all_memory_is_told_so_and_the_lab_goes_on() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        done = lab["h1"].run([sys.executable, "-c", ALL_MEMORY])
        assert done.returncode == -signal.SIGKILL and "the guest's memory is full" in done.stderr, done
        assert lab["h2"].run("hostname").stdout == "h2\n"


def test_a_host_that_is_killed_long_after_a_program_that_took_all_memory_is_not_told_of_memory() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        lab["h2"].run([sys.executable, "-c", ALL_MEMORY])
        lab.run_until("10 s")
        sleeper = lab["h1"].popen("sleep 100")
        with pytest.raises(LabError) as told:
            lab["h1"].run([sys.executable, "-c", BREAKS_THE_FIRST_PROCESS])
            sleeper.wait()
        assert told.value.name == "HostEnded" and "memory" not in str(told.value)


@pytest.mark.quiet  # What runs beside gets no processor meanwhile.
def test_programs_that_start_more_and_more_of_themselves_end_with_the_lab() -> None:
    before = set(children(os.getpid()))
    with two_hosts().simulate(hosts="programs") as lab:
        with pytest.raises((LabError, TimeoutError)) as told:
            lab["h1"].run(["sh", "-c", "b() { b | b & wait; }; b"], timeout="100 s")
        if isinstance(told.value, LabError):
            # They compute for too long, or fill the memory first; then the kernel may end the host's first process.
            full = "memory" in f"{told.value} {told.value.remedy}"
            assert told.value.name == "ProgramSpins" or (told.value.name in ("GuestEnded", "HostEnded") and full)
    assert set(children(os.getpid())) == before


def test_a_kernel_that_panics_is_told_with_its_last_words() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        with pytest.raises(LabError, match=r"the guest's kernel has ended.*panic") as told:
            panics = "mkdir /run/p && mount -t proc proc /run/p && echo 1 >/run/p/sys/vm/panic_on_oom"
            lab["h1"].run(["sh", "-c", f"{panics} && {sys.executable} -c '{ALL_MEMORY}'"])
        assert told.value.name == "GuestEnded" and "--memory" in told.value.remedy


def test_output_that_finds_no_room_is_told_and_the_lab_goes_on() -> None:
    with two_hosts().simulate(hosts="programs") as lab, Path("/dev/full").open("wb") as full:
        job = lab["h1"].popen(["sh", "-c", "echo one; sleep 1; echo two"], stdout=full)
        with pytest.raises(LabError, match="could not be kept: No space left on device") as told:
            job.wait()
        assert told.value.name == "OutputLost" and told.value.remedy
        assert lab["h1"].run("hostname").stdout == "h1\n"


@pytest.mark.skipif(not _works("unshare", "-rm", "true"), reason="needs user namespaces, and the tool unshare")
def test_a_machine_without_room_for_the_guests_memory_is_told_where_to_make_room(tmp_path: Path) -> None:
    small = f"mount -t tmpfs -o size=1m none /dev/shm && mount -t tmpfs -o size=8m none {tmp_path}"
    command = ["unshare", "-rm", "sh", "-c", f'{small} && exec "$@"', "sh", sys.executable, "-c", HOSTNAME]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(tn.__file__).parent.parent)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert f"neither /dev/shm nor {tmp_path} has room for the 512 MB" in done.stderr, done.stderr
    assert "make room there" in done.stderr


def test_interfaces_of_the_machine_and_tunnels_are_refused() -> None:
    for node in ("interface", "tunnel"):
        net = two_hosts()
        if node == "interface":
            net.link(net.interface("eth9"), net.host("h3"), rate="10 Mbit")
        else:
            net.tunnel(net.switch("s1"), tn.vxlan(42, remote="192.0.2.2"), rate="10 Mbit")
        with pytest.raises(LabError) as refused:
            net.simulate(hosts="programs").open()
        assert refused.value.name == "WallClockOnly" and refused.value.remedy


def test_a_guest_that_is_gone_is_told_and_all_that_follows_gets_the_same_answer() -> None:
    before = set(children(os.getpid()))
    with two_hosts().simulate(hosts="programs") as lab:
        (kernel,) = set(children(os.getpid())) - before
        os.kill(kernel, signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(LabError, match="the guest's kernel has ended") as ended:
                lab["h1"].run("hostname")
            assert ended.value.name == "GuestEnded" and "memory" not in ended.value.remedy
    assert set(children(os.getpid())) == before
    assert not list(Path(tempfile.gettempdir()).glob(f"twinnet-guest-{os.getpid()}-*"))


@pytest.mark.long
def test_kill_9_while_programs_start_leaves_no_process_of_the_guest() -> None:
    for number in range(24):
        environment = {**os.environ, "PYTHONPATH": str(Path(tn.__file__).parent.parent)}
        owned = subprocess.Popen([sys.executable, "-c", STARTS], stdout=subprocess.PIPE, text=True, env=environment)
        with owned as owner:
            assert owner.stdout is not None and owner.stdout.readline() == "ready\n"
            (kernel,) = (pid for pid in children(owner.pid) if os.getpgid(pid) == pid)
            time.sleep(0.02 + 0.0137 * number)
            # Its programs run, and each has a process of its group.
            assert len(living_group(kernel)) > 1
            owner.kill()
        patience = time.monotonic() + 10
        while (left := living_group(kernel)) and time.monotonic() < patience:
            time.sleep(0.01)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert not left, f"kill {number} left {len(left)} processes"
