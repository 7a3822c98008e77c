"""Changes of links at moments after the start, as a network describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack

from twinnet.errors import BadValue
from twinnet.network.link_settings import direction_spec
from twinnet.network.nodes import Link, Node

if TYPE_CHECKING:
    from twinnet.network.link_settings import LineChange
    from twinnet.network.network import Network

__all__ = ["NetworkMoment", "NetworkMomentLink", "Side", "turned"]

Side = Literal["both", "ab", "ba"]
"""The directions of a link to change: ``ab`` is from the first node named to the second."""


class NetworkMoment:
    """A moment after the lab's start at which links change; made by :meth:`twinnet.Network.at`."""

    def __init__(self, network: Network, at_ps: int) -> None:
        self._network = network
        self._at_ps = at_ps

    def link(self, a: Node | str, b: Node | str) -> NetworkMomentLink:
        """Return the link between `a` and `b` at this moment."""
        return NetworkMomentLink(self._network, self._at_ps, self._network.find_link(a, b), self._network.node(a).name)


class NetworkMomentLink:
    """A link at a moment; made by :meth:`NetworkMoment.link`."""

    def __init__(self, network: Network, at_ps: int, link: Link, first: str) -> None:
        self._network = network
        self._at_ps = at_ps
        self._link = link
        self._turned = link.a.node != first

    def set(self, direction: Side = "both", **settings: Unpack[LineChange]) -> NetworkMomentLink:
        """Schedule that `settings` (``rate``, ``delay``, ``loss``, ``up``, ...) take effect together at this moment."""
        change = {"link": self._link.index, "direction": turned(direction, self._turned), "set": _some(settings)}
        self._network._schedule.append({"at_ps": self._at_ps, "set": change})  # pyright: ignore[reportPrivateUsage]
        return self


def turned(direction: str, is_turned: bool) -> str:
    """Return `direction` as the link has it, when it was said from its other end."""
    if direction not in ("both", "ab", "ba"):
        raise BadValue(f"the direction {direction!r} is not known; allowed are 'both', 'ab' and 'ba'")
    return {"ab": "ba", "ba": "ab", "both": "both"}[direction] if is_turned else direction


def _some(settings: Mapping[str, Any]) -> dict[str, Any]:
    if not settings:
        raise BadValue("nothing to set was given", 'give for example rate="10 Mbit"')
    return direction_spec(settings)
