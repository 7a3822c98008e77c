"""What a line at the prompt sets in a host for the lines after it: its folder, and variables."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace

from twinnet.lab.lab import Lab
from twinnet.lab.terminal_job import of_caller
from twinnet.lab_process.job import Completed

__all__ = ["Kept"]

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=")
_NAME = re.compile(r"[A-Za-z_]\w*")
_SETTING = ("cd", "export", "unset")
_SUBSTITUTED = re.compile(r"\$\([^)]*\)|`[^`]*`")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_OPERATORS = re.compile(r"[;&|<>\n]")


@dataclass
class Kept:
    """The folder and the variables of one host, as a shell that goes on would have them.

    Parameters
    ----------
    folder
        Where programs start; ``None``: where they usually do.
    variables
        What variables are, by name, and whether programs get them. ``None``: the variable was taken away.
    """

    folder: str | None = None
    variables: dict[str, tuple[str, bool] | None] = field(default_factory=dict[str, "tuple[str, bool] | None"])

    @staticmethod
    def sets(command: str) -> bool:
        """Return whether `command` only sets something: ``cd``, ``export``, ``unset``, or assignments alone."""
        try:
            words = _words(command)
        except ValueError:
            return False
        if not words or _OPERATORS.search(_QUOTED.sub("", _SUBSTITUTED.sub("", command))):
            return False
        return words[0] in _SETTING or all(_ASSIGNMENT.match(word) for word in words)

    def before(self, command: str, with_folder: bool = False) -> str:
        """Return `command` with what sets the variables before it, and with ``cd`` where the folder is not otherwise
        given."""
        steps = [f"cd {shlex.quote(self.folder)}"] if with_folder and self.folder is not None else []
        for name, held in self.variables.items():
            if held is None:
                steps.append(f"unset {name}")
            else:
                steps.append(("export " if held[1] else "") + f"{name}={shlex.quote(held[0])}")
        return "; ".join([*steps, command])

    def take(self, lab: Lab, host: str, command: str) -> Completed:
        """Have the shell of `host` do `command`, keep what it has set if it succeeds, and return what it wrote."""
        words = _words(command)
        kind = words[0] if words[0] in _SETTING else ""
        names = [] if kind == "cd" else _names(words)
        shown = " ".join(['"$PWD"', *(f'"${{{name}-}}"' for name in names)])
        asked = f"{self.before(command, with_folder=True)}\n_status=$?\nprintf '\\0%s' {shown}\nexit $_status"
        done = lab[host].run(asked, shell=True, cwd=of_caller(lab, host)[1])
        said, *values = done.stdout.split("\0")
        if done.returncode == 0 and len(values) == len(names) + 1:
            if kind == "cd":
                self.folder = values[0]
            for name, value in zip(names, values[1:], strict=True):
                exported = kind == "export" or (self.variables.get(name) or ("", False))[1]
                self.variables[name] = None if kind == "unset" else (value, exported)
        return replace(done, stdout=said)


def _words(command: str) -> list[str]:
    """The words of `command`, without what it has from other programs."""
    return shlex.split(_SUBSTITUTED.sub("", command))


def _names(words: list[str]) -> list[str]:
    """The variables that a line is about."""
    named = [word.partition("=")[0] for word in words if word not in _SETTING and not word.startswith("-")]
    return [name for name in named if _NAME.fullmatch(name)]
