"""``twinnet new``."""

from __future__ import annotations

import re
from pathlib import Path

import click

from twinnet.cli import completion
from twinnet.cli.output import json_option, print_json
from twinnet.cli.shared_options import PATH

__all__ = ["new"]

_TEMPLATE = Path(__file__).parent / "new_study.yaml.jinja"


@click.command(short_help="Write a commented study to start from.")
@click.argument("name")
@click.option(
    "--network",
    shell_complete=completion.networks,
    default="dumbbell:2",
    show_default=True,
    help="The template of its network, such as tree:2,2.",
)
@click.option("--out", type=PATH, metavar="FILE", help="The file; default: NAME/study.yaml.")
@json_option
def new(name: str, network: str, out: Path | None, as_json: bool) -> None:
    """Write a study called NAME, for you to change into your own. It runs as it is, and every key has a comment.

    An existing file is left alone.
    """
    from jinja2 import Environment, StrictUndefined

    from twinnet.errors import BadValue
    from twinnet.network import templates
    from twinnet.study.resolution import read_study
    from twinnet.yaml_source import NAME_PATTERN, parse_yaml

    if re.match(NAME_PATTERN, name) is None:
        near = re.sub(r"[^a-z0-9_.-]+", "-", name.lower()).strip("-._")[:64] or "my-study"
        raise BadValue(
            f"{name!r} is no name of a study: it has lower-case letters, digits, '_', '.' and '-', at most 64",
            f"write for example: twinnet new {near}",
        )
    described = templates.from_text(network)
    hosts = [host.name for host in described.hosts]
    if len(hosts) < 2:
        raise BadValue(f"{network} has fewer than two hosts", "a study needs one that sends and one that receives")
    last = next(link for link in described.links if hosts[-1] in (link.a.node, link.b.node))
    near = last.a if last.b.node == hosts[-1] else last.b
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    text = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        name=name,
        template=network,
        sender=hosts[0],
        receiver=hosts[-1],
        port=near.name,
        link=f"{near.node}-{hosts[-1]}",
    )
    path = out or Path(name) / "study.yaml"
    # What we write is right: it is read as `run` reads it before anybody has it.
    read_study(parse_yaml(text, str(path)), text=text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise BadValue(f"{path} exists already", "choose another name, or --out") from None
    except OSError as error:
        raise BadValue(f"{path} cannot be written: {error.strerror}", "choose another place with --out") from None
    if as_json:
        print_json({"file": str(path)})
    else:
        click.echo(f"{path} is written. See what it would do: twinnet run {path} --dry-run")
