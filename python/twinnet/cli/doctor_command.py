"""``twinnet doctor``."""

from __future__ import annotations

import json
from typing import Any

import click

from twinnet.cli.output import json_option, print_json

__all__ = ["doctor"]

_SIGNS = {"ok": "ok", "warning": "!!", "missing": "NO"}


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
            click.echo(_told(finding))
    return 1 if any(finding.get("state") == "missing" for finding in findings) else 0


def _told(finding: dict[str, Any]) -> str:
    lines = [f"{_SIGNS.get(str(finding.get('state')), '??')}  {finding.get('name', '')}: {finding.get('found', '')}"]
    lines += [
        f"    {label}: {finding[key]}"
        for key, label in (("follows", "follows"), ("remedy", "remedy"))
        if finding.get(key)
    ]
    return "\n".join(lines)
