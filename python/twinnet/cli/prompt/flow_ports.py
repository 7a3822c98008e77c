"""What a flow sends to ports that its switch does not have: the switch takes such a flow, and its frames go nowhere."""

from __future__ import annotations

import re

from twinnet.lab.lab import Lab

__all__ = ["missing_ports"]

_OUTPUT = re.compile(r"(?:(?:^|,)(?:output:|enqueue:)?)(\d+)(?=[,:]|$)")


def missing_ports(lab: Lab, switch: str, flow: str) -> str:
    """Say which ports of `flow` (in ``ovs-ofctl`` syntax) `switch` does not have; nothing when it has all."""
    actions = flow.partition("actions=")[2].replace(" ", "")
    # What stands in brackets are arguments: resubmit(,1) names a table.
    plain = re.sub(r"\([^()]*\)", "", actions)
    known = {int(port["number"]) for port in lab.layout.node(switch, "switch")["ports"]}
    missing = sorted({int(number) for number in _OUTPUT.findall(plain)} - known)
    if not missing:
        return ""
    few = ", ".join(str(number) for number in missing)
    has = ", ".join(str(number) for number in sorted(known)) or "none"
    return f"{switch} has no port {few} (its ports: {has}): what the flow sends there is dropped"
