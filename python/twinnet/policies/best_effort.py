"""No classes: the network as it is without a policy, to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinnet.network.network import Network
from twinnet.policies import schedulers
from twinnet.policies.load import Load
from twinnet.policies.policy import Policy
from twinnet.policies.traffic_class import TrafficClass
from twinnet.qos import Fifo
from twinnet.qos.queue import Queue

__all__ = ["BestEffort"]


class BestEffort(Policy):
    """One FIFO for all, at the scheduler's rate."""

    name = "best-effort"
    title = "One FIFO of 1000 frames for all, at the scheduler's rate: what other policies are compared with"
    promise = "Nothing; whoever sends most has most."
    origin = "The Internet as it began"
    fails = "Whenever the port is busy: every frame waits behind the whole queue."

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return the rest alone."""
        del network, load
        return [TrafficClass("rest")]

    def queue(self, rate_bps: int, classes: Mapping[int, TrafficClass]) -> Queue:
        """Return a FIFO under a shaper."""
        del classes
        return schedulers.shaped(rate_bps, Fifo(limit_frames=1000))
