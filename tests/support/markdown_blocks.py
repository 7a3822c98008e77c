"""The fenced blocks of the documentation's pages, and the notes to the tests that stand before them.

A note is an HTML comment, which readers of the page do not see: ``<!-- test: needs tshark -->``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Block", "Step", "blocks_of", "matches", "steps_of"]

_FENCE = re.compile(r"(`{3,})\s*(\S*)\s*$")
_NOTE = re.compile(r"<!--\s*test:\s*(.*?)\s*-->\s*$")


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Parameters
    ----------
    page, line
        Where its first line stands.
    language
        What stands behind the fence.
    text
        What is in it.
    notes
        The notes to the tests directly before it.
    """

    page: Path
    line: int
    language: str
    text: str
    notes: tuple[str, ...]

    @property
    def place(self) -> str:
        """File and line, for messages."""
        return f"{self.page.name}:{self.line}"

    @property
    def file_name(self) -> str | None:
        """The name that the block's first line gives it in a comment (``# office.yaml``)."""
        found = re.match(r"# ([\w-]+\.(?:yaml|py))\n", self.text)
        return found.group(1) if found else None

    def note(self, name: str) -> str | None:
        """What follows `name` in the notes, ``None`` when no note begins with it."""
        for note in self.notes:
            if note == name or note.startswith(name + " "):
                return note.removeprefix(name).strip()
        return None


@dataclass(frozen=True)
class Step:
    """One command of a ``console`` block, what is typed at its prompt, and what it prints."""

    command: str
    typed: tuple[str, ...]
    expected: tuple[str, ...]


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of `page` in order."""
    blocks: list[Block] = []
    notes: list[str] = []
    fence, language, start, lines = "", "", 0, list[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if fence:
            if line.strip() == fence:
                blocks.append(Block(page, start + 1, language, "".join(f"{one}\n" for one in lines), tuple(notes)))
                fence, notes = "", []
            else:
                lines.append(line)
        elif found := _FENCE.match(line):
            fence, language, start, lines = found.group(1), found.group(2), number, []
        elif found := _NOTE.match(line):
            notes.append(found.group(1))
        elif line.strip():
            notes = []
    assert not fence, f"{page.name}:{start}: the block is not closed"
    return blocks


def steps_of(block: Block, prompt: str = "twinnet> ") -> list[Step]:
    """Return the commands of a ``console`` block: what stands after ``$``, what is typed, and what is printed."""
    steps: list[tuple[str, list[str], list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], [], []))
            continue
        assert steps, f"{block.place}: a console block begins with a command after $"
        command, typed, expected = steps[-1]
        if line.startswith("> ") and not typed and not expected:
            steps[-1] = (f"{command}\n{line[2:]}", typed, expected)
        elif line.startswith(prompt):
            typed.append(line.removeprefix(prompt))
        elif not line.startswith("*** lab "):
            # The greeting is for a keyboard; a script gets none.
            expected.append(line)
    return [Step(command, tuple(typed), tuple(expected)) for command, typed, expected in steps]


def matches(expected: str, given: str) -> bool:
    """Return whether `given` is `expected`, where ``...`` stands for anything within a line, or alone for any lines."""
    pattern = ""
    for line in expected.rstrip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r".*?".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ \t]*\n"
    return re.fullmatch(pattern, given.rstrip() + "\n" if given.strip() else "") is not None
