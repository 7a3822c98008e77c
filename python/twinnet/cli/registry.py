"""All commands: where each is, and what ``--help`` says of it. Adding a command is adding its line here."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["COMMANDS", "Entry"]


class Entry(NamedTuple):
    """A command's module, its click command in that module, and one line of help."""

    module: str
    attribute: str
    help: str


COMMANDS: dict[str, Entry] = {
    "lab": Entry("twinnet.cli.lab_command", "lab", "Start a network and open its prompt."),
    "exec": Entry("twinnet.cli.exec_command", "exec_", "Run a program in a host of a running lab."),
    "flows": Entry("twinnet.cli.flows_command", "flows", "Show, add or delete a switch's flows in a running lab."),
    "labs": Entry("twinnet.cli.labs_command", "labs", "List your running labs."),
    "doctor": Entry(
        "twinnet.cli.doctor_command", "doctor", "Tell what this machine can and cannot do, and the remedy."
    ),
}
