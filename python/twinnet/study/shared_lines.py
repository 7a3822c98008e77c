"""The lines that flows share, and what each flow gets of them: max-min fair, as far as it asks for it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinnet.network.network import Network
from twinnet.network.nodes import Host, Link, Switch
from twinnet.qos.queue import optional_spec

__all__ = ["Line", "Way", "Ways", "fair_shares"]

Line = tuple[int, str]
"""The link's index, and the direction `ab` or `ba`."""


@dataclass(frozen=True)
class Way:
    """The path of frames from one host to another.

    Parameters
    ----------
    lines
        The lines in their order.
    nodes
        The names of the nodes between the two hosts.
    mtu
        The least on the way, in bytes.
    """

    lines: tuple[Line, ...]
    nodes: tuple[str, ...]
    mtu: int


class Ways:
    """The ways with the fewest links through `network`, over links that are up; where several are as short, the one
    over the links that were made first.

    Attributes
    ----------
    rates_bps
        What each line carries in bits per second: its rate, or that of the scheduler before it where that is less;
        nothing for lines without a rate.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.rates_bps: dict[Line, float] = {}
        self._into: dict[str, list[tuple[str, Line, Link]]] = {name: [] for name in network.nodes}
        self._trees: dict[str, dict[str, tuple[str, Line, Link]]] = {}
        for link in network.links:
            for way, near, far, settings in (("ab", link.a, link.b, link.ab), ("ba", link.b, link.a, link.ba)):
                line = (link.index, way)
                queue: Mapping[str, Any] = optional_spec(near.queue) or {}
                known = [float(one) for one in (settings.get("rate_bps"), queue.get("rate_bps")) if one]
                if known:
                    self.rates_bps[line] = min(known)
                if link.up:
                    self._into[far.node].append((near.node, line, link))

    def between(self, sender: str, receiver: str) -> Way | None:
        """Return the way from one host to another, ``None`` when there is none."""
        if receiver not in self._trees:
            self._trees[receiver] = self._towards(receiver)
        steps, here = self._trees[receiver], sender
        lines: list[Line] = []
        nodes: list[str] = []
        mtu = 65_535
        while here != receiver:
            if here not in steps:
                return None
            here, line, link = steps[here]
            lines.append(line)
            nodes.append(here)
            mtu = min(mtu, link.mtu)
        return Way(tuple(lines), tuple(nodes[:-1]), mtu)

    def _towards(self, receiver: str) -> dict[str, tuple[str, Line, Link]]:
        """For each node the next one on its way to `receiver`, and the line to there."""
        steps: dict[str, tuple[str, Line, Link]] = {}
        waiting = deque([receiver])
        while waiting:
            here = waiting.popleft()
            for before, line, link in self._into[here]:
                if before not in steps and before != receiver:
                    steps[before] = (here, line, link)
                    if self._forwards(before):
                        waiting.append(before)
        return steps

    def _forwards(self, name: str) -> bool:
        node = self.network.nodes[name]
        return isinstance(node, Switch) or (isinstance(node, Host) and node.forwarding)


def fair_shares(
    asked_bps: Sequence[float], routes: Sequence[Sequence[Line]], rates_bps: Mapping[Line, float]
) -> list[float]:
    """Return what each flow gets in bits per second, max-min fair by progressive filling (Bertsekas and Gallager, Data
    Networks, 6.5.2).

    Parameters
    ----------
    asked_bps
        What each flow asks for; infinity for all that there is.
    routes
        The lines that each takes.
    rates_bps
        What lines carry; those that are not in it carry all.

    Returns
    -------
    list
        Infinity for a flow that asks for all and that no line limits.
    """
    got = [0.0] * len(asked_bps)
    left = dict(rates_bps)
    active = {flow for flow, asked in enumerate(asked_bps) if asked > 0}
    users: dict[Line, set[int]] = {}
    for flow in active:
        for line in routes[flow]:
            if line in left:
                users.setdefault(line, set()).add(flow)
    while active:
        level = min((left[line] / len(flows) for line, flows in users.items() if flows), default=math.inf)
        content = {flow for flow in active if asked_bps[flow] <= level}
        # What a full line gives each of its flows; lines that are equally full are taken together.
        full = [line for line, flows in users.items() if flows and left[line] / len(flows) <= level * (1 + 1e-9)]
        settled = content or {flow for line in full for flow in users[line]} or set(active)
        for flow in settled:
            got[flow] = asked_bps[flow] if content else level
            for line in routes[flow]:
                if line in left:
                    left[line] = max(0.0, left[line] - got[flow])
                    users[line].discard(flow)
        active -= settled
    return got
