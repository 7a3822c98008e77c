"""A network without IPv6: what its hosts send is IPv4 and what that needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from twinnet.network.network import Network

__all__ = ["IPv4Alone"]

_SILENT = {f"net.ipv6.conf.{scope}.disable_ipv6": "1" for scope in ("all", "default")}


def _of_4(addresses: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(address for address in addresses if ":" not in address)


class IPv4Alone:
    """The method that takes IPv6 out of a network."""

    def without_ip6(self) -> None:
        """Take IPv6 out of the network as it is now: its hosts and routers have no IPv6 address and no IPv6 route, and
        do not speak IPv6 at all. Names then mean IPv4 addresses. Call it when all nodes and links are there.

        Examples
        --------
        >>> import twinnet as tn
        >>> net = tn.templates.single(2)
        >>> net.without_ip6()
        >>> net["h1"]
        <Host h1 10.0.0.1/8>
        """
        for host in cast("Network", self).hosts:
            host.addresses = _of_4(host.addresses)
            host.routes = [(to, via) for to, via in host.routes if ":" not in via]
            host.sysctls = {**host.sysctls, **_SILENT}
            for port in host.ports:
                port.addresses = _of_4(port.addresses)
