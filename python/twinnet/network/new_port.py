"""The port at which a new link ends."""

from __future__ import annotations

from collections.abc import Sequence

from twinnet.errors import BadTopology
from twinnet.network import addressing, datapaths
from twinnet.network.checks import switch_port_number
from twinnet.network.nodes import Host, Interface, Node, Port, Router, Switch, TunnelEnd
from twinnet.network.taken_addresses import TakenAddresses
from twinnet.qos.queue import Queue

__all__ = ["new_port"]


def new_port(
    node: Node,
    number: int | None,
    address: str | Sequence[str] | None,
    queue: Queue | None,
    end: str,
    taken: TakenAddresses,
) -> Port:
    """Return the port of `node` at which the `end` (``a`` or ``b``) of a new link is; it is not added to the node.

    Switches give it an OpenFlow `number`, hosts and routers the `address` or addresses, with prefix length; those that
    are `taken` are refused.

    Raises
    ------
    BadTopology, BadValue, PortInUse, AddressInUse
        The node can have no such port.
    """
    if isinstance(node, Switch):
        if address is not None:
            raise BadTopology(f"{node.name} is a switch: its ports have no addresses", f"remove address_{end}")
        chosen = switch_port_number(node, number, end)
        port_name = addressing.checked_interface(node.name, chosen)
        datapaths.checked_queue(port_name, node.datapath, queue)
        return Port(node.name, len(node.ports), port_name, chosen, queue=queue)
    if number is not None:
        raise BadTopology(f"{node.name} is not a switch: its ports have no numbers", f"remove port_{end}")
    if isinstance(node, (Interface, TunnelEnd)):
        machine = isinstance(node, Interface)
        if address is not None:
            what = "an interface of the machine" if machine else "the end of a tunnel"
            raise BadTopology(f"{node.name} is {what}", f"remove address_{end}")
        if node.ports:
            what = "an interface" if machine else "a tunnel"
            raise BadTopology(f"{node.name} has a link already", f"one link can end at {what}")
        name = node.interface if machine else addressing.checked_interface(node.name, 0)
        return Port(node.name, 0, name, queue=queue)
    if not isinstance(node, Host):
        raise BadTopology(f"{node.name} cannot be linked")
    index = len(node.ports)
    name = addressing.checked_interface(node.name, index)
    predictable = addressing.router_mac if isinstance(node, Router) else addressing.host_mac
    mac = node.mac if node.mac is not None and index == 0 else predictable(node.number, index)
    if address is not None:
        given = (address,) if isinstance(address, str) else tuple(address)
        addresses = tuple(addressing.interface_address(one) for one in given)
        for one in addresses:
            taken.check(node.name, one, may_own=index == 0)
    elif isinstance(node, Router):
        raise BadTopology(
            f"the new interface {name} of the router {node.name} has no address",
            f'give address_{end}="10.1.0.1/24", or address_{end}=() for none',
        )
    else:
        addresses = node.addresses if index == 0 else ()
    return Port(node.name, index, name, None, mac, addresses, queue)
