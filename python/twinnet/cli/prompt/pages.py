"""The live page, from the prompt: ``live``."""

from __future__ import annotations

from collections.abc import Sequence

from twinnet.cli.prompt.answer import Answer
from twinnet.errors import BadValue
from twinnet.lab.lab import Lab
from twinnet.lab.live_page import LivePage

__all__ = ["Pages"]


class Pages:
    """The page of a session's lab, if it has one.

    Parameters
    ----------
    lasts
        Whether the session waits for lines: a page ends with its session.
    """

    def __init__(self, lasts: bool) -> None:
        self._lasts = lasts
        self._page: LivePage | None = None
        self._out: str | None = None

    def live(self, lab: Lab, words: Sequence[str]) -> Answer:
        """Begin a page, record it in a file, say where it is, or end it."""
        if not self._lasts:
            raise BadValue("a page ends with the command that began it", f"write: twinnet live {lab.name}")
        if len(words) > 1:
            raise BadValue(f"live does not understand {words[1]!r} there", "write: live, live FILE.html or live stop")
        running = self._page if self._page is not None and self._page.running else None
        if list(words) == ["stop"]:
            if running is None:
                raise BadValue("no page is open", "begin one with: live")
            running.stop()
            self._page = None
            return Answer({"path": self._out}, f"wrote {self._out}" if self._out else "")
        if running is None:
            self._out = words[0] if words else None
            running = self._page = lab.live(self._out)
        elif words:
            raise BadValue("the page is open and records nothing", "end it first: live stop")
        address = running.address
        return Answer(
            {"address": address, "path": self._out}, f"open {address}\nlive stop ends it, and so does the lab"
        )
