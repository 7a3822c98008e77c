"""Disciplines chosen per class while the network runs, as QosFlow proposed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from twinnet.errors import BadPolicy, did_you_mean
from twinnet.network.network import Network
from twinnet.policies.applications import application_matches
from twinnet.policies.load import Load
from twinnet.policies.policy import Policy
from twinnet.policies.traffic_class import TrafficClass
from twinnet.qos import Fifo, Red, Sfq
from twinnet.qos.queue import Queue

__all__ = ["DISCIPLINES", "ChosenDisciplines"]

DISCIPLINES: Mapping[str, Callable[[], Queue]] = {
    "htb": lambda: Fifo(limit_frames=1000),
    "red": lambda: Red(min="60 kB", max="180 kB", limit="500 kB"),
    "sfq": lambda: Sfq(limit_frames=1000),
}
"""QosFlow's three: a class of an HTB with a FIFO, with RED, or with SFQ behind it."""


class ChosenDisciplines(Policy):
    """An HTB whose classes have the discipline that was chosen for each.

    Parameters
    ----------
    disciplines
        ``htb`` (a FIFO), ``red`` or ``sfq`` of each application; default: ``red`` for HTTP, ``sfq`` for video.

    Examples
    --------
    >>> ChosenDisciplines().choose("http", "sfq").disciplines["http"]
    'sfq'
    """

    name = "qosflow"
    title = "HTB with RED or SFQ chosen per class, and chosen anew while the network runs"
    promise = "Each class has its part of the port, and inside it the discipline that suits it."
    origin = (
        "Ishimori and others, Control of Multiple Packet Schedulers for Improving QoS on OpenFlow/SDN Networking, "
        "EWSDN 2013"
    )
    fails = "On Open vSwitch, whose linux-htb has no disciplines inside; use switches of twinnet's own."

    def __init__(self, disciplines: Mapping[str, str] | None = None) -> None:
        self.disciplines: dict[str, str] = (
            dict(disciplines) if disciplines is not None else {"http": "red", "video": "sfq"}
        )
        for application, name in self.disciplines.items():
            if name not in DISCIPLINES:
                raise BadPolicy(f"the discipline of {application} is {name!r}", did_you_mean(name, DISCIPLINES))

    def choose(self, application: str, discipline: str) -> ChosenDisciplines:
        """Return the policy with another discipline of one application; compile it with what runs as `previous` and
        give it to :meth:`PolicyController.change`."""
        return ChosenDisciplines(self.disciplines | {application: discipline})

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return equal parts for the applications and the rest, which may borrow from each other."""
        del network
        last = len(self.disciplines)
        share = 1 / (last + 1)
        found: list[TrafficClass] = []
        for place, (name, discipline) in enumerate(self.disciplines.items()):
            matches, queue = application_matches(load, name), DISCIPLINES[discipline]()
            found.append(TrafficClass(name, matches, minimum=share, queue=queue, precedence=last - place))
        return [*found, TrafficClass("rest", minimum=share)]
