"""The truth about available bandwidth in a lab: what the fabric itself counted at the ports of a path."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from twinnet.errors import BadValue
from twinnet.results.bandwidth_report import Bandwidth
from twinnet.results.port_samples import PortSamples

if TYPE_CHECKING:
    from twinnet.lab import Lab

__all__ = ["Truth", "path_ports", "truth"]


@dataclass(frozen=True)
class Truth:
    """Available bandwidth of a path over a time, from the fabric's own counts, at the wire's layer.

    Parameters
    ----------
    available_bps
        The least over the links.
    tight, narrow
        The port of the link with the least available bandwidth, and of the one with the least capacity.
    links
        Available bandwidth of each link, by its sending port.
    """

    available_bps: float
    tight: str
    narrow: str
    links: Mapping[str, float]


def path_ports(lab: Lab, nodes: Sequence[str]) -> dict[str, float]:
    """Return the sending ports along `nodes` (host, switches, host) with the capacities of their links in bit/s.

    Raises
    ------
    BadValue
        Two neighbours have no link, or their link has no rate.
    """
    found: dict[str, float] = {}
    for here, there in itertools.pairwise(nodes):
        number, backward = lab.layout.link(here, there)
        link = lab.layout.links[number]
        rate = link["ba" if backward else "ab"]["rate_bps"]
        if not rate:
            raise BadValue(f"the link from {here} to {there} has no rate", "give it one: it has no capacity otherwise")
        end = link["b" if backward else "a"]
        found[lab.layout.node(here)["ports"][end["port"]]["name"]] = float(rate)
    return found


def truth(samples: PortSamples, capacities: Mapping[str, float], estimate: Bandwidth) -> Truth:
    """Return what was available over the averaging window of `estimate`, without its own probes.

    Parameters
    ----------
    samples
        Of the path's sending ports, over the window at least; the finer their interval, the closer the window's ends.
    capacities
        Of these ports, in bit/s, as :func:`path_ports` gives them.
    estimate
        Tells the window, and the bytes of probes to leave out (its layer must be ``wire``).
    """
    if estimate.layer != "wire":
        raise BadValue(f"the estimate's layer is {estimate.layer!r}", "estimate at the layer 'wire'")
    start, end = estimate.window_start_ps, estimate.window_end_ps
    if start is None or end is None or end <= start:
        raise BadValue("the estimate has no averaging window: nothing was probed")
    seconds = (end - start) / 1e12
    edges = samples.start_ps + samples.interval_ps * np.arange(len(samples) + 1)
    if len(samples) == 0 or start < edges[0] or end > edges[-1]:
        raise BadValue("the samples do not cover the averaging window", "sample from before the estimate until its end")
    probes = (estimate.probe_bytes + estimate.control_bytes) * 8 / seconds
    links: dict[str, float] = {}
    for port, capacity in capacities.items():
        sent = np.concatenate([[0.0], np.cumsum(samples[port].wire_bytes, dtype=float)])
        passed = np.interp(end, edges, sent) - np.interp(start, edges, sent)
        links[port] = capacity - max(0.0, passed * 8 / seconds - probes)
    tight = min(links, key=links.__getitem__)
    narrow = min(capacities, key=capacities.__getitem__)
    return Truth(links[tight], tight, narrow, links)
