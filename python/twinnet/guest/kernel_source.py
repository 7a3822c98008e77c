"""The source of a kernel: found, told apart by a hash, and unpacked with only what User Mode Linux needs."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from twinnet.errors import BadFile, KernelMissing, KernelUnusable, reason
from twinnet.given_files import open_given
from twinnet.guest.kernel import OLDEST, version_number

__all__ = ["DEBIAN_SOURCES", "KernelSource", "find_source", "source_at"]

DEBIAN_SOURCES = Path("/usr/src")
"""Where the packages ``linux-source-*`` of Debian and Ubuntu put their archives."""

_LEFT_OUT = (
    # More than half of the source: code for other processors and of drivers that are not built. Each Kconfig stays.
    *(f"*/arch/{name}/*.[chS]" for name in ("a[lr]*", "c*", "h*", "l*", "m*", "n*", "o*", "p*", "r*", "s*", "xt*")),
    "*/drivers/gpu/*.[ch]",
    "*/drivers/media/*.[ch]",
    "*/drivers/net/ethernet/*.[ch]",
    "*/drivers/net/wireless/*.[ch]",
    "*/sound/*.[ch]",
    "*/Documentation/*.rst",
    "*/Documentation/devicetree/*",
    "*/tools/testing/*",
    # What a build in the folder itself has left; kbuild refuses a source in which it finds that.
    "*/.git",
    "*/.config",
    "*/include/config",
    "*/include/generated",
    "*.o",
)
_SAME_STREAM = ("--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu")
_BLOCK = 1 << 20


@dataclass(frozen=True)
class KernelSource:
    """A source of Linux.

    Parameters
    ----------
    path
        An archive as ``tar`` reads it, or a folder.
    """

    path: Path

    def sha256(self) -> str:
        """Return the hash of the archive, or of the files of the folder that are used."""
        digest = hashlib.sha256()
        with self._stream() as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
        return digest.hexdigest()

    def unpack(self, into: Path) -> Path:
        """Unpack into the folder `into`, and return the folder in it that holds the source.

        Raises
        ------
        BadFile
            It cannot be read, or is no source of Linux.
        KernelUnusable
            It is the source of a Linux that is too old.
        """
        into.mkdir()
        with self._stream() as stream:
            command = ["tar", "-x", *self._compression(), "-C", str(into), *_excludes()]
            unpacking = subprocess.run(command, stdin=stream, capture_output=True)
        if unpacking.returncode != 0:
            words = unpacking.stderr.decode(errors="replace").strip().splitlines()
            raise BadFile(f"{self.path} cannot be unpacked: {words[0] if words else 'tar failed'}", _WHAT_IS_TAKEN)
        # Archives hold one folder; a source folder is at the top.
        tops = [into, *sorted(into.iterdir())]
        top = next((one for one in tops if (one / "arch" / "um" / "Kconfig").is_file()), None)
        if top is None:
            raise BadFile(f"{self.path} holds no source of Linux: it has no arch/um", _WHAT_IS_TAKEN)
        version = _version_of(top)
        if version_number(version) < OLDEST:
            raise KernelUnusable(
                f"{self.path} is the source of Linux {version}, and {OLDEST[0]}.{OLDEST[1]} is the oldest that can "
                "run programs on the virtual clock",
                f"give a newer one: `twinnet kernel build --source FILE`; {_HOW_TO_GET_NEWER}",
            )
        return top

    @contextmanager
    def _stream(self) -> Generator[IO[bytes]]:
        """The bytes of the archive; of a folder, those of an archive that is the same for the same files."""
        if not self.path.is_dir():
            try:
                file = open_given(self.path)
            except OSError as error:
                raise BadFile(f"{self.path} cannot be read: {reason(error)}", _WHAT_IS_TAKEN) from None
            with file:
                yield file
            return
        command = ["tar", "-c", *_SAME_STREAM, *_excludes(), "-C", str(self.path), "."]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as packing:
            assert packing.stdout is not None
            yield packing.stdout
        if packing.returncode != 0:
            raise BadFile(f"{self.path} cannot be read in whole", "make all its files readable for you")

    def _compression(self) -> tuple[str, ...]:
        """The option that ``tar`` needs, for it reads from a pipe and cannot look."""
        if self.path.is_dir():
            return ()
        with open_given(self.path) as file:
            first = file.read(6)
        known = {b"\xfd7zXZ\0": "--xz", b"\x1f\x8b": "--gzip", b"BZh": "--bzip2", b"\x28\xb5\x2f\xfd": "--zstd"}
        return tuple(option for magic, option in known.items() if first.startswith(magic))


_WHAT_IS_TAKEN = "give a folder with the source of Linux, or an archive such as linux-7.3.tar.xz"
_HOW_TO_GET_NEWER = "Debian has newer ones in backports: `apt-get install -t RELEASE-backports linux-source`"


def source_at(given: Path) -> KernelSource:
    """Return the source at the path that was `given`.

    Raises
    ------
    BadFile
        There is none.
    """
    if not given.exists():
        raise BadFile(f"there is no {given}", _WHAT_IS_TAKEN)
    if given.is_dir() and not (given / "arch" / "um" / "Kconfig").is_file():
        raise BadFile(f"{given} holds no source of Linux: it has no arch/um", _WHAT_IS_TAKEN)
    return KernelSource(given.absolute())


def find_source(folder: Path = DEBIAN_SOURCES) -> KernelSource:
    """Return the newest source that a package ``linux-source`` has put into `folder`.

    Raises
    ------
    KernelMissing
        There is none.
    """
    found = [
        (version_number(named.group(1)), path)
        for path in folder.glob("linux-source-*")
        if (named := re.fullmatch(r"linux-source-(\d+\.\d+)\.tar\.(xz|zst|bz2|gz)", path.name))
    ]
    if not found:
        raise KernelMissing(
            f"there is no source of Linux: no linux-source-*.tar.xz in {folder}",
            "on Debian and Ubuntu, `apt-get install linux-source`; elsewhere, `twinnet kernel build --source FILE` "
            "takes an archive or a folder",
        )
    return KernelSource(max(found)[1])


def _excludes() -> tuple[str, ...]:
    return tuple(f"--exclude={pattern}" for pattern in _LEFT_OUT)


def _version_of(top: Path) -> str:
    lines = (top / "Makefile").read_text(encoding="utf-8", errors="replace")[:2000]
    numbers = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL) *= *(\d+)", lines, re.MULTILINE))
    return ".".join(numbers.get(name, "0") for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL"))
