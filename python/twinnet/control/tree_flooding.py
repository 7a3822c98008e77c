"""A controller that floods all frames along a spanning tree of its own: the simplest network that rings do no harm."""

from __future__ import annotations

from twinnet.control.connected_switch import ConnectedSwitch
from twinnet.control.controller import Controller
from twinnet.control.events import PortStatus
from twinnet.control.topology import Place, Topology

__all__ = ["TreeFlooding", "install_tree"]

COOKIE = 0x7472_6565
"""Marks the flows of the tree."""


def install_tree(switch: ConnectedSwitch, ports: list[int], priority: int, match: str = "") -> None:
    """Give `switch` flows of `priority` that send what matches and comes in by one of `ports` out by the others; what
    comes in by another port is dropped."""
    switch.delete(f"cookie={COOKIE}/-1")
    conditions = f",{match}" if match else ""
    switch.install(f"cookie={COOKIE},priority={priority}{conditions},actions=drop")
    for port in ports:
        others = ",".join(f"output:{other}" for other in ports if other != port) or "drop"
        switch.install(f"cookie={COOKIE},priority={priority + 1},in_port={port}{conditions},actions={others}")


class TreeFlooding(Controller):
    """Every frame goes to all hosts, along a spanning tree of the description (:class:`Topology`); when a link goes
    down or comes up the tree is grown anew. The flows are installed beforehand: no frame goes to the controller.

    Attributes
    ----------
    topology
        The network as it is now.
    """

    topology: Topology

    def on_start(self) -> None:
        """Read the network."""
        self.topology = Topology(self.stage.spec)

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        """Give the switch its part of the tree."""
        for port in switch.ports.values():
            self.topology.set_up(Place(switch.name, port.number), port.up)
        install_tree(switch, self.topology.tree()[switch.name], priority=1)

    def on_port_status(self, event: PortStatus) -> None:
        """Grow the tree anew."""
        place = Place(event.switch.name, event.port.number)
        if self.topology.set_up(place, event.port.up and event.reason != "delete"):
            tree = self.topology.tree()
            for switch in self.switches.values():
                install_tree(switch, tree[switch.name], priority=1)
