"""``twinnet graph``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinnet.cli import completion
from twinnet.cli.output import json_option, print_json
from twinnet.cli.shared_options import FILE, parallel_edges_option
from twinnet.errors import BadValue

if TYPE_CHECKING:
    from twinnet.drawing.picture import Picture
    from twinnet.network.graphs import ParallelEdges

__all__ = ["graph"]

_LAB_PREFIX = "lab-"
"""Names that labs are given begin so; no template's does."""


@click.command(short_help="Draw a network: SVG, PDF, PNG, Graphviz or Mermaid.")
@click.argument("network", shell_complete=completion.network_study_or_lab)
@click.option(
    "--format",
    "form",
    type=click.Choice(["svg", "png", "pdf", "dot", "mermaid"]),
    help="What to write; default: what --out ends in, and SVG without --out.",
)
@click.option("--rate", help='Line rate of every link of a template, such as "1 Gbit".')
@click.option("--delay", help='Delay of every link of a template, such as "50 us".')
@parallel_edges_option
@click.option("--out", type=FILE, metavar="FILE", help="Write it to this file.")
@json_option
def graph(
    network: str,
    form: str | None,
    rate: str | None,
    delay: str | None,
    parallel_edges: ParallelEdges | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Draw NETWORK: a template such as tree:2,3, a network file, a study (its name or its file), or a running lab, with
    its links as they are now.

    At the ends of links stand the port numbers of switches and the addresses of routers, where they have room; a
    browser shows all of a node under the mouse. Controllers stand above.

    Places that you chose, in the page of a lab, are taken from the file beside that of the network: those of
    network.yaml from network.positions.json.

    Without --out the picture goes to standard output: twinnet graph tree:2 > tree.svg
    """
    picture = _picture(network, rate, delay, parallel_edges)
    if out is not None:
        written = picture.save(out, form)
        if as_json:
            print_json({"file": str(written), "caption": picture.caption})
        return
    if form in ("png", "pdf"):
        raise click.UsageError(f"{form} is not text; write for example --out network.{form}")
    text = {"svg": picture.svg, "dot": picture.dot, "mermaid": picture.mermaid}[form or "svg"]()
    if as_json:
        print_json({"format": form or "svg", "caption": picture.caption, "picture": text})
    else:
        click.echo(text)


def _picture(network: str, rate: str | None, delay: str | None, parallel: ParallelEdges | None) -> Picture:
    from twinnet import lab as lab_module

    if network in {info.name for info in lab_module.labs()}:
        if rate or delay or parallel:
            raise click.UsageError(
                f"{network} runs with links of its own; leave --rate, --delay and --parallel-edges out"
            )
        from twinnet.drawing.running import picture_of_running

        with lab_module.attach(network) as lab:
            return picture_of_running(lab.layout.nodes, lab.layout.links, lab.links())
    if network.startswith(_LAB_PREFIX):
        raise BadValue(f"{network!r} is no running lab of yours", "see them with: twinnet labs")
    from twinnet.cli.network_argument import described_network
    from twinnet.drawing import picture_of
    from twinnet.drawing.positions import positions_beside, read_positions

    described = described_network(network, 1, {"rate": rate, "delay": delay}, parallel)
    chosen = read_positions(positions_beside(network)) if Path(network).is_file() else None
    return picture_of(described, chosen=chosen)
