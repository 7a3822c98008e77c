"""What a flow says of ports, queues, groups and meters that its switch does not have: the switch takes such a flow, and
it has no effect, or another one than was meant."""

from __future__ import annotations

import re
from collections.abc import Iterable

from twinnet.lab.lab import Lab

__all__ = ["missing_parts"]

_OUTPUT = re.compile(r"(?:(?:^|,)(?:output:|enqueue:)?)(\d+)(?=[,:]|$)")
_IN_PORT = re.compile(r"(?:^|,)in_port=(\d+)(?=,|$)")
_QUEUE = re.compile(r"(?:set_queue:|enqueue:\d+:)(\d+)")
_RESERVED = 0xFF00
_DROPPED, _NOT_METERED = "such frames are dropped", "such frames are not metered"


def missing_parts(lab: Lab, switch: str, flow: str) -> str:
    """Say which ports, queues, groups and meters of `flow` (in ``ovs-ofctl`` syntax) `switch` does not have; nothing:
    it has all."""
    match, _, actions = flow.replace(" ", "").partition("actions=")
    # What stands in brackets are arguments: resubmit(,1) names a table.
    plain = re.sub(r"\([^()]*\)", "", actions)
    ports = {int(port["number"]): str(port["name"]) for port in lab.layout.node(switch, "switch")["ports"]}
    said: list[str] = []
    for numbers, what in (
        (_OUTPUT.findall(plain), "what the flow sends there is dropped"),
        (_IN_PORT.findall(match), "no frame comes from there"),
    ):
        absent = sorted({int(number) for number in numbers if int(number) < _RESERVED} - set(ports))
        if absent:
            said.append(f"{switch} has no port {_listed(absent)} (its ports: {_listed(ports)}): {what}")
    wanted = {int(number) for number in _QUEUE.findall(actions)}
    if wanted and lab.switch(switch).open_vswitch is None:
        classes = [one for row in lab.ports() if row["port"] in ports.values() for one in row.get("classes", ())]
        known = {0} | {int(str(one["class"])) for one in classes}
        if absent := sorted(wanted - known):
            missing = f"no port of {switch} has queue {_listed(absent)} (queues: {_listed(known)})"
            said.append(f"{missing}: such frames wait in queue 0")
    groups, meters = (_named(what, actions) for what in ("group", "meter"))
    if groups or meters:
        there = lab.connection.groups(switch=switch)
        if absent := sorted(groups - (known := {row["group"] for row in there["groups"]})):
            said.append(f"{switch} has no group {_listed(absent)} (its groups: {_listed(known)}): {_DROPPED}")
        if absent := sorted(meters - (known := {row["meter"] for row in there["meters"]})):
            said.append(f"{switch} has no meter {_listed(absent)} (its meters: {_listed(known)}): {_NOT_METERED}")
    return "; ".join(said)


def _named(what: str, actions: str) -> set[int]:
    return {int(number) for number in re.findall(rf"(?:^|,|\(){what}:(\d+)", actions)}


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(str(number) for number in sorted(numbers)) or "none"
