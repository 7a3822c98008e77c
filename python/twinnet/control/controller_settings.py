"""The settings of a network's controller: keyword arguments of calls and keys of network and study files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from twinnet.control.tls import TlsFiles
from twinnet.errors import BadQuantity
from twinnet.settings import Delay, WayTime
from twinnet.units import PS_PER_SECOND, Duration

__all__ = ["CONTROLLER_DEFAULTS", "ControllerOptions"]

Wait = Annotated[Duration, WayTime(BadQuantity, most=600 * PS_PER_SECOND)]
"""A wait in real time: at most 10 min."""


class ControllerOptions(TypedDict, total=False):
    """The settings of a network's controller, besides where it is."""

    run: str | Sequence[str] | None
    """A program that is started beside the lab and ended with it; ``None``: it runs already, or will. Where ``{port}``
    stands in it, a port that is free is written, and the switches connect to that."""
    host: str | None
    """The host of the network in which ``run`` is started where hosts run programs on the virtual clock: its timers are
    virtual then. It needs no link. On the wall clock, and beside model hosts, ``run`` is started beside the lab."""
    delay: Delay
    """What the way between a switch and the controller takes, each way; at most 1 h."""
    quiet: Wait
    """On the virtual clock, for a controller that is a program of its own: the silence, in real time, after which it
    counts as done; at most 10 min (docs/explanation/controllers-and-time.md)."""
    patience: Wait
    """On the virtual clock, for a controller that is a program of its own: the longest wait for an answer, in real
    time; longer than ``quiet``, at most 10 min."""
    tls: TlsFiles | None
    """For a controller at ``ssl:ADDRESS:PORT``: the key and certificates of the switches that have none of their
    own."""


CONTROLLER_DEFAULTS: ControllerOptions = {"delay": "0 s", "quiet": "20 ms", "patience": "10 s"}
"""The settings of a controller that is given none; those that are not here are ``None``."""
