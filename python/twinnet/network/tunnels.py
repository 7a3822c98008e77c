"""Tunnels: Ethernet frames carried over an IPv4 underlay in GRE (RFC 2784, RFC 2890) or VXLAN (RFC 7348)."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from typing import Annotated, Any, Literal, TypedDict, Unpack, cast

from twinnet.errors import BadValue, did_you_mean
from twinnet.network.unknown_settings import refuses_unknown_settings
from twinnet.ranges import is_whole
from twinnet.settings import Flag, Setting, Whole, settings_of
from twinnet.units import size_bytes

__all__ = [
    "TUNNEL_DEFAULTS",
    "TUNNEL_KINDS",
    "GreOptions",
    "Tunnel",
    "TunnelOptions",
    "VxlanOptions",
    "far_tunnel",
    "gre",
    "link_tunnel",
    "tunnel_from_mapping",
    "vxlan",
]

_UNDERLAY_MTUS = (68, 65_535)
_LONGEST_PACKET = 65_535
_VLAN_TAGS = 8
_ETHERNET_MTU = 1500


@dataclass(frozen=True)
class _Mtu(Setting):
    """A size in bytes: a number, or text with a unit."""

    def read(self, value: object, what: str) -> int:
        """Return the bytes."""
        given = size_bytes(value, what) if isinstance(value, str) else value
        least, most = _UNDERLAY_MTUS
        if not is_whole(given, least, most):
            raise self.error(f"the underlay's mtu is {value!r}; allowed are {least} to {most} bytes")
        return given

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: an integer, or text."""
        least, most = _UNDERLAY_MTUS
        return {"anyOf": [{"type": "integer", "minimum": least, "maximum": most}, {"type": "string"}]}


@dataclass(frozen=True)
class _Speaker(Setting):
    """The IPv4 address of one machine."""

    def read(self, value: object, what: str) -> str:
        """Return the address."""
        try:
            address = IPv4Address(value) if isinstance(value, str) else None
        except AddressValueError:
            address = None
        if address is None or address.is_multicast or address.is_unspecified:
            raise self.error(f"{what} is {value!r}", 'give an IPv4 address such as "192.0.2.2"')
        return str(address)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: text."""
        return {"type": "string"}


class TunnelOptions(TypedDict, total=False):
    """The settings that tunnels of all kinds have."""

    remote: Annotated[str, _Speaker()] | None
    """For a tunnel to another speaker: its IPv4 address."""
    local: Annotated[str, _Speaker()] | None
    """For a tunnel to another speaker: the address to speak from; ``None``: what the kernel chooses."""
    mtu: Annotated[int | str, _Mtu()] | None
    """The underlay's MTU in bytes, or text with a unit: the longest IPv4 packet. For a link 1500 by default; a tunnel
    to another speaker goes by what its underlay has."""
    fragment: Annotated[bool, Flag()]
    """True if IPv4 cuts a packet that is longer; otherwise it is dropped and counted."""


class GreOptions(TunnelOptions, total=False):
    """The settings of GRE besides the key."""

    checksum: Annotated[bool, Flag()]
    """True if the GRE header has a checksum."""


class VxlanOptions(TunnelOptions, total=False):
    """The settings of VXLAN besides the network identifier."""

    port: Annotated[int, Whole(least=1, most=65_535)]
    """For a tunnel to another speaker: the UDP port, here and there."""


GreKey = Annotated[int, Whole(most=(1 << 32) - 1)]
"""The key in a GRE header, 32 bits."""
Vni = Annotated[int, Whole(most=(1 << 24) - 1)]
"""A VXLAN network identifier, 24 bits."""


class _Gre(GreOptions, total=False):
    key: GreKey | None
    """The key in the GRE header; ``None``: none."""


class _Vxlan(VxlanOptions):
    vni: Vni
    """The network identifier in the VXLAN header."""


TUNNEL_KINDS: dict[str, type] = {"gre": _Gre, "vxlan": _Vxlan}
"""The kinds of tunnels with all settings of each."""
TUNNEL_DEFAULTS: Mapping[str, int | bool] = {"fragment": True, "checksum": False, "port": 4789}
"""The settings of a tunnel that is given none; those that are not here are ``None``."""


@dataclass(frozen=True)
class Tunnel:
    """A tunnel that carries frames over an underlay. Made by :func:`gre` and :func:`vxlan`.

    Parameters
    ----------
    kind
        ``gre`` or ``vxlan``.
    identifier
        The GRE key or the VXLAN network identifier; ``None``: a GRE header without a key.
    mtu
        The underlay's MTU in bytes, the longest IPv4 packet; ``None``: 1500 for a link, what the underlay has for a
        tunnel to another speaker.
    fragment
        Whether a longer packet is cut into fragments; otherwise it is dropped.
    checksum
        Whether the GRE header has a checksum.
    remote
        The other speaker's IPv4 address; ``None``: the tunnel of a link inside the network.
    local
        The address to speak from; ``None``: what the kernel chooses towards `remote`.
    port
        The UDP port of VXLAN, here and there.
    """

    kind: Literal["gre", "vxlan"]
    identifier: int | None
    mtu: int | None = None
    fragment: bool = bool(TUNNEL_DEFAULTS["fragment"])
    checksum: bool = bool(TUNNEL_DEFAULTS["checksum"])
    remote: str | None = None
    local: str | None = None
    port: int = TUNNEL_DEFAULTS["port"]

    @property
    def underlay_mtu(self) -> int:
        """The underlay's MTU in bytes: 1500 by default."""
        return self.mtu if self.mtu is not None else _ETHERNET_MTU

    @property
    def overhead(self) -> int:
        """Bytes that a packet of the underlay has beyond the Ethernet payload that it carries: IPv4 header, tunnel
        header, Ethernet header.

        Examples
        --------
        >>> gre(key=5).overhead, vxlan(42).overhead
        (42, 50)
        """
        if self.kind == "vxlan":
            return 20 + 8 + 8 + 14
        return 20 + 4 + (4 if self.identifier is not None else 0) + (4 if self.checksum else 0) + 14

    @property
    def inner_mtu(self) -> int:
        """The largest packet in bytes that is carried in one piece.

        Examples
        --------
        >>> gre(key=5).inner_mtu, vxlan(42).inner_mtu
        (1458, 1450)
        """
        return self.underlay_mtu - self.overhead

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        spec: dict[str, Any] = {"kind": self.kind, "mtu": self.underlay_mtu, "fragment": self.fragment}
        if self.kind == "vxlan":
            return spec | {"vni": self.identifier}
        return spec | {"key": self.identifier, "checksum": self.checksum}

    def check_link_mtu(self, mtu: int) -> None:
        """Raise `BadValue` when a link with this tunnel cannot have an MTU of `mtu` bytes."""
        most = _LONGEST_PACKET - self.overhead - _VLAN_TAGS
        if mtu > most:
            raise BadValue(f"the mtu of a link through {self} is {mtu}; IPv4 has room for at most {most} bytes")
        if not self.fragment and self.inner_mtu < _UNDERLAY_MTUS[0]:
            least = _UNDERLAY_MTUS[0] + self.overhead
            raise BadValue(
                f"{self}: an underlay's mtu of {self.underlay_mtu} has no room for a frame that may not be cut",
                f"give at least {least}, or fragment=True",
            )

    def __str__(self) -> str:
        if self.kind == "vxlan":
            return f"vxlan vni {self.identifier}"
        return "gre" if self.identifier is None else f"gre key {self.identifier}"


@refuses_unknown_settings(GreOptions)
def gre(key: GreKey | None = None, **settings: Unpack[GreOptions]) -> Tunnel:
    """A tunnel of Ethernet in GRE in IPv4: of a link (:meth:`twinnet.Network.link`), or to another speaker
    (:meth:`twinnet.Network.tunnel`).

    Parameters
    ----------
    key
        Tells several tunnels between the same two apart; ``None``: the header has no key.
    settings
        MTU, addresses and the like: those of :class:`twinnet.network.tunnels.GreOptions`.

    Examples
    --------
    >>> gre(key=5, mtu=1500).inner_mtu
    1458
    """
    return _made("gre", "key", {"key": key, **settings})


@refuses_unknown_settings(VxlanOptions)
def vxlan(vni: Vni, **settings: Unpack[VxlanOptions]) -> Tunnel:
    """A tunnel of Ethernet in VXLAN in UDP in IPv4: of a link (:meth:`twinnet.Network.link`), or to another speaker
    (:meth:`twinnet.Network.tunnel`).

    Parameters
    ----------
    vni
        The network identifier, 24 bits.
    settings
        MTU, addresses and the like: those of :class:`twinnet.network.tunnels.VxlanOptions`.

    Examples
    --------
    >>> vxlan(42, mtu="9000 B").inner_mtu
    8950
    """
    return _made("vxlan", "vni", {"vni": vni, **settings})


def _made(kind: Literal["gre", "vxlan"], identifier: str, given: Mapping[str, object]) -> Tunnel:
    """Return the tunnel with what is `given`, checked, of which one setting is its identifier."""
    hints = typing.get_type_hints(TUNNEL_KINDS[kind])
    read: dict[str, Any] = {}
    for name, setting in settings_of(TUNNEL_KINDS[kind]).items():
        value = given.get(name, TUNNEL_DEFAULTS.get(name))
        may_be_none = type(None) in typing.get_args(hints[name])
        word = f"{name} address" if isinstance(setting, _Speaker) else name
        read[name] = None if value is None and may_be_none else setting.read(value, f"the {word} of the tunnel")
    return Tunnel(kind, read.pop(identifier), **read)


def tunnel_from_mapping(value: object) -> Tunnel:
    """Return the tunnel that a network file describes: ``{"gre": {"key": 5}}`` or ``{"vxlan": {"vni": 42}}``.

    Raises
    ------
    BadValue
        For anything else.
    """
    makers = {"gre": gre, "vxlan": vxlan}
    if not isinstance(value, Mapping) or len(cast("Mapping[Any, Any]", value)) != 1:
        raise BadValue(f"the tunnel is {value!r}", "write for example {gre: {key: 5}} or {vxlan: {vni: 42}}")
    [(kind, settings)] = cast("Mapping[Any, Any]", value).items()
    if kind not in makers:
        raise BadValue(f"the tunnel {kind!r} is not known", did_you_mean(str(kind), makers))
    given: dict[Any, Any] = dict(cast("Mapping[Any, Any]", settings)) if isinstance(settings, Mapping) else {}
    known = tuple(settings_of(TUNNEL_KINDS[str(kind)]))
    if settings is not None and not isinstance(settings, Mapping):
        raise BadValue(f"the settings of the tunnel {kind} are {settings!r}", f"give any of {', '.join(known)}")
    for name in given:
        if name not in known:
            raise BadValue(f"a {kind} tunnel has no setting {name!r}", did_you_mean(str(name), known))
    if kind == "vxlan" and "vni" not in given:
        raise BadValue("a vxlan tunnel lacks its vni", "write for example {vxlan: {vni: 42}}")
    return makers[kind](**given)


def link_tunnel(value: Tunnel | Mapping[str, Any] | None, mtu: int) -> Tunnel | None:
    """Return the tunnel of a link whose MTU is `mtu` bytes; raises `BadValue` when it cannot be."""
    if value is None:
        return None
    tunnel = value if isinstance(value, Tunnel) else tunnel_from_mapping(value)
    if tunnel.remote is not None or tunnel.local is not None:
        raise BadValue(
            f"the tunnel of a link joins its two nodes, and {tunnel} has addresses of an underlay",
            "leave remote and local out, or use net.tunnel(node, ...) for a tunnel to another speaker",
        )
    tunnel.check_link_mtu(mtu)
    return tunnel


def far_tunnel(value: object, link_mtu: object = 1500) -> Tunnel:
    """Return the tunnel to another speaker that `value` is, for a link with that MTU; raises `BadValue` when it cannot
    be one."""
    tunnel = value if isinstance(value, Tunnel) else tunnel_from_mapping(value)
    if tunnel.remote is None:
        raise BadValue(
            f"{tunnel} does not say to whom it leads",
            'give remote="192.0.2.2", or use net.link(a, b, tunnel=...) inside of one network',
        )
    if tunnel.fragment and tunnel.mtu is not None:
        raise BadValue(
            f"{tunnel}: where packets are cut is the underlay's affair, and its mtu cannot be given",
            "leave mtu out, or give fragment=False to send only what is not longer",
        )
    if isinstance(link_mtu, int):
        tunnel.check_link_mtu(link_mtu)
    return tunnel
