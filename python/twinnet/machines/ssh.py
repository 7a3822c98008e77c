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
_MOST_TOLD = 300


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


def failure_of(machine: Reached, status: int | None, told: str, answered: bool = False) -> LabError:
    """Return the error that tells why no agent answers.

    Parameters
    ----------
    machine
        The machine.
    status
        The exit status of ssh; ``None`` while it still runs.
    told
        What ssh, or the other machine, wrote on standard error.
    answered
        Whether it has answered before: ssh has reached it then.
    """
    name, target, by_hand = machine.name, machine.ssh, f"ssh {machine.ssh}"
    host = target.rpartition("@")[2]
    known = (
        (
            r"REMOTE HOST IDENTIFICATION HAS CHANGED",
            "HostKeyChanged",
            f"the host key of {name} ({target}) is another than the one that is known here: it is another machine, was"
            " installed anew, or somebody stands in between",
            f"ask who keeps it; if the new key is right, forget the old one with"
            f" {_forget_key(told, host)}, then {by_hand}",
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
    last = _last_words(told)
    if status == _OWN_FAILURE or status is None:
        for pattern, kind, message, remedy in known:
            if re.search(pattern, told):
                return LabError(f"{message}; ssh said: {last}", remedy, kind)
        if answered:
            # ssh says nothing, and ends with this status, when a signal has ended the program there.
            said = f"; ssh said: {last}" if last else ""
            return LabError(
                f"the agent on {name} ({target}) was killed there, or the connection has broken{said}",
                f"see on {target} who ended it (out of memory: dmesg), and start the run again",
                "AgentFailed",
            )
        return LabError(
            f"{name} ({target}) cannot be reached by SSH; ssh said: {last or 'nothing'}",
            f"try {by_hand}",
            "Unreachable",
        )
    if status in (126, 127):
        return LabError(
            f"{name} ({target}) has no {machine.command}, or not the Python that it needs; it said: {last}",
            f"install twinnet {__version__} there (pip install twinnet=={__version__}), or give the path with command:"
            " ~/venv/bin/twinnet",
            "NoTwinnetThere",
        )
    if re.search(r"No such command|ModuleNotFoundError|ImportError", told):
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


def _forget_key(told: str, host: str) -> str:
    """The command that forgets the key of `host`, by the name and in the file that ssh's words `told` name."""
    entry = re.search(r"^Host key for ([\w.:%\[\]-]+) has changed", told, re.MULTILINE)
    place = re.search(r"^Offending .* key in (/[^\0\n]*):[0-9]+\s*$", told, re.MULTILINE)
    command = ["ssh-keygen", *(("-f", place[1]) if place else ()), "-R", entry[1] if entry else host]
    return shlex.join(command)


def _last_words(told: str) -> str:
    lines = [line.strip() for line in told.splitlines() if line.strip() and set(line.strip()) != {"@"}]
    # What a terminal would take as a command has no place in a message.
    return re.sub(r"[^\x20-\x7e\u00a0-\uffff]", "?", " ".join(lines[-3:]))[-_MOST_TOLD:]
