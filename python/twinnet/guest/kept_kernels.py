"""The user's kernels: each in a folder of its own in the cache, and the one that is chosen."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from pathlib import Path

from twinnet.errors import KernelUnusable, NotAvailable, reason
from twinnet.guest.kernel import Kernel, chosen_link, examine, kernels_folder

__all__ = ["choose", "keep", "kept", "link_to", "workplace"]

_RECORD = "kernel.json"


def kept(name: str) -> Kernel | None:
    """Return the kernel that :func:`keep` has kept as `name`; ``None`` when there is none that can be used."""
    path = kernels_folder() / name / "linux"
    if not path.exists():
        return None
    try:
        return examine(path, "cache").check()
    except KernelUnusable:
        return None


def keep(
    workplace: Path,
    name: str,
    called: str,
    record: Mapping[str, str],
    look: Callable[[Path, str], Kernel] = lambda path, called: examine(path, called=called),
) -> Kernel:
    """Look at the file ``kept/linux`` in the `workplace`, move the folder ``kept`` to its place in the cache, and
    choose the kernel.

    Parameters
    ----------
    workplace
        What :func:`workplace` gave.
    name
        The hash that tells this kernel from others.
    called
        What a refusal calls it.
    record
        Where it is from, kept beside it.
    look
        Tells what kernel it is, of a path and what it is called; default: it is asked, and so it is run.

    Raises
    ------
    KernelUnusable
        The file is no kernel, or one in which programs on the virtual clock cannot run.
    """
    folder = workplace / "kept"
    (folder / "linux").chmod(0o755)
    kernel = look(folder / "linux", called).check(called)
    whole = {"version": kernel.version, **record}
    (folder / _RECORD).write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    place = kernels_folder() / name
    # One that is there cannot be used: `kept` would have found it.
    shutil.rmtree(place, ignore_errors=True)
    folder.rename(place)
    return replace(kernel, path=link_to(name), found_by="cache")


def choose(name: str) -> Kernel:
    """Make the kernel that is kept as `name` the one that is found from now on."""
    return examine(link_to(name), "cache")


def link_to(name: str) -> Path:
    """Do what :func:`choose` does, and return where the kernel is, which is not run."""
    link = chosen_link()
    partial = link.with_name(f".chosen.{os.getpid()}")
    partial.unlink(missing_ok=True)
    partial.symlink_to(name)
    partial.replace(link)
    return link.resolve() / "linux"


@contextlib.contextmanager
def workplace(waiting: Callable[[], None]) -> Generator[Path]:
    """Give a new folder beside the kernels, for one process at a time, and remove it afterwards.

    Parameters
    ----------
    waiting
        Called when another process has to end first.

    Raises
    ------
    NotAvailable
        The cache folder cannot be written.
    """
    try:
        folder = kernels_folder()
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except (OSError, RuntimeError) as error:
        raise NotAvailable(
            f"kernels are kept in the cache folder, which cannot be written: {error}",
            "name another folder in XDG_CACHE_HOME",
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        # Whoever made these was killed, for the lock is ours.
        for left in folder.glob("making-*"):
            shutil.rmtree(left, ignore_errors=True)
        made = Path(tempfile.mkdtemp(prefix="making-", dir=folder))
        try:
            (made / "kept").mkdir()
            yield made
        except OSError as error:
            raise NotAvailable(f"the kernel could not be kept in {folder}: {reason(error)}") from None
        finally:
            shutil.rmtree(made, ignore_errors=True)
