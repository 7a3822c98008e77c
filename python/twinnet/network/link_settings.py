"""The settings of a link: keyword arguments of calls, keys of network and study files, and what may change while a lab
runs.

From the annotations come the checks, the models of files and the form of the lab protocol; editors complete the keys.
``tests/network/test_settings_of_links.py`` holds them against the Rust types.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from twinnet.deliveries import DeliveryTrace, DeliveryTraceValue
from twinnet.errors import BadValue, did_you_mean
from twinnet.network.impairments import FrameShare, JitterValue, LossValue
from twinnet.network.tunnels import Tunnel
from twinnet.qos.queue import Queue
from twinnet.ranges import FASTEST_LINE_BPS
from twinnet.settings import Delay, Flag, OneOf, Whole, rate, settings_of
from twinnet.units import Rate, format_duration, format_rate

__all__ = [
    "DEFAULT_DIRECTION",
    "LINK_DEFAULTS",
    "MAY_BE_NONE",
    "SETTINGS",
    "DirectionSettings",
    "LineChange",
    "LineOptions",
    "LinkOptions",
    "OwnLinkOptions",
    "describe_direction",
    "direction_spec",
    "read_setting",
]


LineRate = Annotated[Rate, rate(1, FASTEST_LINE_BPS)]
"""A line rate: at most 10 Tbit/s."""
Framing = Annotated[Literal["ethernet", "hdlc", "none"], OneOf(BadValue, ("ethernet", "hdlc", "none"))]
"""The framing, which sets the overhead of a frame on the wire beyond its own bytes."""
Switch = Annotated[bool, Flag(BadValue)]
Mtu = Annotated[int, Whole(BadValue, 68, 65_521)]
PortNumber = Annotated[int, Whole(BadValue, 1, 0xFF00 - 1)]


class DirectionSettings(TypedDict, total=False):
    """The settings of one direction of a link."""

    rate: LineRate | None
    """The line rate, such as ``"10 Mbit"``; ``None``: no limit."""
    delivery_trace: DeliveryTraceValue | None
    """Moments at which packets can leave, in place of a rate: :class:`twinnet.DeliveryTrace`, a list of milliseconds,
    or the parameters of :meth:`twinnet.DeliveryTrace.fading`; in files also the name of a file beside them, in
    Mahimahi's format. While the link has a rate, that counts."""
    delay: Delay
    """Propagation delay, such as ``"5 ms"``; at most 1 h."""
    jitter: JitterValue | None
    """Random delay besides: ``"1 ms"`` (uniform), ``"1 ms normal"``, :class:`twinnet.Jitter` or
    :class:`twinnet.JitterTable`."""
    loss: LossValue | None
    """FrameShare of loss, 0 to 1 or ``"1 %"``, or :class:`twinnet.GilbertElliott`."""
    duplicate: FrameShare | None
    """FrameShare that a frame comes twice, 0 to 1 or ``"1 %"``."""
    corrupt: FrameShare | None
    """FrameShare that a frame is damaged, 0 to 1 or ``"1 %"``."""
    reorder: Switch
    """True if jitter may change the order of frames."""
    framing: Framing
    """The overhead of a frame on the wire, beyond its own bytes: ``ethernet``, ``hdlc`` or ``none``."""


class LineChange(DirectionSettings, total=False):
    """The settings that may change while a link runs."""

    up: Switch
    """True if the link carries frames."""


class LineOptions(LineChange, total=False):
    """The settings of a link when it is made, whatever carries it."""

    mtu: Mtu
    """The largest packet, 68 to 65521 bytes."""
    queue: Queue | None
    """The queue discipline at both ends: what waits before the line."""
    queue_a: Queue | None
    """The queue discipline at the first end, for what that sends."""
    queue_b: Queue | None
    """The queue discipline at the second end."""
    a_to_b: DirectionSettings | None
    """Settings of the direction from the first end, over the others."""
    b_to_a: DirectionSettings | None
    """Settings of the direction from the second end, over the others."""
    port_a: PortNumber | None
    """The OpenFlow port number at the first end, a switch; default: the next free one."""
    port_b: PortNumber | None
    """The OpenFlow port number at the second end, a switch."""
    address_a: str | Sequence[str] | None
    """Addresses of the first end, with prefix lengths; needed at a router (``()`` for none)."""
    address_b: str | Sequence[str] | None
    """Addresses of the second end, with prefix lengths."""
    parallel: Switch
    """True to allow a second link between the same nodes."""


class LinkOptions(LineOptions, total=False):
    """The settings of a link between two nodes of a network."""

    tunnel: Tunnel | Mapping[str, Mapping[str, str | int | bool]] | None
    """The tunnel that carries the frames over an underlay: :func:`twinnet.gre` or :func:`twinnet.vxlan`. The rate, the
    framing, the queue and the impairments are then the underlay's."""


class OwnLinkOptions(LinkOptions, total=False):
    """The settings of one link: several that are made alike have no names."""

    name: str | None
    """Its name, by which studies can mean it and its queues."""


LINK_DEFAULTS: LinkOptions = {
    "delay": "0 s",
    "reorder": False,
    "framing": "ethernet",
    "mtu": 1500,
    "up": True,
    "parallel": False,
}
"""The settings of a link that is given none; those that are not here are ``None``."""

SETTINGS = tuple(settings_of(LineChange))
"""The names of all settings of a direction, and ``up``."""
MAY_BE_NONE = frozenset(
    name for name, hint in typing.get_type_hints(LinkOptions).items() if type(None) in typing.get_args(hint)
)
"""The names of the settings that may be ``None``, which is what they are when they are not given."""


def read_setting(name: str, value: object) -> Any:
    """Return the setting `name` in the form of the lab protocol, with ``None`` as what it is when it is not given."""
    if value is None and name in MAY_BE_NONE:
        return 0.0 if name in ("duplicate", "corrupt") else None
    return settings_of(LinkOptions)[name].read(value, name)


def direction_spec(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given `settings` of a direction in the form of the lab protocol, and nothing that was not given.

    Parameters
    ----------
    settings
        Those of `LineChange`.

    Raises
    ------
    BadValue
        For an unknown setting or a value that is not allowed.

    Examples
    --------
    >>> direction_spec({"rate": "10 Mbit", "loss": "1 %"})
    {'rate_bps': 10000000, 'loss': {'model': 'bernoulli', 'probability': 0.01}}
    """
    known = settings_of(LineChange)
    for name in settings:
        if name not in known:
            raise BadValue(f"a link has no setting {name!r}", did_you_mean(str(name), SETTINGS))
    return {known[name].key(name): read_setting(name, value) for name, value in settings.items()}


DEFAULT_DIRECTION: dict[str, Any] = direction_spec(
    {name: LINK_DEFAULTS.get(name) for name in settings_of(DirectionSettings)}
)
"""A direction without settings: no rate limit, no delay, no impairment."""


def describe_direction(spec: Mapping[str, Any]) -> str:
    """Return a direction as one line for people, such as ``10 Mbit/s delay 5 ms loss 1 %``."""
    words = ["unlimited"]
    if spec.get("rate_bps"):
        words = [format_rate(spec["rate_bps"])]
    elif trace := spec.get("delivery_trace"):
        mean_bps = DeliveryTrace(trace).mean_bps(spec.get("framing", "ethernet"))
        words = [f"by a trace of {format_rate(round(mean_bps))} on average"]
    if spec.get("delay_ps"):
        words.append(f"delay {format_duration(spec['delay_ps'])}")
    if jitter := spec.get("jitter"):
        scale = jitter.get("scale_ps")
        words.append(f"jitter {format_duration(scale) if scale is not None else 'table'} {jitter['distribution']}")
    if loss := spec.get("loss"):
        words.append("loss in bursts" if "to_bad" in loss else f"loss {loss['probability'] * 100:g} %")
    words += [f"{name} {spec[name] * 100:g} %" for name in ("duplicate", "corrupt") if spec.get(name)]
    if spec.get("reorder"):
        words.append("reorder")
    if spec.get("framing", "ethernet") != "ethernet":
        words.append(f"framing {spec['framing']}")
    return " ".join(words)
