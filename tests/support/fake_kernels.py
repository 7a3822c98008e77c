"""Kernels and sources of Linux that are none: small programs that answer as User Mode Linux does, and a source that
"builds" one in a moment. Its files are the lines that our patches expect."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from pathlib import Path

from twinnet.guest.kernel_build import patches

__all__ = ["PARAMETERS", "configuration", "elf_of_script", "fake_kernel", "fake_source"]

PARAMETERS = (
    "rngseed=<number>\n    Draws ...\n    RNDCLEARPOOL ...\n    RDRAND ...\n\n"
    "time-travel=ext:[ID:]/path/to/socket\n    Turns are taken by shared memory ...\n\n"
    "ttcost=<nanoseconds>\n    Most readings are no system calls.\n\nttsyscall=<nanoseconds>\n\n"
    "hostfs=<root dir>\n    Nothing of the host is changed: ...\n"
)
RECIPE = patches()[0].parents[1]


def configuration(**changed: str) -> str:
    """The options of a kernel that was built as it should be, but for those that are `changed` ("" leaves one out)."""
    lines = [line for line in (RECIPE / "config").read_text().splitlines() if line.startswith("CONFIG_")]
    options = {"CONFIG_UML": "y", **dict(line.split("=", 1) for line in lines if not line.endswith("=n")), **changed}
    return "".join(f"{name}={value}\n" for name, value in options.items() if value)


def fake_kernel(
    path: Path, version: str = "7.3.4-twinnet", options: str | None = None, parameters: str = PARAMETERS
) -> Path:
    """Write an executable to `path` that answers as a kernel of User Mode Linux, and return the path."""
    asked = {
        "--version": version,
        "--showconfig": configuration() if options is None else options,
        "--help": parameters,
    }
    cases = "".join(f"{question}) /bin/cat <<'END'\n{answer}\nEND\n;;\n" for question, answer in asked.items())
    written = [f"Linux version {version} (fake)", *(f"{line}\n" for line in asked["--showconfig"].splitlines())]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(elf_of_script(f'case "$1" in\n{cases}esac\n', [*written, parameters]))
    path.chmod(0o755)
    return path


def elf_of_script(script: str, written: Sequence[str] = ()) -> bytes:
    """An ELF executable for x86-64 that runs ``/bin/sh -c SCRIPT linux FIRST-ARGUMENT``, with texts `written` in it."""
    address, code_at = 0x400000, 64 + 56
    texts = [b"/bin/sh", b"-c", script.encode(), b"linux", *(text.encode() for text in written)]
    length = 0
    for _ in range(2):
        starts: list[int] = []
        at = address + code_at + length
        for text in texts:
            starts.append(at)
            at += len(text) + 1
        code = b"".join(
            [
                bytes.fromhex("488b3c24"),  # mov rdi, [rsp]: how many arguments there are
                bytes.fromhex("488d54fc10"),  # lea rdx, [rsp+8*rdi+16]: the environment
                bytes.fromhex("4c8b442410"),  # mov r8, [rsp+16]: the first argument
                bytes.fromhex("6a004150"),  # push 0; push r8
                *(b"\x48\xb8" + struct.pack("<Q", starts[place]) + b"\x50" for place in (3, 2, 1, 0)),  # push each text
                bytes.fromhex("4889e6"),  # mov rsi, rsp
                b"\x48\xbf" + struct.pack("<Q", starts[0]),  # mov rdi, "/bin/sh"
                bytes.fromhex("b83b0000000f05"),  # execve
                bytes.fromhex("bf7f000000b83c0000000f05"),  # exit(127)
            ]
        )
        length = len(code)
    body = code + b"".join(text + b"\0" for text in texts)
    size = code_at + len(body)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, address + code_at, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return head + struct.pack("<IIQQQQQQ", 1, 5, 0, address, address, size, size, 4096) + body


def fake_source(folder: Path, version: str = "7.3.4", compile_: str = "", configure: str = "") -> Path:
    """Write a source of Linux into `folder` whose Makefile copies :func:`fake_kernel`, and return the folder.

    `compile_` and `configure` are lines of shell that the targets ``linux`` and ``olddefconfig`` run besides.
    """
    for patch in patches():
        file: Path | None = None
        for line in patch.read_text().splitlines():
            if line.startswith("--- /dev/null"):
                file = None
            elif line.startswith("--- a/"):
                file = folder / line.removeprefix("--- a/")
                file.parent.mkdir(parents=True, exist_ok=True)
                # Another patch may change it, too.
                file.touch()
            elif file is not None and re.match(r"[ -](?!--)", line):
                file.write_text(file.read_text() + line[1:] + "\n")
    fake_kernel(folder / "kernel.sh", f"{version}-twinnet")
    numbers = dict(zip(("VERSION", "PATCHLEVEL", "SUBLEVEL"), version.split("."), strict=True))
    (folder / "Makefile").write_text(
        "".join(f"{name} = {number}\n" for name, number in numbers.items())
        + "defconfig:\n\t@echo CONFIG_UML=y >$(O)/.config\n"
        + f"olddefconfig:\n\t@true {configure}\n"
        + "linux:\n\t@echo '  CC      init/main.o'\n\t@grep -q rngseed= arch/um/kernel/um_arch.c\n"
        + f"\t@true {compile_}\n\t@cp kernel.sh $(O)/linux\n"
    )
    return folder
