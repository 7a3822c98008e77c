"""One network on several machines that is running: a lab on the wall clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinnet.errors import BadValue
from twinnet.lab.controllers import LabControllers
from twinnet.lab.lab import Lab
from twinnet.lab.own_of_hosts import refuse_own
from twinnet.lab.parts import Layout
from twinnet.machines.parts_connection import PartsConnection
from twinnet.network.cut import check_parts
from twinnet.network.placement import placed_nodes

__all__ = ["PartsLab"]


class PartsLab(Lab):
    """A lab whose network is on several machines (:meth:`twinnet.Network.place`), started by ``with net.emulate()``.
    Each machine carries its part in a lab of its own, reached over SSH; links between machines are VXLAN tunnels. When
    one part dies, all end. Each machine connects its own switches to their controllers; a controller that is a program
    runs here.

    Parameters
    ----------
    network
        The network, with a placement.
    interface, realtime, slip_after_ps, fabric_threads
        As of :class:`twinnet.Lab`, for each part.
    """

    shares_files = False
    _parts: PartsConnection | None = None

    def open(self) -> PartsLab:
        """Start all parts and join them; ``with`` does so too. All is undone when one fails."""
        network = self._network
        assert network is not None
        if self._connection is not None:
            raise BadValue("the lab was started already", "make a new one with net.emulate()")
        spec: dict[str, Any] = network.to_spec()
        self._controllers = LabControllers(network.controller_choice)
        self._controllers.place(spec)
        # Before the program of the controller is started.
        check_parts(spec["nodes"])
        refuse_own(spec["nodes"], "on several machines")
        placed = placed_nodes(network, network.placement)
        self._controllers.start_program()
        try:
            self._parts = PartsConnection(spec, placed, self._options)
        except BaseException:
            self._controllers.end()
            raise
        self.adopt(self._parts)
        self._layout = Layout(spec)
        self.started: Mapping[str, Any] = self._parts.started
        return self

    @property
    def lost_controllers(self) -> Mapping[tuple[str, str], str]:
        """The reasons why switches are without a controller, by switch and target."""
        if self._parts is None or self._parts.closed:
            return {}
        return self._parts.lost_controllers()

    def controller_trouble(self, switch: str, target: str) -> str | None:
        """Return why the last connection of `switch` to `target` failed or ended."""
        return self.lost_controllers.get((switch, target)) or super().controller_trouble(switch, target)

    def __enter__(self) -> PartsLab:
        return self.open()
