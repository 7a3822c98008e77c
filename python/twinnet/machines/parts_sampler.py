"""Counts at ports of a network on several machines: a sampler in each part, told as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twinnet.errors import NotAvailable
from twinnet.units import format_duration

__all__ = ["PartsSampler"]

_TRIALS = 5
_MOST_APART = 0.1
_SHORTEST_PS = 1_000_000_000
"""Of ports on several machines: requests through SSH arrive less than a tenth of that apart at best."""

AskParts = Callable[[str, Mapping[str, Mapping[str, Any]]], Mapping[str, Any]]
"""Asks machines one request side by side: its name and, for each machine, its fields."""


class PartsSampler:
    """A sampler of `ports` by their machine.

    Parameters
    ----------
    ask
        Asks the parts.
    interval_ps
        The length of an interval.
    ports
        The interfaces of each machine.

    Raises
    ------
    NotAvailable
        The interval is too short, or the parts cannot begin to count at nearly the same moment.
    """

    def __init__(self, ask: AskParts, interval_ps: int, ports: Mapping[str, Sequence[str]]) -> None:
        if len(ports) > 1 and interval_ps < _SHORTEST_PS:
            raise NotAvailable(
                f"ports on {len(ports)} machines are not sampled every {format_duration(interval_ps)}",
                f"sample at least every {format_duration(_SHORTEST_PS)}, or the ports of each machine by themselves",
            )
        self._ask = ask
        apart_ps = 0
        for _ in range(_TRIALS):
            fields = {name: {"interval_ps": interval_ps, "ports": list(mine)} for name, mine in ports.items()}
            started = ask("samples.start", fields)
            self._numbers = {name: {"sampler": int(one["sampler"])} for name, one in started.items()}
            begins = [int(one["start_ps"]) for one in ask("samples.read", self._numbers).values()]
            apart_ps = max(begins) - min(begins)
            if apart_ps <= _MOST_APART * interval_ps:
                return
            self.stop()
        raise NotAvailable(
            f"ports on {len(ports)} machines began to count {format_duration(apart_ps)} apart, more than a tenth of an"
            f" interval of {format_duration(interval_ps)}",
            f"sample every {format_duration(_rounded_up(apart_ps))}, or the ports of each machine by themselves",
        )

    def read(self) -> dict[str, Any]:
        """Return what was counted so far, in the form of the lab protocol."""
        return _joined(self._ask("samples.read", self._numbers))

    def stop(self) -> dict[str, Any]:
        """Return what was counted, and end."""
        return _joined(self._ask("samples.stop", self._numbers))


def _joined(told: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    parts = list(told.values())
    return {
        "interval_ps": parts[0]["interval_ps"],
        "start_ps": min(int(one["start_ps"]) for one in parts),
        "full": any(one["full"] for one in parts),
        "ports": {name: series for one in parts for name, series in one["ports"].items()},
    }


def _rounded_up(apart_ps: int) -> int:
    """The next interval of 1, 10, 100 ms and so on that permits that much."""
    interval_ps = _SHORTEST_PS
    while _MOST_APART * interval_ps < apart_ps:
        interval_ps *= 10
    return interval_ps
