"""Input lines of the prompt: from the keyboard with history and completion, a script on standard input, or ``-c``."""

from __future__ import annotations

import contextlib
import os
import selectors
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from twinnet.cli.prompt.completing import candidates
from twinnet.cli.prompt.session import Session
from twinnet.errors import LabClosed
from twinnet.lab.lab import Lab

_LOOK_S = 0.2
_LONG_S = 3600.0
_AT_ONCE_BYTES = 65_536

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completion
    from prompt_toolkit.document import Document

__all__ = ["interact", "run_lines"]


def run_lines(session: Session, lines: Iterable[str]) -> bool:
    """Do `lines` in order, until one of them ends the session; return whether all work was done."""
    done = True
    for line in lines:
        done = session.execute(line) and done
        if session.over:
            break
    return done


def interact(session: Session) -> None:
    """Ask for lines at the keyboard until the user leaves."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.history import FileHistory

    class NodeCompleter(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
            before = document.text_before_cursor
            word = before.split(" ")[-1]
            for one in candidates(session.lab, before):
                yield Completion(one, -len(word))

    history = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "twinnet" / "history"
    try:
        history.parent.mkdir(parents=True, exist_ok=True)
        kept = FileHistory(str(history))
    except OSError:
        # A home that cannot be written (a service account): the prompt works, only its history is forgotten.
        kept = None
    prompt: PromptSession[str] = PromptSession(history=kept, completer=NodeCompleter(), complete_while_typing=False)
    clock = "" if session.lab.clock == "wall" else f" on the {session.lab.clock} clock"
    print(f"*** lab {session.lab.name}{clock}: type help, or HOST PROGRAM", flush=True)
    threading.Thread(target=_leave_with, args=(session.lab, prompt), daemon=True).start()
    while not session.over:
        _check_lives(session.lab)
        try:
            session.execute(prompt.prompt("twinnet> "))
        except KeyboardInterrupt:
            # Ctrl-C at the prompt clears the line; in a program it went to the program.
            continue
        except EOFError:
            break


def _leave_with(lab: Lab, prompt: PromptSession[str]) -> None:
    """Leave `prompt` when `lab` ends: the keyboard may stay silent for ever."""
    while not lab.connection.wait_closed(_LONG_S):
        pass
    while True:
        if (loop := prompt.app.loop) is not None:
            # Between two lines there is no application; the next one is left at once.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_exit_from, prompt)
        time.sleep(_LOOK_S)


def _exit_from(prompt: PromptSession[str]) -> None:
    if prompt.app.is_running and not prompt.app.is_done:
        prompt.app.exit(exception=_ended())


def _check_lives(lab: Lab) -> None:
    if lab.connection.closed:
        raise _ended()


def _ended() -> LabClosed:
    return LabClosed("the lab has ended", "start it again; its last messages are on its standard error")


def lines_of_stdin(lab: Lab) -> Iterator[str]:
    """Yield the lines of standard input as they come.

    Raises
    ------
    LabClosed
        `lab` ended while a line was waited for.
    """
    rest = b""
    with selectors.DefaultSelector() as selector:
        try:
            selector.register(sys.stdin, selectors.EVENT_READ)
        except PermissionError:
            # A regular file, which epoll does not take: it never makes anybody wait.
            selector.close()
            yield from sys.stdin
            return
        while True:
            while not selector.select(_LOOK_S):
                _check_lives(lab)
            read = os.read(sys.stdin.fileno(), _AT_ONCE_BYTES)
            *lines, rest = (rest + read).split(b"\n")
            for line in lines if read else [rest] if rest else []:
                yield line.decode(sys.stdin.encoding, sys.stdin.errors or "strict")
            if not read:
                return
