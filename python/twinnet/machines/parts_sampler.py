"""Counts at ports of a network on several machines: a sampler in each part, read as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from twinnet.errors import NotAvailable
from twinnet.lab_process.replies import SamplesTold
from twinnet.lab_process.requests import LabRequests
from twinnet.units import format_duration

__all__ = ["PartsSampler"]

_Answer = TypeVar("_Answer")
_TRIALS = 5
_MOST_APART = 0.1
_SHORTEST_PS = 1_000_000_000
"""Of ports on several machines: requests through SSH arrive less than a tenth of that apart at best."""


class PartsSampler:
    """A sampler of `ports` by their machine.

    Parameters
    ----------
    labs
        The parts of the network by their machine.
    interval_ps
        The length of an interval.
    ports
        The interfaces of each machine.

    Raises
    ------
    NotAvailable
        The interval is too short, or the parts cannot begin to count at nearly the same moment.
    """

    def __init__(self, labs: Mapping[str, LabRequests], interval_ps: int, ports: Mapping[str, Sequence[str]]) -> None:
        if len(ports) > 1 and interval_ps < _SHORTEST_PS:
            raise NotAvailable(
                f"ports on {len(ports)} machines are not sampled every {format_duration(interval_ps)}",
                f"sample at least every {format_duration(_SHORTEST_PS)}, or the ports of each machine by themselves",
            )
        self._labs = labs
        apart_ps = 0
        for _ in range(_TRIALS):
            started = self._on_all(lambda name, lab: lab.samples_start(interval_ps=interval_ps, ports=ports[name]))
            self._numbers = {name: one["sampler"] for name, one in started.items()}
            begins = [one["start_ps"] for one in self._read_all().values()]
            apart_ps = max(begins) - min(begins)
            if apart_ps <= _MOST_APART * interval_ps:
                return
            self.stop()
        raise NotAvailable(
            f"ports on {len(ports)} machines began to count {format_duration(apart_ps)} apart, more than a tenth of an"
            f" interval of {format_duration(interval_ps)}",
            f"sample every {format_duration(_rounded_up(apart_ps))}, or the ports of each machine by themselves",
        )

    def read(self, skip: int | None = None) -> SamplesTold:
        """Return what was counted so far, without the first `skip` intervals, in the form of the lab protocol."""
        return _joined(self._read_all(skip))

    def stop(self, skip: int | None = None) -> SamplesTold:
        """Return what was counted, without the first `skip` intervals, and end."""
        return _joined(self._on_all(lambda name, lab: lab.samples_stop(sampler=self._numbers[name], skip=skip)))

    def _read_all(self, skip: int | None = None) -> dict[str, SamplesTold]:
        return self._on_all(lambda name, lab: lab.samples_read(sampler=self._numbers[name], skip=skip))

    def _on_all(self, ask: Callable[[str, LabRequests], _Answer]) -> dict[str, _Answer]:
        """Ask all parts side by side."""
        with ThreadPoolExecutor(max_workers=max(1, len(self._labs)), thread_name_prefix="sampler") as pool:
            return dict(zip(self._labs, pool.map(ask, self._labs, self._labs.values()), strict=True))


def _joined(samples: Mapping[str, SamplesTold]) -> SamplesTold:
    parts = list(samples.values())
    return {
        "interval_ps": parts[0]["interval_ps"],
        "start_ps": min(one["start_ps"] for one in parts),
        "full": any(one["full"] for one in parts),
        "ports": {name: series for one in parts for name, series in one["ports"].items()},
    }


def _rounded_up(apart_ps: int) -> int:
    """The next interval of 1, 10, 100 ms and so on that permits that much."""
    interval_ps = _SHORTEST_PS
    while _MOST_APART * interval_ps < apart_ps:
        interval_ps *= 10
    return interval_ps
