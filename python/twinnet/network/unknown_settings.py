"""Keywords that a call does not take are answered with the nearest that it does, as wrong keys of a file are."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from twinnet.errors import BadValue, did_you_mean

__all__ = ["refuses_unknown_settings"]

P = ParamSpec("P")
R = TypeVar("R")


def refuses_unknown_settings(function: Callable[P, R]) -> Callable[P, R]:
    """Have `function` raise `BadValue` for a keyword that it does not take; words of other tools (``bw``) are known.

    Examples
    --------
    >>> @refuses_unknown_settings
    ... def link(rate: str = "1 Gbit") -> str:
    ...     return rate
    >>> link(bw="10 Mbit")
    Traceback (most recent call last):
    ...
    twinnet.errors.BadValue: link() takes no 'bw': did you mean 'rate'?
    """
    taken = frozenset(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*arguments: P.args, **settings: P.kwargs) -> R:
        if not taken.issuperset(settings):
            wrong = next(name for name in settings if name not in taken)
            raise BadValue(f"{function.__name__}() takes no {wrong!r}: {did_you_mean(wrong, sorted(taken - {'self'}))}")
        return function(*arguments, **settings)

    return checked
