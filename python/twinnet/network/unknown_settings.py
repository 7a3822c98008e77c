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


def refuses_unknown_settings(*kinds: type) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Have a function raise `BadValue` for a keyword that it does not take; words of other tools (``bw``) are known.

    Parameters
    ----------
    kinds
        The ``TypedDict`` of which the function takes the keys, where it takes ``**settings``.

    Examples
    --------
    >>> @refuses_unknown_settings()
    ... def link(rate: str = "1 Gbit") -> str:
    ...     return rate
    >>> link(bw="10 Mbit")
    Traceback (most recent call last):
    ...
    twinnet.errors.BadValue: link() takes no 'bw': did you mean 'rate'?
    """

    def checked(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters.values()
        taken = {one.name for one in parameters if one.kind is not one.VAR_KEYWORD}.union(
            *(kind.__annotations__ for kind in kinds)
        )

        @functools.wraps(function)
        def call(*arguments: P.args, **settings: P.kwargs) -> R:
            if not taken.issuperset(settings):
                wrong = next(name for name in settings if name not in taken)
                nearest = did_you_mean(wrong, sorted(taken - {"self"}))
                raise BadValue(f"{function.__name__}() takes no {wrong!r}: {nearest}")
            return function(*arguments, **settings)

        return call

    return checked
