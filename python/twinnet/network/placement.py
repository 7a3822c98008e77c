"""On which machine each switch of a network runs, and what hangs on it: one network on several machines."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from typing import TYPE_CHECKING, TypedDict, cast

from twinnet.errors import BadTopology, BadValue, did_you_mean
from twinnet.network.machines import checked_command, checked_target

if TYPE_CHECKING:
    from twinnet.network.network import Network

__all__ = ["PartMachine", "PlaceOptions", "Placement", "placed_nodes", "read_placement"]


class PlaceOptions(TypedDict, total=False):
    """A machine that carries a part of a network."""

    ssh: str
    """Where ``ssh`` finds it: ``user@host``, or a name of ``~/.ssh/config``."""
    address: str | None
    """Its IPv4 address for the tunnels; ``None``: the one at which SSH reaches it."""
    command: str
    """Its ``twinnet``."""


@dataclass(frozen=True)
class PartMachine:
    """A machine that carries a part of a network.

    Parameters
    ----------
    name
        What messages call it.
    ssh
        Where ``ssh`` finds it.
    address
        Its IPv4 address for the tunnels; ``None``: the one at which SSH reaches it.
    command
        Its ``twinnet``.
    """

    name: str
    ssh: str
    address: str | None = None
    command: str = "twinnet"


Placement = Mapping[str, PartMachine]
"""The machine of each node that is named, by the node's name."""


def read_placement(given: Mapping[str, str | PlaceOptions]) -> dict[str, PartMachine]:
    """Return the placement that is `given`: for each node a target of ssh, or its settings.

    Raises
    ------
    BadValue
        A value is neither, or one machine is described in two ways.
    """
    placed: dict[str, PartMachine] = {}
    known: dict[str, PartMachine] = {}
    for node, value in given.items():
        machine = _machine(str(node), value)
        before = known.setdefault(machine.ssh, machine)
        if isinstance(value, str):
            # The name alone means the machine as it is described elsewhere.
            machine = before
        elif before != machine and before == PartMachine(before.name, before.ssh):
            known[machine.ssh] = machine
            placed = {name: machine if one == before else one for name, one in placed.items()}
        elif before != machine:
            raise BadValue(
                f"the machine {machine.ssh} of {node} is described in another way before",
                "describe it once, and write its name at the others",
            )
        placed[str(node)] = machine
    return placed


def _machine(node: str, value: str | PlaceOptions) -> PartMachine:
    if isinstance(value, str):
        target = checked_target(value)
        return PartMachine(target, target)
    known = tuple(PlaceOptions.__annotations__)
    settings = cast("Mapping[str, object]", value)
    for name in settings:
        if name not in known:
            raise BadValue(f"the machine of {node} has no setting {name!r}", did_you_mean(name, known))
    if "ssh" not in settings:
        raise BadValue(f"the machine of {node} lacks ssh", "write for example {ssh: user@lab2, address: 10.8.0.2}")
    target = checked_target(settings["ssh"])
    address = settings.get("address")
    if address is not None:
        try:
            address = str(IPv4Address(str(address)))
        except AddressValueError:
            raise BadValue(
                f"the address of the machine of {node} is {address!r}", "give an IPv4 address such as 10.8.0.2"
            ) from None
    return PartMachine(target, target, address, checked_command(settings.get("command", "twinnet")))


def placed_nodes(network: Network, placement: Placement) -> dict[str, PartMachine]:
    """Return the machine of every node: its own where it is named, otherwise that of the nearest node that is.

    Raises
    ------
    BadTopology
        A node is linked to none that is placed, or equally near to two machines.
    """
    found: dict[str, PartMachine] = {}
    for name, machine in placement.items():
        found[network.node(name).name] = machine
    neighbours: dict[str, list[str]] = {name: [] for name in network.nodes}
    for link in network.links:
        neighbours[link.a.node].append(link.b.node)
        neighbours[link.b.node].append(link.a.node)
    switches = {one.name for one in network.switches}
    unplaced = [name for name in network.nodes if name in switches and name not in found]
    if unplaced:
        raise BadTopology(
            f"the network is on several machines, and these switches on none: {', '.join(unplaced)}",
            "name the machine of every switch",
        )
    _spread(found, neighbours)
    left = [name for name in network.nodes if name not in found]
    if left:
        raise BadTopology(
            f"no machine carries {', '.join(left[:10])}: they are linked to nothing that has one",
            "name their machine as that of a switch",
        )
    return {name: found[name] for name in network.nodes}


def _spread(found: dict[str, PartMachine], neighbours: Mapping[str, Sequence[str]]) -> None:
    """Give every node that is linked to one with a machine that machine too, ring by ring."""
    ring = deque(found)
    while ring:
        reached: dict[str, PartMachine] = {}
        for near in ring:
            for name in neighbours[near]:
                if name in found:
                    continue
                if reached.setdefault(name, found[near]) != found[near]:
                    raise BadTopology(
                        f"{name} is linked to nodes on {reached[name].name} and on {found[near].name}",
                        f"name its machine, as that of a switch: {{{name}: {found[near].name}}}",
                    )
        found.update(reached)
        ring = deque(reached)
