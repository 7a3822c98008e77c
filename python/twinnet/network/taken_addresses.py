"""The addresses that are taken in a network: one node has each."""

from __future__ import annotations

from collections.abc import Sequence

from twinnet.errors import AddressInUse

__all__ = ["TakenAddresses"]


class TakenAddresses:
    """IP and hardware addresses, and whose they are."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}
        self._macs: dict[str, str] = {}

    def check(self, node: str, address: str, may_own: bool = False) -> None:
        """Raise `AddressInUse` when `address` is another node's, or that of `node` itself unless it `may_own` it."""
        owner = self._owners.get(address.split("/")[0])
        if owner is not None and not (may_own and owner == node):
            raise AddressInUse(f"{owner} has the address {address.split('/')[0]} already", f"give {node} another one")

    def claim(self, node: str, addresses: Sequence[str], mac: str | None) -> None:
        """Give `node` all of them, or raise `AddressInUse` and give it none."""
        for address in addresses:
            self.check(node, address)
        if mac is not None and self._macs.get(mac, node) != node:
            raise AddressInUse(f"{self._macs[mac]} has the MAC {mac} already", f"give {node} another one")
        self._owners.update({address.split("/")[0]: node for address in addresses})
        if mac is not None:
            self._macs[mac] = node
