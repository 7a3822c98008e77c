"""A network of physical machines that is running: a lab on the real clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinnet.errors import BadTopology
from twinnet.lab.lab import Lab
from twinnet.machines.connection import MachinesConnection
from twinnet.network.machines import PhysicalMachine
from twinnet.network.network import Network

__all__ = ["MachineLab"]


class MachineLab(Lab):
    """A lab on the real clock, started by ``with net.operate() as lab:``. Its hosts are the network's machines, each
    with an agent that runs apps on the machine's own sockets, and programs. What joins them is what it is: twinnet has
    no part in the cables and switches, so nothing about links, ports, queues, flows and captures can be asked.

    Parameters
    ----------
    network
        The network, with at least one machine.
    """

    shares_files = False

    def __init__(self, network: Network) -> None:
        super().__init__(network, clock="real")
        self._machines: MachinesConnection | None = None

    def open(self) -> MachineLab:
        """Start an agent on every machine, check its interface and set the clocks; ``with`` does so too."""
        network = self._network
        assert network is not None
        spec = network.to_spec()
        machines = {host.name: host for host in network.hosts if isinstance(host, PhysicalMachine)}
        if not machines:
            raise BadTopology("the network has no physical machine", "add one with net.machine() (machines:)")
        for node in spec["nodes"]:
            if node["name"] in machines and not node["ports"]:
                one = machines[node["name"]]
                node["ports"] = [{"name": one.interface, "addresses": list(one.addresses)}]
        self._machines = MachinesConnection(network, spec)
        self.adopt(self._machines)
        self.started: Mapping[str, Any] = self._machines.started
        return self

    @property
    def machines(self) -> MachinesConnection:
        """The machines and what is known of them; raises `LabClosed` before the start."""
        connection = self.connection
        assert isinstance(connection, MachinesConnection)
        return connection

    def __enter__(self) -> MachineLab:
        return self.open()

    def conditions(self) -> dict[str, Any]:
        """Return for each machine how it was `before` the traffic and is `after` it: kernel, load, governor, memory,
        sysctls, and the interface's MTU, speed, offloads and coalescing."""
        return self.machines.conditions()
