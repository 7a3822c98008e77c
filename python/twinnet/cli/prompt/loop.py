"""Input lines of the prompt: from the keyboard with history and completion, a script on standard input, or ``-c``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from twinnet.cli.prompt.session import COMMANDS, Session
from twinnet.lab.lab import Lab
from twinnet.network.link_settings import SETTINGS

if TYPE_CHECKING:
    from prompt_toolkit.completion import CompleteEvent, Completion
    from prompt_toolkit.document import Document

__all__ = ["candidates", "interact", "run_lines"]


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
    print(f"*** lab {session.lab.name}: type help, or HOST PROGRAM", flush=True)
    while not session.over:
        try:
            session.execute(prompt.prompt("twinnet> "))
        except KeyboardInterrupt:
            # Ctrl-C at the prompt clears the line; in a program it went to the program.
            continue
        except EOFError:
            break


def lines_of_stdin() -> Iterator[str]:
    """Yield the lines of standard input as they come."""
    while line := sys.stdin.readline():
        yield line


def candidates(lab: Lab, before: str) -> list[str]:
    """Return what can follow the line `before`, its last word as it is typed so far."""
    words = before.split(" ")
    typed, earlier = words[-1], [word for word in words[:-1] if word]
    if not earlier:
        found = [*COMMANDS, *lab.layout.names("host")]
    elif earlier[0] in COMMANDS:
        kinds = COMMANDS[earlier[0]].follows
        found = _of_kind(lab, kinds[min(len(earlier) - 1, len(kinds) - 1)]) if kinds else []
    else:
        found = list(lab.layout.nodes)
    return sorted(one for one in found if one.startswith(typed))


def _of_kind(lab: Lab, kind: str) -> list[str]:
    if kind == "interface":
        return ["stop", *(port["name"] for node in lab.layout.nodes.values() for port in node.get("ports", ()))]
    if kind == "setting":
        return [*SETTINGS, "down", "direction"]
    if kind == "flow":
        return ["add", "del"]
    return list(lab.layout.nodes) if kind == "node" else lab.layout.names(kind)
