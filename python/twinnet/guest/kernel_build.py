"""Builds the kernel from a source of Linux, with the configuration and the patches that stand beside this file."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from twinnet.errors import KernelUnusable, NotAvailable, ProgramFailed, ProgramMissing
from twinnet.guest.kept_kernels import choose, keep, kept, workplace
from twinnet.guest.kernel import Kernel, kernels_folder
from twinnet.guest.kernel_source import KernelSource, find_source

__all__ = ["SAME_FOR_ALL", "TOOLS", "USUAL_FILES", "build", "patches", "recipe_hash"]

USUAL_FILES = 1000
"""The files that Linux 7.3 compiles with our configuration."""

Tell = Callable[[str, int], None]
"""Told of each step, and of how many files are compiled; it is called for each of them."""

TOOLS = ("gcc", "make", "flex", "bison", "bc", "patch", "tar", "xz")
"""The programs that a build needs."""

_RECIPE = Path(__file__).parent / "recipe"
_PACKAGES = "gcc make libc6-dev flex bison bc patch tar xz-utils"
_LOG_LINES = 15

SAME_FOR_ALL = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_VERSION": "1",
    "KBUILD_BUILD_USER": "twinnet",
    "KBUILD_BUILD_HOST": "twinnet",
    "LC_ALL": "C",
}
"""A kernel holds its name and the date of its build: with these variables, two builds of one source are the same,
whoever has made them and when."""


def build(source: KernelSource | None, tell: Tell, jobs: int | None = None) -> Kernel:
    """Build the kernel and choose it; one that was built of the same source in the same way is chosen as it is.

    Parameters
    ----------
    source
        By default the newest that a package ``linux-source`` has put into ``/usr/src``.
    tell
        Told how it goes.
    jobs
        How many files are compiled at once; by default as many as there are processors.

    Raises
    ------
    NotAvailable
        This machine has not the processor that User Mode Linux runs on, or the cache folder cannot be written.
    ProgramMissing
        A tool is not installed.
    ProgramFailed
        A step has failed; the message has the end of the log, and names the log.
    KernelMissing, KernelUnusable, BadFile
        There is no source, or it cannot be used.
    """
    if platform.machine() != "x86_64":
        raise NotAvailable(f"User Mode Linux runs on x86_64, and this machine is {platform.machine()}")
    source = source or find_source()
    tell(f"reading {source.path}", 0)
    source_hash = source.sha256()
    name = hashlib.sha256(f"{source_hash} {recipe_hash()}".encode()).hexdigest()[:16]
    with workplace(lambda: tell("waiting for another build or installation to end", 0)) as place:
        if kept(name) is not None:
            return choose(name)
        _check_tools()
        making = _Making(place, kernels_folder() / "build.log", tell)
        making.make(source, jobs or len(os.sched_getaffinity(0)))
        record = {"source": str(source.path), "source_sha256": source_hash, "recipe_sha256": recipe_hash()}
        return keep(place, name, f"the kernel from {source.path}", record)


def patches() -> list[Path]:
    """Return the patches in the order in which they are applied."""
    return sorted((_RECIPE / "patches").glob("*.patch"))


def recipe_hash() -> str:
    """Return the hash of the configuration, the patches and what else decides what is built."""
    digest = hashlib.sha256(repr(sorted(SAME_FOR_ALL.items())).encode())
    for path in (_RECIPE / "config", *patches()):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _check_tools() -> None:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise ProgramMissing(
            f"building a kernel needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
            f"on Debian and Ubuntu, `apt-get install {_PACKAGES}`",
        )
    linked = subprocess.run(
        ["gcc", "-static", "-x", "c", "-", "-o", "/dev/null"], input=b"int main(void){return 0;}", capture_output=True
    )
    if linked.returncode != 0:
        raise ProgramMissing(
            "building a kernel needs a C library to link statically with, which gcc does not find",
            f"on Debian and Ubuntu, `apt-get install {_PACKAGES}`; on Fedora, glibc-static",
        )


class _Making:
    """The steps of one build, all into one log."""

    def __init__(self, place: Path, log: Path, tell: Tell) -> None:
        self.place, self.log, self.tell = place, log, tell
        log.write_bytes(b"")

    def make(self, source: KernelSource, jobs: int) -> None:
        """Unpack, patch, configure and compile into ``kept/linux`` of the workplace."""
        self.tell(f"unpacking {source.path}", 0)
        top = source.unpack(self.place / "source")
        for patch in patches():
            self._patch(patch, top)
        output = self.place / "output"
        output.mkdir()
        self.tell("configuring", 0)
        wanted = (_RECIPE / "config").read_text(encoding="utf-8")
        self._run("configuring", _make(top, output, "defconfig"))
        with (output / ".config").open("a", encoding="utf-8") as file:
            file.write(wanted)
        self._run("configuring", _make(top, output, "olddefconfig"))
        _check_configuration(wanted, (output / ".config").read_text(encoding="utf-8"))
        self._run("compiling", ["nice", "-n", "10", *_make(top, output, f"-j{jobs}", "linux")])
        (output / "linux").rename(self.place / "kept" / "linux")

    def _patch(self, patch: Path, top: Path) -> None:
        self.tell(f"applying {patch.name}", 0)
        self._run(
            f"applying {patch.name}, which is made for Linux 7.3,",
            ["patch", "-p1", "--forward", "--no-backup-if-mismatch", "-d", str(top), "-i", str(patch)],
        )

    def _run(self, what: str, command: list[str]) -> None:
        compiled = 0
        with self.log.open("ab") as log, _running(command) as running:
            assert running.stdout is not None
            # By a pipe: when this process is killed, what it runs ends with its next line.
            for line in running.stdout:
                log.write(line)
                if line.startswith((b"  CC ", b"  AS ")):
                    compiled += 1
                    self.tell("compiling", compiled)
        if running.returncode != 0:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
            end = "\n".join(lines[-_LOG_LINES:])
            raise ProgramFailed(f"{what} failed; the end of {self.log}:\n{end}")


@contextmanager
def _running(command: list[str]) -> Generator[subprocess.Popen[bytes]]:
    kept_variables = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**kept_variables, **SAME_FOR_ALL},
    )
    with process:
        try:
            yield process
        except BaseException:
            process.terminate()
            raise


def _make(top: Path, output: Path, *targets: str) -> list[str]:
    return ["make", "-C", str(top), "ARCH=um", f"O={output}", *targets]


def _check_configuration(wanted: str, made: str) -> None:
    """Raise KernelUnusable when this source has not what the configuration asks for."""
    options = dict(re.findall(r"^(CONFIG_\w+)=(.*)$", made, re.MULTILINE))
    missing = [
        f"{option}={value}"
        for option, value in re.findall(r"^(CONFIG_\w+)=(.*)$", wanted, re.MULTILINE)
        if options.get(option, "n") != value
    ]
    if missing:
        raise KernelUnusable(
            f"this source of Linux cannot be configured as it must be: {', '.join(missing)}",
            "Linux 7.3 is known to work",
        )
