"""The truth about available bandwidth in a lab: what the fabric itself counted at the ports of a path."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from twinnet.deliveries import Capacity, TracedCapacity, capacity_of
from twinnet.errors import BadValue
from twinnet.results.bandwidth_report import Bandwidth
from twinnet.results.port_samples import PortSamples

if TYPE_CHECKING:
    from twinnet.lab import Lab

__all__ = ["Truth", "available", "path_ports", "sent_bytes", "truth"]


@dataclass(frozen=True)
class Truth:
    """Available bandwidth of a path over a time, from the fabric's own counts, at the wire's layer.

    Parameters
    ----------
    available_bps
        The least over the links.
    tight, narrow
        The port of the link with the least available bandwidth, and of the one with the least capacity (of a link that
        follows a trace: over that time).
    links
        Available bandwidth of each link, by its sending port.
    """

    available_bps: float
    tight: str
    narrow: str
    links: Mapping[str, float]


def path_ports(lab: Lab, nodes: Sequence[str]) -> dict[str, Capacity]:
    """Return the sending ports along `nodes` (host, switches, host) with the capacities of their links: in bit/s, or a
    `TracedCapacity` where a link follows a trace. A token bucket at the port bounds it.

    Raises
    ------
    BadValue
        Two neighbours have no link, or their link has neither a rate nor a trace.
    """
    found: dict[str, Capacity] = {}
    for here, there in itertools.pairwise(nodes):
        number, backward = lab.layout.link(here, there)
        link = lab.layout.links[number]
        port = lab.layout.node(here)["ports"][link["b" if backward else "a"]["port"]]
        capacity = capacity_of(link["ba" if backward else "ab"], port.get("queue"))
        if capacity is None:
            raise BadValue(f"the link from {here} to {there} has no rate", "give it one: it has no capacity otherwise")
        found[port["name"]] = capacity
    return found


def truth(samples: PortSamples, capacities: Mapping[str, Capacity], estimate: Bandwidth) -> Truth:
    """Return what was available over the averaging window of `estimate`, without its own probes.

    Parameters
    ----------
    samples
        Of the path's sending ports, over the window at least; the finer their interval, the closer the window's ends.
    capacities
        Of these ports, as :func:`path_ports` gives them.
    estimate
        Tells the window, and the bytes of probes to leave out (its layer must be ``wire``).
    """
    if estimate.layer != "wire":
        raise BadValue(f"the estimate's layer is {estimate.layer!r}", "estimate at the layer 'wire'")
    start, end = estimate.window_start_ps, estimate.window_end_ps
    if start is None or end is None or end <= start:
        raise BadValue("the estimate has no averaging window: nothing was probed")
    return available(samples, capacities, start, end, probe_bytes=estimate.probe_bytes + estimate.control_bytes)


def available(
    samples: PortSamples, capacities: Mapping[str, Capacity], start_ps: int, end_ps: int, *, probe_bytes: int = 0
) -> Truth:
    """Return what was available from `start_ps` to `end_ps` of the lab's clock.

    Parameters
    ----------
    samples, capacities
        As for :func:`truth`.
    start_ps, end_ps
        The averaging window.
    probe_bytes
        Bytes of probes on the wire in that time, which are not to count as traffic.

    Raises
    ------
    BadValue
        The window is empty, or the samples do not cover it.
    """
    start, end = start_ps, end_ps
    if end <= start:
        raise BadValue(f"the window ends at {end} ps and starts at {start} ps", "give an end after the start")
    seconds = (end - start) / 1e12
    probes = probe_bytes * 8 / seconds
    links: dict[str, float] = {}
    wide: dict[str, float] = {}
    for port, capacity in capacities.items():
        wide[port] = capacity.over_bps(start, end) if isinstance(capacity, TracedCapacity) else capacity
        links[port] = wide[port] - max(0.0, sent_bytes(samples, port, start, end) * 8 / seconds - probes)
    tight = min(links, key=links.__getitem__)
    narrow = min(wide, key=wide.__getitem__)
    return Truth(links[tight], tight, narrow, links)


def sent_bytes(samples: PortSamples, port: str, start_ps: int, end_ps: int) -> float:
    """Return the bytes on the wire that `port` sent from `start_ps` to `end_ps` of the lab's clock; raises `BadValue`
    where the samples do not cover that time."""
    edges = samples.start_ps + samples.interval_ps * np.arange(len(samples) + 1)
    if len(samples) == 0 or start_ps < edges[0] or end_ps > edges[-1]:
        raise BadValue("the samples do not cover the averaging window", "sample from before the estimate until its end")
    sent = np.concatenate([[0.0], np.cumsum(samples[port].wire_bytes, dtype=float)])
    return float(np.interp(end_ps, edges, sent) - np.interp(start_ps, edges, sent))
