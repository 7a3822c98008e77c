"""``twinnet conformance``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinnet.cli.output import json_option, print_json

if TYPE_CHECKING:
    from twinnet_conformance import Case, Outcome
    from twinnet_conformance.target import Target

__all__ = ["conformance"]

_STEP = 20
"""Cases between two tellings of how far it is."""


def _port(_context: click.Context, _parameter: click.Parameter, given: Sequence[str]) -> list[tuple[int, str]]:
    ports: list[tuple[int, str]] = []
    for one in given:
        number, sign, interface = one.partition("=")
        if not sign or not number.isdecimal() or not interface:
            raise click.BadParameter(f'"{one}" is no NUMBER=INTERFACE, for example 1=veth1')
        ports.append((int(number), interface))
    return ports


@click.command(short_help="Try a switch against the OpenFlow specifications, section by section.")
@click.argument("switches", nargs=-1, metavar="[SWITCH]...")
@click.option("--port", "ports", multiple=True, callback=_port, help="NUMBER=INTERFACE: where a switch's port ends.")
@click.option(
    "--only", multiple=True, help="Cases whose name, feature or section contains this text; may be given again."
)
@click.option("--failures", is_flag=True, help="Tell each case that failed, and why.")
@click.option(
    "--write",
    "page",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Put the table into this page.",
)
@json_option
def conformance(
    switches: Sequence[str],
    ports: list[tuple[int, str]],
    only: Sequence[str],
    failures: bool,
    page: Path | None,
    as_json: bool,
) -> int:
    """Run the cases of OpenFlow 1.3.5 and 1.0.2 and tell how many passed of each feature.

    SWITCH is twinnet (our own), ovs (Open vSwitch's datapath in user space, in a directory of its own), tcp:HOST:PORT
    (one that listens for a controller) or ptcp:PORT (one that connects to us); the last two need four --port. Without
    one: ours, and Open vSwitch where it is installed. Exit status 1 when a case of the first switch failed.
    """
    from twinnet_conformance import all_cases
    from twinnet_conformance.open_vswitch import why_not

    chosen = list(switches) or ["twinnet", *(["ovs"] if why_not() is None else [])]
    everything = all_cases()
    for text in only:
        if not any(_has(one, text) for one in everything):
            raise click.UsageError(f'no case has "{text}" in its name, feature or section')
    cases = [one for one in everything if not only or any(_has(one, text) for text in only)]
    columns: dict[str, list[Outcome]] = {}
    for one in chosen:
        target = _target(one, ports)
        try:
            columns[target.name] = _run(cases, target)
        finally:
            target.stop()
    _tell(columns, failures, as_json)
    if page is not None:
        from twinnet_conformance.table import write_page

        write_page(page, columns)
    first = next(iter(columns.values()))
    return 1 if any(one.passed is False for one in first) else 0


def _has(case: Case, text: str) -> bool:
    return text in f"{case.identifier} {case.feature}"


def _target(name: str, ports: list[tuple[int, str]]) -> Target:
    if name == "twinnet":
        from twinnet_conformance.bare import Bare

        return Bare()
    if name == "ovs":
        from twinnet_conformance.open_vswitch import OpenVSwitch

        return OpenVSwitch()
    if name.startswith(("tcp:", "ptcp:")):
        from twinnet_conformance.remote import Remote

        return Remote(name, ports)
    raise click.UsageError(f'"{name}" is no switch: twinnet, ovs, tcp:HOST:PORT or ptcp:PORT')


def _run(cases: Sequence[Case], target: Target) -> list[Outcome]:
    from twinnet_conformance import run_case

    outcomes: list[Outcome] = []
    for number, one in enumerate(cases, 1):
        outcomes.append(run_case(one, target))
        if number % _STEP == 0 and sys.stderr.isatty():
            click.echo(f"\r{target.name}: {number} of {len(cases)} cases", err=True, nl=False)
    if sys.stderr.isatty():
        click.echo("\r\033[K", err=True, nl=False)
    return outcomes


def _tell(columns: dict[str, list[Outcome]], failures: bool, as_json: bool) -> None:
    from twinnet_conformance.table import rows

    if as_json:
        print_json({name: [_as_json(one) for one in outcomes] for name, outcomes in columns.items()})
        return
    tables = {name: rows(outcomes) for name, outcomes in columns.items()}
    first = next(iter(tables.values()))
    width = max(len(row.feature) for row in first)
    click.echo(" " * width + "".join(f"{name:>24}" for name in tables))
    for place, row in enumerate(first):
        cells = [f"{table[place].passed} of {table[place].run}" for table in tables.values()]
        click.echo(f"{row.feature:<{width}}" + "".join(f"{cell:>24}" for cell in cells))
    if failures:
        for name, outcomes in columns.items():
            for one in outcomes:
                if one.passed is False:
                    click.echo(f"{name}: {one.case.identifier}: {one.why}")


def _as_json(outcome: Outcome) -> dict[str, Any]:
    case = outcome.case
    told = {"version": case.version, "section": case.section, "feature": case.feature, "name": case.name}
    return {**told, "passed": outcome.passed, "why": outcome.why}
