"""Gets a source of Linux from Debian and builds the kernel for programs on the virtual clock, where the cache lacks it:
``python3 tools/guest_kernel.py``. Any Python 3.11 does, for it runs before there is an environment.

Exit status 0: the kernel is there; 1: it could not be built; 3: no source can be had here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from twinnet.errors import TwinnetError  # noqa: E402
from twinnet.guest.kernel import OLDEST, VARIABLE, needed, version_number  # noqa: E402
from twinnet.guest.kernel_build import build  # noqa: E402
from twinnet.guest.kernel_source import KernelSource, find_source  # noqa: E402

__all__ = ["NO_SOURCE", "NoSource", "debian_lists", "main", "source"]

NO_SOURCE = 3
FOLDER = ROOT / "target" / "guest-kernel"
SUITE = "trixie-backports"
"""Where Debian has sources of Linux that are new enough, whatever release this machine has."""

EVERY_FILES = 100
LIMIT_S = 300


class NoSource(Exception):
    """Why no source can be had."""


def source(folder: Path) -> KernelSource:
    """Return the source that is installed, or that an earlier call has fetched into `folder`, or fetch it."""
    for place in (None, folder):
        try:
            found = find_source() if place is None else find_source(place)
        except TwinnetError:
            continue
        name = re.search(r"linux-source-(\d+\.\d+)", found.path.name)
        if name and version_number(name.group(1)) >= OLDEST:
            return found
    _fetch(folder)
    return find_source(folder)


def debian_lists(etc: Path) -> Iterator[str]:
    """Yield the stanzas of apt's lists under `etc` that name Debian's archive, with their suite changed to `SUITE`: so
    the mirror and the keys are those of this machine."""
    for path in sorted(etc.glob("sources.list.d/*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text()):
            lines = [line for line in stanza.splitlines() if not line.startswith("#")]
            suites = next((line for line in lines if line.startswith("Suites:")), "")
            if re.search(r"\w-updates\b", suites):
                yield "\n".join(f"Suites: {SUITE}" if line is suites else line for line in lines) + "\n"
    for path in (etc / "sources.list", *sorted(etc.glob("sources.list.d/*.list"))):
        for line in path.read_text().splitlines() if path.exists() else ():
            if named := re.match(r"deb\s+(\[[^]]*\]\s+)?(\S+)\s+\w+-updates\s", line):
                yield f"deb {named.group(1) or ''}{named.group(2)} {SUITE} main\n"


def _fetch(folder: Path) -> None:
    """Fetch the newest package ``linux-source-*`` with lists of its own: nothing is installed and nothing upgraded."""
    found = next(debian_lists(Path("/etc/apt")), None)
    if found is None:
        raise NoSource("this machine has no list of Debian's packages")
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    list_file = folder / ("debian.sources" if "Suites:" in found else "debian.list")
    list_file.write_text(found)
    options = [
        f"Dir::Etc::sourcelist={list_file}",
        "Dir::Etc::sourceparts=/dev/null",
        f"Dir::State::lists={folder / 'lists'}",
        f"Dir::Cache={folder}",
    ]
    apt = [part for option in options for part in ("-o", option)]
    _run(folder, "apt-get", *apt, "update")
    names = _run(folder, "apt-cache", *apt, "search", "--names-only", r"^linux-source-[0-9]+\.[0-9]+$").split()
    versions = [name.removeprefix("linux-source-") for name in names if re.fullmatch(r"linux-source-\d+\.\d+", name)]
    if not versions:
        raise NoSource(f"{SUITE} has no package linux-source")
    package = f"linux-source-{max(versions, key=version_number)}"
    _run(folder, "apt-get", *apt, "download", package)
    (archive,) = folder.glob(f"{package}_*.deb")
    _run(folder, "dpkg-deb", "-x", str(archive), "unpacked")
    for path in folder.glob("unpacked/usr/src/linux-source-*.tar.*"):
        path.replace(folder / path.name)
    archive.unlink()


def _run(folder: Path, *command: str) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoSource(f"{command[0]}: {error}") from None
    if done.returncode != 0:
        raise NoSource(f"{command[0]} failed: {done.stderr.strip()[-300:]}")
    return done.stdout


def _tell(step: str, files: int) -> None:
    if files % EVERY_FILES == 0:
        print(step, files or "", flush=True)


def main() -> int:
    """Build, and return the exit status."""
    try:
        kernel = needed() if os.environ.get(VARIABLE) else build(source(FOLDER), _tell)
    except NoSource as error:
        print(f"no source of Linux can be had: {error}")
        return NO_SOURCE
    except TwinnetError as error:
        print(error)
        return 1
    print(f"Linux {kernel.version}: {kernel.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
