"""A traffic class: which packets belong to it, and what it gets."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false, reportUnnecessaryComparison=false

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from twinnet.errors import BadPolicy, UsageError
from twinnet.network.addressing import checked_name
from twinnet.policies.match import Match
from twinnet.qos.queue import Queue
from twinnet.ranges import is_whole, line_rate_bps

__all__ = ["Amount", "TrafficClass", "amount_bps"]

Amount = str | float
"""A rate with unit (``"330 Mbit"``), or a share of the scheduler's rate above 0, at most 1 (``0.33`` or ``"33 %"``)."""

_PERCENT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")


@dataclass(frozen=True)
class TrafficClass:
    """One class of a policy.

    Parameters
    ----------
    name
        Its name, such as ``http``: a letter, then letters, digits and hyphens.
    matches
        Its packets: those that one of these covers. Without any it is the class of the rest, of which a policy has at
        most one.
    minimum, maximum
        What it is guaranteed and what it may have at most: a rate or a share of the scheduler's. Without a maximum it
        may have the whole.
    priority
        0 to 7; the lowest number is served first where the discipline knows priorities.
    weight
        Its part where the discipline shares by weights, above 0.
    queue
        The discipline behind it; default: a FIFO of 1000 frames.
    dscp
        The differentiated services code point that its packets get, 0 to 63; default: they keep theirs.
    meter
        What a switch lets pass of it, the rest it drops: a rate or a share. Without one it is not metered.
    burst
        What passes a meter at once, in seconds of its rate.
    precedence
        Of classes that cover the same packets, the one with the higher precedence has them. Two such classes with the
        same precedence are refused.
    """

    name: str
    matches: Sequence[Match] = ()
    minimum: Amount | None = None
    maximum: Amount | None = None
    priority: int = 0
    weight: float = 1.0
    queue: Queue | None = None
    dscp: int | None = None
    meter: Amount | None = None
    burst: float = 0.1
    precedence: int = 0

    def __post_init__(self) -> None:
        try:
            checked_name(self.name)
        except UsageError as error:
            raise BadPolicy(f"a traffic class is called {self.name!r}: {error}") from None
        matches = (self.matches,) if isinstance(self.matches, Match) else tuple(self.matches)
        object.__setattr__(self, "matches", matches)
        wrong = next((one for one in matches if not isinstance(one, Match)), None)
        if wrong is not None:
            raise BadPolicy(f"the class {self.name} matches {wrong!r}", "give twinnet.policies.Match(...)")
        for what in ("minimum", "maximum", "meter"):
            if getattr(self, what) is not None:
                amount_bps(getattr(self, what), 10**9, f"the {what} of the class {self.name}")
        if not is_whole(self.priority, 0, 7):
            raise BadPolicy(f"the priority of the class {self.name} is {self.priority!r}; allowed are 0 to 7")
        if not 0 < self.weight <= 1e6:
            raise BadPolicy(
                f"the weight of the class {self.name} is {self.weight!r}; allowed are 0 to 1000000, above 0"
            )
        if not 0.001 <= self.burst <= 10:
            raise BadPolicy(f"the burst of the class {self.name} is {self.burst!r} s; allowed are 0.001 to 10")
        if self.queue is not None and not isinstance(self.queue, Queue):
            raise BadPolicy(f"the queue of the class {self.name} is {self.queue!r}", "give one such as tn.qos.Red(...)")
        if self.dscp is not None and (isinstance(self.dscp, bool) or not 0 <= self.dscp <= 63):
            raise BadPolicy(f"the DSCP of the class {self.name} is {self.dscp!r}; allowed are 0 to 63")
        if (
            isinstance(self.precedence, bool)
            or not isinstance(self.precedence, int)
            or not 0 <= self.precedence <= 1000
        ):
            raise BadPolicy(f"the precedence of the class {self.name} is {self.precedence!r}; allowed are 0 to 1000")

    @property
    def is_rest(self) -> bool:
        """True if it has the packets that no other class covers."""
        return not self.matches


def amount_bps(amount: Amount, rate_bps: int, what: str) -> int:
    """Return `amount` in bits per second, of a scheduler of `rate_bps`; errors call it `what`.

    Raises
    ------
    BadPolicy
        When it is neither a rate nor a share.

    Examples
    --------
    >>> [amount_bps(one, 1_000_000_000, "the minimum") for one in (0.33, "33 %", "2 Mbit")]
    [330000000, 330000000, 2000000]
    """
    if isinstance(amount, str) and (percent := _PERCENT.fullmatch(amount)):
        amount = float(percent[1]) / 100
    if isinstance(amount, str):
        try:
            return line_rate_bps(amount, what.removeprefix("the "))
        except UsageError as error:
            raise BadPolicy(str(error), 'give a rate such as "2 Mbit", or a share such as 0.33 or "33 %"') from None
    if isinstance(amount, bool) or not isinstance(amount, (int, float)) or not 0 < amount <= 1:
        raise BadPolicy(f"{what} is {amount!r}; allowed are shares above 0, at most 1, and rates with unit")
    return max(1, int(amount * rate_bps + 1e-6))
