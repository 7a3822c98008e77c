"""Check that each class's traffic kept to its own queue: rules' counters against queues' counters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinnet.policies.compiled import CompiledPolicy, SwitchRules
from twinnet.qos import Tbf
from twinnet.qos.queue import Queue

if TYPE_CHECKING:
    from twinnet.lab import Lab

__all__ = ["Misplaced", "misplaced_traffic"]

_COUNTED = re.compile(r"cookie=0x([0-9a-f]+),.*n_packets=([0-9]+),")


@dataclass(frozen=True)
class Misplaced:
    """Frames that a class's queues took and its rules did not send there.

    Parameters
    ----------
    switch
        The switch.
    traffic_class
        The class whose queues they are in.
    queued_frames
        What its queues at this switch took: sent, dropped and waiting.
    sent_there_frames
        What the switch's rules counted for the class.
    """

    switch: str
    traffic_class: str
    queued_frames: int
    sent_there_frames: int

    def __str__(self) -> str:
        return (
            f"{self.switch}: the queues of the class {self.traffic_class} took {self.queued_frames} frames, and its "
            f"rules sent {self.sent_there_frames} there; some belong to another class"
        )


def misplaced_traffic(lab: Lab, compiled: CompiledPolicy) -> list[Misplaced]:
    """Return where queues of a class hold other traffic than its rules put there; nothing when all is in order.

    A frame counts once by its rule and once in a queue, or in none when its port does not enforce the policy; so a
    class's queues can never have taken more than its rules counted. Frames for groups leave by several ports at once
    and are the rest's, which is therefore not judged. Counters must not have been cleared by a change of the policy.
    """
    queued: dict[tuple[str, int], dict[int, int]] = {}
    numbers = {one.port.name: (one.switch, one.port.number or 0) for one in compiled.ports}
    for port in lab.ports():
        place = numbers.get(port["port"])
        if place is not None:
            queued[place] = _taken(port.get("classes") or (), compiled.switches[place[0]].queues.get(place[1]))
    found: list[Misplaced] = []
    for name, rules in compiled.switches.items():
        if rules.queues:
            found += _of_switch(lab, name, rules, compiled, queued)
    return found


def _of_switch(
    lab: Lab,
    name: str,
    rules: SwitchRules,
    compiled: CompiledPolicy,
    queued: Mapping[tuple[str, int], Mapping[int, int]],
) -> list[Misplaced]:
    by_cookie = {rule.cookie: rule.queue for rule in rules.rules if rule.queue is not None}
    # A question of ARP or of neighbour discovery leaves by several ports.
    copies = {
        rule.cookie: len(rules.queues)
        for rule in rules.rules
        if ",arp," in rule.text or ",ipv6_dst=ff02::/16," in rule.text
    }
    counted: dict[int, int] = {}
    for line in lab.switch(name).dump_flows():
        counts = _COUNTED.search(line)
        cookie = int(counts[1], 16) if counts else 0
        number = by_cookie.get(cookie)
        if counts and number is not None:
            counted[number] = counted.get(number, 0) + int(counts[2]) * copies.get(cookie, 1)
    found: list[Misplaced] = []
    for number, one in compiled.classes.items():
        taken = sum(queued.get((name, port), {}).get(number, 0) for port in rules.queues)
        if not one.is_rest and taken > counted.get(number, 0):
            found.append(Misplaced(name, one.name, taken, counted.get(number, 0)))
    return found


def _taken(classes: Sequence[Mapping[str, Any]], queue: Queue | None) -> dict[int, int]:
    """Frames that each class of a port took, by its number; those of a shaper are the classes behind it."""
    while isinstance(queue, Tbf):
        classes, queue = classes[0].get("classes", ()) if classes else (), queue.queue
    return {
        int(one["class"]): int(one["frames"]) + sum(one["drops"].values()) + int(one["backlog"]["frames"])
        for one in classes
    }
