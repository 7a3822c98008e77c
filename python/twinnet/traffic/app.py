"""The parts that a lab starts: an app in a host, or the sender and receiver of a flow, as the lab protocol takes
them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["App", "Flow"]


@dataclass(frozen=True)
class App:
    """One app in one host.

    Parameters
    ----------
    host
        The host's name.
    kind
        Its kind in the lab protocol.
    fields
        Its fields in the lab protocol. A ``to`` may be the name of a host: the lab puts the address in its place.
    """

    host: str
    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def receives(self) -> bool:
        """True if it is a sink or server, which several flows can share."""
        return "to" not in self.fields


@dataclass(frozen=True)
class Flow:
    """A sender and the receiver that it needs.

    Parameters
    ----------
    receiver
        A sink or server. A lab that has an equal one already uses that.
    sender
        A source or client.
    """

    receiver: App
    sender: App
