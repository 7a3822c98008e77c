"""A machine of its own for a script on the virtual clock: a guest kernel, in which all that a script starts runs as it
does on the wall clock, the fabric too, and time costs nothing but what Linux's calls cost.

The guest has one host without interfaces; in that the script gets the machine of :mod:`twinnet.mininet.machine`.
"""

from __future__ import annotations

import compileall
import os
import signal
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from twinnet.errors import BadFile, BadValue
from twinnet.interpreter import PYTHON
from twinnet.lab.own_terminal import is_terminal, join_terminals, on_terminal
from twinnet.lab.terminal_job import start_on_terminal
from twinnet.lab_process.job import DEVNULL, Ending, Stream
from twinnet.mininet.wishes import SEED_VARIABLE, TELLS_VARIABLE
from twinnet.mininet.written_files import WrittenFiles
from twinnet.network.network import Network

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.lab_process.job import Job

__all__ = ["VirtualMachine"]

_PACKAGE = Path(__file__).parents[1]
_HOST = "machine"
_MEMORY = "1 GiB"
_PATIENCE = "60 s"
_OF_THE_GUEST = ("/dev", "/proc", "/run", "/sys")
"""Folders of which the guest has its own."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENDS_WITHIN = "30 s"
_SLOW_AFTER_S = 60.0
_MOST_HASH_SEED = 1 << 32


class _AskedToEndError(Exception):
    """This process got a signal that asks it to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass(frozen=True)
class VirtualMachine:
    """What can be chosen of such a machine.

    Parameters
    ----------
    seed
        The seed of all randomness.
    memory, date, patience
        As :meth:`twinnet.Network.simulate` takes them; by default 1 GiB, 2026-01-01 and 60 s, for a script may also
        compute.
    variables
        Environment variables of the script, beside those that it always has.
    keep
        Folders whose written files are brought back, beside the current one.
    """

    seed: int = 1
    memory: str | None = None
    date: str | None = None
    patience: str | None = None
    variables: Mapping[str, str] | None = None
    keep: Sequence[str] = ()

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        folders: Sequence[Path] = (),
        files: Sequence[Path] = (),
    ) -> int:
        """Run `command` in a machine of its own on the virtual clock, bring back what it wrote, and return its status
        (128 + signal when a signal ended it).

        Parameters
        ----------
        command
            The program and its arguments.
        environment
            Variables that it has beside those of the machine.
        folders
            Further folders whose written files are brought back.
        files
            Files that are brought back wherever they are, with those that are numbered after them.

        Raises
        ------
        BadFile
            The current folder, or one to keep, is of a kind that the guest has its own of.
        BadValue
            A setting is out of range, or what the command is to read has no end.
        LabError
            What keeps the guest from running.
        """
        kept = [Path.cwd(), *(Path(one).absolute() for one in self.keep), *folders]
        for folder in kept:
            if not folder.is_dir():
                raise BadFile(f"{folder} is no folder", "name one that is there, or make it first")
            if any(folder.is_relative_to(one) for one in _OF_THE_GUEST):
                raise BadFile(
                    f"{folder} is not there on the virtual clock: the guest has its own {folder.parts[1]}",
                    "copy what the script needs to another folder, and start it there",
                )
        for text in (*command, *(self.variables or {}).values()):
            if not _is_text(text):
                raise BadValue(f"{text!r} is no text in UTF-8", "write it in UTF-8")
        # Python would compile it in each guest anew, which takes calls of Linux and so time.
        compileall.compile_dir(_PACKAGE, quiet=2)
        net = Network(seed=self.seed)
        net.host(_HOST)
        with net.simulate(
            hosts="programs", memory=self.memory or _MEMORY, date=self.date, patience=self.patience or _PATIENCE
        ) as lab:
            written = WrittenFiles(lab, _HOST, kept, files)
            argv = [*PYTHON, "-m", "twinnet.mininet.machine", *command]
            try:
                ending = self._ran(lab, argv, self._environment(environment or {}))
            finally:
                if lab.running:
                    written.bring_back()
        return 128 - ending.returncode if ending.returncode < 0 else ending.returncode

    def _environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The variables of the command: the same whoever starts it, but for the home, where programs find their
        settings, and for where Python finds modules."""
        return {
            "PATH": f"{_PATH}:{Path(sys.executable).parent}",
            "HOME": os.environ.get("HOME", "/root"),
            "USER": "root",
            "LOGNAME": "root",
            "LANG": "C.UTF-8",
            "TERM": os.environ.get("TERM", "dumb") if on_terminal() else "dumb",
            "PYTHONHASHSEED": str(self.seed % _MOST_HASH_SEED),
            "PYTHONUNBUFFERED": "1",
            **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
            SEED_VARIABLE: str(self.seed),
            **given,
            **(self.variables or {}),
        }

    def _ran(self, lab: Lab, argv: Sequence[str], env: dict[str, str]) -> Ending:
        with _signals_raised():
            if not (on_terminal() and is_terminal(sys.stderr)):
                return self._ran_without_terminal(lab, argv, env)
            env[TELLS_VARIABLE] = "1"

            def start(size: tuple[int, int]) -> tuple[Job, int]:
                return start_on_terminal(lab, _HOST, argv, size, env=env, tells_when_it_reads=True)

            try:
                return join_terminals(start)
            except _AskedToEndError as asked:
                return Ending(-asked.number, 0.0, False)

    def _ran_without_terminal(self, lab: Lab, argv: Sequence[str], env: dict[str, str]) -> Ending:
        given = sys.__stdin__ if sys.__stdin__ is not None and not is_terminal(sys.__stdin__) else DEVNULL
        output: Stream = 1 if sys.__stdout__ is not None else DEVNULL
        errors: Stream = 2 if sys.__stderr__ is not None else DEVNULL
        if output == 1 and errors == 2 and os.path.sameopenfile(1, 2):
            # In one file the lines of both are to have their order.
            argv, errors = ["/bin/sh", "-c", 'exec "$@" 2>&1', "sh", *argv], DEVNULL
        lab.while_time_passes(_SlowTime().look)
        try:
            job = lab[_HOST].popen(argv, stdin=given, stdout=output, stderr=errors, env=env, cwd=str(Path.cwd()))
        except BadValue as refused:
            raise BadValue(
                "what the script reads must have an end: on the virtual clock it is read whole before the script"
                f" starts ({refused.message.rpartition(': ')[2]})",
                "add < /dev/null, or close the pipe",
            ) from None
        try:
            return job.wait()
        except (KeyboardInterrupt, _AskedToEndError) as asked:
            # A second one ends the guest.
            job.signal(asked.number if isinstance(asked, _AskedToEndError) else signal.SIGINT)
            with suppress(TimeoutError):
                return job.wait(_ENDS_WITHIN)
            job.signal(signal.SIGKILL)
            return job.wait()


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _SlowTime:
    """Tells once when the script's time goes slowly."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._told = False

    def look(self, now_ps: int) -> bool:
        """Look at the lab's time; no time is to stop for it."""
        real_s, simulated_s = time.monotonic() - self._began_s, now_ps / 1e12
        if not self._told and real_s > _SLOW_AFTER_S and simulated_s < real_s / 2:
            self._told = True
            print(
                f"twinnet: {simulated_s:.3g} s of the virtual clock took {real_s:.0f} s so far (if that is TCP over"
                " links without a rate, it carries hundreds of Gbit/s there: give them one by bw=)",
                file=sys.stderr,
            )
        return False


@contextmanager
def _signals_raised() -> Generator[None]:
    """Have signals that ask this process to end raise an exception meanwhile."""

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        raise _AskedToEndError(number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
