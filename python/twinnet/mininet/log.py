"""Mininet's log: messages without an end of line of their own, on standard error."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

__all__ = [
    "LEVELS",
    "LOGLEVELDEFAULT",
    "LOGMSGFORMAT",
    "OUTPUT",
    "MininetLogger",
    "Singleton",
    "StreamHandlerNoNewline",
    "debug",
    "error",
    "info",
    "lg",
    "makeListCompatible",
    "output",
    "setLogLevel",
    "warn",
    "warning",
]

OUTPUT = 25
"""The level of what a user has asked to see: above `info`, below `warning`."""

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "output": OUTPUT,
    "warning": logging.WARNING,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
LOGLEVELDEFAULT = OUTPUT
LOGMSGFORMAT = "%(message)s"


if TYPE_CHECKING:
    _Handler = logging.StreamHandler[TextIO]
else:
    _Handler = logging.StreamHandler


class StreamHandlerNoNewline(_Handler):
    """Writes messages as they are."""

    terminator: str = ""


class Singleton(type):
    """The class of classes that have one instance; for classes of scripts."""

    instance: Any = None

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.__dict__.get("instance") is None:
            cls.instance = super().__call__(*args, **kwargs)
        return cls.instance


class MininetLogger(logging.Logger):
    """The logger of Mininet's messages."""

    def __init__(self, name: str = "mininet") -> None:
        super().__init__(name)
        self.ch: logging.Handler = StreamHandlerNoNewline()
        self.ch.setFormatter(logging.Formatter(LOGMSGFORMAT))
        self.addHandler(self.ch)
        self.propagate = False
        self.setLogLevel()

    def setLogLevel(self, levelname: str | None = None) -> None:
        """Show messages from `levelname` on: debug, info, output, warning, error or critical."""
        if levelname and levelname not in LEVELS:
            raise Exception(f"setLogLevel: unknown levelname {levelname}; there are {', '.join(LEVELS)}")
        level = LEVELS[levelname] if levelname else LOGLEVELDEFAULT
        self.setLevel(level)
        self.ch.setLevel(level)

    def output(self, msg: object, *args: object) -> None:
        """Log at the level `OUTPUT`."""
        if self.isEnabledFor(OUTPUT):
            self._log(OUTPUT, msg, args)


def makeListCompatible(fn: Callable[[str], None]) -> Callable[..., None]:
    """Return a function that joins its arguments by blanks and gives them to `fn`."""
    return _joining(fn, fn.__name__)


def _joining(write: Callable[[str], None], name: str) -> Callable[..., None]:
    """Several arguments are joined by blanks: ``info('added', 3, 'hosts')``. None is taken for a format."""

    def joined(*args: object) -> None:
        write(" ".join(str(one) for one in args))

    joined.__name__ = name
    joined.__doc__ = f"Log the arguments, joined by blanks, at the level {name}."
    return joined


logging.addLevelName(OUTPUT, "OUTPUT")
lg: MininetLogger = MininetLogger()
logging.Logger.manager.loggerDict.setdefault("mininet", lg)
info: Callable[..., None] = _joining(lg.info, "info")
output: Callable[..., None] = _joining(lg.output, "output")
warning: Callable[..., None] = _joining(lg.warning, "warning")
error: Callable[..., None] = _joining(lg.error, "error")
debug: Callable[..., None] = _joining(lg.debug, "debug")
warn: Callable[..., None] = warning
setLogLevel: Callable[[str | None], None] = lg.setLogLevel
for _name, _write in (("info", info), ("output", output), ("warning", warning), ("error", error), ("debug", debug)):
    setattr(lg, _name, _write)
