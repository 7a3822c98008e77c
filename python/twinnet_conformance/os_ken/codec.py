"""What os-ken's package is used for: its messages from JSON and back from bytes, and its frames from expressions.

The only module here that touches the package, which has no types.
"""

# pyright: basic

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import netaddr
from os_ken.lib.packet import arp, ethernet, icmp, icmpv6, ipv4, ipv6, mpls, packet, pbb, sctp, tcp, udp, vlan
from os_ken.ofproto import ofproto_parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

__all__ = ["Reply", "describe", "differs", "entries", "frame", "frame_maker", "message", "reply"]

_PROTOCOLS: dict[str, Any] = {
    "arp": arp.arp,
    "auth": ipv6.auth,
    "chunk_data": sctp.chunk_data,
    "dest_unreach": icmp.dest_unreach,
    "echo": icmp.echo,
    "ethernet": ethernet.ethernet,
    "hop_opts": ipv6.hop_opts,
    "icmp": icmp.icmp,
    "icmpv6": icmpv6.icmpv6,
    "icmpv6echo": icmpv6.echo,
    "ipv4": ipv4.ipv4,
    "ipv6": ipv6.ipv6,
    "itag": pbb.itag,
    "mpls": mpls.mpls,
    "nd_neighbor": icmpv6.nd_neighbor,
    "nd_option_sla": icmpv6.nd_option_sla,
    "nd_option_tla": icmpv6.nd_option_tla,
    "netaddr": netaddr,
    "option": ipv6.option,
    "sctp": sctp.sctp,
    "svlan": vlan.svlan,
    "tcp": tcp.tcp,
    "udp": udp.udp,
    "vlan": vlan.vlan,
    "bytes": bytes,
}
"""The words of the files' expressions; they know no others."""


@dataclass(frozen=True)
class Reply:
    """A message of a switch as os-ken reads it."""

    kind: str
    parsed: Any


def message(version: int, written: dict[str, Any]) -> tuple[bytes, Any]:
    """Return a message of the files as bytes, and as the object that what is read back is compared with."""
    built: Any = ofproto_parser.ofp_msg_from_jsondict(ProtocolDesc(version), written)
    built.xid = 0
    built.serialize()
    return bytes(built.buf), built


def reply(version: int, data: bytes) -> Reply:
    """Read a whole message of a switch."""
    read: Any = ofproto_parser.msg(
        ProtocolDesc(version), data[0], data[1], len(data), int.from_bytes(data[4:8]), bytearray(data)
    )
    return Reply(type(read).__name__, read)


def frame_maker(layers: Sequence[str], seed: int) -> Any:
    """Return what makes a frame of `layers` on each call; random fields come from a stream of their own."""
    stream = random.Random(seed)
    words = {**_PROTOCOLS, "randint": stream.randint, "__builtins__": {}}
    # A file of the installed package, as trusted as its modules, and with no words but these.
    program = compile("/".join(layers), "frame", "eval")

    def make() -> bytes:
        built = eval(program, words)
        built.serialize()
        return bytes(built.data)

    return make


def frame(layers: Sequence[str]) -> bytes:
    """Return the frame of `layers`."""
    return frame_maker(layers, 0)()


def describe(data: bytes) -> str:
    """Return a frame's headers in words."""
    return str(packet.Packet(data))


def entries(read: Reply) -> list[Any]:
    """Return the entries of a statistics reply."""
    return list(read.parsed.body)


def differs(installed: Any, reported: Any, attributes: Sequence[str]) -> str:
    """Return how what a switch says differs from what was installed; empty: not at all.

    As os-ken's tester has it: actions and instructions in the order of their types, without the wildcards of 1.0.
    """
    for attribute in attributes:
        wanted, found = (_comparable(one, attribute) for one in (installed, reported))
        if wanted != found:
            return f"{attribute}: {found} is reported, where {wanted} was written"
    return ""


def _comparable(one: Any, attribute: str) -> str:
    value = getattr(one, attribute)
    if attribute in ("actions", "instructions"):
        value = sorted(value, key=lambda part: part.type)
    elif attribute == "match":
        value = value.to_jsondict()
        value["OFPMatch"].pop("wildcards", None)
    return str(value)
