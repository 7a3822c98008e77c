"""``twinnet kernel``: the kernel in which programs run on the virtual clock."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinnet.cli.output import json_option, print_json
from twinnet.cli.shared_options import PATH

if TYPE_CHECKING:
    from twinnet.guest.kernel import Kernel

__all__ = ["finding", "kernel"]

_EVERY_S = 30.0
_FOUND_BY = {
    "variable": "named by TWINNET_KERNEL",
    "cache": "built or installed here",
    "package": "the package twinnet-kernel",
    "file": "",
}


@click.group(short_help="Build, install and show the kernel for programs on the virtual clock.")
def kernel() -> None:
    """Build, install and show the kernel for programs on the virtual clock.

    It is User Mode Linux with a few patches: an ordinary program, which needs neither root nor a module of the
    machine's kernel. What TWINNET_KERNEL names goes before what is built and installed here, and that before the
    package twinnet-kernel. Each of these commands takes --json.
    """


@kernel.command()
@click.option(
    "--source",
    type=PATH,
    metavar="FILE|FOLDER",
    help="Linux 6.16 or later, as an archive or a folder; default: what Debian's package linux-source has installed.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Compile N files at once; default: one for each processor.",
)
@json_option
def build(source: Path | None, jobs: int | None, as_json: bool) -> None:
    """Build the kernel from a source of Linux, in a few minutes, and choose it.

    It is kept in the user's cache folder by the hash of its source, configuration and patches, so that it is built
    once.
    """
    from twinnet.guest.kernel_build import build as build_kernel
    from twinnet.guest.kernel_source import source_at

    with _Progress() as progress:
        made = build_kernel(source_at(source) if source is not None else None, progress.tell, jobs)
    _show(made, as_json)


@kernel.command()
@click.argument("file", metavar="FILE|WHEEL", type=PATH)
@click.option("--sha256", "wanted", metavar="HASH", help="Refuse another file: what who has built it tells of it.")
@json_option
def install(file: Path, wanted: str | None, as_json: bool) -> None:
    """Install a kernel that somebody has built: the executable, or a wheel of the package twinnet-kernel.

    It is read and not run. It runs with your rights as soon as a lab or `twinnet kernel show` needs it, so that you
    must trust who has built it: compare the SHA-256 that is printed.
    """
    from twinnet.guest.kernel_install import install as install_kernel

    with _Progress() as progress:
        made = install_kernel(
            file, lambda: progress.tell("waiting for another build or installation to end", 0), wanted
        )
    sha256 = hashlib.sha256(made.path.read_bytes()).hexdigest()
    if as_json:
        print_json({**made.to_record(), "sha256": sha256})
        return
    _show(made, as_json)
    click.echo(f"  SHA-256 {sha256}")
    if wanted is None:
        click.echo("  Its file was read, and not run. It will run with your rights: compare the hash first.", err=True)


@kernel.command()
@json_option
def show(as_json: bool) -> None:
    """Show which kernel is used, where it is and what it can do. Exit status 1 when none can be used."""
    from twinnet.guest.kernel import needed

    _show(needed(), as_json)


def _show(made: Kernel, as_json: bool) -> None:
    if as_json:
        print_json(made.to_record())
        return
    click.echo(f"Linux {made.version}, {_FOUND_BY[made.found_by]}")
    click.echo(f"  {made.path}")
    click.echo(f"  time travel: {_yes(made.time_travel)}; random numbers from a seed: {_yes(made.seed)}; {made.hz} Hz")


def _yes(has: bool) -> str:
    return "yes" if has else "no"


def finding() -> dict[str, object]:
    """Return what `twinnet doctor` says of the kernel."""
    from twinnet.errors import NotAvailable
    from twinnet.guest.kernel import REMEDY, find

    named: dict[str, object] = {"ability": "kernel for programs on the virtual clock"}
    try:
        found = find()
    except NotAvailable as error:
        return {**named, "ok": False, "found": error.message, "remedy": error.remedy}
    if found is None:
        return {**named, "ok": False, "found": "none", "remedy": REMEDY}
    return {**named, "ok": True, "found": f"Linux {found.version}, {_FOUND_BY[found.found_by]}: {found.path}"}


class _Progress:
    """Tells the steps of a build on standard error: a moving line on a terminal, a line now and then elsewhere."""

    def __init__(self) -> None:
        from twinnet.report.console import text_console

        self._console = text_console(stderr=True)
        self._status = self._console.status("")
        self._step = ""
        self._began = self._said_s = time.monotonic()

    def __enter__(self) -> _Progress:
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def tell(self, step: str, files: int) -> None:
        from twinnet.guest.kernel_build import USUAL_FILES

        now = time.monotonic()
        text = f"{step}: {files} of about {USUAL_FILES} files, {now - self._began:.0f} s" if files else step
        if self._console.is_terminal:
            self._status.update(text)
        elif step != self._step or now - self._said_s >= _EVERY_S:
            self._said_s = now
            click.echo(text, err=True)
        self._step = step
