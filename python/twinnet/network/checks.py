"""Checks of single values that a network is given."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false, reportUnnecessaryComparison=false

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from twinnet.errors import BadTopology, BadValue, PortInUse
from twinnet.network import addressing
from twinnet.network.link_settings import direction_spec
from twinnet.network.nodes import Switch
from twinnet.network.tunnels import Tunnel
from twinnet.ranges import is_whole

__all__ = [
    "MOST_FABRIC_THREADS",
    "checked_fabric_threads",
    "checked_routes",
    "checked_seed",
    "checked_sysctls",
    "flag",
    "one_way",
    "same_tunnel",
    "switch_port_number",
]

_SYSCTL = re.compile(r"net(\.[A-Za-z0-9_-]+)+\Z")
_PORT_LIMIT = 0xFF00 - 1
_SEED_LIMIT = (1 << 64) - 1
MOST_FABRIC_THREADS = 64
"""The most threads that may move one network."""


def one_way(settings: Mapping[str, Any] | None, what: str) -> dict[str, Any]:
    """Return the settings of one direction as the lab protocol has them."""
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise BadValue(f"{what} is {settings!r}", f'give a mapping, for example {what}={{"rate": "1 Mbit"}}')
    if "up" in settings:
        raise BadValue(f"{what} cannot be up or down: a link is up or down as a whole", "give up to the link")
    return direction_spec(settings)


def switch_port_number(switch: Switch, number: int | None, end: str) -> int:
    """Return the OpenFlow number of a new port of `switch`: `number`, or the next free one when it is ``None``."""
    taken = switch.port_numbers
    if number is None:
        # The search begins past the ports that exist: a switch without chosen numbers finds its next one at once.
        free = (n for n in range(len(taken) + 1, len(taken) * 2 + 2) if n not in taken)
        number = next(free)
        if number > _PORT_LIMIT:
            raise BadTopology(f"{switch.name} has {len(taken)} ports; OpenFlow allows {_PORT_LIMIT}")
    if not is_whole(number, 1, _PORT_LIMIT):
        raise BadValue(f"port_{end} is {number!r}; allowed are whole numbers from 1 to {_PORT_LIMIT}")
    if number in taken:
        raise PortInUse(f"port {number} of {switch.name} has a link already", f"choose another port_{end}")
    return number


def same_tunnel(one: Tunnel, other: Tunnel) -> bool:
    """Return whether frames of one tunnel could be taken for those of the other."""
    return (one.kind, one.identifier, one.remote, one.port) == (other.kind, other.identifier, other.remote, other.port)


def checked_seed(seed: object) -> int:
    """Return `seed`; raises `BadValue` unless it is a whole number of 64 bits."""
    if not is_whole(seed, 0, _SEED_LIMIT):
        raise BadValue(f"the seed is {seed!r}; allowed are whole numbers from 0 to 2^64 - 1")
    return seed


def checked_fabric_threads(threads: object) -> int | Literal["auto"]:
    """Return `threads`; raises `BadValue` unless it is ``auto`` or a number of threads that a lab may have."""
    if threads == "auto":
        return "auto"
    if not is_whole(threads, 1, MOST_FABRIC_THREADS):
        raise BadValue(
            f"fabric_threads is {threads!r}; allowed are 'auto' and whole numbers from 1 to {MOST_FABRIC_THREADS}"
        )
    return threads


def flag(value: object, what: str) -> bool:
    """Return `value`, which `what` was given; raises `BadValue` unless it is True or False."""
    if not isinstance(value, bool):
        raise BadValue(f"{what} is {value!r}; allowed are True and False")
    return value


def checked_routes(routes: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return `routes` in their usual spelling; raises `BadValue`."""
    checked: list[tuple[str, str]] = []
    for route in routes:
        if isinstance(route, str) or len(route) != 2:
            raise BadValue(f"the route {route!r} is not destination and next hop", 'write ("10.2.0.0/16", "10.1.0.1")')
        destination = addressing.network_prefix(route[0])
        checked.append((destination, addressing.next_hop(route[1], destination)))
    return checked


def checked_sysctls(sysctls: Mapping[str, str | int] | None) -> dict[str, str]:
    """Return `sysctls` as text; raises `BadValue` for one that is not a host's own."""
    checked: dict[str, str] = {}
    for key, value in (sysctls or {}).items():
        if not isinstance(key, str) or not _SYSCTL.match(key):
            raise BadValue(f"the sysctl {key!r} is not under net.", "only a host's own network settings can be given")
        checked[key] = str(int(value)) if isinstance(value, bool) else str(value)
    return checked
