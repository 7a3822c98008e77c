"""The four policies of class-based queueing that Regencia and Yu compared, by application and by groups of addresses.

Regencia, Yu: Introducing a Test Framework for Quality of Service Mechanisms in the Context of Software-Defined
Networking. ICICT 2021. They tell the queues (three, of 0.33 of the scheduler's rate each, minimum and maximum), that
classes are by application, source, destination or both, and that groups of sources are of client hosts (section 3.1);
not which hosts are in which group. Here groups are equal parts of the load's clients.
"""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from twinnet.errors import BadPolicy
from twinnet.network.network import Network
from twinnet.policies import schedulers
from twinnet.policies.applications import application_matches
from twinnet.policies.groups import Groups, checked_groups, clients_of, even_parts, servers_of
from twinnet.policies.load import Load
from twinnet.policies.match import Match
from twinnet.policies.policy import Policy
from twinnet.policies.traffic_class import Amount, TrafficClass, amount_bps
from twinnet.qos.cbq import LinkSharing
from twinnet.qos.queue import Queue

__all__ = ["BasicCbq", "DestinationCbq", "SourceCbq", "SourceDestinationCbq"]

_ORIGIN = "Regencia and Yu, ICICT 2021"
_QUEUES = 3


class _ClassBased(Policy):
    """Base of the four policies: queues of one share, as HTB or as class-based queueing proper.

    Parameters
    ----------
    share
        What each queue has of the scheduler's rate.
    borrow
        Whether a queue may have what others leave; without it the share is a maximum too, as published.
    discipline
        ``htb``, as Open vSwitch has it, or ``cbq`` (Floyd and Jacobson 1995).
    link_sharing
        The link-sharing guideline of ``cbq``: ``formal``, ``ancestor_only`` or ``top_level``.
    """

    origin = _ORIGIN

    def __init__(
        self,
        share: Amount = 0.33,
        borrow: bool = False,
        discipline: Literal["htb", "cbq"] = "htb",
        link_sharing: LinkSharing = "formal",
    ) -> None:
        if discipline not in ("htb", "cbq"):
            raise BadPolicy(f"the discipline is {discipline!r}; allowed are 'htb' and 'cbq'")
        if not isinstance(borrow, bool):
            raise BadPolicy(f"borrow is {borrow!r}", "allowed are true and false")
        amount_bps(share, 10**9, "the share of each class")
        self.share = share
        self.maximum: Amount | None = None if borrow else share
        self._discipline = discipline
        self._link_sharing: LinkSharing = link_sharing

    def queue(self, rate_bps: int, classes: Mapping[int, TrafficClass]) -> Queue:
        """Return the discipline that was chosen."""
        if self._discipline == "cbq":
            return schedulers.cbq(rate_bps, classes, self._link_sharing)
        return schedulers.htb(rate_bps, classes)

    def one(self, name: str, matches: Sequence[Match] = (), precedence: int = 0) -> TrafficClass:
        """A class of the common share."""
        return TrafficClass(name, matches, minimum=self.share, maximum=self.maximum, precedence=precedence)


class BasicCbq(_ClassBased):
    """Classes by application: HTTP, streaming, the rest."""

    name = "basic-cbq"
    title = "Classes by application: HTTP, streaming, the rest"
    promise = "Each of HTTP, video and the rest has a third of the port, whatever the others send."
    fails = "When most of the load is one application: two thirds of the port then stand idle unless queues may borrow."

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return HTTP, video and the rest."""
        del network
        # A packet from the video port to the HTTP port would be of both.
        http = self.one("http", application_matches(load, "http"), precedence=1)
        return [http, self.one("video", application_matches(load, "video")), self.one("rest")]


class _Grouped(_ClassBased):
    """Classes by groups of hosts; the last group's queue takes the rest too.

    Parameters
    ----------
    groups
        Hosts by group; default: equal parts of the load's.
    share, borrow, discipline, link_sharing
        As for :class:`BasicCbq`.
    """

    def __init__(
        self,
        groups: Groups | None = None,
        share: Amount = 0.33,
        borrow: bool = False,
        discipline: Literal["htb", "cbq"] = "htb",
        link_sharing: LinkSharing = "formal",
    ) -> None:
        super().__init__(share, borrow, discipline, link_sharing)
        self._groups = None if groups is None else checked_groups(groups)

    def by_group(
        self, hosts: Sequence[str], stem: str, match: Callable[[Sequence[str]], Match]
    ) -> Sequence[TrafficClass]:
        """A class for each group but the last, and the last as the rest; without groups they are equal parts of
        `hosts`."""
        groups = self._groups or even_parts(hosts, min(_QUEUES, max(1, len(hosts))), stem)
        *named, (last, _) = groups.items()
        return [*(self.one(name, [match(members)]) for name, members in named), self.one(last)]


class SourceCbq(_Grouped):
    """Classes by the sender's address: groups of clients, as published (section 3.1).

    What servers send is of none of these groups and has the last group's queue.

    Parameters
    ----------
    groups, share, borrow, discipline, link_sharing
        As for :class:`DestinationCbq`.
    parts_of
        ``clients`` or ``servers``: whose equal parts the groups are where none are given.
    """

    name = "source-cbq"
    title = "Classes by source address: groups of clients"
    promise = "No group of senders takes more than its third of a port from the others."
    fails = "When servers send nearly all: what they send has one queue, unless groups are parts of the servers."

    def __init__(
        self,
        groups: Groups | None = None,
        share: Amount = 0.33,
        borrow: bool = False,
        discipline: Literal["htb", "cbq"] = "htb",
        link_sharing: LinkSharing = "formal",
        parts_of: Literal["clients", "servers"] = "clients",
    ) -> None:
        super().__init__(groups, share, borrow, discipline, link_sharing)
        if parts_of not in ("clients", "servers"):
            raise BadPolicy(f"groups are parts of {parts_of!r}; allowed are 'clients' and 'servers'")
        self._parts_of = parts_of

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return a class for each group but the last, and the last as the rest."""
        hosts = clients_of(network, load) if self._parts_of == "clients" else servers_of(network, load)
        return self.by_group(hosts, self._parts_of, lambda group: Match(source=group))


class DestinationCbq(_Grouped):
    """Classes by the receiver's address: groups of clients."""

    name = "destination-cbq"
    title = "Classes by destination address: groups of clients"
    promise = "No group of receivers takes more than its third of a port from the others."
    fails = "At a leaf, where a port has one client, of one group: it has a third of the port and never more."

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return a class for each group but the last, and the last as the rest."""
        return self.by_group(clients_of(network, load), "clients", lambda group: Match(destination=group))


class SourceDestinationCbq(_ClassBased):
    """Classes by pairs of a group of servers and a group of clients.

    Each queue has every group of servers once and every group of clients once (a Latin square), so that neither a busy
    server nor a busy client fills one queue alone.
    """

    name = "source-destination-cbq"
    title = "Classes by source and destination: pairs of a group of servers and a group of clients"
    promise = "Pairs of groups share a port by thirds; each group has a part in every queue."
    fails = "It takes most rules of the four, nine pairs of groups each way, and isolates no single group."

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return the queues of the square; the last one is the rest."""
        count = min(_QUEUES, len(servers_of(network, load)), len(clients_of(network, load)))
        servers = list(even_parts(servers_of(network, load), max(1, count), "servers").values())
        clients = list(even_parts(clients_of(network, load), max(1, count), "clients").values())
        found: list[TrafficClass] = []
        for queue in range(count - 1):
            pairs = [(servers[place], clients[(queue - place) % count]) for place in range(count)]
            found.append(self.one(f"pairs-{queue + 1}", [Match(source=a, destination=b) for a, b in pairs]))
        return [*found, self.one(f"pairs-{count}")]
