"""Options that change a described network before it starts: its controller, queues, switches, hosts."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from twinnet.errors import BadValue, did_you_mean

if TYPE_CHECKING:
    from twinnet.network.network import Network
    from twinnet.qos.queue import Queue

__all__ = ["give_controller", "give_models", "give_queues", "give_switches", "queue_from_text", "tell_unused_links"]

_TARGET = re.compile(r"(tcp|ssl):")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[\w.-]+):\d+")
_SHOWN_LINKS = 3
_USAGE = "write for example: --queue fifo,limit_frames=100, --queue codel, or --queue fq_codel,target=5ms"


def give_controller(network: Network, controller: str | None, run: str | None = None) -> None:
    """Have `controller` drive the switches of `network` that name none.

    Parameters
    ----------
    network
        The network.
    controller
        An address such as ``tcp:127.0.0.1:6653``, or the name of a controller of this package (``learning``), or
        ``module:Class``; ``None``: where `run` listens.
    run
        A program that is started with the lab and listens at the address; ``{port}`` in it is a port that is free.
    """
    from twinnet.control.choice import app_factory

    if controller is not None and (controller == "remote" or _ADDRESS.fullmatch(controller)):
        address = "127.0.0.1:6653" if controller == "remote" else controller
        raise BadValue(f"{controller!r} is no controller: an address begins with tcp: or ssl:", f"write tcp:{address}")
    if controller is None or _TARGET.match(controller):
        network.controller(controller, run=run)
    else:
        network.controller(app_factory(controller), run=run)


def give_queues(network: Network, text: str) -> None:
    """Have every port of `network` that sends on a link wait in a queue as `text` says: a kind and its settings."""
    queue_from_text(text)
    for node in network.nodes.values():
        for port in node.ports:
            port.queue = queue_from_text(text)


def queue_from_text(text: str) -> Queue:
    """Return the queue that `text`, such as ``fifo,limit_frames=100``, stands for.

    Raises
    ------
    BadValue
        There is no such queue or setting, or its value is out of range.

    Examples
    --------
    >>> queue_from_text("fifo,limit_frames=100").limit_frames
    100
    """
    from pydantic import TypeAdapter, ValidationError

    from twinnet.qos import Queue

    kinds = Queue.kinds()
    kind, *words = [part.strip() for part in text.split(",")]
    if kind not in kinds:
        raise BadValue(f"there is no queue {kind!r}", did_you_mean(kind, kinds, _USAGE if " " in kind else ""))
    given: dict[str, Any] = {"kind": kind}
    known = [one.name for one in dataclasses.fields(kinds[kind]) if one.name != "kind"]
    for word in words:
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals or not value:
            raise BadValue(f"the queue's setting {word!r} is not NAME=VALUE", _USAGE)
        if name not in known:
            raise BadValue(f"{kind} has no setting {name!r}", did_you_mean(name, known))
        given[name] = (
            int(value) if re.fullmatch(r"\d{1,18}", value) else {"true": True, "false": False}.get(value, value)
        )
    try:
        return TypeAdapter(Queue).validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][-1]) if first["loc"] else kind
        if first["type"] == "missing":
            raise BadValue(f"--queue {text}: {kind} needs {name}", f"write for example: {kind},{name}=...") from None
        said = first["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
        raise BadValue(f"--queue {text}: {name}: {said}", _USAGE) from None


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
