"""The fewest prefixes that stand for a set of addresses."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

__all__ = ["Prefix", "fewest_prefixes"]

Prefix = tuple[int, int]
"""A value whose low bits are zero, and how many of its high bits count."""


def fewest_prefixes(members: Sequence[int], known: Sequence[int], width: int, exact: bool = False) -> list[Prefix]:
    """Return disjoint prefixes that cover all `members` and no other of the `known` addresses, as few as can be.

    A prefix may cover addresses that nobody has; the fewest are found by halving the smallest prefix around the members
    until a half has no stranger (the bottom-up pass of Draves, King, Venkatachary and Zill, *Constructing optimal IP
    routing tables*, INFOCOM 1999, with addresses that nobody has as those that do not matter).

    Parameters
    ----------
    members
        Sorted, each once, all of them known.
    known
        Sorted, each once.
    width
        Bits of an address: 32 for IPv4, 48 for Ethernet.
    exact
        Whether prefixes may cover no address that is not a member, also not those that nobody has.

    Examples
    --------
    >>> fewest_prefixes([8, 9, 10], [1, 8, 9, 10, 16], width=5)
    [(8, 3)]
    """
    found: list[Prefix] = []
    waiting: list[tuple[int, int]] = [(0, len(members))] if members else []
    while waiting:
        low, high = waiting.pop()
        first, last = members[low], members[high - 1]
        free = (first ^ last).bit_length()
        value = first >> free << free
        end = value + (1 << free)
        inside = (1 << free) if exact else bisect_left(known, end) - bisect_left(known, value)
        if inside == high - low:
            found.append((value, width - free))
            continue
        middle = bisect_left(members, value + (1 << free - 1), low, high)
        waiting += [(middle, high), (low, middle)]
    return found
