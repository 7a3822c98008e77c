"""Frames that went round in a loop of switches until they ended at the hop limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["circled_frames", "told_of_circles"]


def circled_frames(rows: Iterable[Mapping[str, Any]]) -> int:
    """Return how many frames ended at the hop limit; `rows` are those of the ports (``lab.ports()``)."""
    return sum(int(row["counters"]["dropped_loop"]) for row in rows)


def told_of_circles(frames: int) -> str:
    """Say that so many frames ended at the hop limit, and what helps."""
    return (
        f"frames circle: {frames:,} ended at the hop limit of 255 switches. Rules or a controller flood round a loop: "
        "set no-flood at a port of it, or have a spanning tree (docs/explanation/loops.md)"
    )
