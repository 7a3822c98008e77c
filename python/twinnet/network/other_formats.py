"""Files of topologies in other programs' formats: each is named, with the way to a network from it."""

from __future__ import annotations

from pathlib import Path

from twinnet.errors import BadFile

__all__ = ["refuse_other_format"]

_FORMATS = {
    ".gml": (
        "GML",
        'convert it to GraphML, which is read: python -c "import networkx; networkx.write_graphml('
        "networkx.read_gml('{path}', label='id'), '{stem}.graphml')\"; the Internet Topology Zoo has both",
    ),
    ".graphml": ("GraphML", "open it with twinnet.network.graphs.from_graphml('{path}'), or twinnet graph {path}"),
    ".dot": ("DOT of Graphviz", "write it as GraphML (.graphml), which is read"),
    ".gv": ("DOT of Graphviz", "write it as GraphML (.graphml), which is read"),
    ".mn": ("MiniEdit's JSON", "make a network file of it: twinnet mininet --export network.yaml {path}"),
}


def refuse_other_format(path: str | Path) -> None:
    """Raise `BadFile` with the format's name and the remedy where the file's name says that it is no network file."""
    found = _FORMATS.get(Path(path).suffix.lower())
    if found is not None:
        name, remedy = found
        told = remedy.format(path=path, stem=Path(path).with_suffix(""))
        raise BadFile(f"{path} is in {name}; files of networks and studies are YAML", told)
