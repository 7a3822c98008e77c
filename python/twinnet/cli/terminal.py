"""Programs on a terminal: a pseudo-terminal in the lab, joined with the user's own while the program runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twinnet.lab.lab import Lab
from twinnet.lab.own_terminal import join_terminals, on_terminal
from twinnet.lab.terminal_job import start_on_terminal
from twinnet.lab_process.job import Ending

__all__ = ["on_terminal", "run_on_terminal", "wants_terminal"]

_SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})


def wants_terminal(lab: Lab, argv: Sequence[str]) -> bool:
    """Return whether `argv` is to have the user's terminal: on the virtual clock, where time then goes no faster than
    real time, only a shell that somebody types into."""
    return on_terminal() and (lab.clock == "wall" or (len(argv) == 1 and Path(argv[0]).name in _SHELLS))


def run_on_terminal(lab: Lab, host: str, argv: Sequence[str]) -> Ending:
    """Run `argv` in `host` on a pseudo-terminal that is joined with the user's terminal, and return how it ended."""
    return join_terminals(lambda size: start_on_terminal(lab, host, argv, size))
