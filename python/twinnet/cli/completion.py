"""Completion with the Tab key for the arguments of commands. A callback that cannot answer offers nothing:
completion never fails, and never prints."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

__all__ = [
    "controllers",
    "hosts",
    "labs",
    "lines",
    "network_study_or_lab",
    "networks",
    "policies",
    "ports",
    "presets",
    "queues",
    "studies",
    "switches",
]

_Offered = list[CompletionItem]
_Callback = Callable[[click.Context, click.Parameter, str], _Offered]


def _of(names: Callable[[click.Context, str], Iterable[str]], with_files: bool = False) -> _Callback:
    """A callback that offers those of `names` that begin as was typed; with files, YAML files and folders too."""

    def offered(ctx: click.Context, _: click.Parameter, typed: str) -> _Offered:
        found: list[str] = []
        # Whatever is wrong (no such lab, a file with mistakes) is said when the command is run, not at the Tab key.
        with contextlib.suppress(Exception):
            found = [name for name in names(ctx, typed) if name.startswith(typed)]
        if with_files:
            found += sorted(_files(typed))
        # Further down a path, the shell's own completion knows better.
        if with_files and not found and typed:
            return [CompletionItem(typed, type="file")]
        return [CompletionItem(name) for name in found]

    return offered


def _files(typed: str) -> Iterator[str]:
    if "/" in typed:
        return
    for path in Path().iterdir():
        if path.name.startswith(typed) and path.suffix in (".yaml", ".yml"):
            yield path.name


def _studies(_: click.Context, __: str) -> Iterable[str]:
    from twinnet.study.named_studies import named_studies

    return named_studies()


def _templates(_: click.Context, __: str) -> Iterable[str]:
    from twinnet.network.templates import TEMPLATES

    return TEMPLATES


def _presets(ctx: click.Context, _: str) -> Iterable[str]:
    from twinnet.study.named_studies import named_studies
    from twinnet.yaml_source import load_yaml

    # An option that waits for its value stops click before it has named the arguments.
    study = str(ctx.params.get("study") or ctx.args[0])
    path = named_studies().get(study, Path(study))
    data: Any = load_yaml(path / "study.yaml" if path.is_dir() else path).data
    return list(data["presets"])


def _policies(_: click.Context, __: str) -> Iterable[str]:
    from twinnet.policies import known_policies

    return known_policies()


def _queues(_: click.Context, __: str) -> Iterable[str]:
    from twinnet.qos import Queue

    return sorted(Queue.kinds())


def _controllers(_: click.Context, __: str) -> Iterable[str]:
    from twinnet.control.choice import SHIPPED

    return [*SHIPPED, "tcp:127.0.0.1:6653"]


def _labs(_: click.Context, __: str) -> Iterable[str]:
    from twinnet.lab import labs as running

    return [lab.name for lab in running()]


def _nodes(kind: str) -> Callable[[click.Context, str], Iterable[str]]:
    def found(ctx: click.Context, _: str) -> Iterable[str]:
        from twinnet.lab import attach

        with attach(str(ctx.params["lab_name"])) as lab:
            if kind == "port":
                return [port["name"] for node in lab.layout.nodes.values() for port in node.get("ports", ())]
            return lab.layout.names(kind)

    return found


def _lines(ctx: click.Context, typed: str) -> Iterable[str]:
    """A line of the prompt, its words before the last one as they are."""
    from twinnet.cli.prompt.loop import candidates
    from twinnet.lab import attach

    before, space, _ = typed.rpartition(" ")
    with attach(str(ctx.params["lab_name"])) as lab:
        return [f"{before}{space}{one}" for one in candidates(lab, typed)]


studies: _Callback = _of(_studies, with_files=True)
networks: _Callback = _of(_templates, with_files=True)
network_study_or_lab: _Callback = _of(
    lambda ctx, typed: [*_templates(ctx, typed), *_studies(ctx, typed), *_labs(ctx, typed)], with_files=True
)
presets: _Callback = _of(_presets)
policies: _Callback = _of(_policies)
queues: _Callback = _of(_queues)
controllers: _Callback = _of(_controllers)
labs: _Callback = _of(_labs)
hosts: _Callback = _of(_nodes("host"))
switches: _Callback = _of(_nodes("switch"))
ports: _Callback = _of(_nodes("port"))
lines: _Callback = _of(_lines)
