"""Rate limiting by meters: what exceeds a class's rate is dropped where it passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinnet.errors import BadPolicy
from twinnet.network.network import Network
from twinnet.policies import schedulers
from twinnet.policies.applications import application_matches
from twinnet.policies.load import Load
from twinnet.policies.policy import Policy
from twinnet.policies.traffic_class import Amount, TrafficClass
from twinnet.qos import Fifo
from twinnet.qos.queue import Queue

__all__ = ["RateLimit"]


class RateLimit(Policy):
    """Applications whose rates meters bound at each enforcing switch; nothing waits for a meter.

    Parameters
    ----------
    limits
        What each application may have: a rate, or a share of the scheduler's rate of the switch's slowest enforcing
        port; default: half of it for HTTP.
    """

    name = "rate-limit"
    title = "Rate limiting by meters: HTTP has half of the port"
    promise = "No application passes an enforcing switch at more than its rate, all its ports together."
    origin = "OpenFlow 1.3, section 5.7"
    fails = "With TCP: a meter drops bursts instead of delaying them, so that connections get less than the rate."

    def __init__(self, limits: Mapping[str, Amount] | None = None) -> None:
        self._limits: dict[str, Amount] = dict(limits) if limits is not None else {"http": 0.5}
        if not self._limits:
            raise BadPolicy("a rate limit limits no application", 'give for example limits={"http": 0.5}')

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return a metered class for each application."""
        del network
        named = [(name, limit, application_matches(load, name)) for name, limit in self._limits.items()]
        silent = next((name for name, _, matches in named if not matches), None)
        if silent is not None:
            raise BadPolicy(f"the application {silent!r} has no known port", "put a demand for it into the load")
        last = len(named)
        return [
            TrafficClass(name, matches, meter=limit, precedence=last - place)
            for place, (name, limit, matches) in enumerate(named)
        ]

    def queue(self, rate_bps: int, classes: Mapping[int, TrafficClass]) -> Queue:
        """Return a FIFO at the scheduler's rate: meters alone tell classes apart."""
        del classes
        return schedulers.shaped(rate_bps, Fifo())
