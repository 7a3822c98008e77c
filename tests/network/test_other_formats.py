"""A topology in another program's format is refused by the format's name, with the way to a network from it."""

from __future__ import annotations

from pathlib import Path

import networkx
import pytest
from twinnet.cli.network_argument import network_of_file
from twinnet.errors import BadFile
from twinnet.network import graphs
from twinnet.network.topology_file import load_network
from twinnet.study.resolution import load_study

GML = 'graph [\n node [ id 0 label "A" ]\n node [ id 1 label "B" ]\n edge [ source 0 target 1 ]\n]\n'


@pytest.mark.parametrize(
    ("name", "format_name", "way"),
    [
        ("zoo.gml", "GML", "networkx.read_gml"),
        ("zoo.GML", "GML", "networkx.read_gml"),
        ("net.dot", "DOT", "GraphML"),
        ("drawn.mn", "MiniEdit", "twinnet mininet --export network.yaml"),
    ],
)
@pytest.mark.parametrize("read", [load_network, load_study, lambda path: network_of_file(str(path), 1)])
def test_another_format_is_named_with_the_way_from_it(
    tmp_path: Path, name: str, format_name: str, way: str, read: object
) -> None:
    assert callable(read)
    path = tmp_path / name
    path.write_text(GML)
    with pytest.raises(BadFile, match=format_name) as refused:
        read(path)
    assert way in refused.value.remedy


def test_graphml_is_named_by_the_reader_of_network_files(tmp_path: Path) -> None:
    path = tmp_path / "zoo.graphml"
    path.write_text("<graphml/>")
    with pytest.raises(BadFile, match="GraphML"):
        load_network(path)


def test_the_line_that_converts_gml_gives_a_network(tmp_path: Path) -> None:
    (tmp_path / "zoo.gml").write_text(GML)
    graph = networkx.read_gml(tmp_path / "zoo.gml", label="id")
    networkx.write_graphml(graph, tmp_path / "zoo.graphml")
    assert len(graphs.from_graphml(tmp_path / "zoo.graphml", rate="1 Gbit").links) == 3
