"""What ssh says when no agent answers, and what is made of it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from twinnet.machines.ssh import failure_of

CHANGED = """@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
Add correct host key in /home/me/lab keys/known_hosts to get rid of this message.
Offending ED25519 key in /home/me/lab keys/known_hosts:1
Host key for [127.0.0.1]:28922 has changed and you have requested strict checking.
Host key verification failed.
"""
"""OpenSSH 9.2, where ~/.ssh/config gives pc1 a port and a file of known hosts of its own."""


@dataclass
class Machine:
    name: str = "h1"
    ssh: str = "me@pc1"
    command: str = "twinnet"


def test_the_key_to_forget_is_named_as_ssh_has_kept_it() -> None:
    told = failure_of(Machine(), 255, CHANGED)
    assert told.name == "HostKeyChanged"
    command = told.remedy.partition("forget the old one with ")[2].partition(", then ")[0]
    assert shlex.split(command) == [
        "ssh-keygen", "-f", "/home/me/lab keys/known_hosts", "-R", "[127.0.0.1]:28922"
    ]  # fmt: skip


def test_where_ssh_does_not_say_the_name_it_is_the_one_that_was_given() -> None:
    told = failure_of(Machine(), 255, "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!\n")
    assert "ssh-keygen -R pc1, then ssh me@pc1" in told.remedy


def test_an_agent_that_was_killed_is_not_taken_for_a_machine_that_cannot_be_reached() -> None:
    # A program that a signal ends makes ssh end with 255, without a word.
    told = failure_of(Machine(), 255, "", answered=True)
    assert told.name == "AgentFailed"
    assert told.message == "the agent on h1 (me@pc1) was killed there, or the connection has broken"
    assert "cannot be reached" not in told.message and "nothing" not in told.message


def test_an_answer_does_not_hide_what_ssh_says() -> None:
    told = failure_of(Machine(), 255, "client_loop: send disconnect: Broken pipe\n", answered=True)
    assert told.message.endswith("; ssh said: client_loop: send disconnect: Broken pipe")
    refused = failure_of(Machine(), 255, "ssh: connect to host pc1 port 22: Connection refused\n")
    assert refused.name == "Unreachable"
