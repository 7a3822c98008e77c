"""Installs a kernel that somebody has built: an executable, or the wheel of the package ``twinnet-kernel``.

The file is read and not run. A kernel runs with the rights of its user from the first run on that needs one, so its
hash is told, and may be asked for.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO

from twinnet.errors import BadFile, reason
from twinnet.given_files import open_given
from twinnet.guest.kept_kernels import keep, link_to, workplace
from twinnet.guest.kernel import PACKAGE, Kernel, kernels_folder
from twinnet.guest.kernel_image import read_kernel

__all__ = ["install"]

_MOST_BYTES = 256 << 20
_BLOCK = 1 << 20
_LETTERS = 16
_NOT_THE_ONE = "get it again from who has built it, and the hash from another place"
_WHAT_IS_TAKEN = "give a kernel that `twinnet kernel build` has made, or a wheel of twinnet-kernel"


def install(given: Path, waiting: Callable[[], None], wanted: str | None = None) -> Kernel:
    """Copy the kernel at the path that was `given` into the cache, and choose it; it is read, and not run.

    Parameters
    ----------
    given
        An executable, or a wheel, which is known by its content.
    waiting
        Called when another process has to end first.
    wanted
        The SHA-256 that the file, or the kernel in the wheel, must have; default: any.

    Raises
    ------
    BadFile
        It cannot be read, has another hash, is larger than 256 MB, or is a wheel that holds no kernel.
    KernelUnusable
        It is no kernel, or one in which programs on the virtual clock cannot run.
    NotAvailable
        The cache folder cannot be written.
    """
    with workplace(waiting) as place:
        target = place / "kept" / "linux"
        try:
            with open_given(given) as file:
                digest = _copy(given, file, target)
            hashes = [digest]
            if zipfile.is_zipfile(target):
                archive = place / "wheel"
                target.rename(archive)
                digest = _unpack(given, archive, target)
                hashes.append(digest)
            if wanted is not None and wanted.lower() not in hashes:
                raise BadFile(f"{given} has the SHA-256 {' and in it '.join(hashes)}, not {wanted}", _NOT_THE_ONE)
            read_kernel(target, str(given)).check(str(given))
        except (OSError, zipfile.BadZipFile) as error:
            raise BadFile(f"{given} cannot be read: {reason(error)}", _WHAT_IS_TAKEN) from None
        name = digest[:_LETTERS]
        there = kernels_folder() / name / "linux"
        if there.exists() and hashlib.sha256(there.read_bytes()).hexdigest() == digest:
            return replace(read_kernel(there, str(given)), path=link_to(name), found_by="cache")
        record = {"installed_from": str(given.absolute()), "sha256": digest}
        return keep(place, name, str(given), record, read_kernel)


def _unpack(given: Path, archive: Path, target: Path) -> str:
    with zipfile.ZipFile(archive) as wheel:
        try:
            member = wheel.open(f"{PACKAGE}/linux")
        except KeyError:
            raise BadFile(f"{given} is no wheel of twinnet-kernel: it has no {PACKAGE}/linux", _WHAT_IS_TAKEN) from None
        with member:
            return _copy(given, member, target)


def _copy(given: Path, source: IO[bytes], target: Path) -> str:
    digest, size = hashlib.sha256(), 0
    with target.open("wb") as file:
        while block := source.read(_BLOCK):
            size += len(block)
            if size > _MOST_BYTES:
                raise BadFile(f"{given} is larger than {_MOST_BYTES >> 20} MB, and no kernel is", _WHAT_IS_TAKEN)
            digest.update(block)
            file.write(block)
    return digest.hexdigest()
