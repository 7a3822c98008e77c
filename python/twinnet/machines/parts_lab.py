"""One network on several machines that is running: a lab on the wall clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinnet.errors import BadValue
from twinnet.lab.lab import Lab
from twinnet.lab.parts import Layout
from twinnet.machines.parts_connection import PartsConnection
from twinnet.network.placement import placed_nodes

__all__ = ["PartsLab"]


class PartsLab(Lab):
    """A lab whose network is on several machines (:meth:`twinnet.Network.place`), started by ``with net.emulate()``.
    Each machine carries its part in a lab of its own, reached over SSH; links between machines are VXLAN tunnels. When
    one part dies, all end.

    Parameters
    ----------
    network
        The network, with a placement.
    interface, realtime, slip_after_ps, fabric_threads
        As of :class:`twinnet.Lab`, for each part.
    """

    def open(self) -> PartsLab:
        """Start all parts and join them; ``with`` does so too. All is undone when one fails."""
        network = self._network
        assert network is not None
        if self._connection is not None:
            raise BadValue("the lab was started already", "make a new one with net.emulate()")
        spec: dict[str, Any] = network.to_spec()
        connection = PartsConnection(spec, placed_nodes(network, network.placement), self._options)
        self.adopt(connection)
        self._layout = Layout(spec)
        self.started: Mapping[str, Any] = connection.started
        return self

    def __enter__(self) -> PartsLab:
        return self.open()
