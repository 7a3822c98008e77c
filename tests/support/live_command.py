"""``twinnet live`` as a process of its own."""

from __future__ import annotations

import subprocess
import sys

COMMAND = [sys.executable, "-c", "from twinnet.cli import main; main()", "live"]


def started(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """The command, and what its first line says."""
    server = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    return server, server.stdout.readline()
