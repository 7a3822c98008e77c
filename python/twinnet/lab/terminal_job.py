"""Programs that the user of this process starts in a host, on a pseudo-terminal too."""

from __future__ import annotations

import os
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twinnet.lab.virtual_connection import VirtualConnection
from twinnet.lab_process.job import Job

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["of_caller", "start_on_terminal", "usual_shell"]


def of_caller(lab: Lab, host: str) -> tuple[dict[str, str] | None, str | None]:
    """Return the environment and the folder of a program that the user starts in `host`: those of the user, but on the
    virtual clock the lab's environment, and where the host has an image those of the image."""
    if lab[host].has_image:
        return None, None
    return dict(os.environ) if lab.clock == "wall" else None, str(Path.cwd())


def usual_shell(lab: Lab, host: str) -> str:
    """Return the shell that the user has in `host`."""
    return "/bin/sh" if lab[host].has_image else os.environ.get("SHELL", "/bin/sh")


def start_on_terminal(
    lab: Lab,
    host: str,
    argv: Sequence[str],
    size: tuple[int, int],
    variables: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    tells_when_it_reads: bool = False,
) -> tuple[Job, int]:
    """Start `argv` in `host` on a pseudo-terminal of `size` rows and columns, and return the program and the terminal's
    master. `variables` are beside those of the user, and not given to a host that has an image. Who closes the master
    hangs up: the program gets SIGHUP. On the virtual clock, time goes as fast as real time while the program runs.

    Parameters
    ----------
    lab, host, argv, size, variables
        As above.
    env
        All its variables, in place of the user's.
    tells_when_it_reads
        On the virtual clock: the program tells when it reads what is typed (:mod:`twinnet.lab.virtual_terminal`). Time
        stands meanwhile, and goes as fast as it can before the first time.

    Raises
    ------
    LabError
        The program cannot be started.
    """
    master, slave = os.openpty()
    try:
        termios.tcsetwinsize(slave, size)
        # Who types has an environment for that, on the virtual clock too.
        if env is None:
            env = None if lab[host].has_image else {**os.environ, **(variables or {})}
        _, cwd = of_caller(lab, host)
        connection = lab.connection
        if isinstance(connection, VirtualConnection) and connection.programs is not None:
            fields = {"env": env, "cwd": cwd}
            return connection.programs.start_on_terminal(host, argv, slave, fields, tells_when_it_reads), master
        started = connection.spawn(host=host, argv=list(argv), env=env, cwd=cwd, terminal=True, descriptors=[slave])
        return Job(connection, host, argv, started), master
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
