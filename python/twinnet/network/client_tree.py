"""The tree of clients and servers in which QoS policies were compared (Regencia and Yu 2021)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Unpack

from twinnet.errors import BadTemplate
from twinnet.network.link_settings import LinkOptions
from twinnet.network.network import Network
from twinnet.network.nodes import Switch
from twinnet.ranges import is_whole

__all__ = ["client_tree"]

_MOST_LAYERS = 10
_MOST_CLIENTS = 10_000
_MOST_SERVERS = 100


def client_tree(
    clients: int = 70,
    layers: int = 3,
    servers: int = 6,
    seed: int = 1,
    server_link: LinkOptions | None = None,
    **link: Unpack[LinkOptions],
) -> Network:
    """Return clients at the leaves of a binary tree of switches, and servers behind its root.

    The first of `layers` has 2^layers switches, ``l1s1``, ``l1s2``, ..., to which the clients ``h1``, ``h2``, ... are
    linked in equal parts of neighbours; each further layer has half as many, and the last one's two are linked to
    ``core``. Behind its first port, ``core-eth1``, is ``edge``, with the servers ``v1``, ``v2``, ... at 10.0.1.101 and
    up. A switch below which no client is left is left out.

    Parameters
    ----------
    clients
        How many, 1 to 10000.
    layers
        Layers of switches between clients and core, 1 to 10; with few clients the tree is as deep, but not as wide.
    servers
        How many, 1 to 100.
    seed
        The network's seed.
    server_link
        Settings of the links of ``edge`` that differ from the others'.
    link
        Settings of all links.

    Examples
    --------
    >>> len(client_tree(clients=70, layers=3).switches)
    16
    """
    for name, value, most in (
        ("clients", clients, _MOST_CLIENTS),
        ("layers", layers, _MOST_LAYERS),
        ("servers", servers, _MOST_SERVERS),
    ):
        if not is_whole(value, 1, most):
            raise BadTemplate(f"client-tree: {name} is {value!r}; allowed are whole numbers from 1 to {most}")
    net = Network(seed)
    core, edge = net.switch("core"), net.switch("edge")
    behind = LinkOptions(**link)
    behind.update(server_link or {})
    net.link(core, edge, **behind)
    first = 1 << layers
    counts = [clients // first + (place < clients % first) for place in range(first)]
    _Tree(net, clients, link).grow(core, layers, counts)
    for number in range(1, servers + 1):
        net.link(net.host(f"v{number}", ip=f"10.0.1.{100 + number}/8"), edge, **behind)
    return net


class _Tree:
    """Switches and clients below the core, numbered as they are made."""

    def __init__(self, net: Network, clients: int, link: Mapping[str, Any]) -> None:
        self._net, self._link = net, link
        self._switches: Counter[int] = Counter()
        self._clients = 0
        # The servers are in 10.0.1.0: many clients are elsewhere.
        self._block = 0 if clients < 256 else 1

    def grow(self, above: Switch, layer: int, counts: list[int]) -> None:
        """Link two switches of `layer` to `above`, each with its half of the client `counts` of the first layer."""
        half = len(counts) // 2
        for part in (counts[:half], counts[half:]):
            if not any(part):
                continue
            self._switches[layer] += 1
            switch = self._net.switch(f"l{layer}s{self._switches[layer]}")
            self._net.link(above, switch, **self._link)
            if layer > 1:
                self.grow(switch, layer - 1, part)
                continue
            for _ in range(part[0]):
                self._clients += 1
                number = self._clients
                address = f"10.{self._block}.{number >> 8}.{number & 255}/8"
                self._net.link(switch, self._net.host(f"h{number}", ip=address), **self._link)
