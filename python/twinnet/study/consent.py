"""Python that a study brings is run where its user has asked for that: by a command that makes runs, by
``--run-code``, or because the same text was run by this user before.

Studies, results and packs come from others. To read, show, plan, draw or check one runs nothing that it names. Who
asks for runs asks for the code, too; its hash is kept in the user's cache folder, so that a report of results of one's
own needs no word more. Jupyter trusts notebooks in this way, and direnv what stands in a folder.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Protocol

from twinnet.cache_folder import cache_folder
from twinnet.errors import BadValue
from twinnet.given_files import read_given_text

__all__ = ["CodeNotRun", "asked_for", "check_may_run", "may_run"]

_FILE = "run-code"
_MOST_BYTES = 10_000_000


class CodeNotRun(BadValue):
    """Python of a study that its user has not asked to be run."""


class Code(Protocol):
    """A text of Python."""

    @property
    def file(self) -> str:
        """The file that it is in."""
        ...

    @property
    def sha256(self) -> str:
        """The hash of its text."""
        ...


_lock = threading.Lock()
_asked = 0
_given: set[str] = set()


@contextmanager
def asked_for() -> Generator[None]:
    """Let Python of studies run until the end of the block, and keep in mind what did."""
    global _asked
    with _lock:
        _asked += 1
    try:
        yield
    finally:
        with _lock:
            _asked -= 1


def may_run(code: Code) -> bool:
    """Return whether `code` may be run: it was asked for, or the same text has been before."""
    known = code.sha256 in _given or code.sha256 in _kept()
    if _asked and not known:
        _keep(code.sha256)
    return known or _asked > 0


def check_may_run(code: Code) -> None:
    """Raise `CodeNotRun` unless `code` may be run."""
    if not may_run(code):
        raise CodeNotRun(
            f"{code.file} is Python that has never been run here (SHA-256 {code.sha256})",
            "read it; then add --run-code, or in Python run_code=True",
        )


def _kept() -> set[str]:
    try:
        return set(read_given_text(cache_folder() / _FILE, _MOST_BYTES, "ascii").split())
    except (OSError, ValueError, RuntimeError):
        return set()


def _keep(sha256: str) -> None:
    _given.add(sha256)
    # Without a cache folder the next process asks again.
    with suppress(OSError, RuntimeError):
        path = cache_folder() / _FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="ascii") as file:
            file.write(f"{sha256}\n")
