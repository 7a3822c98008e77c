"""Options that change a described network before it starts: its controller, queues, switches, hosts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from twinnet.errors import BadValue

if TYPE_CHECKING:
    from twinnet.network.network import Network

__all__ = ["give_controller", "give_models", "give_queues", "give_switches", "tell_unused_links"]

_TARGET = re.compile(r"(tcp|ssl):")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[\w.-]+):\d+")
_SHOWN_LINKS = 3


def give_controller(network: Network, controller: str | None, run: str | None = None) -> None:
    """Have `controller` drive the switches of `network` that name none.

    Parameters
    ----------
    network
        The network.
    controller
        An address such as ``tcp:127.0.0.1:6653``, or ``remote,ip=127.0.0.1,port=6653`` as Mininet writes it; the name
        of a controller of this package (``learning``), or ``module:Class``; ``None``: where `run` listens.
    run
        A program that is started with the lab and listens at the address; ``{port}`` in it is a port that is free.
    """
    from twinnet.control.choice import app_factory

    if controller is not None and _ADDRESS.fullmatch(controller):
        raise BadValue(
            f"{controller!r} is no controller: an address begins with tcp: or ssl:", f"write tcp:{controller}"
        )
    if controller is not None and controller.partition(",")[0] == "remote":
        controller = _remote(controller)
    if controller is None or _TARGET.match(controller):
        network.controller(controller, run=run)
    else:
        network.controller(app_factory(controller), run=run)


def _remote(text: str) -> str:
    """Return the address that ``remote,ip=127.0.0.1,port=6653``, as Mininet writes it, stands for."""
    given = {"ip": "127.0.0.1", "port": "6653"}
    for word in text.split(",")[1:]:
        name, _, value = word.partition("=")
        if name not in given or not value:
            raise BadValue(f"{text!r}: remote has no setting {word!r}", "write remote,ip=127.0.0.1,port=6653")
        given[name] = value
    return f"tcp:{given['ip']}:{given['port']}"


def give_queues(network: Network, text: str) -> None:
    """Have every port of `network` that sends on a link wait in a queue as `text` says: a kind and its settings."""
    from twinnet.qos.queue_text import queue_from_text

    queue_from_text(text)
    for node in network.nodes.values():
        for port in node.ports:
            port.queue = queue_from_text(text)


def give_switches(network: Network, kind: str) -> None:
    """Have all switches of `network` be of `kind`: ``own``, ``ovs`` or ``ovs:system``."""
    from twinnet.network.datapaths import checked_datapath

    name, _, datapath = kind.partition(":")
    for switch in network.switches:
        switch.datapath = checked_datapath(switch.name, name, datapath or None, switch.delay_ps)


def tell_unused_links(network: Network) -> str:
    """Say which links of a loop of switches carry nothing and how to use them; nothing when there is none."""
    from twinnet.network.spanning_tree import unused_links

    unused = [f"{link.a.name} - {link.b.name}" for link in unused_links(network)]
    if not unused:
        return ""
    more = f" and {len(unused) - _SHOWN_LINKS} more" if len(unused) > _SHOWN_LINKS else ""
    return (
        f"the switches form a loop: their spanning tree leaves out {', '.join(unused[:_SHOWN_LINKS])}{more}. "
        "To use all links, take a controller (--controller shortest-path) or write flows"
    )


def give_models(network: Network) -> None:
    """Have all hosts and routers of `network` be models: they run apps, and no programs."""
    for host in network.hosts:
        host.model = True
