"""Commands of a script that ``tc``, ``ovs-vsctl`` and their kin refused: scripts throw away what these programs say,
and go on with another network than the one that they ask for."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Sequence

__all__ = ["REFUSED_COMMANDS", "RefusedCommands"]

_SHOWN = 10
_WIDTH = 300
"""Characters of a command that are shown: one may be as long as a group of a thousand buckets."""
_ASKS = {
    "tc": ("show", "list", "ls", "get"),
    "ovs-vsctl": ("show", "find", "list", "get", "br-exists", "port-to-br", "iface-to-br"),
    "ovs-ofctl": ("show", "ping", "probe", "queue-stats", "meter-stats", "meter-features"),
    "ovs-dpctl": ("show",),
    "ovs-appctl": ("fdb/show", "dpif/show", "dpctl/show", "qos/show", "bridge/dump-flows"),
}
"""The commands of each program that change nothing. Others of them begin with one of `_ASKS_BEGIN`."""
_ASKS_BEGIN = ("list-", "get-", "dump-")
_WITH_VALUE = ("-O", "-F", "-t", "-T")
"""Options of Open vSwitch's tools whose value is a word of its own."""
_DELETES_BEGIN = ("del",)
"""To take away what is not there is refused everywhere, and changes nothing."""


class RefusedCommands:
    """The refused commands of one process, in the order in which they came first; `REFUSED_COMMANDS` are those of this
    process. The threads that answer programs note them, and the script's end tells of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._times: dict[tuple[str, str], int] = {}

    def note(self, program: str, arguments: Sequence[str], said: str) -> None:
        """Note that `program` refused its `arguments` and `said` why. What only asks or takes away is left out: after
        it the network is as it was to be."""
        if _leaves_the_network(program, arguments):
            return
        key = (shlex.join([program, *arguments]), next(iter(said.strip().splitlines()), ""))
        with self._lock:
            self._times[key] = self._times.get(key, 0) + 1

    def __bool__(self) -> bool:
        return bool(self._times) and os.getpid() == self._owner

    def told(self) -> str:
        """Return the lines that tell of them."""
        with self._lock:
            rows = list(self._times.items())
        lines = [
            f"    {_in_short(command)}: {_in_short(said)}{f' ({times} times)' if times > 1 else ''}"
            for (command, said), times in rows
        ]
        if len(lines) > _SHOWN:
            more = len(lines) - _SHOWN
            lines[_SHOWN:] = [f"    and {more} others" if more > 1 else "    and another"]
        number = f"{len(rows)} commands were" if len(rows) > 1 else "a command was"
        return "\n".join([f"{number} refused, and the script went on without:", *lines])


def _in_short(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]} ..."


def _leaves_the_network(program: str, arguments: Sequence[str]) -> bool:
    return all(_leaves(program, words) for words in _commands(program, arguments))


def _leaves(program: str, words: Sequence[str]) -> bool:
    if program == "tc":
        # tc OBJECT ACTION: without an action it shows.
        words = words[1:] if len(words) > 1 and words[1] != "dev" else ["show"]
    first = words[0] if words else "show"
    return first in _ASKS.get(program, ()) or first.startswith((*_ASKS_BEGIN, *_DELETES_BEGIN))


def _commands(program: str, arguments: Sequence[str]) -> list[list[str]]:
    """The commands of one line, which ``ovs-vsctl`` parts by ``--``, without options before them."""
    parts: list[list[str]] = [[]]
    words = iter(arguments)
    for word in words:
        if word == "--" and program == "ovs-vsctl":
            parts.append([])
        elif not word.startswith("-") or parts[-1]:
            parts[-1].append(word)
        elif word in _WITH_VALUE and program != "tc":
            next(words, None)
    return [part for part in parts if part]


REFUSED_COMMANDS = RefusedCommands()
