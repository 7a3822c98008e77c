"""A policy: traffic classes for a network and its load, what schedules them, and the paths of those that it routes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from twinnet.network.network import Network
from twinnet.policies import schedulers
from twinnet.policies.forwarding import Routes
from twinnet.policies.load import Load
from twinnet.policies.match import IpVersion
from twinnet.policies.traffic_class import TrafficClass
from twinnet.qos.queue import Queue

if TYPE_CHECKING:
    from twinnet.policies.compiled import CompiledPolicy
    from twinnet.policies.controller import PolicyController

__all__ = ["FunctionPolicy", "Installation", "Policy", "PolicyFunction"]

Installation = Literal["proactive", "reactive"]


class Policy:
    """The base of policies: override :meth:`classes`, and the rest where it is not what you want.

    A policy says what each class gets; :class:`twinnet.policies.Enforcement` says where. Neither touches the network:
    :func:`twinnet.policies.compile_policy` makes queues and flow rules of both.

    Examples
    --------
    >>> from twinnet.policies import Match
    >>> class WebFirst(Policy):
    ...     def classes(self, network, load):
    ...         web = [Match("tcp", source_port=80), Match("tcp", destination_port=80)]
    ...         return [TrafficClass("web", web, minimum=0.6), TrafficClass("rest", minimum=0.1)]
    >>> [one.name for one in WebFirst().classes(Network(), Load())]
    ['web', 'rest']
    """

    name: str = ""
    """The name under which it is known, such as ``basic-cbq``."""
    title: str = ""
    """One line that says what it does."""
    promise: str = ""
    """The promise that it makes to each class."""
    origin: str = ""
    """The authors who proposed it, and the publication."""
    fails: str = ""
    """The conditions under which it does not keep its promise."""
    rest_first: bool = True
    """True if the rest has queue 0, as Open vSwitch's default queue, and the others 1, 2, ...; otherwise classes are
    numbered from 0 in their order and the rest comes last, as bands of priority."""

    address_resolution: str | None = None
    """The class that ARP's frames and IPv6's neighbour discovery go with, where the rest could keep them waiting for
    ever; ``None``: the rest."""
    installation: Installation = "proactive"
    """The moment at which a switch gets the rules of classes. ``proactive``: when it joins. ``reactive``: when the
    first packet of a class comes by, which the switch sends to the controller (packet-in)."""
    ip_versions: Sequence[IpVersion] = (4,)
    """The versions of IP that matches are of which name neither addresses nor a version."""

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return the classes; one without matches takes the rest, and is added when there is none.

        Parameters
        ----------
        network
            The network that is to carry the load; it is not to be changed.
        load
            Who asks whom for what. It may be empty.
        """
        raise NotImplementedError(f"the policy {type(self).__name__} defines no classes(network, load)")

    def queue(self, rate_bps: int, classes: Mapping[int, TrafficClass]) -> Queue:
        """Return what schedules the classes at a port; an HTB when it is not overridden.

        Parameters
        ----------
        rate_bps
            What the port's scheduler may send, in bits per second.
        classes
            The classes that can come to the port, by queue number; 0 is the rest.
        """
        return schedulers.htb(rate_bps, classes)

    def routes(self, network: Network, load: Load) -> Mapping[str, Routes]:
        """Return by class the paths of its packets that do not go the shortest way; none when it is not overridden."""
        del network, load
        return {}

    def controller(self, compiled: CompiledPolicy) -> PolicyController:
        """Return the controller that installs the rules; one that only installs them when it is not overridden."""
        from twinnet.policies.controller import PolicyController

        return PolicyController(compiled)


PolicyFunction = Callable[[Network, Load], Sequence[TrafficClass]]
"""A policy that only says classes."""


class FunctionPolicy(Policy):
    """A policy whose classes a function says."""

    def __init__(self, function: PolicyFunction) -> None:
        self.name: str = getattr(function, "__name__", "policy").replace("_", "-")
        self.title: str = ((function.__doc__ or "").strip().splitlines() or [""])[0]
        self._function = function

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return what the function says."""
        return self._function(network, load)
