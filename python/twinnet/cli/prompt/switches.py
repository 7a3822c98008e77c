"""Switches at the prompt: stopped and started again, and asked as ``ovs-ofctl`` is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twinnet.cli.prompt.answer import Answer
from twinnet.cli.prompt.flow_ports import missing_parts
from twinnet.errors import BadValue, did_you_mean
from twinnet.lab.lab import Lab

__all__ = ["dpctl", "switch"]

_DPCTL = ("add-flow", "del-flows", "dump-flows")


def switch(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Take all links of a switch down, or up again: ``switch s1 stop|start``."""
    usage = "write: switch s1 stop, or: switch s1 start"
    if len(arguments) != 2 or arguments[1] not in ("stop", "start"):
        raise BadValue("switch needs a switch, and stop or start", usage)
    name, action = arguments
    neighbours = lab.switch(name).set_links(action == "start")
    state = "up" if action == "start" else "down"
    data = {"switch": name, "links": neighbours, "up": action == "start"}
    return Answer(data, f"the links of {name} to {', '.join(neighbours)} are {state}")


def dpctl(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Ask or tell every switch: ``dpctl dump-flows``, ``dpctl add-flow FLOW``, ``dpctl del-flows [MATCH]``."""
    if not arguments or arguments[0] not in _DPCTL:
        known = did_you_mean(arguments[0], _DPCTL) if arguments else f"write: dpctl {_DPCTL[-1]}"
        raise BadValue(f"dpctl does not know {' '.join(arguments[:1])!r}", f"{known}; for the rest: sh ovs-ofctl")
    action, line = arguments[0], " ".join(arguments[1:])
    data: dict[str, Any] = {}
    lines: list[str] = []
    for name in lab.layout.names("switch"):
        asked = lab.switch(name)
        if action == "add-flow":
            asked.add_flow(line)
            data[name] = {"added": 1}
            lines += filter(None, [missing_parts(lab, name, line)])
        elif action == "del-flows":
            data[name] = {"deleted": asked.delete_flows(line)}
            lines.append(f"{name}: {data[name]['deleted']} deleted")
        else:
            data[name] = asked.dump_flows()
            lines += [f"*** {name}", *(f" {flow}" for flow in data[name])]
    return Answer(data, "\n".join(lines), verbatim=True)
