"""The network of a running lab as it is now, in the form of the lab protocol."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["network_now", "without_counters"]

_COUNTED = re.compile(r"(duration|n_packets|n_bytes|idle_age|hard_age)=[^,\s]*,?\s*")
_USUAL = re.compile(r"^(cookie=0x0, *)?(table=0, *)?")


def without_counters(line: str) -> str:
    """Return a line of :meth:`twinnet.lab.parts.LabSwitch.dump_flows` as the flow that it tells of."""
    return _COUNTED.sub("", line).strip().replace(" actions=", ",actions=")


def network_now(lab: Lab) -> dict[str, Any]:
    """Return the network of `lab` with its links, queues and flows as they are now: queues as this process knows them.
    Flows that controllers have given are theirs to give again."""
    spec: dict[str, Any] = dict(lab.describe())
    nodes = [dict(node) for node in spec["nodes"]]
    for node in nodes:
        if node.get("image"):
            # Where it was found is for the next lab to look up.
            node["image"] = node["image"] | {"root": None, "folder": None, "variables": {}}
        if node.get("limits"):
            node["limits"] = node["limits"] | {"groups": []}
        node["ports"] = [
            dict(port)
            | ({"queue": lab.queues_given[port["name"]].to_spec()} if port["name"] in lab.queues_given else {})
            for port in node.get("ports", ())
        ]
        if node["kind"] == "switch" and not node.get("controllers"):
            flows = map(without_counters, lab.switch(node["name"]).dump_flows())
            node["flows"] = [_USUAL.sub("", flow) for flow in flows]
    links = [
        dict(link)
        | {"up": bool(now["ab"]["up"] and now["ba"]["up"])}
        | {way: now[way]["config"] for way in ("ab", "ba")}
        for link, now in zip(spec["links"], lab.links(), strict=True)
    ]
    return spec | {"nodes": nodes, "links": links}
