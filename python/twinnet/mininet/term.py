"""Terminals of nodes: on an X display, in panes of tmux, or by a line to type in another terminal."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable
from subprocess import DEVNULL, Popen
from typing import Any

from twinnet.mininet.base_node import Node
from twinnet.mininet.log import error, output
from twinnet.mininet.virtual_time import on_virtual_clock

__all__ = ["cleanUpScreens", "makeTerm", "makeTerms", "runX11", "tunnelX11"]

_WORDS = {
    "xterm": ["xterm", "-title", "{title}", "-display", "{display}", "-e"],
    "gterm": ["gnome-terminal", "--title", "{title}", "--display", "{display}", "-e"],
}


def tunnelX11(node: Node, display: str | None = None) -> tuple[str | None, Popen[Any] | None]:
    """Return the display that programs of `node` can use, and the process that joins it to ours, if one is needed: a
    display of this machine is reached by its socket."""
    found = display or os.environ.get("DISPLAY")
    if not found:
        error("Error: Cannot connect to display\n")
        return None, None
    host, _, screen = found.partition(":")
    if host in ("", "unix"):
        return found, None
    port = 6000 + int(float(screen))
    outside = f"mnexec -a 1 socat STDIO TCP:{host}:{port}".replace(":", r"\:")
    return f"localhost:{screen}", node.popen(["socat", f"TCP-LISTEN:{port},fork,reuseaddr", f"EXEC:'{outside}'"])


def makeTerm(
    node: Node, title: str = "Node", term: str = "xterm", display: str | None = None, cmd: str = "bash"
) -> list[Popen[Any]]:
    """Open a terminal with `cmd` in `node`; return its processes. Without a display it is a pane of tmux, or a line to
    type in another terminal."""
    if term not in _WORDS:
        error(f"invalid terminal type: {term}\n")
        return []
    if not (display or os.environ.get("DISPLAY")):
        return _without_display(node, cmd)
    found, tunnel = tunnelX11(node, display)
    if found is None:
        return []
    words = [word.format(title=f'"{title}: {node.name}"', display=found) for word in _WORDS[term]]
    if shutil.which(words[0]) is None:
        error(f"{words[0]} is not installed\n")
        return [tunnel] if tunnel else []
    opened = node.popen([*words, f"env TERM=ansi {cmd}"])
    return [tunnel, opened] if tunnel else [opened]


def _without_display(node: Node, cmd: str) -> list[Popen[Any]]:
    """Open a pane of tmux, or tell what opens a shell in `node` from outside of the script's machine."""
    if on_virtual_clock():
        said = "*** No terminal of this machine reaches the virtual clock"
        output(f"{said}; for {node.name} type: noecho {node.name} bash\n")
        return []
    # Outside, processes have other numbers; the shell of a node is known by its name.
    found = f"$(pgrep -n -f {shlex.quote(f'mininet:{node.name}$')})"
    line = f'nsenter -t "{found}" -U -p -m -n --preserve-credentials {cmd}'
    if os.environ.get("TMUX") and shutil.which("tmux"):
        pane = ["tmux", "split-window", "-d", line, ";", "select-layout", "tiled"]
        return [Popen(pane, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)]
    output(f"*** No display and no tmux; for {node.name} type in another terminal:\n{line}\n")
    return []


def runX11(node: Node, cmd: Any) -> list[Popen[Any]]:
    """Run a program with windows in `node`; return its processes."""
    found, tunnel = tunnelX11(node)
    if found is None:
        return []
    process = node.popen(cmd)
    return [tunnel, process] if tunnel else [process]


def cleanUpScreens() -> None:
    """Do nothing: what is left over ends with this machine."""


def makeTerms(nodes: Iterable[Node], title: str = "Node", term: str = "xterm") -> list[Popen[Any]]:
    """Open a terminal for each of `nodes`; return their processes."""
    return [process for node in nodes for process in makeTerm(node, title, term)]
