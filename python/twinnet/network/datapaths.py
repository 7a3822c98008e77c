"""The datapaths of a switch, which are the fabric or one of Open vSwitch's two, and the limits of each."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Sequence

from twinnet.errors import BadQueue, BadValue
from twinnet.network.flow_syntax import checked_flow
from twinnet.qos.queue import Queue
from twinnet.settings import Word

__all__ = ["DATAPATH", "KIND", "checked_datapath", "checked_flows", "checked_queue"]

KIND = Word(words=("own", "ovs"))
"""The kinds of switches: a part of the fabric, or Open vSwitch."""
DATAPATH = Word(words=("system", "netdev"))
"""The datapaths of Open vSwitch: the kernel's module, or user space."""
_WITH_CLASSES = ("htb", "priority", "drr", "cbq")
_REMEDY = "use tn.qos.Htb with datapath='system', a queue without classes, or kind='own'"


def checked_datapath(name: str, kind: str, datapath: str | None, delay_ps: int) -> str:
    """Return what moves the frames of the switch `name`: ``own``, ``system`` or ``netdev``.

    Raises
    ------
    BadValue
        When the two contradict each other, or Open vSwitch is to have a processing delay.
    """
    if KIND.read(kind, f"the kind of {name}") == "own":
        if datapath is not None:
            raise BadValue(f"{name} has a datapath but is not Open vSwitch", 'give kind="ovs" too, or no datapath')
        return "own"
    moved_by = "netdev" if datapath is None else DATAPATH.read(datapath, f"the datapath of {name}")
    if delay_ps:
        raise BadValue(f"{name} is Open vSwitch: its processing delay cannot be set", "give the delay to its links")
    return moved_by


def checked_flows(name: str, datapath: str, flows: Sequence[str]) -> tuple[str, ...]:
    """Return `flows`, checked as far as can be without the switch: Open vSwitch knows more of them than we do."""
    if isinstance(flows, str) or not all(isinstance(flow, str) for flow in flows):
        raise BadValue(f"the flows of {name} are not a list of lines", 'write for example flows=["actions=flood"]')
    if datapath == "own":
        return tuple(checked_flow(flow) for flow in flows)
    for flow in flows:
        if "\n" in flow or not flow.strip():
            raise BadValue(f"the flow {flow!r} of {name} is not one line", "write one flow a line")
    return tuple(flows)


def checked_queue(where: str, datapath: str, queue: Queue | None) -> None:
    """Raise `BadQueue` when the classes of `queue` could not be reached by ``set_queue`` and ``enqueue``."""
    if queue is None or datapath == "own":
        return
    described = queue.to_spec()
    if described["kind"] == "htb" and datapath == "system":
        inner = sorted(number for number, one in described["queues"].items() if one.get("queue") is not None)
        if inner:
            raise BadQueue(
                f"queue {inner[0]} at {where} has a queue of its own, which Open vSwitch's linux-htb cannot have",
                "leave it away: the kernel's default for an HTB class is a FIFO",
            )
        return
    while described is not None and described["kind"] == "tbf":
        described = described.get("queue")
    if described is None or described["kind"] not in _WITH_CLASSES:
        return
    if datapath == "system":
        raise BadQueue(
            f"at {where}, which is Open vSwitch's kernel datapath, the only queue with classes is tn.qos.Htb", _REMEDY
        )
    raise BadQueue(
        f"at {where} no class could be chosen: Open vSwitch's userspace datapath sends its frames without the queue "
        "numbers of set_queue and enqueue",
        _REMEDY,
    )
