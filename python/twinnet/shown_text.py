"""Text of others as it is shown: what would steer a terminal, or reorder a line, is written out.

Names, messages and versions come from programs and files of others. One of them may hold an escape sequence that clears
the screen, a carriage return that writes over the line, or a mark that turns what follows around.
"""

from __future__ import annotations

import json
import re
from typing import IO, Any, cast

__all__ = ["ShowingStream", "bare", "for_templates", "showing", "shown_json", "shown_text"]

_STEERING = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f"  # controls of ASCII and of ISO 8859, but tab and line feed
    "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069"  # direction (Unicode Standard Annex 9)
    "\\u2028\\u2029\\ufeff\\ufff9-\\ufffb]"  # line and paragraph ends, byte order, annotation
)


def shown_text(text: str) -> str:
    """Return `text` with control characters written out as Python would; tabs and line feeds stay.

    Examples
    --------
    >>> shown_text("1.0\\x1b[31m")
    '1.0\\\\x1b[31m'
    """
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


_IN_JSON = re.compile(r"\\(?:u([0-9a-f]{4})|.)|\x7f")
_SHORT = {"\\b": "\b", "\\f": "\f", "\\r": "\r", "\x7f": "\x7f"}


def shown_json(value: Any) -> str:
    """Return `value` as JSON for a page that shows it: each text in it, names of fields too, as :func:`shown_text`
    does.

    Examples
    --------
    >>> shown_json({"name": "1.0\\x1b[31m"})
    '{"name":"1.0\\\\\\\\x1b[31m"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return _IN_JSON.sub(_shown_escape, text)


def _shown_escape(found: re.Match[str]) -> str:
    """An escape of JSON, doubled where it stands for what steers: so the page reads how it is written."""
    told = chr(int(found[1], 16)) if found[1] else _SHORT.get(found[0], "")
    return found[0] if (shown := shown_text(told)) == told else shown.replace("\\", "\\\\")


class ShowingStream:
    """A stream of text that shows what is written to it as :func:`shown_text` does; all else is that of `stream`.

    Parameters
    ----------
    stream
        Standard output or standard error. What is meant to steer the terminal is written to it itself.
    """

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write `text` as it is shown."""
        self.stream.write(shown_text(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each of the `lines`."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Return what the stream has."""
        return getattr(self.stream, name)


def bare(stream: IO[str]) -> IO[str]:
    """Return the stream below, for what steers the terminal on purpose."""
    return stream.stream if isinstance(stream, ShowingStream) else stream


def showing(stream: IO[str]) -> IO[str]:
    """Return a stream that shows what is written to `stream`; `stream` itself where it does so already."""
    return stream if isinstance(stream, ShowingStream) else cast("IO[str]", ShowingStream(stream))


def for_templates(value: Any) -> Any:
    """Return `value` as a template of Jinja shows it (``finalize``): text with its control characters written out, and
    what is markup already as it is."""
    return shown_text(value) if type(value) is str else value
