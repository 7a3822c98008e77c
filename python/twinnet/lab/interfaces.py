"""Existing interfaces of this machine: a lab's owner opens them in its own network namespace and passes them on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinnet.errors import LabError
from twinnet.lab_process.compiled_part import require_compiled_part
from twinnet.lab_process.requests import LabRequests

__all__ = ["RealInterfaces"]


Offer = tuple[dict[str, Any], Sequence[int]]
"""The fields of an ``interface.offer`` request, and its descriptors."""


@dataclass
class RealInterfaces:
    """The interfaces of a network while its lab is being started; ``with`` closes what was not passed on.

    Parameters
    ----------
    offers
        For each the fields of an ``interface.offer`` request, and its descriptors.
    """

    offers: list[Offer] = field(default_factory=list[Offer])

    @classmethod
    def of(cls, nodes: Sequence[Mapping[str, Any]]) -> RealInterfaces:
        """Open the interfaces among `nodes` (of the lab protocol) that have a link.

        Raises
        ------
        LabError
            ``NoSuchInterface``, ``NotEthernet``, ``PacketSocketRefused``; nothing stays open then.
        """
        opened = cls()
        wanted = [node for node in nodes if node["kind"] == "interface" and node["ports"]]
        if not wanted:
            return opened
        require_compiled_part()
        from twinnet import _core

        for node in wanted:
            try:
                packet, watch, index, mtu = _core.open_interface(node["interface"])
            except _core.CoreError as error:
                opened.close()
                name, message, remedy = error.args
                raise LabError(message, remedy, name) from None
            fields = {"node": node["name"], "index": index, "mtu": mtu}
            opened.offers.append((fields, (packet, watch)))
        return opened

    def offer_to(self, lab: LabRequests) -> None:
        """Pass the interfaces to `lab`, which has no network yet; they are the lab's from then on."""
        try:
            for fields, descriptors in self.offers:
                lab.interface_offer(descriptors=descriptors, **fields)
        finally:
            self.close()

    def close(self) -> None:
        """Close our descriptors; those that were passed on live in the lab."""
        for _, descriptors in self.offers:
            for descriptor in descriptors:
                os.close(descriptor)
        self.offers.clear()
