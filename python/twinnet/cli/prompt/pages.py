"""The live page, from the prompt: ``live``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twinnet.cli.prompt.answer import Answer
from twinnet.errors import BadValue
from twinnet.lab.lab import Lab
from twinnet.lab.live_page import LivePage

__all__ = ["Pages"]

_USAGE = "write: live, live control, live FILE.html, live control FILE.html, live FILE.parquet or live stop"


class Pages:
    """The page of a session's lab, if it has one.

    Parameters
    ----------
    lasts
        Whether the session waits for lines: a page ends with its session.
    positions
        The file with the places of nodes, of a lab whose network is from a file.
    """

    def __init__(self, lasts: bool, positions: Path | None = None) -> None:
        self._lasts = lasts
        self._positions = positions
        self._page: LivePage | None = None
        self._out: str | None = None

    def live(self, lab: Lab, words: Sequence[str]) -> Answer:
        """Begin a page, record it in a file, say where it is, or end it."""
        if not self._lasts:
            raise BadValue("a page ends with the command that began it", f"write: twinnet live {lab.name}")
        control = "control" in words
        words = [word for word in words if word != "control"]
        if len(words) > 1 or (control and words == ["stop"]):
            raise BadValue(f"live does not understand {words[-1]!r} there", _USAGE)
        running = self._page if self._page is not None and self._page.running else None
        if list(words) == ["stop"]:
            if running is None:
                raise BadValue("no page is open", "begin one with: live")
            running.stop()
            self._page = None
            return Answer({"path": self._out}, f"wrote {self._out}" if self._out else "")
        if running is None:
            self._out = words[0] if words else None
            running = self._page = lab.live(self._out, control, self._positions)
        elif words or control:
            raise BadValue("a page is open, and it stays as it was begun", "end it first: live stop")
        address = running.address
        return Answer(
            {"address": address, "path": self._out}, f"open {address}\nlive stop ends it, and so does the lab"
        )
