"""The settings of a link as keyword arguments, so that editors complete them and type checkers know them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from twinnet.units import Duration, Rate

if TYPE_CHECKING:
    from twinnet.network.link_settings import GilbertElliott, Jitter, JitterTable
    from twinnet.network.tunnels import Tunnel
    from twinnet.qos.queue import Queue

__all__ = ["DirectionSettings", "LineChange", "LineOptions", "LinkOptions"]


class DirectionSettings(TypedDict, total=False):
    """The settings of one direction of a link."""

    rate: Rate | None
    """The line rate, such as ``"10 Mbit"``; ``None``: no limit."""
    delay: Duration
    """Propagation delay, such as ``"5 ms"``; at most 1 h."""
    jitter: str | Jitter | JitterTable | Mapping[str, str | Sequence[str]] | None
    """Random delay besides: ``"1 ms"``, ``"1 ms normal"``, or a class."""
    loss: float | str | GilbertElliott | Mapping[str, float | str] | None
    """Probability of loss, 0 to 1 or ``"1 %"``, or a model of bursts."""
    duplicate: float | str | None
    """Probability that a frame comes twice, 0 to 1 or ``"1 %"``."""
    corrupt: float | str | None
    """Probability that a frame is damaged, 0 to 1 or ``"1 %"``."""
    reorder: bool
    """True if jitter may change the order of frames."""
    framing: Literal["ethernet", "hdlc", "none"]
    """The overhead of a frame on the wire, beyond its own bytes."""


class LineChange(DirectionSettings, total=False):
    """The settings that may change while a link runs."""

    up: bool
    """True if the link carries frames."""


class LineOptions(LineChange, total=False):
    """The settings of a link when it is made, whatever carries it."""

    mtu: int
    """The largest packet, 68 to 65521 bytes."""
    queue: Queue | None
    """The queue discipline at both ends."""
    queue_a: Queue | None
    """The queue discipline at the first end."""
    queue_b: Queue | None
    """The queue discipline at the second end."""
    a_to_b: DirectionSettings | None
    """Settings of the direction from the first end, over the others."""
    b_to_a: DirectionSettings | None
    """Settings of the direction from the second end, over the others."""
    port_a: int | None
    """The OpenFlow port number at the first end, a switch."""
    port_b: int | None
    """The OpenFlow port number at the second end, a switch."""
    address_a: str | Sequence[str] | None
    """Addresses of the first end, with prefix lengths."""
    address_b: str | Sequence[str] | None
    """Addresses of the second end, with prefix lengths."""
    parallel: bool
    """True to allow a second link between the same nodes."""


class LinkOptions(LineOptions, total=False):
    """The settings of a link between two nodes of a network."""

    tunnel: Tunnel | Mapping[str, Mapping[str, str | int | bool]] | None
    """The tunnel that carries the frames over an underlay."""
