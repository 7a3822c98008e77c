"""Networks from graphs: networkx, GraphML, random graphs, and the templates of trees, rings and leaf and spine."""

from __future__ import annotations

from pathlib import Path

import networkx
import pytest
from twinnet.errors import BadFile, BadTemplate, BadTopology
from twinnet.network import graphs, templates

HEAD = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="a" for="node" attr.name="Latitude" attr.type="double"/>
<key id="b" for="node" attr.name="Longitude" attr.type="double"/>
<key id="c" for="edge" attr.name="LinkSpeedRaw" attr.type="double"/>
<graph edgedefault="undirected">
<node id="0"><data key="a">51.5074</data><data key="b">-0.1278</data></node>
<node id="1"><data key="a">48.8566</data><data key="b">2.3522</data></node>
<node id="2"/>
"""
EDGE = '<edge source="{}" target="{}"><data key="c">2488000000.0</data></edge>\n'
CAPACITY = '<edge source="0" target="1"><data key="c">{}</data></edge>'


def graphml(folder: Path, edges: str, head: str = HEAD) -> Path:
    path = folder / "zoo.graphml"
    path.write_text(head + edges + "</graph></graphml>")
    return path


def test_a_file_of_the_topology_zoo_gives_rates_and_delays_by_distance(tmp_path: Path) -> None:
    net = graphs.from_graphml(graphml(tmp_path, EDGE.format(0, 1) + EDGE.format(1, 2)), hosts_per_switch=2)
    assert (len(net.switches), net.host_count, len(net.links)) == (3, 6, 8)
    way = net.find_link("s1", "s2").ab
    assert way["rate_bps"] == 2_488_000_000
    # London to Paris is 344 km on the great circle; light in fibre does 204.2 km in a millisecond.
    assert way["delay_ps"] / 1e9 == pytest.approx(344 / 204.2, rel=0.005)
    # The third node has no place.
    assert net.find_link("s2", "s3").ab["delay_ps"] == 10**9


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        (EDGE.format(0, 0), "edge from '0' to itself"),
        (EDGE.format(0, 1) + EDGE.format(1, 0), "two edges between 0 and 1"),
        ('<edge source="0" target="1"/>', "edge between 0 and 1 has no capacity"),
        ('<node id="1"/>' + EDGE.format(0, 1), "two nodes with the id '1'"),
        ("<node id='1'/>" + EDGE.format(0, 1), "two nodes with the id '1'"),
        *(
            (CAPACITY.format(wrong), "edge between 0 and 1 has the capacity")
            for wrong in ("nan", "inf", "-5", "0", "1e30")
        ),
    ],
)
def test_graphs_that_are_no_network_are_refused_with_the_nodes(tmp_path: Path, edges: str, said: str) -> None:
    with pytest.raises(BadTopology, match=said):
        graphs.from_graphml(graphml(tmp_path, edges))


def test_a_capacity_that_is_a_word_and_hosts_below_none_are_refused(tmp_path: Path) -> None:
    words = HEAD.replace('"LinkSpeedRaw" attr.type="double"', '"LinkSpeedRaw" attr.type="string"')
    with pytest.raises(BadTopology, match=r"between 0 and 1 has the capacity \(LinkSpeedRaw\) 'fast'"):
        graphs.from_graphml(graphml(tmp_path, CAPACITY.format("fast"), words))
    with pytest.raises(BadTopology, match="-1 hosts at each switch"):
        graphs.from_graphml(graphml(tmp_path, EDGE.format(0, 1)), hosts_per_switch=-1)
    with pytest.raises(BadTopology, match="mean degree is nan"):
        graphs.random_network(5, float("nan"))


def test_parallel_edges_are_merged_or_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    path = graphml(tmp_path, EDGE.format(0, 1) + EDGE.format(1, 0))
    assert len(graphs.from_graphml(path, hosts_per_switch=0, parallel="merge").links) == 1
    kept = graphs.from_graphml(path, hosts_per_switch=0, parallel="keep")
    assert [(link.a.node, link.b.node) for link in kept.links] == [("s1", "s2")] * 2
    with pytest.raises(BadTopology, match=r"two edges between 0 and 1.*--parallel-edges merge.*'keep'"):
        graphs.from_graphml(path)


def test_what_is_no_graphml_is_a_bad_file(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="no GraphML"):
        graphs.from_graphml(graphml(tmp_path, "<edge", HEAD))
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa">]>'
    with pytest.raises(BadFile, match="declares a document type"):
        graphs.from_graphml(graphml(tmp_path, "", bomb + HEAD))
    with pytest.raises(BadFile, match="cannot be read"):
        graphs.from_graphml(tmp_path / "absent.graphml")


def test_any_networkx_graph_becomes_switches_lines_and_hosts_by_rules() -> None:
    star = networkx.star_graph(3)
    net = graphs.from_graph(star, line=graphs.rate_by_degree("10 Mbit", "5 Mbit"), delay="1 ms")
    assert [len(switch.ports) for switch in net.switches] == [4, 2, 2, 2]
    # Each line's end with fewer edges has one.
    assert {link.ab["rate_bps"] for link in net.links if link.b.node.startswith("s") and link.a.node == "s1"} == {
        10_000_000
    }
    square = graphs.from_graph(networkx.cycle_graph(4), line=graphs.rate_by_degree("10 Mbit", "5 Mbit"))
    assert square.find_link("s1", "s2").ab["rate_bps"] == 15_000_000
    with pytest.raises(BadTopology, match="has directions"):
        graphs.from_graph(networkx.DiGraph([(1, 2)]))


def test_labels_name_switches_and_two_equal_ones_are_refused() -> None:
    graph = networkx.Graph()
    graph.add_node(0, label="Köln")
    graph.add_node(1, label="Kln")
    with pytest.raises(BadTopology, match="'Köln' and 'Kln' would both be called 'kln'"):
        graphs.from_graph(graph, names="label")


def test_random_networks_are_connected_and_the_same_for_a_seed() -> None:
    def edges(seed: int) -> list[tuple[str, str]]:
        net = graphs.random_network(15, 4, hosts_per_switch=0, seed=seed)
        return [(link.a.node, link.b.node) for link in net.links]

    assert edges(1) == edges(1) != edges(2)
    assert len(edges(1)) == 30
    assert networkx.is_connected(networkx.Graph(edges(1)))
    with pytest.raises(BadTopology, match="no connected graph of mean degree 1"):
        graphs.random_network(15, 1)


def test_the_tree_of_clients_has_the_published_shape() -> None:
    net = templates.from_text("client-tree:70,3,6", rate="10 Gbit")
    layers = [sum(switch.name.startswith(f"l{layer}s") for switch in net.switches) for layer in (1, 2, 3)]
    assert layers == [8, 4, 2]
    clients = [len(net[f"l1s{n}"].ports) - 1 for n in range(1, 9)]
    assert sorted(clients) == [8, 8, 9, 9, 9, 9, 9, 9]
    assert [net[f"v{n}"].ip for n in (1, 6)] == ["10.0.1.101", "10.0.1.106"]
    assert net["core"].ports[0].name == "core-eth1"
    with pytest.raises(BadTemplate, match="layers is 11"):
        templates.client_tree(layers=11)


def test_rings_and_leaf_and_spine_have_their_lines() -> None:
    ring = templates.ring(4, 0)
    assert [sorted((link.a.node, link.b.node)) for link in ring.links] == [
        ["s1", "s2"],
        ["s2", "s3"],
        ["s3", "s4"],
        ["s1", "s4"],
    ]
    clos = templates.leaf_spine(3, 2, 1)
    assert len(clos.links) == 3 * 2 + 3
    with pytest.raises(BadTemplate, match="switches is 2"):
        templates.ring(2)
