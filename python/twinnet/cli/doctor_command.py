"""``twinnet doctor``."""

from __future__ import annotations

import json
from typing import Any

import click

from twinnet.cli.output import json_option, print_json
from twinnet.report.text_table import terminal_columns, wrapped

__all__ = ["doctor"]

_NEEDED = ("user namespaces", "network namespaces", "/proc and /sys of one's own")
_ONE_OF = ("TAP interfaces", "virtual Ethernet pairs with packet sockets")


@click.command(short_help="Tell what this machine can and cannot do, and the remedy.")
@json_option
def doctor(as_json: bool) -> int:
    """Try each ability that labs need by using it, and tell what follows and the remedy.

    Exit status 1 when no lab can run on this machine.
    """
    from twinnet.errors import NotAvailable

    try:
        from twinnet import _core

        examined: Any = _core.doctor()
    except (ImportError, AttributeError):
        raise NotAvailable("this build of twinnet has no doctor", "install it again with: pip install .") from None
    findings: list[dict[str, Any]] = json.loads(examined) if isinstance(examined, str) else list(examined)
    if as_json:
        print_json(findings)
    else:
        for finding in findings:
            click.echo(wrapped(_told(finding), terminal_columns()))
    return 0 if can_run_labs({str(finding["ability"]): bool(finding["ok"]) for finding in findings}) else 1


def _told(finding: dict[str, Any]) -> str:
    lines = [f"{'ok' if finding['ok'] else 'NO'}  {finding['ability']}: {finding['found']}"]
    lines += [f"      {key}: {finding[key]}" for key in ("follows", "remedy") if finding.get(key)]
    return "\n".join(lines)


def can_run_labs(abilities: dict[str, bool]) -> bool:
    """Return whether a machine with these `abilities` can run labs at all; the others only make them slower or less
    exact, or are for some labs only."""
    return all(abilities.get(one, True) for one in _NEEDED) and any(abilities.get(one, True) for one in _ONE_OF)
