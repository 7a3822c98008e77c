"""Faults for a class to find: one of many, chosen by a seed, as what the page can do to its lab."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twinnet.errors import BadValue
from twinnet.units import format_rate

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["chosen_fault", "faults_of"]

_SLOWER = 10
_SLOW_BPS = 1_000_000


def chosen_fault(lab: Lab, seed: int) -> Mapping[str, Any]:
    """Return the fault of `lab` that `seed` chooses, in the form of :meth:`twinnet.live.acts.Acts.do`: first its kind,
    then its place. The same network and seed give the same fault.

    Raises
    ------
    BadValue
        The network has nothing that could be broken.
    """
    kinds = [faults for faults in faults_of(lab).values() if faults]
    if not kinds:
        raise BadValue("the network has no link", "take one with links")
    chance = random.Random(seed)
    return chance.choice(chance.choice(kinds))


def faults_of(lab: Lab) -> dict[str, Sequence[Mapping[str, Any]]]:
    """Return all faults by their kinds: a link that is slow, loses frames, takes long or is down one way; a queue that
    is too short; a rule that drops what goes to a host, at a switch that has rules and no controller."""
    layout = lab.layout
    links = [
        (number, link)
        for number, link in enumerate(layout.links)
        if layout.link(link["a"]["node"], link["b"]["node"])[0] == number
    ]
    ways = [(number, way) for number, _ in links for way in ("ab", "ba")]
    slow: list[Mapping[str, Any]] = []
    for number, link in links:
        rate_bps = min((link[way].get("rate_bps") or _SLOWER * _SLOW_BPS) for way in ("ab", "ba"))
        slow.append(_link(number, "both", rate=format_rate(max(1, rate_bps // _SLOWER))))
    ports = [
        port["name"]
        for name in layout.names("switch")
        if layout.nodes[name].get("datapath", "own") == "own"
        for port in layout.nodes[name]["ports"]
    ]
    ruled = [
        name
        for name in layout.names("switch")
        if not layout.nodes[name].get("controllers") and lab.switch(name).dump_flows()
    ]
    addresses = [
        address.partition("/")[0]
        for host in layout.names("host")
        for port in layout.nodes[host]["ports"]
        for address in port.get("addresses") or ()
        if "." in address
    ]
    return {
        "slow": slow,
        "loss": [_link(number, way, loss="20 %") for number, way in ways],
        "delay": [_link(number, way, delay="200 ms") for number, way in ways],
        "down": [_link(number, way, up=False) for number, way in ways],
        "queue": [{"act": "queue", "port": port, "queue": "fifo,limit_frames=2"} for port in ports],
        "rule": [
            {"act": "add flow", "switch": name, "flow": f"priority=65535,ip,nw_dst={address},actions=drop"}
            for name in ruled
            for address in addresses
        ],
    }


def _link(number: int, direction: str, **settings: str | bool) -> dict[str, Any]:
    return {"act": "link", "link": number, "direction": direction, "set": settings}
