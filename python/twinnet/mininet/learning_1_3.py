"""Switches of OpenFlow 1.3 that are made learning switches: the stage of a :class:`LearningSwitch` without a lab."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from twinnet.control.connected_switch import ConnectedSwitch
from twinnet.control.events import FlowRemoved
from twinnet.control.learning import LearningSwitch
from twinnet.control.session import Session
from twinnet.errors import NotAvailable

if TYPE_CHECKING:
    from twinnet.qos.queue import Queue

__all__ = ["Stage13"]

_WHAT_NO_FLOW_COVERS = "priority=0,actions=controller"


class _Learning(LearningSwitch):
    """A learning switch that asks again to be sent what no flow covers when a user has deleted all flows, as switches
    of OpenFlow 1.0 do by themselves."""

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        super().on_switch_joined(switch)
        switch.install(_WHAT_NO_FLOW_COVERS, tell_when_removed=True)

    def on_flow_removed(self, event: FlowRemoved) -> None:
        event.switch.install(_WHAT_NO_FLOW_COVERS, tell_when_removed=True)


class Stage13:
    """The switches of OpenFlow 1.3 of one controller."""

    def __init__(self) -> None:
        self._joined: dict[str, ConnectedSwitch] = {}
        self._controller = _Learning()
        self._begin_s = time.monotonic()
        self._sessions = 0
        self._controller.attach(self, self._joined)

    def session(self) -> Session:
        """Return the controller's end of a new connection."""
        self._sessions += 1
        return Session(self._controller, f"switch{self._sessions}", self._joined, lambda: None, lambda _: None)

    @property
    def now_ps(self) -> int:
        """The time since the start in picoseconds."""
        return int((time.monotonic() - self._begin_s) * 1e12)

    @property
    def spec(self) -> Mapping[str, Any]:
        """Nothing is known of the network."""
        return {"nodes": [], "links": []}

    def call_at(self, at_ps: int, call: Callable[[], None]) -> None:
        """Refuse: a learning switch has no timers."""
        raise NotAvailable("the learning controller has no timers", "use a controller of a lab")

    def set_queue(self, switch: str, port: int, queue: Queue | None) -> None:
        """Refuse: a learning switch sets no queues."""
        raise NotAvailable("the learning controller sets no queues", "use a controller of a lab")
