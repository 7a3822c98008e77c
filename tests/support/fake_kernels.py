"""Kernels and sources of Linux that are none: small scripts that answer as User Mode Linux does, and a source that
"builds" one in a moment. Its files are the lines that our patches expect."""

from __future__ import annotations

import re
from pathlib import Path

from twinnet.guest.kernel_build import patches

__all__ = ["PARAMETERS", "configuration", "fake_kernel", "fake_source"]

PARAMETERS = (
    "rngseed=<number>\n    Draws ...\n    RNDCLEARPOOL ...\n\nttcost=<nanoseconds>\n\nttsyscall=<nanoseconds>\n"
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
    cases = "".join(f"{question}) cat <<'END'\n{answer}\nEND\n;;\n" for question, answer in asked.items())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\ncase "$1" in\n{cases}esac\n'.replace("cat", "/bin/cat"))
    path.chmod(0o755)
    return path


def fake_source(folder: Path, version: str = "7.3.4", compile_: str = "", configure: str = "") -> Path:
    """Write a source of Linux into `folder` whose Makefile copies :func:`fake_kernel`, and return the folder.

    `compile_` and `configure` are lines of shell that the targets ``linux`` and ``olddefconfig`` run besides.
    """
    for patch in patches():
        file: Path | None = None
        for line in patch.read_text().splitlines():
            if line.startswith("--- a/"):
                file = folder / line.removeprefix("--- a/")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("")
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
