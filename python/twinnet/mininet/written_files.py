"""What a script on the virtual clock has written: it stays in the guest's memory, and what lies in folders of the
caller's choice is brought back when the script has ended.

The guest is not trusted with this machine: of what it says only names below these folders count, no symbolic link is
followed or made, and nothing is deleted.
"""

from __future__ import annotations

import io
import os
import re
import stat
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from twinnet.lab_process.job import DEVNULL, PIPE

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["WrittenFiles"]

_WRITTEN = "/run/written"
"""Where the guest shows what was written (`furnish` in crates/linux/src/guest/first_process/building.rs)."""
_OF_THE_GUEST = frozenset(
    Path(one)
    for one in (
        *("/etc/hostname", "/etc/localtime", "/etc/machine-id", "/etc/resolv.conf", "/etc/timezone"),
        "/var/lib/dbus/machine-id",
    )
)
"""What the guest itself writes (`OF_THE_MACHINE` in building.rs): not this machine's, wherever a script is started."""
_LEFT_AWAY = ("/tmp", "/var/tmp", "/var/run", "/run")
"""What nobody misses: files for the time of the run."""
_CACHES = frozenset({"__pycache__", ".cache"})
_HISTORIES = frozenset({".bash_history", ".mininet_history", ".python_history"})
_MOST_NAMES = 5
_MOST_BYTES = 4 << 30
_MODE = 0o777


class WrittenFiles:
    """The files that programs of `host` write.

    Parameters
    ----------
    lab, host
        The lab and its host.
    folders
        The folders whose files are brought back.
    files
        Further files that are, with those that are numbered after them: of ``net.yaml`` also ``net-2.yaml``.
    """

    def __init__(self, lab: Lab, host: str, folders: Sequence[Path], files: Sequence[Path] = ()) -> None:
        self._lab = lab
        self._host = host
        self._folders = [Path(os.path.realpath(folder)) for folder in folders]
        self._files = [Path(os.path.realpath(file.parent), file.name) for file in files]

    def bring_back(self) -> None:
        """Bring back what was written in the folders, and tell on stderr of it, and of what was written elsewhere."""
        brought: list[Path] = []
        failed: list[str] = []
        listed = [path for path in self._listed() if path not in _OF_THE_GUEST]
        kept = [path for path in listed if self._is_kept(path)]
        try:
            for path, content, mode in self._contents(kept):
                if content is None:
                    failed.append(f"{path} (there are more than {_MOST_BYTES >> 30} GiB)")
                    continue
                try:
                    if self._put(path, content, mode):
                        brought.append(path)
                except OSError as refused:
                    failed.append(f"{path} ({refused.strerror})")
        except tarfile.TarError as broken:
            failed.append(f"the rest ({broken})")
        elsewhere = [path for path in listed if not self._is_kept(path) and not _is_for_the_run(path)]
        if brought:
            _say(f"brought back from the virtual clock: {self._named(brought)}")
        if failed:
            _say(f"not brought back: {_some(failed)}")
        if elsewhere:
            _say(f"written elsewhere, and gone (--keep FOLDER brings it back): {self._named(elsewhere)}")

    def _is_kept(self, path: Path) -> bool:
        return self._folder_of(path) is not None

    def _folder_of(self, path: Path) -> Path | None:
        """The folder for whose sake `path` is brought back."""
        if not _CACHES & set(path.parts):
            for folder in self._folders:
                if path.is_relative_to(folder):
                    return folder
        for file in self._files:
            if path.parent == file.parent and re.fullmatch(
                rf"{re.escape(file.stem)}(-\d+)?{re.escape(file.suffix)}", path.name
            ):
                return file.parent
        return None

    def _named(self, paths: Sequence[Path]) -> str:
        here = self._folders[0]
        return _some([str(path.relative_to(here) if path.is_relative_to(here) else path) for path in paths])

    def _listed(self) -> Iterator[Path]:
        """Yield the regular files that were written, by their places."""
        said = self._run(["find", _WRITTEN, "-xdev", "-type", "f", "-print0"], b"")
        for name in sorted(filter(None, said.split(b"\0"))):
            path = PurePosixPath(os.fsdecode(name))
            if ".." not in path.parts and path.is_relative_to(_WRITTEN):
                yield Path("/") / path.relative_to(_WRITTEN)

    def _contents(self, paths: Sequence[Path]) -> Iterator[tuple[Path, bytes | None, int]]:
        """Yield `paths` with their contents and modes; ``None``: all that is brought back would be too large."""
        if not paths:
            return
        wanted = {str(path).lstrip("/"): path for path in paths}
        names = b"\0".join(os.fsencode(name) for name in wanted)
        argv = ["tar", "--create", "--directory", _WRITTEN, "--null", "--no-recursion", "--verbatim-files-from"]
        packed = self._run([*argv, "--hard-dereference", "--sparse", "--files-from", "-", "--file", "-"], names)
        left = _MOST_BYTES
        with tarfile.open(fileobj=io.BytesIO(packed), errors="surrogateescape") as archive:
            for member in archive:
                path = wanted.pop(member.name, None)
                if path is None or not member.isfile() or (file := archive.extractfile(member)) is None:
                    continue
                too_large = member.size > left
                left -= 0 if too_large else member.size
                yield path, None if too_large else file.read(), member.mode

    def _run(self, argv: Sequence[str], given: bytes) -> bytes:
        job = self._lab[self._host].popen(argv, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        return job.communicate(given)[0]

    def _put(self, path: Path, content: bytes, mode: int) -> bool:
        """Write a file below one of the folders, as its owner; return whether that changed anything."""
        folder = self._folder_of(path) or path.parent
        *parents, name = path.relative_to(folder).parts
        place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for parent in parents:
                with suppress(FileExistsError):
                    os.mkdir(parent, _MODE, dir_fd=place)
                flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                inner = os.open(parent, flags, dir_fd=place)
                os.close(place)
                place = inner
            flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            try:
                descriptor, is_new = os.open(name, flags, dir_fd=place), False
            except FileNotFoundError:
                flags |= os.O_CREAT | os.O_EXCL
                descriptor, is_new = os.open(name, flags, _MODE & mode, dir_fd=place), True
            with os.fdopen(descriptor, "r+b") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise OSError(0, "it is no regular file here")
                if not is_new and file.read() == content:
                    return False
                file.seek(0)
                file.write(content)
                file.truncate()
            return True
        finally:
            os.close(place)


def _is_for_the_run(path: Path) -> bool:
    forgotten = bool(_CACHES & set(path.parts)) or path.name in _HISTORIES
    return forgotten or any(path.is_relative_to(one) for one in _LEFT_AWAY)


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def _say(text: str) -> None:
    print(f"twinnet: {text}", file=sys.stderr, flush=True)
