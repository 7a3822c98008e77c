"""Topologies: graphs of names that a network is built from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from twinnet.mininet.addresses import irange, natural, naturalSeq

__all__ = [
    "LinearTopo",
    "MinimalTopo",
    "MultiGraph",
    "SingleSwitchReversedTopo",
    "SingleSwitchTopo",
    "Topo",
]

Info = dict[str, Any]


class MultiGraph:
    """A graph without directions that may have several edges between two nodes.

    Attributes
    ----------
    node
        For each node its settings.
    edge
        For each node its neighbours, for each of them the edges by key; both directions share them.
    """

    def __init__(self) -> None:
        self.node: dict[Any, Info] = {}
        self.edge: dict[Any, dict[Any, dict[Any, Info]]] = {}

    def add_node(self, node: Any, attr_dict: Info | None = None, **attrs: Any) -> None:
        """Add a node with settings."""
        settings = attr_dict if attr_dict is not None else {}
        settings.update(attrs)
        self.node[node] = settings

    def add_edge(self, src: Any, dst: Any, key: Any = None, attr_dict: Info | None = None, **attrs: Any) -> Any:
        """Add an edge with settings, and return its key; without one it gets the next number."""
        settings = attr_dict if attr_dict is not None else {}
        settings.update(attrs)
        for one in (src, dst):
            self.node.setdefault(one, {})
            self.edge.setdefault(one, {})
        between = self.edge[src].setdefault(dst, {})
        self.edge[dst][src] = between
        if key is None:
            key = max([0, *(one for one in between if isinstance(one, int))]) + 1
        between[key] = settings
        return key

    def nodes(self, data: bool = False) -> Iterable[Any]:
        """Return the nodes; with `data` each with its settings."""
        return self.node.items() if data else self.node.keys()

    def edges_iter(self, data: bool = False, keys: bool = False) -> Iterator[Any]:
        """Yield the edges, each once; with `keys` and `data` each with its key and its settings."""
        for src, neighbours in self.edge.items():
            for dst, between in neighbours.items():
                if src > dst:
                    continue
                for key, settings in between.items():
                    yield (src, dst, *([key] if keys else []), *([settings] if data else []))

    def edges(self, data: bool = False, keys: bool = False) -> list[Any]:
        """Return the edges as a list."""
        return list(self.edges_iter(data=data, keys=keys))

    def __getitem__(self, node: Any) -> dict[Any, dict[Any, Info]]:
        return self.edge[node]

    def __len__(self) -> int:
        return len(self.node)

    def convertTo(self, cls: Any, data: bool = False, keys: bool = False) -> Any:
        """Return this graph as one of the class `cls`, which is like networkx.MultiGraph."""
        graph = cls()
        graph.add_nodes_from(self.nodes(data=data))
        graph.add_edges_from(self.edges(data=data or keys, keys=keys))
        return graph


class Topo:
    """A topology: override :meth:`build`.

    Parameters
    ----------
    args, params
        What :meth:`build` gets. ``hopts``, ``sopts`` and ``lopts`` are the settings of hosts, switches and links that
        are given none.
    """

    def __init__(self, *args: Any, **params: Any) -> None:
        self.g: MultiGraph = MultiGraph()
        self.hopts: Info = params.pop("hopts", {})
        self.sopts: Info = params.pop("sopts", {})
        self.lopts: Info = params.pop("lopts", {})
        self.ports: dict[str, dict[int, tuple[str, int]]] = {}
        self.build(*args, **params)

    def build(self, *args: Any, **params: Any) -> None:
        """Add hosts, switches and links."""

    def addNode(self, name: str, **opts: Any) -> str:
        """Add a node and return its name."""
        self.g.add_node(name, **opts)
        return name

    def addHost(self, name: str, **opts: Any) -> str:
        """Add a host and return its name."""
        return self.addNode(name, **(opts or self.hopts))

    def addDocker(self, name: str, **opts: Any) -> str:
        """Add a container, as `Containernet` does; return its name."""
        from twinnet.mininet.containers import Docker

        return self.addHost(name, **{"cls": Docker, **opts})

    def addSwitch(self, name: str, **opts: Any) -> str:
        """Add a switch and return its name."""
        return self.addNode(name, isSwitch=True, **(opts or self.sopts))

    def addLink(
        self, node1: str, node2: str, port1: int | None = None, port2: int | None = None, key: Any = None, **opts: Any
    ) -> Any:
        """Add a link and return its key."""
        settings = dict(opts or self.lopts)
        port1, port2 = self.addPort(node1, node2, port1, port2)
        settings.update(node1=node1, node2=node2, port1=port1, port2=port2)
        return self.g.add_edge(node1, node2, key, settings)

    def nodes(self, sort: bool = True) -> list[str]:
        """Return all names."""
        return self.sorted(self.g.nodes()) if sort else list(self.g.nodes())

    def isSwitch(self, n: str) -> bool:
        """Return whether `n` is a switch."""
        return self.g.node[n].get("isSwitch", False)

    def switches(self, sort: bool = True) -> list[str]:
        """Return the names of the switches."""
        return [name for name in self.nodes(sort) if self.isSwitch(name)]

    def hosts(self, sort: bool = True) -> list[str]:
        """Return the names of the hosts."""
        return [name for name in self.nodes(sort) if not self.isSwitch(name)]

    def iterLinks(self, withKeys: bool = False, withInfo: bool = False) -> Iterator[Any]:
        """Yield the links with their ends in the order in which they were given."""
        for _, _, key, settings in self.g.edges_iter(data=True, keys=True):
            ends = settings["node1"], settings["node2"]
            yield (*ends, *([key] if withKeys else []), *([settings] if withInfo else []))

    def links(self, sort: bool = False, withKeys: bool = False, withInfo: bool = False) -> list[Any]:
        """Return the links."""
        found = list(self.iterLinks(withKeys, withInfo))
        if not sort:
            return found
        length = 3 if withKeys else 2
        return sorted(found, key=lambda link: naturalSeq(link[:length]))

    def addPort(self, src: str, dst: str, sport: int | None = None, dport: int | None = None) -> tuple[int, int]:
        """Return the port numbers of a new link; those that are not given are the next ones."""
        for name in (src, dst):
            self.ports.setdefault(name, {})
        if sport is None:
            sport = len(self.ports[src]) + (1 if self.isSwitch(src) else 0)
        if dport is None:
            dport = len(self.ports[dst]) + (1 if self.isSwitch(dst) else 0)
        self.ports[src][sport] = (dst, dport)
        self.ports[dst][dport] = (src, sport)
        return sport, dport

    def port(self, src: str, dst: str) -> Any:
        """Return the pair of port numbers of the link between `src` and `dst`; a list where there are several."""
        found = [(sport, there[1]) for sport, there in self.ports[src].items() if there[0] == dst]
        return found[0] if len(found) == 1 else found

    def _linkEntry(self, src: str, dst: str, key: Any = None) -> tuple[dict[Any, Info], Any]:
        """Return the settings of the links between two nodes by key, and `key`, or the least where it is ``None``."""
        between = self.g[src][dst]
        return between, min(between) if key is None else key

    def linkInfo(self, src: str, dst: str, key: Any = None) -> Info:
        """Return the settings of a link."""
        between, key = self._linkEntry(src, dst, key)
        return between[key]

    def setlinkInfo(self, src: str, dst: str, info: Info, key: Any = None) -> None:
        """Set the settings of a link."""
        between, key = self._linkEntry(src, dst, key)
        between[key] = info

    def nodeInfo(self, name: str) -> Info:
        """Return the settings of a node."""
        return self.g.node[name]

    def setNodeInfo(self, name: str, info: Info) -> None:
        """Set the settings of a node."""
        self.g.node[name] = info

    def convertTo(self, cls: Any, data: bool = True, keys: bool = True) -> Any:
        """Return the graph as one of the class `cls`, which is like networkx.MultiGraph."""
        return self.g.convertTo(cls, data=data, keys=keys)

    @staticmethod
    def sorted(items: Iterable[str]) -> list[str]:
        """Return `items` with h2 before h10."""
        return sorted(items, key=natural)


class SingleSwitchTopo(Topo):
    """One switch with `k` hosts."""

    def build(self, k: int = 2, **_opts: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Add the switch and its hosts."""
        self.k = k
        switch = self.addSwitch("s1")
        for number in irange(1, k):
            self.addLink(self.addHost(f"h{number}"), switch)


class SingleSwitchReversedTopo(Topo):
    """One switch with `k` hosts; the first host is at the last port."""

    def build(self, k: int = 2) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Add the switch and its hosts."""
        self.k = k
        switch = self.addSwitch("s1")
        for number in irange(1, k):
            self.addLink(self.addHost(f"h{number}"), switch, port1=0, port2=k - number + 1)


class MinimalTopo(SingleSwitchTopo):
    """One switch with two hosts."""

    def build(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Add the switch and its hosts."""
        super().build(k=2)


class LinearTopo(Topo):
    """A row of `k` switches with `n` hosts each."""

    def build(self, k: int = 2, n: int = 1, **_opts: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Add the switches and their hosts."""
        self.k = k
        self.n = n
        before = None
        for number in irange(1, k):
            switch = self.addSwitch(f"s{number}")
            for host in irange(1, n):
                self.addLink(self.addHost(f"h{number}" if n == 1 else f"h{host}s{number}"), switch)
            if before is not None:
                self.addLink(switch, before)
            before = switch
