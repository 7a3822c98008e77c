"""Reports of receivers without what rests on the difference of two clocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["without_delays"]

_BELOW_ZERO = "one-way delays were below zero"


def without_delays(flow: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report `flow` of a receiver without all that rests on the difference of two clocks.
    Jitter and delay variation of the whole flow stay: an offset does not change them."""
    left: dict[str, Any] = {
        name: value for name, value in flow.items() if name not in ("delay_ps", "delays_below_zero")
    }
    left["errors"] = [error for error in flow.get("errors") or () if _BELOW_ZERO not in error]
    intervals: dict[str, Any] = flow.get("intervals") or {}
    times: dict[str, Any] = intervals.get("times_ps") or {}
    if times:
        known = {name: value for name, value in times.items() if not name.startswith("delay")}
        left["intervals"] = {**intervals, "times_ps": known}
    samples: dict[str, Any] = flow.get("samples") or {}
    if samples:
        left["samples"] = {**samples, "sent_ps": [None] * len(samples.get("sent_ps") or ())}
    return left
