"""The addresses, MACs and names that nodes get when none are given, and the checks of those that are given.

Host number N (in the order of creation, from 1) has 10.0.0.N/8, fd00::N/64 and, on its interface i, the MAC
00:00:II:NN:NN:NN; router interfaces have 02:00:II:NN:NN:NN. So 16 million hosts fit, and the first ones look as in
Mininet.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

from twinnet.errors import BadAddress, BadName, InterfaceNameTooLong

__all__ = [
    "checked_interface",
    "checked_mac",
    "checked_name",
    "checked_real_interface",
    "host_ip",
    "host_ip6",
    "host_mac",
    "interface_address",
    "network_prefix",
    "next_hop",
    "router_mac",
]

INTERFACE_NAME_LIMIT_BYTES = 15
_HOST_LIMIT = (1 << 24) - 2
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_REAL_INTERFACE = re.compile(r"[^\s/:%]{1,15}\Z")
_OCTET = r"(0|[1-9][0-9]{0,2})"
_IPV4_INTERFACE = re.compile(rf"{_OCTET}\.{_OCTET}\.{_OCTET}\.{_OCTET}/(0|[1-9][0-9]?)\Z", re.ASCII)
_MAC = re.compile(r"([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}\Z")


def checked_name(name: object) -> str:
    """Return `name` when it can name a node.

    Raises
    ------
    BadName
        Unless it is a letter, then letters, digits, ``-`` and ``_``.
    InterfaceNameTooLong
        When ``<name>-eth0`` does not fit into 15 bytes.
    """
    if not isinstance(name, str) or not _NAME.match(name):
        raise BadName(
            f"the node name {name!r} is not a letter followed by letters, digits, '-' or '_'",
            "rename the node, for example to h1",
        )
    checked_interface(name, 0)
    return name


def checked_interface(node: str, number: int) -> str:
    """Return the name of `node`'s interface `number`; raises `InterfaceNameTooLong` when Linux could not take it."""
    interface = f"{node}-eth{number}"
    if len(interface) > INTERFACE_NAME_LIMIT_BYTES:
        most = INTERFACE_NAME_LIMIT_BYTES - len(f"-eth{number}")
        raise InterfaceNameTooLong(
            f"the interface name {interface!r} has {len(interface)} bytes; Linux allows {INTERFACE_NAME_LIMIT_BYTES}",
            f"give the node a name of at most {most} characters",
        )
    return interface


def checked_real_interface(interface: object) -> str:
    """Return `interface` when an Ethernet interface of the machine can have this name; raises `BadName`."""
    if (
        not isinstance(interface, str)
        or not _REAL_INTERFACE.match(interface)
        or interface in ("lo", ".", "..", "all", "default")
    ):
        raise BadName(f"{interface!r} is not the name of an Ethernet interface", "see the names with: ip link")
    return interface


def host_ip(number: int) -> str:
    """Return the IPv4 address with prefix of host `number`."""
    if not 1 <= number <= _HOST_LIMIT:
        raise BadAddress(f"host number {number} has no address in 10.0.0.0/8: at most {_HOST_LIMIT} hosts")
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}/8"


def host_ip6(number: int) -> str:
    """Return the IPv6 address with prefix of host `number`."""
    low = f"{number >> 16:x}:{number & 0xFFFF:x}" if number >> 16 else f"{number:x}"
    return f"fd00::{low}/64"


def host_mac(number: int, interface: int) -> str:
    """Return the MAC of interface `interface` of host `number`."""
    return _mac(0, number, interface)


def router_mac(number: int, interface: int) -> str:
    """Return the MAC of interface `interface` of router `number`."""
    return _mac(0x02, number, interface)


def _mac(first: int, number: int, interface: int) -> str:
    if interface > 255:
        raise BadAddress(f"interface {interface} has no predictable MAC: a host has at most 256 interfaces")
    value = first << 40 | interface << 24 | number
    return value.to_bytes(6, "big").hex(":")


def checked_mac(mac: object) -> str:
    """Return `mac` in lower case when an interface can have it."""
    if not isinstance(mac, str) or not _MAC.match(mac):
        raise BadAddress(f"{mac!r} is not a MAC address", "write for example 00:00:00:00:00:01")
    if int(mac[:2], 16) & 1:
        raise BadAddress(f"{mac!r} is a group address", "make the first byte even, for example 00 or 02")
    if mac.replace(":", "").strip("0") == "":
        raise BadAddress("the MAC address is all zeros", "write for example 00:00:00:00:00:01")
    return mac.lower()


def interface_address(text: object, version: int | None = None) -> str:
    """Return the address with prefix length `text` in its usual form.

    An IPv4 address of 10.0.0.0/8 and an IPv6 address of fd00::/64 may come without: they get /8 and /64.
    """
    example = "fd00::1/64" if version == 6 else "10.0.0.1/8"
    if not isinstance(text, str):
        raise BadAddress(f"{text!r} is not an IP address with its prefix length", f"write for example {example}")
    if version != 6 and _is_plain_ipv4(text):
        return text
    try:
        address = ipaddress.ip_interface(text)
    except ValueError:
        raise BadAddress(
            f"{text!r} is not an IP address with its prefix length", f"write for example {example}"
        ) from None
    if version is not None and address.version != version:
        raise BadAddress(f"{text!r} is not an IPv{version} address", f"write for example {example}")
    if "/" not in text:
        address = _with_default_prefix(address, text)
    if address.ip.is_multicast or address.ip.is_unspecified or address.ip.is_loopback:
        raise BadAddress(f"{text!r} is not an address that an interface can have", f"write for example {example}")
    return str(address)


def _is_plain_ipv4(text: str) -> bool:
    """Return True if `text` is a usable IPv4 address with prefix length in its usual form. Nearly every one is, and
    the full parser would take most of the time in which a large network is built."""
    found = _IPV4_INTERFACE.match(text)
    if found is None:
        return False
    octets = [int(octet) for octet in found.groups()]
    return max(octets[:4]) <= 255 and octets[4] <= 32 and 0 < octets[0] < 224 and octets[0] != 127


def _with_default_prefix(
    address: ipaddress.IPv4Interface | ipaddress.IPv6Interface, text: str
) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    for network in (ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fd00::/64")):
        if address.version == network.version and address.ip in network:
            return ipaddress.ip_interface(f"{text}/{network.prefixlen}")
    raise BadAddress(f"{text!r} has no prefix length", f"write for example {text}/{24 if address.version == 4 else 64}")


def network_prefix(text: object) -> str:
    """Return the destination `text` (``default`` or a prefix such as 10.2.0.0/16) in its usual form."""
    if text == "default":
        return "0.0.0.0/0"
    if not isinstance(text, str):
        raise BadAddress(f"the destination {text!r} is not a prefix", 'write for example "10.2.0.0/16" or "default"')
    return _network_prefix(text)


# A gateway and its prefix stand in the description of every host behind it.
@lru_cache(maxsize=1024)
def _network_prefix(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        raise BadAddress(
            f"the destination {text!r} is not a prefix: {error}", "write for example 10.2.0.0/16"
        ) from None


def next_hop(text: object, destination: str) -> str:
    """Return the address `text` of a next hop towards `destination` in its usual form."""
    if not isinstance(text, str):
        raise BadAddress(f"the next hop {text!r} is not an IP address", "write for example 10.0.0.254")
    return _next_hop(text, destination)


@lru_cache(maxsize=1024)
def _next_hop(text: str, destination: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise BadAddress(f"the next hop {text!r} is not an IP address", "write for example 10.0.0.254") from None
    if address.version != ipaddress.ip_network(destination).version:
        raise BadAddress(f"the next hop {text} and the destination {destination} are of different IP versions")
    return str(address)
