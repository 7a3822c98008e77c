"""A controller that runs in a script's machine, started before the script: ``python -m
twinnet.mininet.beside_controller CONTROLLER COMMAND [ARGUMENTS]``."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

from twinnet.interpreter import PYTHON
from twinnet.mininet.controllers import answers_inside

__all__ = ["beside"]

_PORT = 6653
_LOG = "controller.log"
_PATIENCE_S = 30.0
_PAUSE_S = 0.02


def beside(controller: str, command: list[str]) -> list[str]:
    """Return the command that starts `controller`, a line for the shell in which ``{port}`` stands for 6653, and then
    does `command`."""
    return [*PYTHON, "-m", "twinnet.mininet.beside_controller", controller, *command]


def _main(controller: str, command: list[str]) -> NoReturn:
    with Path(_LOG).open("wb") as log:
        line = controller.replace("{port}", str(_PORT))
        started = subprocess.Popen(line, shell=True, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    end_s = time.monotonic() + _PATIENCE_S
    while not answers_inside("127.0.0.1", _PORT):
        status = started.poll()
        if status is not None or time.monotonic() > end_s:
            what = f"ended with status {status}" if status is not None else f"does not listen after {_PATIENCE_S:g} s"
            print(f"twinnet: the controller {line!r} {what}: see {_LOG}; it is to listen at {_PORT}", file=sys.stderr)
            sys.exit(1)
        time.sleep(_PAUSE_S)
    os.execvp(command[0], command)


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2:])
