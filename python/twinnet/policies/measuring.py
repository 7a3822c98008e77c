"""A policy whose controller moves the queues' rates by what it measures, every second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from twinnet.control.events import Statistics
from twinnet.errors import BadPolicy
from twinnet.network.network import Network
from twinnet.policies.applications import application_matches
from twinnet.policies.compiled import CompiledPolicy
from twinnet.policies.controller import PolicyController
from twinnet.policies.load import Load
from twinnet.policies.policy import Policy
from twinnet.policies.traffic_class import TrafficClass, amount_bps
from twinnet.ranges import run_time_ps

__all__ = ["Measuring", "MeasuringController"]


class Measuring(Policy):
    """Classes by application, whose guarantees follow what each sent lately.

    Every `interval` the controller asks for the counters of all queues. At each enforcing port a class then gets
    `floor` of the rate, and of what is left its part of what was sent, smoothed over about `memory` intervals.

    Parameters
    ----------
    applications
        The applications that have a class each.
    floor
        What each class, the rest among them, is always guaranteed: a share of the scheduler's rate.
    interval
        The time between two looks, with unit.
    memory
        Over how many looks what was sent is smoothed, 1 or more.
    """

    name = "measuring"
    title = "Guarantees that follow what classes send, moved every second by queue counters"
    promise = "A class that sends more is guaranteed more within seconds, and none falls below its floor."
    origin = "Feedback control of shares, as in Floyd and Jacobson 1995 (section 6) and many controllers since"
    fails = "When the load changes faster than it looks, and where greedy traffic is not to be rewarded."

    def __init__(
        self,
        applications: Sequence[str] = ("http", "video"),
        floor: float = 0.1,
        interval: str = "1 s",
        memory: float = 4.0,
    ) -> None:
        if not applications or not 0 < floor * (len(applications) + 1) <= 1:
            raise BadPolicy(
                f"the floor is {floor!r} for {len(applications)} applications and the rest",
                "all floors together are at most 1, and there is an application",
            )
        if not memory >= 1:
            raise BadPolicy(f"the memory is {memory!r}; allowed are numbers from 1")
        run_time_ps(interval, "interval")
        self.applications: tuple[str, ...] = tuple(applications)
        self.floor: float = floor
        self.interval: str = interval
        self.memory: float = memory

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return a class for each application, and the rest, with equal parts to begin with."""
        del network
        last = len(self.applications)
        share = 1 / (last + 1)
        named = [
            TrafficClass(one, application_matches(load, one), minimum=share, precedence=last - place)
            for place, one in enumerate(self.applications)
        ]
        return [*named, TrafficClass("rest", minimum=share)]

    def controller(self, compiled: CompiledPolicy) -> PolicyController:
        """Return the controller that measures."""
        return MeasuringController(compiled, self)


class MeasuringController(PolicyController):
    """Installs the rules, and moves the queues' guarantees.

    Attributes
    ----------
    moved
        How often queues were given other rates.
    """

    def __init__(self, compiled: CompiledPolicy, policy: Measuring) -> None:
        super().__init__(compiled)
        self._policy = policy
        self.moved: int = 0

    def on_start(self) -> None:
        """Begin anew."""
        super().on_start()
        self.moved: int = 0
        self._sent: dict[tuple[str, int, int], int] = {}
        self._rates: dict[tuple[str, int], dict[int, float]] = {}
        self._guarantees: dict[tuple[str, int], tuple[int, ...]] = {}
        self.every(self._policy.interval, self._look)

    def _look(self) -> None:
        for switch in self.switches.values():
            if self.compiled.switches[switch.name].queues:
                switch.statistics("queues")

    def on_statistics(self, event: Statistics) -> None:
        """Move the rates of the switch's queues."""
        if event.kind != "queues":
            return
        name = event.switch.name
        weight = 1 / self._policy.memory
        for row in event.rows:
            port, queue, sent = int(row["port"]), int(row["queue"]), int(row["sent_bytes"])
            before = self._sent.get((name, port, queue))
            self._sent[name, port, queue] = sent
            # A queue that was replaced counts anew.
            grown = sent if before is None or sent < before else sent - before
            rates = self._rates.setdefault((name, port), {})
            rates[queue] = rates.get(queue, 0.0) * (1 - weight) + grown * weight
        for one in self.compiled.ports:
            if one.switch == name:
                self._move(name, one.port.number or 0, one.rate_bps)

    def _move(self, switch: str, port: int, rate_bps: int) -> None:
        classes = self.compiled.classes
        rates = self._rates.get((switch, port), {})
        total = sum(rates.get(number, 0.0) for number in classes)
        if total <= 0:
            return
        floor = self._policy.floor
        left = 1 - floor * len(classes)
        shares = {number: floor + left * rates.get(number, 0.0) / total for number in classes}
        # Steps of a hundredth: a queue is not replaced for noise.
        rounded = {number: max(floor, int(share * 100) / 100) for number, share in shares.items()}
        key = tuple(amount_bps(share, rate_bps, "the guarantee") for share in rounded.values())
        if self._guarantees.get((switch, port)) == key:
            return
        self._guarantees[switch, port] = key
        moved: Mapping[int, TrafficClass] = {n: replace(one, minimum=rounded[n]) for n, one in classes.items()}
        self.set_queue(switch, port, self.compiled.policy.queue(rate_bps, moved))
        self.moved += 1
