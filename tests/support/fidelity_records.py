"""A lab's record of itself in a run that nothing disturbed, in the form of the lab protocol, and how to change it."""

from __future__ import annotations

from typing import Any

from fidelity_sources import SOURCES

__all__ = ["TIMES", "good", "put"]

TIMES = ("fabric_waited", "agent_waited", "programs_waited", "throttled", "memory_pressure")
"""What the machine takes away, each with its worst second."""
_S_PS = 10**12


def good() -> dict[str, Any]:
    def line() -> dict[str, Any]:
        return {"port": "s1-eth1", "lateness_ns": {"count": 900}}

    return {
        "elapsed_ps": 2 * _S_PS,
        "handed_over": 2000,
        "lateness_ns": {"count": 2000},
        "traffic": {"moving_ps": 2 * _S_PS},
        "pauses": {},
        "busiest_line": {"port": "s1-eth1", "share": 0.0},
        "lines": [line()],
        "worst_lines": {name: line() for name in ("missing", "worst_second", "latest", "late_frames")},
        "agent": {
            "timers": 500,
            "waited_s": 0.0,
            "lateness_ns": {},
            "pauses": {"worst_second_over_ps": [[10**9, 0], [125 * 10**7, 0], [10**10, 0]]},
        },
        "machine": {name: {} for name in TIMES}
        | {
            "programs_waited": {"worst_window": {}, "late_turns": {}},
            "programs_held": {},
        },
        "programs": {"stops": {}, "dropped_datagrams": {}, "read_datagrams": {}},
        "controllers": {},
        "cores": 2,
        "sources": dict(SOURCES),
    }


def put(record: dict[str, Any], path: str, value: Any, add: bool = False) -> None:
    """Put `value` at `path` of `record`, or add it to what is there."""
    *way, last = path.split(".")
    at: Any = record
    for name in way:
        at = at[int(name)] if isinstance(at, list) else at[name]
    key: Any = int(last) if isinstance(at, list) else last
    at[key] = value if not add else value + (at[key] if isinstance(at, list) else at.get(key, 0))
