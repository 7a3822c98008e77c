"""Rows of QoS and Queue (``ovs-vswitchd.conf.db(5)``), and the queues that they ask for in the lab protocol.

Rows are texts here: the keys of maps by ``column:key``, as ``ovs-vsctl`` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Refused", "ineffective", "number_of", "policer", "qos_columns", "queue_of"]

_SHALLOWEST_BURST_BYTES = 1518
_USUAL_RATE_BPS = 10**9
_LEAST_RATE_BPS = 12_000
_LAST_PRIORITY = 7
_NUMBERS = ("max-rate", "min-rate", "burst", "priority", "cir", "cbs")
"""Keys of `other_config` of QoS and Queue that are numbers to Open vSwitch, and texts to its database."""


class Refused(Exception):
    """What is asked for and our switches do not have; its text is what ``ovs-vsctl`` says."""


def queue_of(row: Mapping[str, str], queue_row: Callable[[str], Mapping[str, str]]) -> dict[str, Any]:
    """Return the queue of a port whose row of QoS is `row`; `queue_row` gives rows of the table Queue. Raises
    :class:`Refused`."""
    kind = row.get("type", "linux-htb")
    if kind == "egress-policer":
        return _policer(row)
    if kind not in ("linux-htb", "linux-hfsc"):
        raise Refused(f"a QoS of type {kind} is not there; our switches have linux-htb, linux-hfsc and egress-policer")
    ceiling = _number(row, "max-rate") or _USUAL_RATE_BPS
    queues: dict[str, Any] = {}
    for column, value in row.items():
        if column.startswith("queues:"):
            queue = queue_row(value)
            most = _number(queue, "max-rate") or ceiling
            least = min(_number(queue, "min-rate") or _LEAST_RATE_BPS, most, ceiling)
            promised: dict[str, Any] = {"min_rate_bps": least, "max_rate_bps": min(most, ceiling)}
            if (bits := _number(queue, "burst")) is not None:
                promised["burst_bytes"] = max(bits // 8, _SHALLOWEST_BURST_BYTES)
            if kind == "linux-htb" and (priority := _number(queue, "priority")) is not None:
                promised["priority"] = min(priority, _LAST_PRIORITY)
            queues[column.split(":")[1]] = promised
    queues.setdefault("0", {"min_rate_bps": min(_LEAST_RATE_BPS, ceiling), "max_rate_bps": ceiling})
    return {"kind": "htb", "rate_bps": ceiling, "queues": queues}


def _policer(row: Mapping[str, str]) -> dict[str, Any]:
    """The queue of an ``egress-policer``: `cir` bytes in a second, and a burst of `cbs` bytes; the rest is dropped."""
    rate, burst = (_number(row, name) for name in ("cir", "cbs"))
    if not rate or burst is None:
        raise Refused(f"an egress-policer needs a number in other_config:{'cbs' if rate else 'cir'}")
    return policer(8 * rate, burst)


def _number(row: Mapping[str, str], key: str) -> int | None:
    """The number in `other_config` of a row; ``None`` where it is not there or no number, as in Open vSwitch."""
    return number_of(row.get(f"other_config:{key}", ""))


def qos_columns(queue: Mapping[str, Any]) -> tuple[str, dict[str, str], dict[int, dict[str, str]]]:
    """Return type and `other_config` of the row of QoS that asks for `queue`, an HTB in the form of the lab protocol,
    and `other_config` of each of its rows of Queue, by number."""
    queues: dict[int, dict[str, str]] = {}
    for number, one in queue["queues"].items():
        burst = one.get("burst_bytes")
        told = {
            "min-rate": one.get("min_rate_bps"),
            "max-rate": one.get("max_rate_bps"),
            # Open vSwitch counts a burst in bits.
            "burst": burst * 8 if burst is not None else None,
            "priority": one.get("priority") or None,
        }
        queues[int(number)] = {key: str(value) for key, value in told.items() if value is not None}
    return "linux-htb", {"max-rate": str(queue["rate_bps"])}, queues


def number_of(text: str) -> int | None:
    """Return the number that Open vSwitch reads from a text; ``None``: it reads none."""
    return int(text) if re.fullmatch(r"[0-9]{1,20}", text) and int(text) < 1 << 63 else None


def policer(rate_bps: int, burst_bytes: int) -> dict[str, Any]:
    """Return the queue, in the form of the lab protocol, that keeps nothing back: it passes or drops."""
    queue = {"kind": "fifo", "limit_frames": 1}
    burst = max(burst_bytes, _SHALLOWEST_BURST_BYTES)
    return {"kind": "tbf", "rate_bps": rate_bps, "burst_bytes": burst, "queue": queue}


def ineffective(columns: Mapping[str, str]) -> list[str]:
    """Return what is to be said of numbers in `other_config` that are none: Open vSwitch keeps them and does as if they
    were not there."""
    return [
        f"{column}={value} is no whole number of 0 or more: it is kept and has no effect, as in Open vSwitch"
        for column, value in columns.items()
        if column.startswith("other_config:") and column.partition(":")[2] in _NUMBERS and number_of(value) is None
    ]
