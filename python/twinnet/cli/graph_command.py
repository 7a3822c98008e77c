"""``twinnet graph``."""

from __future__ import annotations

from pathlib import Path

import click

from twinnet.cli import completion
from twinnet.cli.output import json_option, print_json

__all__ = ["graph"]


@click.command(short_help="Draw a network: SVG, PDF, PNG, Graphviz or Mermaid.")
@click.argument("network", shell_complete=completion.network_or_study)
@click.option(
    "--format",
    "form",
    type=click.Choice(["svg", "png", "pdf", "dot", "mermaid"]),
    help="What to write; default: what --out ends in, and SVG without --out.",
)
@click.option("--rate", help='Line rate of every link of a template, such as "1 Gbit".')
@click.option("--delay", help='Delay of every link of a template, such as "50 us".')
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write it to this file.")
@json_option
def graph(network: str, form: str | None, rate: str | None, delay: str | None, out: Path | None, as_json: bool) -> None:
    """Draw NETWORK: a template such as tree:2,3, a network file, or a study (its name or its file).

    Without --out the picture goes to standard output: twinnet graph tree:2 > tree.svg
    """
    from twinnet.cli.network_argument import described_network
    from twinnet.drawing import picture_of

    picture = picture_of(described_network(network, 1, {"rate": rate, "delay": delay}))
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
