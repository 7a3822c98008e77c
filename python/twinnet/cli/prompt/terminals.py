"""A shell of a host in a pane or a window of its own, or the line that opens one elsewhere."""

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

__all__ = ["has_windows", "terminal", "window_command"]

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
    """Open a shell in each host: in panes of tmux where the prompt runs in it, else in terminals of the desktop. Where
    there is neither, tell the lines to type in another terminal."""
    if not arguments:
        raise BadValue("terminal needs a host", "write for example: terminal h1 h2")
    for host in arguments:
        lab.layout.node(host, "host")
    if not has_windows(os.environ):
        lines = [
            {"host": host, "command": shlex.join(["twinnet", *_shell_in(lab, host)])}
            for host in dict.fromkeys(arguments)
        ]
        told = "".join(f"\n  {line['command']}" for line in lines)
        return Answer(lines, f"there is no desktop here and no tmux; type in another terminal:{told}", verbatim=True)
    return Answer([{"host": host, "pid": _open_window(lab, host)} for host in arguments])


def has_windows(environment: Mapping[str, str]) -> bool:
    """Return whether the prompt runs in tmux or on a desktop."""
    return any(environment.get(name) for name in ("TMUX", "DISPLAY", "WAYLAND_DISPLAY"))


def _shell_in(lab: Lab, host: str) -> list[str]:
    """The words after ``twinnet`` that open a shell in `host`."""
    return ["exec", "--terminal", lab.name, host, "--", usual_shell(lab, host)]


def _open_window(lab: Lab, host: str) -> int:
    """Open a window with a shell in `host` and return the process that shows it."""
    shell = [*PYTHON, "-c", "from twinnet.cli import main; main()", *_shell_in(lab, host)]
    command = window_command(host, shell, os.environ)
    try:
        opened = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        raise NotAvailable(
            f"{command[0]} cannot be started: {reason(error)}", "use: twinnet exec LAB HOST sh"
        ) from None
    return opened.pid


def window_command(title: str, shell: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the command that opens a pane of tmux, or a window with `title`, with `shell` in it.

    Raises
    ------
    NotAvailable
        The desktop has no terminal.
    """
    if environment.get("TMUX"):
        # The prompt keeps the keys; panes of equal size, or tmux soon has no room for one more.
        return ["tmux", "split-window", "-d", shlex.join(shell), ";", "select-layout", "tiled"]
    for program, before in _EMULATORS.items():
        if shutil.which(program, path=environment.get("PATH")):
            return [program, *(word.format(title=title) for word in before), *shell]
    raise NotAvailable("no terminal program was found on this desktop", "apt install xterm, or run the prompt in tmux")
