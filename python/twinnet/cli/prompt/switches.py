"""Switches at the prompt: stopped and started again, and asked as ``ovs-ofctl`` is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twinnet.cli.prompt.answer import Answer
from twinnet.errors import BadValue, did_you_mean
from twinnet.lab.flow_ports import missing_parts
from twinnet.lab.lab import Lab

__all__ = ["appctl", "dpctl", "follow", "ofctl", "switch"]

_DPCTL = ("add-flow", "del-flows", "dump-flows")
_VERSIONS = ("OpenFlow10", "OpenFlow13")
"""Values of ``-O``, which may stand there and make no difference."""


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


def ofctl(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Ask or tell one switch by its name: ``ovs-ofctl dump-flows s1``, ``ovs-ofctl add-flow s1 FLOW``."""
    action, *rest = [word for word in arguments if not word.startswith("-") and word not in _VERSIONS] or [""]
    if action not in _DPCTL or not rest:
        known = did_you_mean(action, _DPCTL, f"write: ovs-ofctl {_DPCTL[-1]} s1")
        raise BadValue(f"ovs-ofctl does not know {' '.join(arguments)!r}", known)
    name, line = rest[0], " ".join(rest[1:])
    asked = lab.switch(name)
    if action == "add-flow":
        asked.add_flow(line)
        return Answer({"added": 1}, "\n".join(filter(None, [missing_parts(lab, name, line)])))
    if action == "del-flows":
        deleted = asked.delete_flows(line)
        return Answer({"deleted": deleted}, f"{deleted} deleted")
    flows = asked.dump_flows()
    return Answer(flows, "\n".join(flows), verbatim=True)


def appctl(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Show the addresses that a switch has learnt, or have it forget them: ``ovs-appctl fdb/show s1``, ``ovs-appctl
    fdb/flush s1``."""
    if len(arguments) != 2 or arguments[0] not in ("fdb/show", "fdb/flush"):
        raise BadValue(
            f"ovs-appctl does not know {' '.join(arguments)!r}", "write: ovs-appctl fdb/show s1, or fdb/flush s1"
        )
    name = lab.switch(arguments[1]).name
    if arguments[0] == "fdb/flush":
        forgotten = lab.connection.learnt_forget(switch=name)["deleted"]
        return Answer({"forgotten": forgotten}, f"{forgotten} forgotten")
    rows = lab.connection.learnt(switch=name)
    lines = [f"{row['port']:>5}  {row['vlan']:>4}  {row['mac']}  {row['age_ps'] // 10**12:>3}" for row in rows]
    head = f"{'port':>5}  {'VLAN':>4}  {'MAC':<17}  Age"
    return Answer([dict(row) for row in rows], "\n".join([head, *lines]), verbatim=True)


def follow(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Say what each node would do with a packet: ``follow h1 h2``, ``follow h1 h2 tcp 80``."""
    said = [*arguments, *("udp", "5001")[len(arguments) - 2 :]] if 2 <= len(arguments) <= 4 else []
    if not said or not said[3].isdecimal():
        raise BadValue("follow needs a host, a host or address, a protocol and a port", "write: follow h1 h2 tcp 80")
    source, destination, protocol, port = said
    way = lab.follow(source, destination, protocol, port=int(port))
    return Answer(way.as_dict(), str(way), verbatim=True)
