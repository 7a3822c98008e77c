"""How an agent is started over SSH: the command, and what ssh's own words mean when it fails.

OpenSSH's client does all of it, by the user's own configuration (~/.ssh/config): keys, ports, jump hosts.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from typing import Protocol

from twinnet import __version__
from twinnet.errors import LabError, ProgramMissing

__all__ = ["COMMAND_VARIABLE", "Reached", "failure_of", "ssh_command"]

COMMAND_VARIABLE = "TWINNET_SSH"
"""The environment variable with the ssh command to use, such as `ssh -F lab.conf`; as `GIT_SSH_COMMAND` of git."""
_OPTIONS = (
    "-T",
    "-x",
    *("-o", "BatchMode=yes"),
    *("-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5"),
    *("-o", "ServerAliveCountMax=3"),
)
_OWN_FAILURE = 255
"""The exit status of ssh when it failed itself, and no program of the other machine."""
_MOST_LETTERS = 300


class Reached(Protocol):
    """A machine that ssh reaches and that has an agent: a host of a study, or the place of a network's part."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def ssh(self) -> str:
        """Where ssh finds it."""
        ...

    @property
    def command(self) -> str:
        """Its twinnet."""
        ...


def ssh_command(machine: Reached) -> list[str]:
    """Return the command that starts the agent on `machine`.

    Raises
    ------
    ProgramMissing
        There is no ssh here.
    """
    given = shlex.split(os.environ.get(COMMAND_VARIABLE, "")) or ["ssh"]
    if shutil.which(given[0]) is None:
        raise ProgramMissing(
            f"{given[0]} is not installed, which reaches {machine.name}", "install it: apt install openssh-client"
        )
    # Not quoted, so that the shell there knows its home by ~; the description permits no other special characters.
    return [*given, *_OPTIONS, "--", machine.ssh, f"exec {machine.command} agent"]


def failure_of(machine: Reached, status: int | None, said: str, answered: bool = False) -> LabError:
    """Return the error that says why no agent answers.

    Parameters
    ----------
    machine
        The machine.
    status
        The exit status of ssh; ``None`` while it still runs.
    said
        What ssh, or the other machine, wrote on standard error.
    answered
        Whether it has answered before: ssh has reached it then.
    """
    name, target, last = machine.name, machine.ssh, _last_words(said)
    if status == _OWN_FAILURE or status is None:
        return _failure_of_ssh(name, target, said, answered)
    if status in (126, 127):
        return LabError(
            f"{name} ({target}) has no {machine.command}, or not the Python that it needs; it said: {last}",
            f"install twinnet {__version__} there (pip install twinnet=={__version__}), or give the path with command:"
            " ~/venv/bin/twinnet",
            "NoTwinnetThere",
        )
    if re.search(r"No such command|ModuleNotFoundError|ImportError", said):
        return LabError(
            f"the twinnet of {name} ({target}) is another or is broken; it said: {last}",
            f"install {__version__} there: pip install twinnet=={__version__}",
            "OtherVersion",
        )
    return LabError(
        f"the agent on {name} ({target}) ended with status {status}; it said: {last or 'nothing'}",
        f"try ssh {target} {machine.command} doctor",
        "AgentFailed",
    )


def _failure_of_ssh(name: str, target: str, said: str, answered: bool) -> LabError:
    by_hand, last = f"ssh {target}", _last_words(said)
    known = (
        (
            r"REMOTE HOST IDENTIFICATION HAS CHANGED",
            "HostKeyChanged",
            f"the host key of {name} ({target}) is another than the one that is known here: it is another machine, was"
            " installed anew, or somebody stands in between",
            f"ask who keeps it; if the new key is right, forget the old one with"
            f" {_forget_key(said, target.rpartition('@')[2])}, then {by_hand}",
        ),
        (
            r"Host key verification failed|authenticity of host .* can't be established",
            "HostKeyUnknown",
            f"the host key of {name} ({target}) is not known here",
            f"connect once by hand, compare the fingerprint and say yes: {by_hand}",
        ),
        (
            r"Permission denied|Too many authentication failures|no mutual signature",
            "LoginRefused",
            f"{name} ({target}) took none of the keys that ssh offered",
            f"install yours with ssh-copy-id {target}; then {by_hand} must ask for nothing",
        ),
        (
            r"Could not resolve hostname",
            "NameUnknown",
            f"the name of {name} ({target}) does not resolve",
            "write its address, or name it in ~/.ssh/config or /etc/hosts",
        ),
        (
            r"Connection refused|Connection timed out|No route to host|Network is unreachable|Operation timed out",
            "Unreachable",
            f"{name} ({target}) cannot be reached by SSH",
            f"see that it is on, that sshd runs there and that no firewall is between; try {by_hand}",
        ),
    )
    for pattern, kind, message, remedy in known:
        if re.search(pattern, said):
            return LabError(f"{message}; ssh said: {last}", remedy, kind)
    if answered:
        # ssh says nothing, and ends with this status, when a signal has ended the program there.
        more = f"; ssh said: {last}" if last else ""
        return LabError(
            f"the agent on {name} ({target}) was killed there, or the connection has broken{more}",
            f"see on {target} who ended it (out of memory: dmesg), and start the run again",
            "AgentFailed",
        )
    return LabError(
        f"{name} ({target}) cannot be reached by SSH; ssh said: {last or 'nothing'}", f"try {by_hand}", "Unreachable"
    )


def _forget_key(said: str, host: str) -> str:
    """The command that forgets the key of `host`, by the name and in the file that ssh's words `said` name."""
    entry = re.search(r"^Host key for ([\w.:%\[\]-]+) has changed", said, re.MULTILINE)
    place = re.search(r"^Offending .* key in (/[^\0\n]*):[0-9]+\s*$", said, re.MULTILINE)
    command = ["ssh-keygen", *(("-f", place[1]) if place else ()), "-R", entry[1] if entry else host]
    return shlex.join(command)


def _last_words(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip() and set(line.strip()) != {"@"}]
    # What a terminal would take as a command has no place in a message.
    return re.sub(r"[^\x20-\x7e\u00a0-\uffff]", "?", " ".join(lines[-3:]))[-_MOST_LETTERS:]
