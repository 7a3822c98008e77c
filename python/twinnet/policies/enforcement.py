"""The enforcement of a policy: the ports of switches that schedule by its classes."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from twinnet.errors import BadPolicy, did_you_mean
from twinnet.network.network import Network
from twinnet.network.nodes import Port, Switch
from twinnet.policies.load import Load
from twinnet.policies.paths import Paths
from twinnet.ranges import line_rate_bps
from twinnet.units import Rate, format_rate

__all__ = ["EnforcedPort", "Enforcement"]

_PLACES = ("core", "leaf", "all")


@dataclass(frozen=True)
class EnforcedPort:
    """A port that schedules by the classes of a policy.

    Parameters
    ----------
    switch
        The switch's name.
    port
        Its port.
    rate_bps
        What its scheduler may send, in bits per second.
    """

    switch: str
    port: Port
    rate_bps: int


@dataclass(frozen=True)
class Enforcement:
    """A choice of ports, and the rate of their schedulers.

    Parameters
    ----------
    at
        ``leaf``: the switches that clients are linked to (those of the load, or all hosts without one). ``core``: the
        switches without hosts that are farthest from these. ``all``: every switch. Or a list of switches (``s1``) and
        ports (``s1-eth2``).
    rate
        The rate of each scheduler, with unit; default: the line rate of the port.
    direction
        ``egress``: queues, before a port sends. ``ingress``: meters only, where frames come in.
    without_line
        The rate of a scheduler whose line has none, where `rate` is not given; default: that is refused.

    Examples
    --------
    >>> Enforcement("core", rate="1 Gbit").at
    'core'
    """

    at: str | Sequence[str] = "core"
    rate: Rate | None = None
    direction: Literal["egress", "ingress"] = "egress"
    without_line: Rate | None = None

    def __post_init__(self) -> None:
        for rate in (self.rate, self.without_line):
            if rate is not None:
                line_rate_bps(rate, "rate")
        if self.direction not in ("egress", "ingress"):
            raise BadPolicy(f"the direction is {self.direction!r}; allowed are 'egress' and 'ingress'")
        if not isinstance(self.at, str):
            object.__setattr__(self, "at", tuple(self.at))
            if not self.at:
                raise BadPolicy("the policy is enforced at an empty list", "name switches or ports, or say 'core'")

    @property
    def text(self) -> str:
        """The place in words, such as ``core``."""
        return self.at if isinstance(self.at, str) else ", ".join(self.at)

    def ports(self, network: Network, load: Load, paths: Paths) -> list[EnforcedPort]:
        """Return the ports in the order of their switches.

        Raises
        ------
        BadPolicy
            When the network has no such place, or a port's line is slower than its scheduler or has no rate.
        """
        rates = _line_rates(network)
        chosen = self._switches(network, load, paths) if isinstance(self.at, str) else None
        if chosen is not None:
            found = [(name, port) for name in chosen for port in paths.switches[name].ports]
        else:
            found = [one for name in self.at for one in _named(name, paths)]
        return [EnforcedPort(switch, port, self._rate(port, rates[port.name])) for switch, port in found]

    def _rate(self, port: Port, line_bps: int | None) -> int:
        if self.rate is None:
            if line_bps is None and self.without_line is not None:
                return line_rate_bps(self.without_line)
            if line_bps is None:
                raise BadPolicy(
                    f"the line at {port.name} has no rate, so no share of it is known",
                    "give the link a rate, or the enforcement one",
                )
            return line_bps
        wanted = line_rate_bps(self.rate)
        if line_bps is not None and wanted > line_bps:
            raise BadPolicy(
                f"the scheduler at {port.name} is to send {self.rate}, above its line's {format_rate(line_bps)}",
                "lower the scheduler's rate, or raise the link's",
            )
        return wanted

    def _switches(self, network: Network, load: Load, paths: Paths) -> list[str]:
        if self.at not in _PLACES:
            return list(dict.fromkeys(switch for switch, _ in _named(str(self.at), paths)))
        if self.at == "all":
            return list(paths.switches)
        clients = load.clients or [host.name for host in network.hosts]
        leaves = list(dict.fromkeys(paths.of_host[name].switch for name in clients if name in paths.of_host))
        if not leaves:
            raise BadPolicy("no client is linked to a switch", "name the switches that enforce the policy")
        if self.at == "leaf":
            return leaves
        with_hosts = {one.switch for one in paths.attachments}
        distances = paths.distances(leaves)
        inner = {name: far for name, far in distances.items() if name not in with_hosts}
        if len(paths.switches) == 1:
            return list(paths.switches)
        if not inner:
            raise BadPolicy(
                "the network has no core: every switch has hosts", "name the switches that enforce the policy"
            )
        farthest = max(inner.values())
        return [name for name in paths.switches if inner.get(name) == farthest]


def _named(name: str, paths: Paths) -> list[tuple[str, Port]]:
    switch = paths.switches.get(name)
    if switch is not None:
        return [(switch.name, port) for port in switch.ports]
    for switch in paths.switches.values():
        for port in switch.ports:
            if port.name == name:
                return [(switch.name, port)]
    known = [*_PLACES, *paths.switches, *(port.name for one in paths.switches.values() for port in one.ports)]
    raise BadPolicy(f"the network has no switch and no port {name!r} to enforce a policy at", did_you_mean(name, known))


def _line_rates(network: Network) -> dict[str, int | None]:
    """The line rate of what each port of a switch sends."""
    rates: dict[str, int | None] = {}
    for link in network.links:
        for port, way in ((link.a, link.ab), (link.b, link.ba)):
            if isinstance(network.nodes[port.node], Switch):
                rates[port.name] = way.get("rate_bps")
    return rates
