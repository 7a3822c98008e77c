"""A program's terminal on the virtual clock, joined with a pseudo-terminal of this machine.

A program can tell when it reads what is typed, by :data:`READS` and :data:`HAS_READ` among what it writes: strings of
the kind "application program command" of ECMA-48, which terminals do not show.
"""

from __future__ import annotations

import contextlib
import os
import termios
import threading
import time
import tty
from collections.abc import Callable
from typing import TYPE_CHECKING

from twinnet.errors import TwinnetError
from twinnet.lab.client_streams import Feeder, SlowReader
from twinnet.units import PS_PER_SECOND

if TYPE_CHECKING:
    from twinnet.lab.virtual_connection import VirtualConnection
    from twinnet.lab.virtual_programs import VirtualJob, VirtualPrograms

__all__ = ["HAS_READ", "READS", "VirtualTerminal"]

READS = "\x1b_twinnet reads\x1b\\"
"""What a program writes when it begins to read what is typed."""
HAS_READ = "\x1b_twinnet has read\x1b\\"
"""What it writes when it has read that."""
_MARKS = {READS.encode(): True, HAS_READ.encode(): False}
_LOOK_S = 0.02
_HURRY_PS = PS_PER_SECOND
_SETTLES_PS = PS_PER_SECOND // 50
_KEY_PS = PS_PER_SECOND // 100_000
"""The virtual time in which a program that reads takes in what is typed, and shows it: in all, and for each byte more.
Its processor may be with another program for some milliseconds."""
_ENDS_READING = frozenset(b"\r\n\x03\x04\x1a\x1c")
_ENDS_PS = PS_PER_SECOND
"""What ends a line, and the most virtual time until the program has read it."""
_MOST_BEHIND_S = 0.2
"""What a machine that is too slow may owe: it need not hurry to catch up with more."""


class VirtualTerminal:
    """The terminal of one program. While the program runs, virtual time goes as fast as real time, or slower where the
    machine does not keep up: somebody types and looks. Where the program tells when it reads what is typed, time stands
    while it reads, however long that takes, and goes as fast as it can before the first time.

    Parameters
    ----------
    programs, connection
        The lab's programs, and what lets its time pass.
    end
        The end of a pseudo-terminal at which programs are; what is typed at the other end, its master, is for the
        program.
    tells_when_it_reads
        Whether the program does that.
    """

    def __init__(
        self,
        programs: VirtualPrograms,
        connection: VirtualConnection,
        end: int,
        tells_when_it_reads: bool = False,
    ) -> None:
        self._programs = programs
        self._connection = connection
        self._end = os.dup(end)
        # The program's own terminal, in the guest, does what a terminal does.
        tty.setraw(self._end, termios.TCSADRAIN)
        self.size: tuple[int, int] = termios.tcgetwinsize(self._end)
        self._hurries = tells_when_it_reads
        self._reads = False
        self._begun = b""
        self._marks = 0
        self._typed = threading.Event()
        self._due_ps = 0
        self._due_changes = threading.Lock()
        self.screen: SlowReader = SlowReader(os.dup(end), self._taken_out if tells_when_it_reads else None)
        self._failure: TwinnetError | None = None
        self._over = threading.Event()
        self._feeder: Feeder | None = None

    def give_up(self) -> None:
        """The program could not be started."""
        self.screen.abandon()
        os.close(self._end)

    def join(self, job: VirtualJob) -> None:
        """Feed `job` what is typed, and let time pass until it ends or the lab does."""

        def feed(typed: bytes | None) -> None:
            # Whoever lets time pass hears of what is wrong.
            with contextlib.suppress(TwinnetError):
                self._programs.feed_to(job, typed)
            if typed:
                self._give_time(_ENDS_PS if _ENDS_READING & set(typed) else _SETTLES_PS + len(typed) * _KEY_PS)

        self._feeder = Feeder(os.dup(self._end), feed)
        threading.Thread(target=self._keep_pace, args=(job,), name="twinnet-terminal", daemon=True).start()

    @property
    def over(self) -> bool:
        """Whether its program has ended, and all that it wrote is at the other end."""
        return self._over.is_set()

    def stand_until(self, stop: Callable[[], bool]) -> None:
        """Wait until `stop` says yes or the terminal is over, without letting more time pass.

        Raises
        ------
        TwinnetError
            What kept time from going on.
        """
        while not (stop() or self._over.wait(_LOOK_S)):
            pass
        if self._failure is not None:
            raise self._failure

    def _taken_out(self, written: bytes) -> bytes:
        """Return what the program has `written` without what it tells of its reading."""
        written, self._begun = self._begun + written, b""
        while found := [(place, mark) for mark in _MARKS if (place := written.find(mark)) >= 0]:
            place, mark = min(found)
            self._reads = _MARKS[mark]
            self._hurries = False
            self._marks += 1
            # What was typed before may be there for it already.
            self._give_time(_SETTLES_PS)
            written = written[:place] + written[place + len(mark) :]
        # A mark may come in two pieces.
        begun = written[written.rfind(b"\x1b") :] if b"\x1b" in written else b""
        if any(mark.startswith(begun) for mark in _MARKS):
            self._begun = begun
            written = written[: len(written) - len(begun)]
        return written

    def _give_time(self, length_ps: int) -> None:
        """Let the program have so much time, although it reads."""
        with self._due_changes:
            self._due_ps = max(self._due_ps, length_ps)
        self._typed.set()

    def _settle(self, job: VirtualJob) -> None:
        """Wait a moment for what is typed, and let the program take it in."""
        if not self._typed.wait(_LOOK_S):
            return
        with self._due_changes:
            due_ps, self._due_ps = self._due_ps, 0
            self._typed.clear()
        seen = self._marks
        self._connection.pass_until(lambda: job.over or self._marks != seen, due_ps)

    def _keep_pace(self, job: VirtualJob) -> None:
        try:
            began_s, began_ps = time.monotonic(), self._connection.now()["now_ps"]
            while not job.over:
                self._follow_size(job)
                self.screen.wait_for_room(lambda: self._connection.closed)
                if self._hurries:
                    self._connection.pass_until(lambda: job.over or self._reads, _HURRY_PS)
                    continue
                if self._reads:
                    self._settle(job)
                    continue
                now_ps = self._connection.now()["now_ps"]
                ahead_ps = began_ps + int((time.monotonic() - began_s) * PS_PER_SECOND) - now_ps
                if not 0 <= ahead_ps <= _MOST_BEHIND_S * PS_PER_SECOND:
                    # Somebody else let time pass, or it does not keep up.
                    began_s, began_ps = time.monotonic(), now_ps
                    ahead_ps = int(_LOOK_S * PS_PER_SECOND)
                self._connection.pass_until(lambda: job.over or self._reads, ahead_ps)
                time.sleep(_LOOK_S)
            self.screen.wait_written(lambda: self._connection.closed)
        except TwinnetError as error:
            self._failure = error
        finally:
            if self._feeder is not None:
                self._feeder.abandon()
            self.screen.abandon()
            os.close(self._end)
            self._over.set()
            job.wake()

    def _follow_size(self, job: VirtualJob) -> None:
        # Where the other end is closed, there is no size any more.
        with contextlib.suppress(termios.error):
            size = termios.tcgetwinsize(self._end)
            if size != self.size:
                self.size = size
                self._programs.resize(job.number, size)
