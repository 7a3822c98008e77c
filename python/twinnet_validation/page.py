"""The page docs/explanation/validation.md."""

from __future__ import annotations

from collections.abc import Sequence

from twinnet_validation.figures import CUBIC_FIGURE, WAIT_FIGURE
from twinnet_validation.table import HEAD, Finding, cells

__all__ = ["INTRODUCTION", "page"]

INTRODUCTION = """\
# True to theory

`twinnet validate --markdown docs/explanation/validation.md` (`make validate`) writes this page. Every number comes from
a run on the virtual clock, with the same engine, queue disciplines, impairments and TCP as any simulation. The seeds
are fixed, so the same version gives the same numbers on every machine.

**How a row is judged.** Where a result is random, it has a 99.9 % confidence interval in brackets, and the value of the
theory must lie in it. (With 95 %, about two of forty correct rows would be refused.) The waits of successive frames are
correlated. So the interval comes from the means of 30 batches, each many times as long as the queue's memory: at a load
of 0.95, the memory is about 1/(1 - sqrt(load))^2 = 1560 service times, a fortieth of a batch. The table shows how much
neighbouring batches still correlate. With 30 batches, a correlation below 0.6 is not significant at the same level.
Where nothing is random, the result must be equal to the picosecond, or the table gives a reason for the tolerance.

**How the queueing laws are tested.** One port of the fabric (queue discipline, serialiser and line) gets arrivals and
sizes from named random streams (`crates/fabric/src/theory`). The formulas are in `python/twinnet_validation`, which
does not use the engine. TCP and UDP run between model hosts, as in any lab.

**How verdicts are tested.** The last table draws the values of runs, with a known truth, and needs no engine either.

[Another page](tcp-beside-linux.md) compares the model's TCP with Linux's own, on a grid of paths.

"""

_FIGURES = {
    "single-server": (WAIT_FIGURE, "Mean wait over load: formulas as lines, what was seen as points."),
    "cubic-window": (CUBIC_FIGURE, "The window of one CUBIC flow, and RFC 9438's curve after each loss."),
}


def page(findings: Sequence[Finding], quick: bool = False) -> str:
    """Return the page; one of the short form says so."""
    parts = [INTRODUCTION]
    if quick:
        parts.append("This is the short form (`--quick`).\n")
    every = [row for _, rows in findings for row in rows]
    parts.append(f"**{sum(row.passed for row in every)} of {len(every)} rows hold.**\n")
    for law, rows in findings:
        parts.append(
            f"## {law.title}\n\n{law.physics}\n\nSource: {law.source}. Alone: `twinnet validate --only {law.name}`.\n"
        )
        if law.name in _FIGURES:
            name, caption = _FIGURES[law.name]
            parts.append(f"![{caption}](../images/{name})\n")
        lines = [_line(HEAD), _line(["---"] * len(HEAD)), *(_line(cells(row)) for row in rows)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", r"\|") for text in texts) + " |"
