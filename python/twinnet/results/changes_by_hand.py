"""What somebody has changed by hand in a lab while it ran, as its record of itself has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ChangeByHand", "ChangesByHand"]


@dataclass(frozen=True)
class ChangeByHand:
    """A change that somebody has made in a running lab.

    Parameters
    ----------
    at_s
        The lab's time after it, in seconds.
    door
        By what it was made: ``the live page``, ``the prompt``, ``twinnet do``, ``twinnet exec`` or ``another program``.
    what
        It in one line: what does the same at the prompt or in Python, or else the request.
    is_traffic
        Whether it has only started or ended traffic, or a program in a host, and changed nothing of the network.
    """

    at_s: float
    door: str
    what: str
    is_traffic: bool = False

    def __str__(self) -> str:
        return f"at {self.at_s:.3f} s by {self.door}: {self.what}"


@dataclass(frozen=True)
class ChangesByHand:
    """All changes by hand in a lab.

    Parameters
    ----------
    changes
        How many have changed the network.
    traffic
        How many have only started or ended traffic or programs in hosts.
    first
        The first of both, in their order.
    """

    changes: int = 0
    traffic: int = 0
    first: Sequence[ChangeByHand] = ()

    def words(self, with_traffic: bool = False) -> str:
        """Say how many changes of the network there were, and the first of them; nothing if there were none. Traffic
        changes nothing of it, and counts only `with_traffic`."""
        count = self.changes + (self.traffic if with_traffic else 0)
        if not count:
            return ""
        first = next((str(one) for one in self.first if with_traffic or not one.is_traffic), "of which none is kept")
        return f"changed by hand {'once' if count == 1 else f'{count} times, first'} {first}"
