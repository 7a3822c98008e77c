"""Programs in the background of the prompt, numbered from 1 as a shell numbers them: ``jobs``, ``kill 1``."""

from __future__ import annotations

import itertools
import shlex
import signal
from collections.abc import Sequence
from typing import Any

from twinnet.cli.prompt.answer import Answer
from twinnet.errors import BadValue
from twinnet.lab.lab import Lab
from twinnet.lab_process.replies import JobRow

__all__ = ["Jobs"]

_USAGE = "write: kill N, kill N INT, or kill N 9; jobs lists the numbers"


class Jobs:
    """The numbers of a session's jobs: each keeps its number until ``jobs`` or ``kill`` finds that it has
    ended."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def number(self, job: int) -> int:
        """Return the number of the lab's job `job` here."""
        if job not in self._numbers:
            taken = set(self._numbers.values())
            self._numbers[job] = next(number for number in itertools.count(1) if number not in taken)
        return self._numbers[job]

    def _running(self, lab: Lab) -> list[JobRow]:
        found = [one for one in lab.jobs() if one.get("state") not in ("ended", "exited", "done", "finished")]
        alive = {one["job"] for one in found}
        self._numbers = {job: number for job, number in self._numbers.items() if job in alive}
        return found

    def jobs(self, lab: Lab, arguments: Sequence[str]) -> Answer:
        """Show the programs that run."""
        del arguments
        found: list[dict[str, Any]] = [{**one, "number": self.number(one["job"])} for one in self._running(lab)]
        found.sort(key=lambda one: one["number"])
        lines = [f"[{one['number']}] {one['host']} {shlex.join(one['argv'])} (pid {one['pid']})" for one in found]
        return Answer(found, "\n".join(lines))

    def kill(self, lab: Lab, arguments: Sequence[str]) -> Answer:
        """End a program of ``jobs``, or send it another signal."""
        words = [word.removeprefix("%") for word in arguments]
        if len(words) == 2 and words[0].startswith("-"):
            words = [words[1], words[0].removeprefix("-")]
        if not 1 <= len(words) <= 2 or not words[0].isdigit():
            raise BadValue(f"kill does not understand {' '.join(arguments)!r}", _USAGE)
        running = {self.number(one["job"]): one for one in self._running(lab)}
        chosen = running.get(int(words[0]))
        if chosen is None:
            known = ", ".join(map(str, sorted(running))) or "none"
            raise BadValue(f"there is no job {words[0]} (running: {known})", _USAGE)
        number = _signal(words[1] if len(words) == 2 else "TERM")
        lab.connection.signal(job=chosen["job"], signal=int(number))
        text = f"[{words[0]}] {chosen['host']} {shlex.join(chosen['argv'])}: {number.name}"
        return Answer({"number": int(words[0]), "signal": int(number)}, text)


def _signal(word: str) -> signal.Signals:
    name = word.upper().removeprefix("SIG")
    try:
        return signal.Signals(int(word)) if word.isdigit() else signal.Signals[f"SIG{name}"]
    except (KeyError, ValueError):
        raise BadValue(f"there is no signal {word!r}", "write for example TERM, INT, KILL or 9") from None
