"""A controller that is written as a class, and runs in the process of its lab."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from twinnet.errors import BadValue, LabClosed
from twinnet.ranges import run_time_ps

if TYPE_CHECKING:
    from twinnet.control.connected_switch import ConnectedSwitch
    from twinnet.control.events import ErrorReport, FlowRemoved, PacketIn, PortStatus, Statistics
    from twinnet.qos.queue import Queue

__all__ = ["Controller", "Stage"]


class Stage(Protocol):
    """The environment of a controller while its lab runs: a clock and the network."""

    @property
    def now_ps(self) -> int:
        """The lab's time in picoseconds."""
        ...

    @property
    def spec(self) -> Mapping[str, Any]:
        """The network in the form of the lab protocol."""
        ...

    def call_at(self, at_ps: int, call: Callable[[], None]) -> None:
        """Have `call` called when the lab's clock shows `at_ps`."""
        ...

    def set_queue(self, switch: str, port: int, queue: Queue | None) -> None:
        """Replace the queue configuration of a port; ``None`` for the default."""
        ...


class Controller:
    """The base of in-process controllers: override what you want to hear of.

    Switches speak OpenFlow 1.3 with it, or 1.0 where they speak nothing else. The methods are called one at a time; on
    the virtual clock no time passes in them. An exception in one of them ends the controller: on the virtual clock it
    is raised from what let time pass, on the wall clock the switches go on by their fail mode, and
    :meth:`twinnet.Lab.wait_for_controllers` and the end of the lab raise it.

    Examples
    --------
    >>> class Hub(Controller):
    ...     def on_switch_joined(self, switch):
    ...         switch.install("priority=0,actions=flood")
    """

    _stage: Stage | None = None
    switches: Mapping[str, ConnectedSwitch] = {}
    """The switches that have joined, by name."""

    def on_start(self) -> None:
        """Called when a lab starts, before any switch has joined: forget what an earlier lab has taught."""

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        """Called when a switch has joined and its ports are known."""

    def on_switch_left(self, switch: ConnectedSwitch) -> None:
        """Called when the connection to a switch has ended."""

    def on_packet_in(self, event: PacketIn) -> bool | None:
        """Called for each frame that a flow or a table's end sends here; return true when nobody else is to see it."""

    def on_port_status(self, event: PortStatus) -> None:
        """Called when a port of a switch changes."""

    def on_flow_removed(self, event: FlowRemoved) -> None:
        """Called when a flow ends that was installed with ``tell_when_removed``."""

    def on_statistics(self, event: Statistics) -> None:
        """Called with the answer to :meth:`ConnectedSwitch.statistics`."""

    def on_error(self, event: ErrorReport) -> None:
        """Called when a switch refuses a message; unless it is overridden the controller ends with it."""
        raise BadValue(f"{event.switch.name} refused a message: {event.text} (type {event.kind}, code {event.code})")

    @property
    def stage(self) -> Stage:
        """The lab that the controller runs in; raises `LabClosed` when there is none."""
        if self._stage is None:
            raise LabClosed("the controller runs in no lab", "attach it with net.controller(...) and start a lab")
        return self._stage

    @property
    def now(self) -> float:
        """The lab's time in seconds."""
        return self.stage.now_ps / 1e12

    def after(self, delay: str, call: Callable[[], None]) -> None:
        """Have `call` called once, `delay` from now in the lab's time."""
        self.stage.call_at(self.stage.now_ps + run_time_ps(delay, "delay"), call)

    def every(self, interval: str, call: Callable[[], None]) -> None:
        """Have `call` called again and again, the first time `interval` from now."""
        interval_ps = run_time_ps(interval, "interval")

        def again() -> None:
            self.stage.call_at(self.stage.now_ps + interval_ps, again)
            call()

        self.stage.call_at(self.stage.now_ps + interval_ps, again)

    def set_queue(self, switch: str, port: int, queue: Queue | None) -> None:
        """Replace the queue configuration of OpenFlow port `port` of `switch`, as managers of switches do by OVSDB;
        what waits moves over. ``None`` is the default, a FIFO of 1000 frames."""
        self.stage.set_queue(switch, port, queue)

    def attach(self, stage: Stage, switches: Mapping[str, ConnectedSwitch]) -> None:
        """Put the controller on the stage of a lab that starts; the lab calls this."""
        if self._stage is not None:
            raise BadValue(
                f"the controller {type(self).__name__} runs in another lab already",
                "give the class itself: net.controller(MyController) makes one for each lab",
            )
        self._stage, self.switches = stage, switches
        self.on_start()

    def detach(self) -> None:
        """Take it off the stage; the lab calls this at its end."""
        self._stage = None
