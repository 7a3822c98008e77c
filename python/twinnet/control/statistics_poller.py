"""A controller that asks all switches for their counters again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twinnet.control.controller import Controller
from twinnet.control.events import STATISTICS, Statistics, StatisticsKind
from twinnet.errors import BadValue
from twinnet.ranges import run_time_ps

if TYPE_CHECKING:
    import polars

__all__ = ["StatisticsPoller"]


class StatisticsPoller(Controller):
    """Asks every `interval` of the lab's time; the answers are rows of tables.

    Parameters
    ----------
    interval
        The time between two questions.
    kinds
        What to ask for: ``ports``, ``flows``, ``queues``, ``tables``, ``groups``, ``meters``.
    """

    def __init__(self, interval: str = "1 s", kinds: Sequence[StatisticsKind] = ("ports",)) -> None:
        run_time_ps(interval, "interval")
        unknown = [kind for kind in kinds if kind not in STATISTICS]
        if unknown or not kinds:
            raise BadValue(f"the kinds of statistics are {kinds!r}", f"allowed are {', '.join(STATISTICS)}")
        self._interval = interval
        self._kinds = tuple(kinds)
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def on_start(self) -> None:
        """Begin anew."""
        self._rows = {kind: [] for kind in self._kinds}
        self.every(self._interval, self._ask)

    def _ask(self) -> None:
        for switch in self.switches.values():
            for kind in self._kinds:
                switch.statistics(kind)

    def on_statistics(self, event: Statistics) -> None:
        """Keep the answer."""
        rows = self._rows.get(event.kind)
        if rows is not None:
            rows.extend({"time_s": self.now, "switch": event.switch.name, **row} for row in event.rows)

    def table(self, kind: StatisticsKind = "ports") -> polars.DataFrame:
        """Return what was answered: a row for each port (flow, queue, ...) and time, with the columns ``time_s`` (the
        lab's time at which the answer came), ``switch``, and those of :class:`Statistics`.

        Raises
        ------
        BadValue
            When `kind` was not asked for.
        """
        import polars

        if kind not in self._kinds:
            raise BadValue(f"the poller does not ask for {kind!r}", f"it asks for {', '.join(self._kinds)}")
        return polars.DataFrame(self._rows.get(kind, []), infer_schema_length=None)
