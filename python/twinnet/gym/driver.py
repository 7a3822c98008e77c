"""Congestion windows in the hands of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from twinnet.traffic.congestion import CongestionControl

if TYPE_CHECKING:
    from twinnet._core import Acknowledgement

__all__ = ["Driven", "Driver", "Driving"]


@dataclass(frozen=True)
class Driving:
    """A connection since the last reading.

    Attributes
    ----------
    delivered, lost
        Segments that were acknowledged, and found lost.
    congested
        How often losses or marks of congestion called for a smaller window, and the retransmission timer ran out.
    round_trip_s
        The mean of the least round trip of each, in seconds; ``None`` where none was measured.
    least_round_trip_s
        The least of the connection in the last 300 s; ``None`` where none was measured.
    """

    delivered: int
    lost: int
    congested: int
    round_trip_s: float | None
    least_round_trip_s: float | None


class Driven(CongestionControl):
    """A connection's congestion control that decides nothing: set its `window` or `pacing_bps` between steps. TCP
    follows with the next acknowledgement, and keeps finding and repairing losses by itself.

    Parameters
    ----------
    initial_window
        In segments.
    seed
        Not used: nothing is drawn.
    """

    once_a_round_trip = True

    def __init__(self, initial_window: int, seed: int) -> None:
        super().__init__(initial_window, seed)
        self._least: float | None = None
        self._begin()

    def _begin(self) -> None:
        self._delivered = self._lost = self._congested = 0
        self._round_trips: list[float] = []

    def acknowledged(self, acknowledgement: Acknowledgement) -> None:
        """Count what TCP reports."""
        self._delivered += acknowledgement.delivered
        self._lost += acknowledgement.lost
        self._least = acknowledgement.least_round_trip_s
        if acknowledgement.round_trip_s is not None:
            self._round_trips.append(acknowledgement.round_trip_s)

    def congested(self, why: Literal["loss", "mark", "timeout"], in_flight: int, now_s: float) -> None:
        """Count it; the window stays."""
        self._congested += 1

    def read(self) -> Driving:
        """Return what happened since the last reading."""
        trips = self._round_trips
        mean_s = sum(trips) / len(trips) if trips else None
        driving = Driving(self._delivered, self._lost, self._congested, mean_s, self._least)
        self._begin()
        return driving


class Driver:
    """Gives connections to an agent: name `control` as their congestion control, on the virtual clock.

    Make one for an environment, and call :meth:`begin` for each episode.

    Attributes
    ----------
    control
        The class to give to :func:`twinnet.traffic.apps.tcp_bulk` as ``congestion_control``.
    connections
        The connections of this episode, in the order in which they began.
    """

    def __init__(self) -> None:
        connections: list[Driven] = []
        self.connections: list[Driven] = connections

        class Handed(Driven):
            def __init__(self, initial_window: int, seed: int) -> None:
                super().__init__(initial_window, seed)
                connections.append(self)

        self.control: type[Driven] = Handed

    def begin(self) -> None:
        """Forget the connections of the last episode."""
        self.connections.clear()
