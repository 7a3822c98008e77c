"""Tunnels: Ethernet frames carried over an IPv4 underlay in GRE (RFC 2784, RFC 2890) or VXLAN (RFC 7348)."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from typing import Any, Literal, cast

from twinnet.errors import BadValue, did_you_mean
from twinnet.units import size_bytes

__all__ = ["Tunnel", "far_tunnel", "gre", "link_tunnel", "tunnel_from_mapping", "vxlan"]

_UNDERLAY_MTUS = (68, 65_535)
_LONGEST_PACKET = 65_535
_HIGHEST_KEY = (1 << 32) - 1
_HIGHEST_VNI = (1 << 24) - 1
_VLAN_TAGS = 8
_ETHERNET_MTU = 1500
_VXLAN_PORT = 4789
_COMMON = ("mtu", "fragment", "remote", "local")
_SETTINGS = {"gre": ("key", "checksum", *_COMMON), "vxlan": ("vni", "port", *_COMMON)}


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
    fragment: bool = True
    checksum: bool = False
    remote: str | None = None
    local: str | None = None
    port: int = _VXLAN_PORT

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


def gre(
    key: int | None = None,
    mtu: int | str | None = None,
    fragment: bool = True,
    checksum: bool = False,
    remote: str | None = None,
    local: str | None = None,
) -> Tunnel:
    """A tunnel of Ethernet in GRE in IPv4: of a link (:meth:`twinnet.Network.link`), or to another speaker
    (:meth:`twinnet.Network.tunnel`).

    Parameters
    ----------
    key
        Tells several tunnels between the same two apart; ``None``: the header has no key.
    mtu
        The underlay's MTU in bytes, or text with unit: the longest IPv4 packet. For a link 1500 by default;
        a tunnel to another speaker goes by what its underlay has.
    fragment
        Whether a packet that is longer is cut by IPv4; otherwise it is dropped and counted.
    checksum
        Whether the GRE header has a checksum.
    remote, local
        For a tunnel to another speaker: its IPv4 address, and the one to speak from.

    Examples
    --------
    >>> gre(key=5, mtu=1500).inner_mtu
    1458
    """
    if key is not None:
        key = _whole(key, "key", _HIGHEST_KEY)
    return Tunnel(
        "gre",
        key,
        _underlay_mtu(mtu),
        _flag(fragment, "fragment"),
        _flag(checksum, "checksum"),
        remote=_address(remote, "remote"),
        local=_address(local, "local"),
    )


def vxlan(
    vni: int,
    mtu: int | str | None = None,
    fragment: bool = True,
    remote: str | None = None,
    local: str | None = None,
    port: int = _VXLAN_PORT,
) -> Tunnel:
    """A tunnel of Ethernet in VXLAN in UDP in IPv4: of a link (:meth:`twinnet.Network.link`), or to another speaker
    (:meth:`twinnet.Network.tunnel`).

    Parameters
    ----------
    vni
        The network identifier, 24 bits.
    mtu, fragment, remote, local
        As for :func:`gre`.
    port
        For a tunnel to another speaker: the UDP port, here and there.

    Examples
    --------
    >>> vxlan(42, mtu="9000 B").inner_mtu
    8950
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 65_535:
        raise BadValue(f"the port of the tunnel is {port!r}; allowed are whole numbers from 1 to 65535")
    return Tunnel(
        "vxlan",
        _whole(vni, "vni", _HIGHEST_VNI),
        _underlay_mtu(mtu),
        _flag(fragment, "fragment"),
        remote=_address(remote, "remote"),
        local=_address(local, "local"),
        port=port,
    )


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
    known = _SETTINGS[str(kind)]
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


def _whole(value: object, what: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise BadValue(f"the {what} of the tunnel is {value!r}; allowed are whole numbers from 0 to {most}")
    return value


def _underlay_mtu(value: object) -> int | None:
    if value is None:
        return None
    given = size_bytes(value, "mtu") if isinstance(value, str) else value
    least, most = _UNDERLAY_MTUS
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise BadValue(f"the underlay's mtu is {value!r}; allowed are {least} to {most} bytes")
    return given


def _address(value: object, what: str) -> str | None:
    if value is None:
        return None
    try:
        address = IPv4Address(value) if isinstance(value, str) else None
    except AddressValueError:
        address = None
    if address is None or address.is_multicast or address.is_unspecified:
        raise BadValue(f"the {what} address of the tunnel is {value!r}", 'give an IPv4 address such as "192.0.2.2"')
    return str(address)


def _flag(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise BadValue(f"{what} of the tunnel is {value!r}; allowed are True and False")
    return value
