"""Several controllers as one."""

from __future__ import annotations

from collections.abc import Mapping

from twinnet.control.connected_switch import ConnectedSwitch
from twinnet.control.controller import Controller, Stage
from twinnet.control.events import ErrorReport, FlowRemoved, PacketIn, PortStatus, Statistics

__all__ = ["Together"]


class Together(Controller):
    """Tells each of `controllers` in turn; a frame goes no further than the first that says that it has dealt with it
    (:meth:`Controller.on_packet_in` returns true).

    Examples
    --------
    >>> from twinnet.control import ArpResponder, LearningSwitch
    >>> controller = Together(ArpResponder(), LearningSwitch())
    """

    def __init__(self, *controllers: Controller) -> None:
        self.controllers = controllers

    def attach(self, stage: Stage, switches: Mapping[str, ConnectedSwitch]) -> None:
        """Put all on the stage."""
        super().attach(stage, switches)
        for controller in self.controllers:
            controller.attach(stage, switches)

    def detach(self) -> None:
        """Take all off the stage."""
        super().detach()
        for controller in self.controllers:
            controller.detach()

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        """Tell all."""
        for controller in self.controllers:
            controller.on_switch_joined(switch)

    def on_switch_left(self, switch: ConnectedSwitch) -> None:
        """Tell all."""
        for controller in self.controllers:
            controller.on_switch_left(switch)

    def on_packet_in(self, event: PacketIn) -> bool:
        """Tell one after the other until one has dealt with it."""
        return any(controller.on_packet_in(event) for controller in self.controllers)

    def on_port_status(self, event: PortStatus) -> None:
        """Tell all."""
        for controller in self.controllers:
            controller.on_port_status(event)

    def on_flow_removed(self, event: FlowRemoved) -> None:
        """Tell all."""
        for controller in self.controllers:
            controller.on_flow_removed(event)

    def on_statistics(self, event: Statistics) -> None:
        """Tell all."""
        for controller in self.controllers:
            controller.on_statistics(event)

    def on_error(self, event: ErrorReport) -> None:
        """Tell all."""
        for controller in self.controllers:
            controller.on_error(event)
