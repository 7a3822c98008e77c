"""Ranges of hosts in the traffic of a study: ``h{1..70..3}`` is h1, h4, ..., h70, as shells expand it."""

from __future__ import annotations

import re
from typing import Any, cast

__all__ = ["expand_hosts"]

_RANGE = re.compile(r"([a-z][a-z0-9-]*)\{([0-9]{1,6})\.\.([0-9]{1,6})(?:\.\.([0-9]{1,6}))?\}\Z")
_MOST_HOSTS = 10_000


def expand_hosts(value: Any) -> Any:
    """Return a list of names with its ranges expanded; other values as they are.

    Raises
    ------
    ValueError
        For a range without hosts, or with more than 10000.

    Examples
    --------
    >>> expand_hosts(["v1", "h{2..8..3}"])
    ['v1', 'h2', 'h5', 'h8']
    """
    if not isinstance(value, list):
        return value
    found: list[Any] = []
    for one in cast("list[Any]", value):
        ends = _RANGE.match(one) if isinstance(one, str) else None
        if ends is None:
            found.append(one)
            continue
        first, last, step = int(ends[2]), int(ends[3]), int(ends[4] or 1)
        count = (last - first) // step + 1 if step and last >= first else 0
        if not 1 <= count <= _MOST_HOSTS:
            raise ValueError(
                f"the range {one!r} has {count} hosts; allowed are 1 to {_MOST_HOSTS}, as in 'h{{1..70..3}}'"
            )
        found += [f"{ends[1]}{number}" for number in range(first, last + 1, step)]
    return found
