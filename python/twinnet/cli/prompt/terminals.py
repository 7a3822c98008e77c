"""A shell of a host in a window of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from twinnet.cli.prompt.answer import Answer
from twinnet.errors import BadValue, NotAvailable, reason
from twinnet.interpreter import PYTHON
from twinnet.lab.lab import Lab
from twinnet.lab.terminal_job import usual_shell

__all__ = ["terminal", "window_command"]

_EMULATORS = {
    "x-terminal-emulator": ("-e",),
    "xterm": ("-T", "{title}", "-e"),
    "gnome-terminal": ("--title", "{title}", "--"),
    "konsole": ("-e",),
    "xfce4-terminal": ("-x",),
    "kitty": (),
    "foot": (),
}
"""Programs that open a terminal, and what comes before the command in it."""


def terminal(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Open a window with a shell in each host: in tmux where the prompt runs in one, else in terminals of the
    desktop."""
    if not arguments:
        raise BadValue("terminal needs a host", "write for example: terminal h1 h2")
    for host in arguments:
        lab.layout.node(host, "host")
    return Answer([{"host": host, "pid": _open_window(lab, host)} for host in arguments])


def _open_window(lab: Lab, host: str) -> int:
    """Open a window with a shell in `host` and return the process that shows it."""
    ours = [*PYTHON, "-c", "from twinnet.cli import main; main()"]
    shell = [*ours, "exec", "--terminal", lab.name, host, "--", usual_shell(lab, host)]
    command = window_command(host, shell, os.environ)
    try:
        opened = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        raise NotAvailable(
            f"{command[0]} cannot be started: {reason(error)}", "use: twinnet exec LAB HOST sh"
        ) from None
    return opened.pid


def window_command(title: str, shell: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the command that opens a window with `shell` in it.

    Raises
    ------
    NotAvailable
        There is neither tmux around nor a desktop with a terminal.
    """
    if environment.get("TMUX"):
        return ["tmux", "new-window", "-n", title, shlex.join(shell)]
    if environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        for program, before in _EMULATORS.items():
            if shutil.which(program, path=environment.get("PATH")):
                return [program, *(word.format(title=title) for word in before), *shell]
        raise NotAvailable("no terminal program was found on this desktop", "apt install xterm")
    raise NotAvailable(
        "there is no desktop to open a window on, and the prompt does not run in tmux",
        "run the prompt in tmux, or use another terminal: twinnet exec LAB HOST bash",
    )
