"""The packets that belong to a traffic class, as a policy describes them."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false, reportUnnecessaryComparison=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from twinnet.errors import BadPolicy, did_you_mean
from twinnet.ranges import is_whole

__all__ = ["IP_VERSIONS", "IpVersion", "Match", "Protocol"]

Protocol = Literal["tcp", "udp", "icmp"]
_PROTOCOLS = ("tcp", "udp", "icmp")
IpVersion = Literal[4, 6]
IP_VERSIONS: tuple[IpVersion, ...] = (4, 6)
"""The versions of IP that a match can be of."""


@dataclass(frozen=True)
class Match:
    """A condition on packets of IPv4 or IPv6; everything that is given must hold.

    Parameters
    ----------
    protocol
        ``tcp``, ``udp`` or ``icmp`` (ICMPv6 on IPv6); default: any.
    source, destination
        Names of hosts, addresses or prefixes (``10.0.1.0/24``, ``fd00::/64``), of which one must hold; default: any.
    source_port, destination_port
        Ports of TCP or UDP, 1 to 65535.
    dscp
        The differentiated services code point, 0 to 63.
    version
        4 or 6: the version of IP. Default: that of the addresses that are given, and without addresses the versions of
        the policy (:attr:`twinnet.policies.Policy.ip_versions`), which are IPv4 alone unless it says otherwise.

    Raises
    ------
    BadPolicy
        For a value out of range, a port without a protocol that has ports, or a group without members.

    Examples
    --------
    >>> Match(protocol="tcp", source_port=80).source_port
    80
    """

    protocol: Protocol | None = None
    source: Sequence[str] | None = None
    destination: Sequence[str] | None = None
    source_port: int | None = None
    destination_port: int | None = None
    dscp: int | None = None
    version: IpVersion | None = None

    def __post_init__(self) -> None:
        if self.protocol is not None and self.protocol not in _PROTOCOLS:
            raise BadPolicy(f"a match has the protocol {self.protocol!r}", did_you_mean(str(self.protocol), _PROTOCOLS))
        for name in ("source", "destination"):
            self._check_group(name)
        for name in ("source_port", "destination_port"):
            port = getattr(self, name)
            if port is None:
                continue
            if not is_whole(port, 1, 65_535):
                raise BadPolicy(f"a match has the {name} {port!r}; allowed are whole numbers from 1 to 65535")
            if self.protocol not in ("tcp", "udp"):
                raise BadPolicy(
                    f"a match has the {name} {port} without a protocol that has ports", 'give protocol="tcp"'
                )
        dscp = self.dscp
        if dscp is not None and not is_whole(dscp, 0, 63):
            raise BadPolicy(f"a match has the DSCP {dscp!r}; allowed are whole numbers from 0 to 63")
        if self.version is not None and (isinstance(self.version, bool) or self.version not in IP_VERSIONS):
            raise BadPolicy(f"a match has the IP version {self.version!r}; allowed are 4 and 6")

    def _check_group(self, name: str) -> None:
        group = getattr(self, name)
        if group is None:
            return
        if isinstance(group, str):
            object.__setattr__(self, name, (group,))
            return
        if not all(isinstance(one, str) for one in group):
            raise BadPolicy(f"the {name} of a match is {group!r}", "give names of hosts, addresses or prefixes")
        if not group:
            raise BadPolicy(f"the {name} of a match is an empty group", f"leave {name} out to match any, or name hosts")
        object.__setattr__(self, name, tuple(group))
