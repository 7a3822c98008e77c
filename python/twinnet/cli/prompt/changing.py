"""Prompt commands that change links, queues and flows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twinnet.cli.prompt.answer import Answer
from twinnet.errors import BadValue, did_you_mean
from twinnet.lab.flow_ports import missing_parts
from twinnet.lab.lab import Lab
from twinnet.network.link_settings import MAY_BE_NONE, SETTINGS
from twinnet.qos.queue_text import queue_from_text

__all__ = ["flow", "link", "link_settings", "queue"]

_LINK_USAGE = "write: link s1 h1 up|down, or link s1 h1 delay 10ms rate 5Mbit loss 1% queue codel"


def link(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Change a link while it runs; all settings of one line take effect together."""
    if len(arguments) < 3:
        raise BadValue("link needs two nodes, or two interfaces, and what to set", _LINK_USAGE)
    a, b, *words = arguments
    settings = link_settings(words)
    direction = settings.pop("direction", "both")
    chosen, line = lab.link(a, b), {name: value for name, value in settings.items() if name != "queue"}
    queue = queue_from_text(settings["queue"]) if "queue" in settings else None
    if line or queue is None:
        chosen.set(direction, **line)
    if queue is not None:
        chosen.set_queue(queue, direction)
    return Answer({"link": [a, b], "direction": direction, "set": settings})


def link_settings(words: Sequence[str]) -> dict[str, Any]:
    """Return the settings in `words`: ``up``, ``down``, or names each followed by a value, which may have a space in
    it.

    Examples
    --------
    >>> link_settings(["delay", "10", "ms", "rate", "5Mbit", "up"])
    {'delay': '10 ms', 'rate': '5Mbit', 'up': True}
    """
    known = (*SETTINGS, "direction", "queue")
    settings: dict[str, Any] = {}
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in ("up", "down"):
            settings["up"] = word == "up"
            continue
        if word not in known:
            raise BadValue(f"a link has no setting {word!r}: {did_you_mean(word, known)}", _LINK_USAGE)
        value: list[str] = []
        while at < len(words) and words[at] not in (*known, "up", "down"):
            value.append(words[at])
            at += 1
        if not value:
            raise BadValue(f"{word} has no value", _LINK_USAGE)
        settings[word] = _value(word, " ".join(value))
    return settings


def _value(name: str, text: str) -> Any:
    if name == "reorder":
        return {"on": True, "true": True, "off": False, "false": False}.get(text, text)
    if text in ("none", "unlimited") and name in MAY_BE_NONE:
        return None
    return text


def queue(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Give a port of a switch another queue; what waits moves into it."""
    if len(arguments) != 2:
        raise BadValue("queue needs an interface and a queue", "write for example: queue s1-eth1 codel,target=5ms")
    port, text = arguments
    node, _ = lab.layout.port(port)
    given = queue_from_text(text, f"queue {port} ")
    lab.switch(node).set_queue(port, given)
    return Answer({"port": port, "queue": given.to_spec()})


def flow(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Add or delete flows of a switch, in ``ovs-ofctl`` syntax."""
    usage = "write: flow s1 add priority=10,ip,actions=flood, or: flow s1 del [MATCH]"
    if len(arguments) < 2:
        raise BadValue("flow needs a switch and add or del", usage)
    switch, action, *words = arguments
    line = " ".join(words)
    if action == "add" and line:
        lab.switch(switch).add_flow(line)
        return Answer({"added": 1}, missing_parts(lab, switch, line))
    if action == "del":
        deleted = lab.switch(switch).delete_flows(line)
        return Answer({"deleted": deleted}, f"{deleted} deleted")
    raise BadValue(f"flow {switch} {action!r} is not understood", usage)
