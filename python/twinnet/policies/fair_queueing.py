"""Fair queueing: every flow has a queue of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from twinnet.errors import BadPolicy
from twinnet.network.network import Network
from twinnet.policies import schedulers
from twinnet.policies.load import Load
from twinnet.policies.policy import Policy
from twinnet.policies.traffic_class import TrafficClass
from twinnet.qos import FqCodel, Sfq
from twinnet.qos.queue import Queue

__all__ = ["FairQueueing"]


class FairQueueing(Policy):
    """One class whose flows take turns.

    Parameters
    ----------
    discipline
        ``fq_codel`` (RFC 8290) or ``sfq`` (McKenney 1990).
    """

    name = "fair-queueing"
    title = "Fair queueing per flow: no classes, every flow has an equal part"
    promise = "Each flow has an equal part of the port, and flows that send little hardly wait."
    origin = "Demers, Keshav and Shenker 1989; McKenney 1990; RFC 8290"
    fails = "When one user opens more flows than others: parts are equal by flow, not by user."

    def __init__(self, discipline: Literal["fq_codel", "sfq"] = "fq_codel") -> None:
        if discipline not in ("fq_codel", "sfq"):
            raise BadPolicy(f"the discipline is {discipline!r}; allowed are 'fq_codel' and 'sfq'")
        self._discipline = discipline

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return the rest alone."""
        del network, load
        return [TrafficClass("rest")]

    def queue(self, rate_bps: int, classes: Mapping[int, TrafficClass]) -> Queue:
        """Return flow queues under a shaper."""
        del classes
        inner = FqCodel(ecn=False) if self._discipline == "fq_codel" else Sfq(limit_frames=1000)
        return schedulers.shaped(rate_bps, inner)
