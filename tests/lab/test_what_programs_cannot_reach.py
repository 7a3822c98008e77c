"""What programs on the virtual clock write stays in the guest, also when root of the guest tries otherwise."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import twinnet as tn
from child_processes import children
from kernels_here import a_kernel_is_here
from ordinary_user import an_ordinary_user
from twinnet.guest import needed

if not a_kernel_is_here():
    pytest.skip("there is no kernel for programs on the virtual clock", allow_module_level=True)

ATTEMPTS = r"""
import ctypes, errno, json, mmap, os, socket, stat, sys

libc = ctypes.CDLL(None, use_errno=True)
REMOUNT, BIND = 32, 4096


def mount(source, place, kind, flags=0, options=None):
    if libc.mount(source.encode(), place.encode(), kind.encode(), flags, options and options.encode()):
        raise OSError(ctypes.get_errno(), "mount")


def written(path, how):
    with open(path, how) as file:
        file.write("escaped")


def mapped(path):
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0] = 1


def bound(path):
    socket.socket(socket.AF_UNIX).bind(path)


def into_tmpfile(path):
    os.close(os.open(path, os.O_TMPFILE | os.O_RDWR))


def of(way, folder):
    there = folder + "/there"
    tries = {
        "create": lambda: written(folder + "/new", "w"),
        "overwrite": lambda: written(there, "w"),
        "append": lambda: written(there, "a"),
        "write in place": lambda: written(there, "r+"),
        "write by memory": lambda: mapped(there),
        "truncate": lambda: os.truncate(there, 0),
        "file without a name": lambda: into_tmpfile(folder),
        "mkdir": lambda: os.mkdir(folder + "/made"),
        "rmdir": lambda: os.rmdir(folder + "/empty"),
        "fifo": lambda: os.mkfifo(folder + "/fifo"),
        "device": lambda: os.mknod(folder + "/device", stat.S_IFCHR | 0o666, os.makedev(1, 3)),
        "unix socket": lambda: bound(folder + "/socket"),
        "symbolic link": lambda: os.symlink("/etc/passwd", folder + "/symbolic"),
        "link": lambda: os.link(there, folder + "/hard"),
        "rename": lambda: os.rename(there, folder + "/renamed"),
        "unlink": lambda: os.unlink(there),
        "chmod": lambda: os.chmod(there, 0o4777),
        "chmod of a folder": lambda: os.chmod(folder, 0o777),
        "chown": lambda: os.chown(there, 1234, 1234),
        "times": lambda: os.utime(there, (1, 1)),
        "attribute": lambda: os.setxattr(there, "user.escaped", b"1"),
    }
    for name, attempt in tries.items():
        try:
            attempt()
            done[way + ": " + name] = "done"
        except OSError as error:
            done[way + ": " + name] = errno.errorcode[error.errno]


done = {}
outside = sys.argv[1]
os.makedirs("/run/a/b/work")
os.mkdir("/run/c")
os.mkdir("/run/d")

# Mounted once more, as it comes and with a wish to write, and another folder as its root.
mount("none", "/run/a", "hostfs")
of("mounted", "/run/a" + outside)
mount("none", "/run/c", "hostfs", 0, outside)
of("mounted below", "/run/c")
for flags in (REMOUNT, REMOUNT | BIND):
    try:
        mount("none", "/run/c", "hostfs", flags)
    except OSError:
        pass
of("mounted to write", "/run/c")

# A symbolic link out of what is the guest's own.
os.symlink("/run/c/there", "/run/d/symbolic")
try:
    written("/run/d/symbolic", "a")
    done["by a link"] = "done"
except OSError as error:
    done["by a link"] = errno.errorcode[error.errno]

# An overlay whose upper folder is the machine's.
os.mkdir("/run/d/low")
os.mkdir("/run/d/over")
try:
    mount("overlay", "/run/d/over", "overlay", 0, "lowerdir=/run/d/low,upperdir=/run/c,workdir=/run/c/empty")
    written("/run/d/over/new", "w")
    done["by an overlay"] = "done"
except OSError as error:
    done["by an overlay"] = errno.errorcode[error.errno]

# Out of the folder that the guest takes for its root, and to the first mount.
os.mkdir("/run/e")
top = os.open("/", os.O_RDONLY)
os.chroot("/run/e")
os.fchdir(top)
for _ in range(40):
    os.chdir("..")
os.chroot(".")
for flags in (REMOUNT, REMOUNT | BIND):
    try:
        mount("none", "/", "hostfs", flags)
    except OSError:
        pass
try:
    written(outside + "/new", "w")
except OSError:
    pass
print(json.dumps(done))
"""
LAB = """
import sys
import twinnet as tn
net = tn.Network()
net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="1 ms")
with net.simulate(hosts="programs", seed=1) as lab:
    print(lab["h1"].run(["python3", "-c", sys.argv[1], sys.argv[2]], check=True).stdout)
"""
OPEN_TO_THE_MACHINE = (
    "CONFIG_DEVMEM", "CONFIG_PROC_KCORE", "CONFIG_MCONSOLE", "CONFIG_SSL", "CONFIG_PORT_CHAN", "CONFIG_PTY_CHAN",
    "CONFIG_TTY_CHAN", "CONFIG_XTERM_CHAN", "CONFIG_BLK_DEV_UBD", "CONFIG_UML_SOUND", "CONFIG_UML_NET_VECTOR",
    "CONFIG_UML_PCI_OVER_VFIO", "CONFIG_MMAPPER", "CONFIG_MODULES", "CONFIG_KEXEC", "CONFIG_BPF_SYSCALL",
    "CONFIG_KPROBES", "CONFIG_UML_WATCHDOG", "CONFIG_LEGACY_PTYS",
)  # fmt: skip
"""What lets programs of the guest reach the machine past hostfs, or the memory of the kernel's process."""


def two_hosts() -> tn.Network:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="1 ms")
    return net


def fill(folder: Path) -> None:
    (folder / "empty").mkdir(parents=True)
    (folder / "there").write_text("before")
    os.utime(folder / "there", (1e9, 1e9))


def looks(folder: Path) -> dict[str, tuple[object, ...]]:
    """All that can be changed of the files in `folder`."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        told = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(told.st_mode) else b""
        attributes = os.listxattr(path, follow_symlinks=False)
        found[str(path)] = told.st_mode, told.st_uid, told.st_gid, told.st_nlink, told.st_mtime_ns, content, attributes
    return found


def all_refused(said: str) -> None:
    done: dict[str, str] = json.loads(said)
    assert len(done) > 60
    # A mount to write is refused, so that some find nothing there; nothing is done in any way.
    assert {name: error for name, error in done.items() if error == "done"} == {}
    assert {done["mounted: overwrite"], done["mounted: mkdir"], done["mounted: chmod"]} == {"EROFS"}


def test_root_of_the_guest_writes_no_file_of_the_machine(tmp_path: Path) -> None:
    fill(tmp_path)
    before = looks(tmp_path)
    with two_hosts().simulate(hosts="programs", seed=1) as lab:
        said = lab["h1"].run([sys.executable, "-c", ATTEMPTS, str(tmp_path)], check=True).stdout
    assert looks(tmp_path) == before
    all_refused(said)


def test_an_ordinary_users_guest_writes_no_file_of_that_user() -> None:
    with an_ordinary_user() as user:
        shutil.copy(needed().path, user.folder / "linux")
        outside = user.folder / "outside"
        user.call("mkdir", str(outside))
        assert outside.is_dir()
        fill_in = f"mkdir {outside}/empty; printf before >{outside}/there; touch -d @1000000000 {outside}/there"
        assert user.call("sh", "-c", fill_in).returncode == 0
        before = looks(outside)
        user.environment["TWINNET_KERNEL"] = str(user.folder / "linux")
        done = user.run(user.command(user.python, "-c", LAB, ATTEMPTS, str(outside)))
        assert looks(outside) == before
        assert done.returncode == 0, done.stderr
        all_refused(done.stdout)


def test_what_programs_write_beside_the_machines_files_stays_in_the_guest(tmp_path: Path) -> None:
    fill(tmp_path)
    before = looks(tmp_path)
    script = f"cd {tmp_path} && echo new >new && echo more >>there && rmdir empty && chmod 600 there && cat there new"
    with two_hosts().simulate(hosts="programs") as lab:
        assert lab["h1"].run(["sh", "-c", script], check=True).stdout == "beforemore\nnew\n"
    assert looks(tmp_path) == before


def test_the_kernel_has_no_other_way_to_the_machine() -> None:
    options = subprocess.run([needed().path, "--showconfig"], capture_output=True, text=True, check=True).stdout
    lines = options.splitlines()
    assert [option for option in OPEN_TO_THE_MACHINE if f"{option}=y" in lines] == []
    assert {'CONFIG_CON_CHAN="null"'} <= set(lines)


def test_consoles_and_memory_of_the_kernel_lead_nowhere() -> None:
    before = set(children(os.getpid()))
    nodes = {"mem": "c 1 1", "kmem": "c 1 2", "tty5": "c 4 5", "ttyS0": "c 4 64", "ubda": "b 98 0", "dsp": "c 14 3"}
    made = "; ".join(f"mknod /run/{name} {numbers}" for name, numbers in nodes.items())
    opened = "; ".join(f"(: >/run/{name}) 2>/dev/null && echo {name}" for name in nodes)
    with two_hosts().simulate(hosts="programs") as lab:
        (kernel,) = set(children(os.getpid())) - before
        held = set(Path(f"/proc/{kernel}/fd").iterdir())
        said = lab["h1"].run(["sh", "-c", f"{made}; {opened}; ls /proc/kcore 2>/dev/null"]).stdout
        # What is written to a console is swallowed.
        assert set(said.split()) <= {"tty5"}
        new = set(Path(f"/proc/{kernel}/fd").iterdir()) - held
        ends = {str(one.readlink()) for one in new}
        assert not {end for end in ends if end.startswith(("/dev/pts", "/dev/ptmx", "/dev/tty"))}
        status = Path(f"/proc/{kernel}/status").read_text()
        assert "NoNewPrivs:\t1\n" in status
