"""Physical machines as hosts: what a network says of them. Other clocks than the real one take them as other hosts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from twinnet.errors import BadValue
from twinnet.network.nodes import Host

__all__ = ["PhysicalMachine", "checked_command", "checked_target"]

_TARGET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:%\[\]/-]{0,252}\Z")
_COMMAND = re.compile(r"[A-Za-z0-9_./~][A-Za-z0-9_./~+@-]{0,252}\Z")


@dataclass(eq=False, repr=False)
class PhysicalMachine(Host):
    """A physical machine that is a host. On the real clock an agent on it runs the apps; on the wall clock and the
    virtual clock it is a host like others.

    Parameters
    ----------
    ssh
        Where ``ssh`` finds it: ``user@host``, or a name of ``~/.ssh/config``.
    interface
        The machine's interface in the network.
    command
        Its ``twinnet``.
    """

    ssh: str = ""
    interface: str = ""
    command: str = "twinnet"


def checked_target(target: object) -> str:
    """Return `target` when ``ssh`` can be given it; raises `BadValue`."""
    if not isinstance(target, str) or not _TARGET.match(target):
        raise BadValue(
            f"{target!r} is no machine that ssh can be told of",
            "write user@host, a name, an address or ssh://user@host:port; other options belong in ~/.ssh/config",
        )
    return target


def checked_command(command: object) -> str:
    """Return `command` when it is the path of a program; raises `BadValue`."""
    if not isinstance(command, str) or not _COMMAND.match(command):
        raise BadValue(
            f"{command!r} is no path of a program", "write for example ~/venv/bin/twinnet, without options or spaces"
        )
    return command
