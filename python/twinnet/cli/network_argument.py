"""The network that a word on the command line means: a template, a network file, or a study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinnet.errors import BadValue

if TYPE_CHECKING:
    from twinnet.network.graphs import ParallelEdges
    from twinnet.network.network import Network

__all__ = ["GRAPH_SUFFIX", "described_network", "network_of_file"]

GRAPH_SUFFIX = ".graphml"
"""Files with the topologies of others, such as those of the Internet Topology Zoo."""


def described_network(
    text: str, seed: int, link: Mapping[str, str | None], parallel: ParallelEdges | None = None
) -> Network:
    """Return the network that `text` means; a study's is the one under the first levels of its factors.

    Parameters
    ----------
    text
        A template such as ``tree:2,3``, the path of a network, study or GraphML file, or the name of a built-in study.
    seed
        The seed of a template's network.
    link
        Settings of all links of a template or GraphML file; those that are `None` are left out.
    parallel
        What becomes of parallel edges of a GraphML file, as for `twinnet.network.graphs.from_graph`; only for those.
    """
    from twinnet.network import templates

    given: dict[str, Any] = {name: value for name, value in link.items() if value is not None}
    if text.endswith(GRAPH_SUFFIX):
        return _of_graph(text, seed, given, parallel)
    if parallel is not None:
        raise click.UsageError("--parallel-edges is for GraphML; a network file says parallel: true at a link")
    if templates.is_template(text):
        return templates.from_text(text, seed, **given)
    if given:
        options = " ".join(f"--{name}" for name in given)
        raise click.UsageError(f"{options} is for templates and GraphML; a file says it under link_defaults")
    from twinnet.study.named_studies import named_studies

    if text in named_studies() or Path(text).is_dir() or (Path(text).is_file() and _is_study(text)):
        from twinnet.study.network_of import network_of
        from twinnet.study.resolution import load_study

        study = load_study(text)
        levels = {name: next(iter(factor.levels)) for name, factor in study.specification.factors.items()}
        return network_of(study.at(levels), levels, seed)
    return network_of_file(text, seed)


def network_of_file(text: str, seed: int) -> Network:
    """Return the network of the file `text`; a word that is none is taken for a template, whose names it then gets.

    Raises
    ------
    BadValue
        The file is a study, which has traffic and questions beside its network.
    BadFile
        The file is of another program's format.
    """
    from twinnet.network import templates
    from twinnet.network.other_formats import refuse_other_format
    from twinnet.network.topology_file import load_network
    from twinnet.study.named_studies import named_studies

    if text in named_studies():
        raise BadValue(
            f"{text} is a study, not a network",
            f"make its runs with: twinnet run {text}; see its network with: twinnet graph {text}",
        )
    if text.endswith(GRAPH_SUFFIX):
        return _of_graph(text, seed, {}, None)
    if text.endswith(".py"):
        raise BadValue(f"{text} is a Python program, not a network", f"run it with: python {text}")
    refuse_other_format(text)
    if not text.endswith((".yaml", ".yml")) and "/" not in text:
        return templates.from_text(text, seed)
    if Path(text).is_file() and _is_study(text):
        raise BadValue(
            f"{text} is a study, not a network", f"make its runs with: twinnet run {text}; or put its network in a file"
        )
    return load_network(text)


def _of_graph(path: str, seed: int, link: Mapping[str, Any], parallel: ParallelEdges | None) -> Network:
    """The network of a GraphML file, with a host at each switch."""
    from twinnet.network.graphs import from_graphml

    return from_graphml(path, 1, seed, parallel=parallel or "refuse", **link)


def _is_study(path: str) -> bool:
    """Return True if the file has a key that only studies have; its reader reports what is wrong in it."""
    from twinnet.yaml_source import SourceError, load_yaml

    try:
        data = load_yaml(path).data
    except SourceError:
        return False
    return isinstance(data, dict) and "study" in data
