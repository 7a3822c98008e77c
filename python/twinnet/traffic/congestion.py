"""Congestion controls of one's own: Python classes that TCP of model hosts asks on the virtual clock."""

from __future__ import annotations

import hashlib
import inspect
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from twinnet.errors import BadValue

if TYPE_CHECKING:
    from twinnet._core import Acknowledgement

__all__ = ["CongestionControl", "OwnControl", "bring", "brought", "hand_to_the_core", "name_of_class"]

_LONGEST = 15
"""The longest name of a congestion control (Linux's `TCP_CA_NAME_MAX`)."""
_OF_THE_CLASS = 6


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

    def acknowledged(self, told: Acknowledgement) -> None:
        """An acknowledgement arrived that delivered something, or a round trip is over."""

    def congested(self, why: Literal["loss", "mark", "timeout"], in_flight: int, now_s: float) -> None:
        """Segments were lost, a mark of congestion (ECN) came back, or the retransmission timer ran out.

        It is called once for all losses of a window. `in_flight` are segments.
        """

    def undone(self, now_s: float) -> None:
        """Nothing was lost after all (RFC 4015, RFC 5682): go back to what was before :meth:`congested`."""


@dataclass(frozen=True)
class OwnControl:
    """A congestion control that was brought along.

    Attributes
    ----------
    name
        As it was named: ``module:name``, or the class's own.
    file
        The file that its source is in.
    sha256
        The hash of its source.
    load
        Returns the class.
    """

    name: str
    file: str
    sha256: str
    load: Callable[[], object]


_brought: dict[str, OwnControl] = {}
_handed: set[str] = set()


def bring(control: OwnControl) -> str:
    """Make `control` known; return the name by which TCP of model hosts knows it, which tells its source by a hash."""
    of_the_class = control.name.rpartition(":")[2][:_OF_THE_CLASS]
    key = hashlib.sha256(f"{control.name} {control.sha256}".encode()).hexdigest()
    name = f"{of_the_class}-{key}"[:_LONGEST]
    _brought.setdefault(name, control)
    return name


def brought(name: str | None) -> OwnControl | None:
    """Return what was brought along under `name`, or `None`."""
    return _brought.get(name) if name is not None else None


def name_of_class(control: type[CongestionControl]) -> str:
    """Make a class known; return its name as :func:`bring` does."""
    try:
        source, file = inspect.getsource(control), inspect.getfile(control)
    except (OSError, TypeError):
        # Typed at a prompt, or made by a program.
        source, file = f"{control.__qualname__} {id(control)}", control.__module__
    key = hashlib.sha256(source.encode()).hexdigest()
    name = bring(OwnControl(control.__name__, file, key, lambda: control))
    if _brought[name].load() is not control:
        # The same text, run again: the newest counts, whose surroundings may be others.
        _brought[name] = OwnControl(control.__name__, file, key, lambda: control)
        _handed.discard(name)
    return name


def hand_to_the_core(name: str) -> None:
    """Let the model hosts of this process use the congestion control `name` that was brought along."""
    from twinnet import _core

    if name in _handed:
        return
    control = _brought[name]

    def start(initial_window: int, seed: int) -> CongestionControl:
        made = control.load()
        if not (isinstance(made, type) and issubclass(made, CongestionControl)):
            raise BadValue(f"{control.name} is no congestion control", "write: class Mine(tn.CongestionControl)")
        return made(initial_window, seed)

    _core.register_congestion_control(name, start)
    _handed.add(name)
