"""Faults for a class to find: one of many, chosen by a seed, as what the page can do to its lab."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twinnet.errors import BadValue
from twinnet.lab.network_now import without_counters
from twinnet.units import format_rate

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["chosen_fault", "faults_of"]

_SLOWER = 10
_SLOW_BPS = 1_000_000
_NO_MATCH = ("cookie=", "table=", "priority=", "idle_", "hard_", "send_flow_rem", "importance=", "reset_counts")
"""How those words of a flow begin that are no part of its match."""
_PART_OF = {"tcp": "ip", "udp": "ip", "icmp": "ip", "sctp": "ip"} | {
    f"{name}6": "ipv6" for name in ("tcp", "udp", "icmp", "sctp")
}
"""Names of protocols, and of what they are a part."""


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
    is too short; and at a switch that has rules and no controller a rule that drops what goes to a host, or one of its
    rules that is missing."""
    layout = lab.layout
    ways = [(number, way) for number in range(len(layout.links)) for way in ("ab", "ba")]
    slow: list[Mapping[str, Any]] = []
    for number, link in enumerate(layout.links):
        rate_bps = min((link[way].get("rate_bps") or _SLOWER * _SLOW_BPS) for way in ("ab", "ba"))
        slow.append(_link(number, "both", rate=format_rate(max(1, rate_bps // _SLOWER))))
    ports = [
        port["name"]
        for name in layout.names("switch")
        if layout.nodes[name].get("datapath", "own") == "own"
        for port in layout.nodes[name]["ports"]
    ]
    dumped = {
        name: lab.switch(name).dump_flows()
        for name in layout.names("switch")
        if not layout.nodes[name].get("controllers")
    }
    ruled = {name: flows for name, flows in dumped.items() if flows}
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
        "missing": [
            {"act": "delete flows", "switch": name, "match": match}
            for name, flows in ruled.items()
            for match in _matches_of_one(flows)
        ],
    }


def _matches_of_one(flows: Sequence[str]) -> list[str]:
    """The matches of those `flows` that can be deleted alone: by a match all are deleted that it covers."""
    rules = [_parts(flow) for flow in flows]
    return [
        ",".join([f"table={table}", *parts])
        for table, parts in rules
        if not any("/" in part for part in parts)
        and sum(other == table and _covers(parts, those) for other, those in rules) == 1
    ]


def _parts(flow: str) -> tuple[str, Sequence[str]]:
    """The table of a flow as a switch tells it, and the parts of its match."""
    words = without_counters(flow).partition("actions=")[0].replace(" ", "").split(",")
    table = next((word.removeprefix("table=") for word in words if word.startswith("table=")), "0")
    return table, [word for word in words if word and not word.startswith(_NO_MATCH)]


def _covers(parts: Sequence[str], others: Sequence[str]) -> bool:
    """Whether a match of `parts`, none of which has a mask, covers one of `others`."""
    return set(parts) <= {*others, *(_PART_OF[part] for part in others if part in _PART_OF)}


def _link(number: int, direction: str, **settings: str | bool) -> dict[str, Any]:
    return {"act": "link", "link": number, "direction": direction, "set": settings}
