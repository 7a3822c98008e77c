"""Queue disciplines of one's own: Python classes that say which frame goes next, on the virtual clock."""

from __future__ import annotations

import json
from collections.abc import Mapping, ValuesView
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any, Literal

from twinnet.errors import BadQueue
from twinnet.qos.queue import Queue
from twinnet.settings import Setting
from twinnet.traffic.application import OwnSettings
from twinnet.traffic.own_code import OWN_PATTERN, OwnCode, brought, handed_once, name_of_class

__all__ = ["Discipline", "Own", "Waiting"]

_NEXT_S = 1e-9


@dataclass(frozen=True)
class Waiting:
    """A frame that waits.

    Attributes
    ----------
    number
        The number of its arrival at this port.
    length
        Link-layer bytes: the Ethernet header is in, the check sequence is not.
    arrived_s
        When it came, in seconds of the lab's clock.
    queue
        The queue number that flow rules gave it.
    flow
        The same number for all frames of a flow (addresses, protocol and ports).
    dscp
        Its differentiated services code point; 0 for what is not IP.
    can_be_marked
        Whether its sender understands marks (ECN).
    """

    number: int
    length: int
    arrived_s: float
    queue: int
    flow: int
    dscp: int
    can_be_marked: bool


class Discipline:
    """A queue discipline of your own, on the virtual clock; write a subclass, with :meth:`next`.

    One object stands for one port, or one class of a discipline around it. It is told of each frame that arrives, and
    asked for the next whenever the line is free. A method may not ask the lab anything: the lab waits for it.

    Parameters
    ----------
    settings
        Those of the configuration.

    Attributes
    ----------
    now_s
        The lab's time in seconds.
    random
        The port's own random numbers: the same seed of a run draws the same.
    """

    now_s: float = 0.0
    random: Random = Random(0)
    _known: dict[int, Waiting]
    _dropped: tuple[int, ...] = ()
    _marked: tuple[int, ...] = ()
    _again_s: float | None = None

    def __init__(self, **settings: Any) -> None:
        if settings:
            raise BadQueue(f"{type(self).__name__} takes no settings {', '.join(settings)}", "write its __init__")

    def begin(self, random: Random) -> None:
        """The port is there; `random` are its own random numbers."""
        self.random = random
        self._known = {}

    def arrived(self, frame: Waiting) -> None:
        """A frame arrived; it waits already."""

    def next(self) -> Waiting | None:
        """Return the frame that goes now: one of those that wait. `None`: none goes, before :meth:`ask_again_at`."""
        raise NotImplementedError(f"{type(self).__name__} has no next()")

    def drop(self, frame: Waiting) -> None:
        """Drop a frame that waits; it is counted as an early drop."""
        del self._known[frame.number]
        self._dropped = (*self._dropped, frame.number)

    def mark(self, frame: Waiting) -> None:
        """Mark a frame as having met congestion (RFC 3168); nothing happens where its sender does not understand it."""
        self._marked = (*self._marked, self._known[frame.number].number)

    def ask_again_at(self, at_s: float) -> None:
        """Call :meth:`next` again at this time, in seconds of the lab's clock, which is later than now; a frame that
        arrives asks earlier."""
        if not at_s > self.now_s:
            raise BadQueue(f"ask_again_at({at_s}) is not later than now, {self.now_s} s", "give a later moment")
        self._again_s = max(at_s, self.now_s + _NEXT_S)

    @property
    def waiting(self) -> ValuesView[Waiting]:
        """All frames that wait, in the order in which they came."""
        return self._known.values()

    @property
    def backlog(self) -> int:
        """The bytes that wait."""
        return sum(frame.length for frame in self.waiting)

    def _arrived(self, now_s: float, given: tuple[int, int, int, int, int | None]) -> tuple[Any, ...]:
        """What the core calls for each frame."""
        number, length, queue, flow, traffic_class = given
        seen = traffic_class or 0
        frame = Waiting(number, length, now_s, queue, flow, seen >> 2, bool(seen & 3))
        self.now_s = now_s
        self._known[number] = frame
        self.arrived(frame)
        return self._said(None)

    def _next(self, now_s: float) -> tuple[Any, ...]:
        """What the core calls when the line is free."""
        self.now_s, self._again_s = now_s, None
        chosen = self.next()
        if chosen is None and self._known and self._again_s is None:
            raise BadQueue("next() gave no frame while some wait", "return one, or call ask_again_at first")
        if chosen is not None and self._known.pop(chosen.number, None) is None:
            raise BadQueue(f"next() gave frame {chosen.number}, which does not wait", "return one of self.waiting")
        return self._said(None if chosen is None else chosen.number)

    def _said(self, chosen: int | None) -> tuple[Any, ...]:
        dropped, marked = self._dropped, self._marked
        self._dropped = self._marked = ()
        return chosen, list(dropped), list(marked), self._again_s if chosen is None else None


@dataclass(frozen=True)
class DisciplineName(Setting):
    """A class of one's own, by the name that it is known by."""

    def read(self, value: object, what: str) -> str:
        """Return the name; a class is made known for it."""
        if isinstance(value, type) and issubclass(value, Discipline):
            value = name_of_class(value)
        if isinstance(value, str) and brought(value) is not None:
            hand_to_the_core(value)
            return value
        raise self.error(
            f"{value!r} is no queue discipline; in Python give a class derived from tn.qos.Discipline, in studies "
            "module:Class"
        )

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: the name of a class."""
        return {"type": "string", "pattern": OWN_PATTERN}


@dataclass(frozen=True)
class Own(Queue):
    """A discipline of your own, on the virtual clock.

    Parameters
    ----------
    of
        A class derived from `tn.qos.Discipline`; in studies `module:Class`.
    settings
        What the class takes: names with numbers, texts and truth values.
    """

    kind: Literal["own"] = field(default="own", kw_only=True, repr=False)
    of: Annotated[str | type[Discipline], DisciplineName(BadQueue, called="code")]
    settings: Annotated[Mapping[str, float | str | bool] | str, OwnSettings(BadQueue, called="settings")] = "{}"


@handed_once
def hand_to_the_core(name: str, own: OwnCode) -> None:
    """Let the ports of labs in this process use the discipline `name` that was brought along."""
    from twinnet import _core

    def start(settings: str, seed: int) -> Discipline:
        made = own.load_class(Discipline, "queue discipline", "tn.qos.Discipline", BadQueue)
        discipline = made(**json.loads(settings))
        discipline.begin(Random(seed))
        return discipline

    _core.register_discipline(name, own.name, start)
