"""Whether the ways between machines can carry the links of a network that is cut there, and how long they take."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinnet.errors import LabError
from twinnet.machines.session import AgentSession
from twinnet.network.cut import CutLink
from twinnet.units import format_duration

__all__ = ["UnderlayPath", "first_free_port", "late_share", "measured_path", "reduced_delay_ps", "refuse_slow_links"]

_FIRST_PORT = 4789
_PORTS = 64
_PROBES = 200
_GAP_S = 0.002
_MTU_PROBES = 5
_MOST_LOST = 0.5
_FINEST_PS = 10_000_000


@dataclass(frozen=True)
class UnderlayPath:
    """The way between two machines as it was measured.

    Parameters
    ----------
    machines
        Both ends.
    way_ps
        Half of each round trip in picoseconds, shortest first.
    sent
        Datagrams that were sent.
    whole_bytes, cut_bytes
        The longest IPv4 packet that was proven to pass in one piece, and in pieces.
    """

    machines: tuple[str, str]
    way_ps: tuple[int, ...]
    sent: int
    whole_bytes: int
    cut_bytes: int

    @property
    def delay_ps(self) -> int:
        """The median of half of the round trips."""
        return round(statistics.median(self.way_ps))

    @property
    def slowest_ps(self) -> int:
        """What 99 of 100 ways kept below."""
        return self.way_ps[min(len(self.way_ps) - 1, int(0.99 * len(self.way_ps)))]

    @property
    def loss(self) -> float:
        """The share of datagrams without an answer."""
        return 1 - len(self.way_ps) / self.sent

    def to_spec(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "machines": list(self.machines),
            "delay_ps": self.delay_ps,
            "shortest_ps": self.way_ps[0],
            "p99_ps": self.slowest_ps,
            "loss": self.loss,
            "sent": self.sent,
            "whole_bytes": self.whole_bytes,
            "cut_bytes": self.cut_bytes,
        }


def first_free_port(sessions: Mapping[str, AgentSession], addresses: Mapping[str, str]) -> tuple[int, dict[str, int]]:
    """Have every machine listen at the same UDP port; return it and, for each machine, the port at which it answers
    while the network runs.

    Raises
    ------
    LabError
        No port is free on all, or an address is not the machine's.
    """
    for port in range(_FIRST_PORT, _FIRST_PORT + _PORTS):
        watched: dict[str, int] = {}
        try:
            for name, session in sessions.items():
                others = [address for other, address in addresses.items() if other != name]
                reply = session.request("part.listen", address=addresses[name], port=port, allowed=others)
                watched[name] = int(reply["watched"])
        except LabError as error:
            if error.name != "UnderlayPort":
                raise
            continue
        return port, watched
    raise LabError(
        f"no UDP port from {_FIRST_PORT} to {_FIRST_PORT + _PORTS - 1} is free on all machines",
        "end what uses them: see with ss -ulpn",
        "UnderlayPort",
    )


def measured_path(
    sessions: Mapping[str, AgentSession],
    addresses: Mapping[str, str],
    port: int,
    links: Sequence[CutLink],
) -> UnderlayPath:
    """Return the way between the two machines that all of `links` join, measured from the first one's.

    Raises
    ------
    LabError
        Nothing comes back, most is lost, or the longest packets do not pass.
    """
    here, there = links[0].machine_a, links[0].machine_b
    needed = max(link.mtu + link.overhead for link in links)

    def asked(size: int, cut: bool, count: int, gap_s: float) -> dict[str, Any]:
        fields = {"local": addresses[here], "remote": addresses[there], "port": port}
        return sessions[here].request("part.probe", **fields, size_bytes=size, cut=cut, count=count, gap_s=gap_s)

    way = f"between {here} ({addresses[here]}) and {there} ({addresses[there]})"
    names = ", ".join(link.name for link in links)
    small = asked(0, False, _PROBES, _GAP_S)
    if small["received"] <= (1 - _MOST_LOST) * small["sent"]:
        raise LabError(
            f"of {small['sent']} datagrams {way}, UDP port {port}, {small['received']} came back; the links {names}"
            " need that way",
            "see that no firewall is between them, and that address: is each machine's address for the tunnels",
            "UnderlaySilent",
        )
    whole = asked(needed, False, _MTU_PROBES, _GAP_S)
    if whole["received"]:
        proven = {"whole_bytes": needed, "cut_bytes": needed}
    elif asked(needed, True, _MTU_PROBES, _GAP_S)["received"]:
        proven = {"whole_bytes": 0, "cut_bytes": needed}
    else:
        raise LabError(
            f"packets of {needed} bytes do not pass {way}, neither whole nor in pieces; the links {names} with an mtu"
            f" of {needed - links[0].overhead} bytes need them",
            f"raise the MTU of the machines' interfaces to {needed}, or give the links and those of the hosts a"
            " smaller mtu",
            "UnderlayMtu",
        )
    ways = tuple(sorted(int(one) for one in small["way_ps"]))
    return UnderlayPath((here, there), ways, int(small["sent"]), **proven)


def refuse_slow_links(paths: Sequence[tuple[UnderlayPath, Sequence[CutLink]]]) -> None:
    """Raise `LabError` when a link is faster than the way that carries it; the message names all such links."""
    slow: list[str] = []
    least_ps = 0
    for path, links in paths:
        for link in links:
            if min(link.delays_ps.values()) < path.delay_ps:
                described = format_duration(min(link.delays_ps.values()))
                slow.append(f"{link.name} ({described}, over {format_duration(path.delay_ps)})")
                least_ps = max(least_ps, -(-path.slowest_ps // _FINEST_PS) * _FINEST_PS)
    if slow:
        raise LabError(
            f"the way between the machines takes longer than these links: {', '.join(slow)}",
            f"give them delay={format_duration(least_ps)!r} or more, or put both ends on one machine",
            "UnderlayTooSlow",
        )


def reduced_delay_ps(link: CutLink, path: UnderlayPath, described_ps: int) -> int:
    """Return the delay that is left for the line of `link`, whose described delay is `described_ps`.

    Raises
    ------
    LabError
        The way takes longer.
    """
    if described_ps < path.delay_ps:
        raise LabError(
            f"the way between the machines of {link.name} takes {format_duration(path.delay_ps)}, longer than a delay"
            f" of {format_duration(described_ps)}",
            f"give at least {format_duration(-(-path.slowest_ps // _FINEST_PS) * _FINEST_PS)}",
            "UnderlayTooSlow",
        )
    return described_ps - path.delay_ps


def late_share(ways_ps: Sequence[int], link: CutLink) -> float:
    """Return the share of `ways_ps` that took longer than the whole delay of `link`: such frames come late."""
    allowed_ps = min(link.delays_ps.values())
    return sum(one > allowed_ps for one in ways_ps) / len(ways_ps) if ways_ps else 0.0
