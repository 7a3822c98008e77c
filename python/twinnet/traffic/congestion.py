"""Congestion controls of one's own: Python classes that TCP of model hosts asks on the virtual clock."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, ClassVar, Literal

from twinnet.errors import BadValue
from twinnet.traffic.own_code import brought

if TYPE_CHECKING:
    from twinnet._core import Acknowledgement

__all__ = ["MODELLED", "CongestionControl", "hand_to_the_core"]

MODELLED = ("reno", "cubic", "bbr")
"""The congestion controls of model hosts."""


class CongestionControl:
    """A congestion control of your own, in model hosts on the virtual clock; write a subclass of it.

    One object stands for one connection. TCP finds losses and repairs them; the object is told, and TCP follows
    `window`, `threshold` and `pacing_bps` as they stand after each call, also while losses are repaired. The events are
    those of Narayan and others, *Restructuring endpoint congestion control* (SIGCOMM 2018).

    A method may not ask the lab anything: the lab waits for it.

    Parameters
    ----------
    initial_window
        In segments.
    seed
        Of what the connection draws at random.

    Attributes
    ----------
    window
        The congestion window in segments, at least 1; a fraction of a segment is kept here, and not sent.
    threshold
        The slow-start threshold in segments; ``None``: none. TCP reports it, and lets a window below it count as full
        when half of it is in flight.
    pacing_bps
        The rate at which segments leave, in bits of the network layer per second; ``None``: as fast as the window
        allows.
    random
        The connection's own random numbers: the same seed draws the same.
    once_a_round_trip
        Of the class. If true, :meth:`acknowledged` is called once a round trip, and told the sum of all
        acknowledgements since. That takes far less time.
    """

    once_a_round_trip: ClassVar[bool] = False

    def __init__(self, initial_window: int, seed: int) -> None:
        self.window: float = initial_window
        self.threshold: float | None = None
        self.pacing_bps: float | None = None
        self.random: random.Random = random.Random(seed)

    def established(self, round_trip_s: float | None, segment_bytes: int, now_s: float) -> None:
        """The connection stands; `round_trip_s` is that of the handshake in seconds."""

    def acknowledged(self, acknowledgement: Acknowledgement) -> None:
        """An acknowledgement arrived that delivered something, or a round trip is over."""

    def congested(self, why: Literal["loss", "mark", "timeout"], in_flight: int, now_s: float) -> None:
        """Segments were lost, a mark of congestion (ECN) came back, or the retransmission timer ran out.

        It is called once for all losses of a window. `in_flight` are segments.
        """

    def undone(self, now_s: float) -> None:
        """Nothing was lost after all (RFC 4015, RFC 5682): go back to what was before :meth:`congested`."""


_handed: set[str] = set()


def hand_to_the_core(name: str) -> None:
    """Let the model hosts of this process use the congestion control `name` that was brought along."""
    from twinnet import _core

    if name in _handed:
        return
    control = brought(name)
    if control is None:
        raise BadValue(f"no congestion control {name!r} was brought along", "give its class")

    def start(initial_window: int, seed: int) -> CongestionControl:
        made = control.load_class(CongestionControl, "congestion control", "tn.CongestionControl")
        return made(initial_window, seed)

    _core.register_congestion_control(name, start)
    _handed.add(name)
