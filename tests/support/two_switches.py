"""Two switches with one slow link between them, traffic that crosses it beside what is estimated, and the truth."""

from __future__ import annotations

from typing import Any

import twinnet as tn
from twinnet import bandwidth
from twinnet.bandwidth import Truth
from twinnet.control import AvailableBandwidth, LearningSwitch, Together
from twinnet.results.bandwidth_report import Bandwidth

__all__ = [
    "FULL_FRAMES_PAYLOAD_SHARE",
    "PATH",
    "Watched",
    "answer_of",
    "counted_by",
    "counted_meanwhile",
    "cross_traffic",
    "two_switches",
]

PATH = ["h1", "s1", "s2", "h2"]
FULL_FRAMES_PAYLOAD_SHARE = 1472 / 1538
"""Of the wire's rate, with preamble, check sequence and gap."""


def two_switches(capacity: float, *, seed: int = 1, loss: str = "0 %") -> tn.Network:
    """h1 and x1, s1, one link of `capacity` Mbit/s that loses a share of the packets, s2, h2 and x2; the hosts' own
    links are ten times as fast."""
    net = tn.Network(seed=seed)
    left, right = net.switch("s1"), net.switch("s2")
    for switch, hosts in ((left, ("h1", "x1")), (right, ("h2", "x2"))):
        for host in hosts:
            net.link(net.host(host), switch, rate=f"{10 * capacity:g} Mbit")
    net.link(left, right, rate=f"{capacity:g} Mbit", loss=loss)
    return net


def counted_by(counters: AvailableBandwidth, capacity: float = 100, delay: str = "0 s") -> tn.Network:
    """The same with a controller that forwards as a learning switch, and has `counters`."""
    net = two_switches(capacity)
    net.controller(Together(counters, LearningSwitch()), delay=delay)
    return net


def cross_traffic(rate: float, **settings: Any) -> tn.apps.Flow:
    """Full-size frames of `rate` Mbit/s on the wire, from x1 to x2."""
    payload_bps = rate * 1e6 * FULL_FRAMES_PAYLOAD_SHARE
    return tn.apps.udp("x1", "x2", rate=f"{payload_bps:.0f} bit", duration="1 h", **settings)


class Watched:
    """The ports of the path from h1 to h2, counted by a sampler from now on."""

    def __init__(self, lab: tn.Lab, interval: str = "1 ms") -> None:
        self.ports = bandwidth.path_ports(lab, PATH)
        self.sampler = lab.sample(list(self.ports), interval)

    def truth(self, estimate: Bandwidth) -> Truth:
        """What was available in the window of `estimate`."""
        return bandwidth.truth(self.sampler.read(), self.ports, estimate)


def answer_of(lab: tn.Lab, probes: Any, after_s: float = 0.01) -> Bandwidth:
    """The estimate of `probes` when it has come; the lab goes on for `after_s` seconds."""
    lab.wait([probes])
    lab.run_until(f"{lab.now() + after_s:.6f} s")
    estimate = probes.report().bandwidth
    assert estimate is not None
    return estimate


def counted_meanwhile(counters: AvailableBandwidth, estimate: Bandwidth) -> Any:
    """What `counters` give for the window of `estimate`, its own probes taken off."""
    assert estimate.window_start_ps is not None and estimate.window_end_ps is not None
    return counters.estimate(
        PATH,
        since_s=estimate.window_start_ps / 1e12,
        until_s=estimate.window_end_ps / 1e12,
        probe_bytes=estimate.probe_bytes + estimate.control_bytes,
    )
