"""What of the machine reaches a guest: nothing that moves a frame. The same lab is made from several surroundings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import twinnet as tn
from kernels_here import a_kernel_is_here
from twinnet.guest.processor import differing, features

if not a_kernel_is_here():
    pytest.skip("there is no kernel for programs on the virtual clock", allow_module_level=True)

LAB = """
import sys
import twinnet as tn
sys.executable = sys.argv[1]
net = tn.Network(seed=3)
net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
with net.simulate(hosts="programs") as lab:
    server = lab["h2"].popen(["python3", "-Ic", "import socket; print(socket.create_server(('', 5000)).accept()[1])"])
    lab.run_until("1 s")
    lab["h1"].run(["python3", "-Ic", "import socket; socket.create_connection(('h2', 5000)).sendall(bytes(5000))"])
    drawn = lab["h1"].run("od -An -N8 -tx1 /dev/urandom", check=True).stdout
    lab.run_until("70 s")
    print(server.communicate()[0].decode().split()[-1], drawn.strip(), lab.now(), lab.trace_hash)
"""
"""A connection, whose port and sequence numbers the guest draws, and numbers that a program draws."""

WEB = """
import sys
import twinnet as tn
sys.executable = sys.argv[1]
net = tn.Network()
net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
with net.simulate(hosts="programs") as lab:
    lab["h2"].run("mkdir -p /srv/page")
    lab["h2"].run("dd if=/dev/zero of=/srv/page/big bs=1000 count=300", check=True)
    lab["h2"].popen("python3 -m http.server 8000 --directory /srv/page", stdout=tn.lab.DEVNULL)
    lab.run_until("5 s")
    for _ in range(5):
        fetch = "import urllib.request; urllib.request.urlopen('http://10.0.0.2:8000/big').read()"
        lab["h1"].run(["python3", "-c", fetch], check=True)
    print(lab.trace_hash)
"""
"""A server and clients, whose turns depend on the moment at which each program begins."""

PLACE = """
import sys
import twinnet as tn
sys.executable = sys.argv[1]
net = tn.Network()
net.link(net.host("h1"), net.host("h2"), rate="10 Mbit")
shown = "for one in hostname machine-id resolv.conf timezone; do cat /etc/$one; done; date +%Z; ls /etc/localtime"
with net.simulate(hosts="programs") as lab:
    print(lab["h1"].run(shown, shell=True).stdout, end="")
    print(lab["h1"].run("ping -c 1 nowhere.example").returncode, lab.now(), lab.trace_hash)
"""
"""What says which machine it is, and where; and a name that only servers outside could know."""

OWN = "/usr/bin:/usr/local/bin"
"""Where a machine has its own interpreter."""


def told(
    *before: str, program: str = LAB, python: str = sys.executable, cwd: Path | None = None, **environment: str
) -> str:
    """What the lab of `program` prints, started by the words `before`, with this interpreter in its guest."""
    path = os.pathsep.join([str(Path(tn.__file__).parent.parent), *sys.path])
    done = subprocess.run(
        [*before, sys.executable, "-c", program, python],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path, **environment}, cwd=cwd, timeout=100,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def usual() -> str:
    return told()


def test_folders_variables_and_processors_of_the_owner_do_not_matter(usual: str, tmp_path: Path) -> None:
    deep = tmp_path / "/".join(["a-folder-with-a-name"] * 4)
    deep.mkdir(parents=True)
    surroundings = {"TMPDIR": str(deep), "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-SSSE3", "LANG": "C", "MANY": "x" * 9000}
    assert told("taskset", "-c", str(min(os.sched_getaffinity(0))), cwd=deep, **surroundings) == usual


def test_memory_and_layout_of_the_owner_do_not_matter(usual: str) -> None:
    assert told("sh", "-c", 'ulimit -s unlimited; exec "$@"', "sh") == usual
    assert told("setarch", "-R") == usual


def test_how_the_interpreter_is_started_does_not_matter(usual: str, tmp_path: Path) -> None:
    # More programs, more system calls, more random numbers drawn before the hosts are built.
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\n/bin/true\nod -An -N64 /dev/urandom >/dev/null\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
    assert told(python=str(script)) == usual


def test_where_the_interpreter_is_does_not_matter(usual: str, tmp_path: Path) -> None:
    interpreter = Path(sys.executable).resolve()
    link, copy = tmp_path / "link", tmp_path / "a folder of copies" / "python"
    link.symlink_to(interpreter)
    copy.parent.mkdir()
    shutil.copy(interpreter, copy)
    # One that the machine itself has, and of another version.
    others = {str(found) for name in ("python3", "python3.12", "python3.13") if (found := shutil.which(name, path=OWN))}
    for python in (str(interpreter), str(link), str(copy), *sorted(others)):
        assert told(python=python) == usual, python


@pytest.mark.long
def test_how_long_the_path_of_the_interpreter_is_does_not_matter(tmp_path: Path) -> None:
    """Strings of the guest's first process grow with it, and once its heap then grew by one system call more."""
    interpreter, hashes = Path(sys.executable).resolve(), set[str]()
    for length in range(1, 121, 5):
        link = tmp_path / ("a" * length) / "python"
        link.parent.mkdir()
        link.symlink_to(interpreter)
        hashes.add(told(program=WEB, python=str(link)))
    assert len(hashes) == 1, hashes


def test_other_files_beside_do_not_matter(usual: str, tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"other-{number}").touch()
    assert told(cwd=tmp_path) == usual


def test_which_machine_it_is_and_where_does_not_matter(tmp_path: Path) -> None:
    here = told(program=PLACE)
    assert here.splitlines()[:4] == ["twinnet", "7477696e6e6574207477696e6e657421", "Etc/UTC", "UTC"]
    elsewhere = {
        "hostname": "elsewhere\n",
        "machine-id": "0123456789abcdef0123456789abcdef\n",
        "resolv.conf": "nameserver 10.0.0.2\nsearch elsewhere.example\n",
        "timezone": "Asia/Tokyo\n",
    }
    mounts = "set -e; "
    for name, content in elsewhere.items():
        (tmp_path / name).write_text(content)
        if Path("/etc", name).exists():
            mounts += f"mount --bind {tmp_path / name} /etc/{name}; "
    if (zone := Path("/usr/share/zoneinfo/Asia/Tokyo")).exists() and Path("/etc/localtime").exists():
        mounts += f"mount --bind {zone} /etc/localtime; "
    assert told("unshare", "--map-root-user", "--mount", "sh", "-c", f'{mounts} exec "$@"', "sh", program=PLACE) == here


def test_a_name_from_outside_is_refused_at_once_and_no_frame_asks_for_it() -> None:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
    with net.simulate(hosts="programs") as lab:
        lab.run_until("5 s")
        before = [row["counters"]["frames"] for row in lab.ports()]
        for database in ("hosts", "ahosts", "ahostsv4", "ahostsv6"):
            begin_s = lab.now()
            assert lab["h1"].run(f"getent {database} example.org").returncode == 2
            assert lab.now() - begin_s < 1e-3, database
        assert lab["h1"].run("getent ahostsv4 h2", check=True).stdout.split()[0] == "10.0.0.2"
        assert [row["counters"]["frames"] for row in lab.ports()] == before


def test_all_machines_have_the_same_processor_for_programs() -> None:
    loader = Path("/lib64/ld-linux-x86-64.so.2")
    net = tn.Network()
    net.host("h1")
    with net.simulate(hosts="programs") as lab:
        assert lab["h1"].run("cat /proc/cpuinfo").stdout.splitlines()[1:3] == [
            "vendor_id\t: User Mode Linux",
            "model name\t: UML",
        ]
        variables = lab["h1"].run("env", env={"PATH": os.defpath, "MINE": "1"}).stdout.splitlines()
        assert "MINE=1" in variables and any(line.startswith("GLIBC_TUNABLES=") for line in variables)
        assert lab.started["processor"] == features()
        own = lab["h1"].run("env", env={"PATH": os.defpath, "GLIBC_TUNABLES": "mine"}).stdout
        assert "GLIBC_TUNABLES=mine" in own.splitlines()
        if loader.exists():
            levels = re.findall(r"(x86-64-v\d) \(supported, searched\)", lab["h1"].run([str(loader), "--help"]).stdout)
            assert levels == ["x86-64-v2"]


ROUTINE = (
    "import ctypes; library = ctypes.CDLL(None); "
    "place = lambda name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value; "
    "print(place('memcpy') - place('getpid'))"
)
"""Where the C library has the routine that it has chosen, from one that it has not to choose."""


def test_the_c_library_takes_the_same_routines_on_all_machines() -> None:
    net = tn.Network()
    net.host("h1")
    with net.simulate(hosts="programs") as lab:
        given = lab["h1"].run([sys.executable, "-c", ROUTINE], check=True).stdout
        variable = lab["h1"].run(["sh", "-c", "echo $GLIBC_TUNABLES"], check=True).stdout.strip()

    def here(**environment: str) -> str:
        command = [sys.executable, "-c", ROUTINE]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    assert given == here(GLIBC_TUNABLES=variable)
    if "avx2" in Path("/proc/cpuinfo").read_text():
        assert given != here(), "the variable has no effect"


def test_the_record_says_which_instructions_programs_may_find(tmp_path: Path) -> None:
    told_by = tmp_path / "cpuinfo"
    told_by.write_text("processor\t: 0\nflags\t\t: fpu sse2 avx2 avx512_vnni aes lm sha_ni pni\n\n")
    assert features(told_by) == ["aes", "avx2", "avx512_vnni", "sha_ni"]
    assert features(tmp_path / "missing") == []
    assert differing(["aes", "avx2"], ["aes", "sha_ni"]).startswith("; only one of the two processors has avx2, sha_ni")
    assert differing(["aes"], ["aes"]) == differing(None, ["aes"]) == ""
