"""A kernel of User Mode Linux that somebody else has built, told by what is written in its file. It is not run.

It is an ELF executable for x86-64 (System V ABI, AMD64 supplement) that has, as each kernel does, a line ``Linux
version``; as User Mode Linux does, its configuration, which ``--showconfig`` prints; and the texts that ``--help``
prints. Who wants to can write all of that into another program: what is read here shows a mistake, and no bad
intention.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

from twinnet.errors import KernelUnusable
from twinnet.guest.kernel import REMEDY, Kernel, described

__all__ = ["read_kernel"]

_IDENT = b"\x7fELF\x02\x01\x01"
"""64 bits, little-endian, of the current version."""
_EXECUTABLE, _SHARED, _X86_64 = 2, 3, 62
_VERSION = re.compile(rb"Linux version (\d{1,4}\.\d{1,4}[\w.+-]{0,60}) ")
_OPTION = re.compile(rb"(?:^|[\0\n])(CONFIG_\w{1,80}=[^\0\n]{0,200})(?=\n)")


def read_kernel(path: Path, called: str) -> Kernel:
    """Return the kernel whose file is at `path`, by what is written in it.

    Parameters
    ----------
    path
        The file.
    called
        What a refusal calls it.

    Raises
    ------
    KernelUnusable
        It is no kernel of User Mode Linux for x86-64.
    OSError
        It cannot be read.
    """

    def no_kernel(why: str) -> KernelUnusable:
        return KernelUnusable(f"{called} is no kernel of User Mode Linux: {why}", REMEDY)

    content = path.read_bytes()
    if len(content) < 64 or not content.startswith(_IDENT):
        raise no_kernel("it is no ELF file of 64 bits")
    kind, machine = struct.unpack_from("<HH", content, 16)
    if kind not in (_EXECUTABLE, _SHARED) or machine != _X86_64:
        raise no_kernel("it is no executable for x86-64")
    versions = set(_VERSION.findall(content))
    if len(versions) != 1:
        raise no_kernel("it has no line `Linux version`" if not versions else "it has several versions of Linux")
    configuration = b"\n".join(_OPTION.findall(content)).decode("latin-1")
    if "CONFIG_UML=y" not in configuration.split("\n"):
        raise no_kernel("it has no configuration of User Mode Linux")
    # The texts of --help, among all others.
    parameters = content.replace(b"\0", b"\n").decode("latin-1")
    return described(path, "file", versions.pop().decode(), configuration, parameters)
