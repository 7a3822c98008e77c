"""Networks from graphs: any networkx graph, GraphML files such as the Internet Topology Zoo's, and random graphs."""

from __future__ import annotations

import importlib
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast
from xml.parsers import expat

from twinnet.errors import BadFile, BadTopology, reason
from twinnet.given_files import read_given_text
from twinnet.network.network import Network
from twinnet.ranges import FASTEST_LINE_BPS, line_rate_bps
from twinnet.units import BitsPerSecond, Duration, Rate

if TYPE_CHECKING:
    import networkx

__all__ = ["LineRule", "ParallelEdges", "from_graph", "from_graphml", "random_network"]

LineRule = Callable[["networkx.Graph[Any]", Any, Any, Mapping[str, Any]], Mapping[str, Any]]
"""Tells the settings of a link from the graph, its two nodes, and the attributes of the edge between them."""

ParallelEdges = Literal["refuse", "merge", "keep"]
"""What becomes of edges between the same two nodes: they are refused, are one link with what the last of them says, or
are links side by side."""

_LARGEST_FILE_BYTES = 20_000_000
_MOST_NODES = 5_000
_DEEPEST_ELEMENT = 64
_EARTH_RADIUS_KM = 6371.0088
_FIBRE_KM_PER_S = 299_792.458 / 1.468
"""Light in fibre of refractive index 1.468 (ITU-T G.652)."""


def from_graph(
    graph: networkx.Graph[Any],
    hosts_per_switch: int = 1,
    seed: int = 1,
    line: LineRule | None = None,
    names: Literal["number", "label"] = "number",
    parallel: ParallelEdges = "refuse",
    **link: Any,
) -> Network:
    """Return a network with a switch for each node of `graph`, a link for each edge, and hosts at each switch.

    Parameters
    ----------
    graph
        A networkx graph without directions; its nodes may be anything.
    hosts_per_switch
        Hosts ``h1``, ``h2``, ... at each switch.
    seed
        The network's seed.
    line
        Settings of each link between switches, over those of `link`; see ``twinnet.network.graphs.rate_by_degree``
        and ``twinnet.network.graphs.delay_by_distance``.
    names
        Switches are called ``s1``, ``s2``, ... in the order of the nodes, or by the nodes' labels, shortened to what a
        name may be.
    parallel
        What becomes of edges between the same two nodes: ``refuse`` says where they are, ``merge`` makes them one link
        with what the last of them says, ``keep`` makes links side by side.
    link
        Settings of all links.

    Raises
    ------
    BadTopology
        For a graph with directions, a loop from a node to itself, parallel edges that are refused, two equal labels, or
        too many nodes.
    """
    if graph.is_directed():
        raise BadTopology("the graph has directions; links have two", "give graph.to_undirected()")
    count = graph.number_of_nodes()
    if not 1 <= count <= _MOST_NODES:
        raise BadTopology(f"the graph has {count} nodes; allowed are 1 to {_MOST_NODES}")
    if hosts_per_switch < 0:
        raise BadTopology(f"{hosts_per_switch} hosts at each switch; allowed are 0 and more")
    loop = next((a for a, b in graph.edges() if a == b), None)
    if loop is not None:
        raise BadTopology(f"the graph has an edge from {loop!r} to itself", "remove loops from the graph")
    if parallel == "merge":
        import networkx

        graph = networkx.Graph(graph)
    pairs = Counter(frozenset(pair) for pair in graph.edges())
    twice = next((sorted(map(str, pair)) for pair, times in pairs.items() if times > 1), None)
    if twice is not None and parallel == "refuse":
        raise BadTopology(
            f"the graph has two edges between {twice[0]} and {twice[1]}",
            "make them one with parallel='merge' (--parallel-edges merge), or two links side by side with 'keep'",
        )
    called = _switch_names(graph, names)
    net = Network(seed)
    for node in graph.nodes():
        switch = net.switch(called[node])
        for _ in range(hosts_per_switch):
            net.link(net.host(f"h{net.host_count + 1}"), switch, **link)
    for a, b, given in graph.edges(data=True):
        settings = dict(link)
        if line is not None:
            settings |= line(graph, a, b, cast("Mapping[str, Any]", given))
        net.link(called[a], called[b], **({"parallel": True} if pairs[frozenset((a, b))] > 1 else {}), **settings)
    return net


def _switch_names(graph: networkx.Graph[Any], names: str) -> dict[Any, str]:
    if names == "number":
        return {node: f"s{place}" for place, node in enumerate(graph.nodes(), start=1)}
    found: dict[Any, str] = {}
    owners: dict[str, str] = {}
    for node, given in graph.nodes(data=True):
        label = str(cast("Mapping[str, Any]", given).get("label", node))
        name = re.sub(r"[^a-z0-9]", "", label.lower())[:8] or "s"
        name = name if name[0].isalpha() else f"s{name}"[:8]
        if name in owners:
            raise BadTopology(
                f"the nodes {owners[name]!r} and {label!r} would both be called {name!r}", "use names='number'"
            )
        owners[name] = label
        found[node] = name
    return found


def rate_by_degree(least: str, per_edge: str) -> LineRule:
    """Return a rule by which a link has `least`, and `per_edge` for each further edge of the one of its nodes that has
    fewer: what joins two well connected places is fast."""
    base, more = line_rate_bps(least), line_rate_bps(per_edge)

    def rule(graph: networkx.Graph[Any], a: Any, b: Any, _: Mapping[str, Any]) -> Mapping[str, Any]:
        degrees: Any = graph.degree
        fewer = min(int(degrees[a]), int(degrees[b]))
        return {"rate": BitsPerSecond(base + more * (fewer - 1))}

    return rule


def delay_by_distance(unknown: Duration = "1 ms") -> LineRule:
    """Return a rule by which a link's delay is what light takes in fibre over the great circle between its nodes'
    ``Latitude`` and ``Longitude``, as the Topology Zoo gives them; `unknown` where one lacks them."""

    def rule(graph: networkx.Graph[Any], a: Any, b: Any, _: Mapping[str, Any]) -> Mapping[str, Any]:
        places = [_place(cast("Mapping[str, Any]", graph.nodes[node])) for node in (a, b)]
        if places[0] is None or places[1] is None:
            return {"delay": unknown}
        delay_ns = round(_great_circle_km(places[0], places[1]) / _FIBRE_KM_PER_S * 1e9)
        return {"delay": f"{delay_ns} ns"}

    return rule


def zoo_rule(rate: Rate | None = None, unknown_delay: Duration = "1 ms") -> LineRule:
    """Return the rule for files of the Topology Zoo: delays by distance, and rates by ``LinkSpeedRaw`` (bit/s).

    Parameters
    ----------
    rate
        The rate of links about which the file says none; without it such a link is an error.
    unknown_delay
        The delay of links whose ends have no place.
    """
    delays = delay_by_distance(unknown_delay)

    def rule(graph: networkx.Graph[Any], a: Any, b: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
        capacity = given.get("LinkSpeedRaw")
        if capacity is None and rate is None:
            raise BadTopology(
                f"the edge between {a} and {b} has no capacity", 'give rate="10 Gbit" for those, or --rate'
            )
        settings = dict(delays(graph, a, b, given))
        settings["rate"] = rate if capacity is None else _capacity(capacity, a, b)
        return settings

    return rule


def _capacity(capacity: object, a: object, b: object) -> BitsPerSecond:
    """The capacity that a file gives the edge between `a` and `b`."""
    try:
        found = float(str(capacity))
    except ValueError:
        found = math.nan
    if not 1 <= found <= FASTEST_LINE_BPS:
        raise BadTopology(
            f"the edge between {a} and {b} has the capacity (LinkSpeedRaw) {capacity!r}",
            f"give a number of bits per second from 1 to {FASTEST_LINE_BPS}, or leave it out and give rate=",
        )
    return BitsPerSecond(int(found))


def _place(node: Mapping[str, Any]) -> tuple[float, float] | None:
    try:
        place = (math.radians(float(node["Latitude"])), math.radians(float(node["Longitude"])))
    except (KeyError, ValueError, TypeError):
        return None
    return place if all(math.isfinite(one) for one in place) else None


def _great_circle_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    """The haversine formula."""
    between = math.sin((b[0] - a[0]) / 2) ** 2
    between += math.cos(a[0]) * math.cos(b[0]) * math.sin((b[1] - a[1]) / 2) ** 2
    return 2 * _EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, between)))


def from_graphml(
    path: str | Path,
    hosts_per_switch: int = 1,
    seed: int = 1,
    rate: Rate | None = None,
    parallel: ParallelEdges = "refuse",
    **link: Any,
) -> Network:
    """Return the network of a GraphML file, such as those of the Internet Topology Zoo (Knight and others 2011).

    Parameters
    ----------
    path
        The file; at most 20 MB.
    hosts_per_switch, seed, parallel, link
        As for :func:`from_graph`. A third of the Zoo's files have parallel edges.
    rate
        The rate of links about which the file says none.

    Raises
    ------
    BadFile
        When the file cannot be read as GraphML.
    BadTopology
        As :func:`from_graph`; and for a node that is given twice, or an edge without a capacity when `rate` is not
        given.
    """
    file = Path(path)
    try:
        text = read_given_text(file, _LARGEST_FILE_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{file} cannot be read: {reason(error)}", "give the path of a GraphML file") from None
    graph = read_graphml(text, str(file))
    return from_graph(graph, hosts_per_switch, seed, zoo_rule(rate), parallel=parallel, **link)


def read_graphml(text: str, name: str) -> networkx.MultiGraph[Any]:
    """Return the graph of the GraphML `text`, without directions; messages call it `name`.

    Raises
    ------
    BadFile
        It is no GraphML, declares a document type, or nests elements too deep.
    BadTopology
        A node is given twice.
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        # Entities could grow without bound when they are read.
        raise BadFile(f"{name} declares a document type", "remove <!DOCTYPE ...>: GraphML needs none")
    try:
        twice = next((node for node, times in _identifiers(text).items() if times > 1), None)
        graph = _multigraph(text) if twice is None else None
    except Exception as error:
        raise BadFile(f"{name} is no GraphML: {error}", "see http://graphml.graphdrawing.org") from None
    if graph is None:
        raise BadTopology(f"{name} has two nodes with the id {twice!r}", "give each node its own id")
    return graph


def _identifiers(text: str) -> Counter[str]:
    """How often each id is a node's in the GraphML `text`; raises `ValueError` for elements that are nested too deep.

    networkx takes a node that is given twice for one.
    """
    found: Counter[str] = Counter()
    parser = expat.ParserCreate(namespace_separator=" ")
    depth = 0

    def begins(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST_ELEMENT:
            raise ValueError(f"its elements are nested more than {_DEEPEST_ELEMENT} deep")
        if name.rpartition(" ")[2] == "node" and "id" in attributes:
            found[attributes["id"]] += 1

    def ends(_: str) -> None:
        nonlocal depth
        depth -= 1

    parser.StartElementHandler, parser.EndElementHandler = begins, ends
    parser.Parse(text, True)
    return found


def _multigraph(text: str) -> networkx.MultiGraph[Any]:
    """The graph of GraphML, without directions; networkx does not say what kinds its nodes are."""
    import networkx

    parse: Any = importlib.import_module("networkx").parse_graphml
    return networkx.MultiGraph(parse(text))


def random_network(
    switches: int = 10,
    mean_degree: float = 3.0,
    hosts_per_switch: int = 1,
    seed: int = 1,
    **link: Any,
) -> Network:
    """Return a connected random graph of switches: a random spanning tree, and edges drawn evenly until the mean degree
    is reached. The same seed gives the same graph.

    Raises
    ------
    BadTopology
        When no such graph exists.
    """
    import random

    import networkx

    if not 1 <= switches <= _MOST_NODES:
        raise BadTopology(f"a random network of {switches} switches; allowed are 1 to {_MOST_NODES}")
    if not math.isfinite(mean_degree):
        raise BadTopology(f"the mean degree is {mean_degree}; allowed are finite numbers")
    wanted = round(switches * mean_degree / 2)
    most = switches * (switches - 1) // 2
    if not switches - 1 <= wanted <= most:
        low = 2 * (switches - 1) / switches
        raise BadTopology(
            f"{switches} switches have no connected graph of mean degree {mean_degree:g}",
            f"allowed are {low:.3g} to {switches - 1}",
        )
    draw = random.Random(f"random network {seed}")
    graph: networkx.Graph[Any] = networkx.Graph()
    order = list(range(switches))
    draw.shuffle(order)
    graph.add_nodes_from(range(switches))
    for place in range(1, switches):
        graph.add_edge(order[place], order[draw.randrange(place)])
    while graph.number_of_edges() < wanted:
        a, b = draw.sample(range(switches), 2)
        graph.add_edge(a, b)
    return from_graph(graph, hosts_per_switch, seed, **link)
