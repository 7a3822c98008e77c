"""``twinnet doctor``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from twinnet.cli.output import json_option, print_json
from twinnet.report.text_table import sentence_columns, wrapped

if TYPE_CHECKING:
    from twinnet.study.capacity import Capacity

__all__ = ["can_run_labs", "carried_finding", "doctor"]

_CARRIED = "frames a second"
_LOW_FRAMES_PER_SECOND = 40_000
"""A single TCP flow of 100 Mbit/s needs 28,000."""

_NEEDED = ("user namespaces", "network namespaces", "/proc and /sys of one's own")
_ONE_OF = ("TAP interfaces", "virtual Ethernet pairs with packet sockets")


@click.command(short_help="Show what this machine can and cannot do, and the remedy.")
@json_option
def doctor(as_json: bool) -> int:
    """Try each ability that labs need. Show what works, what that means, and how to get what is missing.

    The last line is how many frames a second the machine carries, and the greatest loads of a few kinds that follow
    from it. It is measured in a small lab in about four seconds and kept for a week. `twinnet run` uses it to say which
    runs will exceed the machine. Exit status 1 when no lab can run.
    """
    from twinnet.cli.kernel_command import finding as kernel_finding
    from twinnet.errors import NotAvailable

    try:
        from twinnet import _core

        examined: Any = _core.doctor()
    except (ImportError, AttributeError):
        raise NotAvailable("this build of twinnet has no doctor", "install it again with: pip install .") from None
    findings: list[dict[str, Any]] = json.loads(examined) if isinstance(examined, str) else list(examined)
    findings.append(kernel_finding())
    if not as_json:
        for finding in findings:
            click.echo(wrapped(_in_words(finding), sentence_columns()))
    possible = can_run_labs({str(finding["ability"]): bool(finding["ok"]) for finding in findings})
    if possible:
        findings.append(_measured())
        if not as_json:
            click.echo(wrapped(_in_words(findings[-1]), sentence_columns()))
    if as_json:
        print_json(findings)
    return 0 if possible else 1


def _measured() -> dict[str, Any]:
    """Measure what the machine carries, keep it for later runs, and return it in the form of the other findings."""
    from twinnet.errors import TwinnetError
    from twinnet.study.capacity import keep, measure_capacity

    try:
        capacity = measure_capacity()
    except TwinnetError as error:
        return {"ability": _CARRIED, "ok": False, "found": str(error), "follows": "no run can be forecast"}
    return carried_finding(capacity, keep(capacity))


def carried_finding(capacity: Capacity, trouble: str) -> dict[str, Any]:
    """Return `capacity` in the form of the other findings; `trouble` is why it could not be kept, if it could not."""
    from twinnet.study.greatest_loads import greatest_loads, loads_in_words

    carried = capacity.frames_per_second
    low = carried < _LOW_FRAMES_PER_SECOND
    kept = f"it could not be kept: {trouble}" if trouble else "kept for a week"
    finding: dict[str, Any] = {
        "ability": _CARRIED,
        "ok": not low,
        "found": f"{carried:,} in and out, of any size, for seconds (for a moment "
        f"{capacity.small_frames_per_second:,} of 64 bytes, {capacity.large_frames_per_second:,} of 1470); {kept}",
        "follows": f"the machine carries, {loads_in_words(carried)}; `twinnet run` says before a study which runs need "
        "more",
        "greatest_loads": {load.kind.several: load.count for load in greatest_loads(carried)},
        "frames_per_second": {
            "any": carried,
            "64_bytes": capacity.small_frames_per_second,
            "1470_bytes": capacity.large_frames_per_second,
        },
    }
    if low:
        finding["remedy"] = "end other programs and ask again; use more cores; lower the rates, or --clock virtual"
    return finding


def _in_words(finding: dict[str, Any]) -> str:
    lines = [f"{'ok' if finding['ok'] else 'NO'}  {finding['ability']}: {finding['found']}"]
    lines += [f"      {key}: {finding[key]}" for key in ("follows", "remedy") if finding.get(key)]
    return "\n".join(lines)


def can_run_labs(abilities: dict[str, bool]) -> bool:
    """Return whether a machine with these `abilities` can run labs at all; the others only make them slower or less
    exact, or are for some labs only."""
    return all(abilities.get(one, True) for one in _NEEDED) and any(abilities.get(one, True) for one in _ONE_OF)
