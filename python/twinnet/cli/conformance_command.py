"""``twinnet conformance``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from twinnet.cli.apart import need_apart
from twinnet.cli.output import json_option, print_json
from twinnet.shown_text import bare

if TYPE_CHECKING:
    from twinnet_conformance import Outcome
    from twinnet_conformance.outcome import Named
    from twinnet_conformance.target import Target

__all__ = ["conformance"]

Tried = TypeVar("Tried", bound="Named")
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


@click.command(short_help="Test a switch against the OpenFlow specifications, section by section.")
@click.argument("switches", nargs=-1, metavar="[SWITCH]...")
@click.option(
    "--port",
    "ports",
    multiple=True,
    callback=_port,
    metavar="NUMBER=INTERFACE",
    help="Interface of this machine on which a port of the switch ends; once for each port.",
)
@click.option(
    "--suite",
    type=click.Choice(["twinnet", "os-ken"]),
    default="twinnet",
    show_default=True,
    help="twinnet's own cases, or the switch tests of the installed package os-ken.",
)
@click.option(
    "--tester",
    type=click.Choice(["twinnet", "ovs"]),
    help="Switch that sends and receives the test frames of the suite os-ken.",
)
@click.option(
    "--only",
    multiple=True,
    help="Run only cases whose name, feature or section contains this text; may be given again.",
)
@click.option("--failures", is_flag=True, help="Print each case that failed or was skipped, with the reason.")
@click.option(
    "--write",
    "page",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Write the table into this Markdown page.",
)
@json_option
def conformance(
    switches: Sequence[str],
    ports: list[tuple[int, str]],
    suite: str,
    tester: str | None,
    only: Sequence[str],
    failures: bool,
    page: Path | None,
    as_json: bool,
) -> int:
    """Run the cases of OpenFlow 1.3.5 and 1.0.2 and show how many passed for each feature.

    SWITCH is twinnet (our own), ovs (Open vSwitch's datapath in user space, in a directory of its own), tcp:HOST:PORT
    (one that listens for a controller) or ptcp:PORT (one that connects to us); the last two need four --port. Without
    one: ours, and Open vSwitch where it is installed. Exit status 1 when a case of the first switch failed.

    With --suite os-ken the cases are those that the authors of Ryu wrote for both versions: the tester, another switch
    of ours unless --tester says otherwise, sends over three cables and listens. Cases that are wrong themselves are
    left out, and --failures shows why.

    Needs the package twinnet-conformance.
    """
    need_apart("twinnet_conformance")
    from twinnet_conformance.open_vswitch import why_not

    if suite == "twinnet" and tester is not None:
        raise click.UsageError("--tester belongs to --suite os-ken: cases of ours need none")
    chosen = list(switches) or ["twinnet", *(["ovs"] if why_not() is None else [])]
    columns: dict[str, list[Outcome]] = {}
    for one in chosen:
        name, outcomes = _run_own(one, ports, only) if suite == "twinnet" else _run_os_ken(one, ports, only, tester)
        columns[name] = outcomes
    _tell(columns, failures, as_json)
    if page is not None:
        from twinnet_conformance.table import write_page

        write_page(page, columns)
    first = next(iter(columns.values()))
    return 1 if any(one.passed is False for one in first) else 0


def _chosen(everything: Sequence[Tried], only: Sequence[str]) -> list[Tried]:
    """Return the cases that have one of the texts, all without any."""
    for text in only:
        if not any(_has(one, text) for one in everything):
            raise click.UsageError(f'no case has "{text}" in its name, feature or section')
    return [one for one in everything if not only or any(_has(one, text) for text in only)]


def _has(case: Named, text: str) -> bool:
    return text in f"{case.identifier} {case.feature}"


def _run_own(switch: str, ports: list[tuple[int, str]], only: Sequence[str]) -> tuple[str, list[Outcome]]:
    from twinnet_conformance import all_cases, run_cases

    cases = _chosen(all_cases(), only)
    target = _target(switch, ports)
    try:
        return target.name, _counted(target.name, len(cases), run_cases(cases, target))
    finally:
        target.stop()


def _run_os_ken(
    switch: str, ports: list[tuple[int, str]], only: Sequence[str], tester: str | None
) -> tuple[str, list[Outcome]]:
    from twinnet_conformance.os_ken import all_tests, run_tests, why_not
    from twinnet_conformance.os_ken.pair import paired

    reason = why_not()
    if reason is not None:
        raise click.ClickException(reason)
    tests = _chosen(all_tests(), only)
    with ExitStack() as stack:
        ends: list[Target] = []
        # Two switches of ours stand in one fabric, which passes on enough frames for tests that measure a rate.
        if (switch, tester or "twinnet") != ("twinnet", "twinnet"):
            for name in (switch, tester or "twinnet"):
                ends.append(_target(name, ports))
                stack.callback(ends[-1].stop)
        name = ends[0].name if ends else switch
        return name, _counted(name, len(tests), run_tests(tests, paired(ends)))


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


def _counted(name: str, total: int, outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the outcomes, and tell meanwhile how far it is."""
    seen: list[Outcome] = []
    for number, one in enumerate(outcomes, 1):
        seen.append(one)
        if number % _STEP == 0 and sys.stderr.isatty():
            click.echo(f"\r{name}: {number} of {total} cases", bare(sys.stderr), nl=False)
    if sys.stderr.isatty():
        click.echo("\r\033[K", bare(sys.stderr), nl=False)
    return seen


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
                if not one.passed:
                    left_out = "left out: " if one.passed is None else ""
                    click.echo(f"{name}: {left_out}{one.case.identifier}: {one.why}")


def _as_json(outcome: Outcome) -> dict[str, Any]:
    case = outcome.case
    named = {"version": case.version, "section": case.section, "feature": case.feature, "name": case.name}
    return {**named, "passed": outcome.passed, "why": outcome.why}
