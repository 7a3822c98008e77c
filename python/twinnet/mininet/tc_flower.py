"""The words of the filters ``flower`` and ``matchall`` of ``tc``: what they compare, and how they are shown."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from twinnet.mininet.tc_u32 import Key
from twinnet.mininet.tc_words import LineRefused, class_id, matching, number, prefix, taken

__all__ = ["ETHER_ALL", "Flower", "read_flower", "read_match_all"]

ETHER_ALL = 3
"""What stands for all protocols (``ETH_P_ALL``)."""
_IPV4, _IPV6 = 0x0800, 0x86DD
_PROTOCOLS = {"tcp": 6, "udp": 17, "sctp": 132, "icmp": 1, "icmpv6": 58}
_NO_HARDWARE = "skip_sw is not there: no hardware does it instead"
_WITH_PORTS = ("tcp", "udp", "sctp")
_SHOWN_TYPES = {_IPV4: "ipv4", _IPV6: "ipv6", 0x0806: "arp", 0x8035: "rarp"}


@dataclass
class Flower:
    """What the words of a ``flower`` or ``matchall`` say.

    Parameters
    ----------
    protocol
        The filter's protocol, as an EtherType.
    flowid
        The class that is chosen.
    keys
        The words of the header that are compared, by the names of ``flower``.
    shown
        How the names are shown.
    flags
        ``skip_hw`` and ``skip_sw``.
    refused
        What ``tc`` reads and our filters do not have: the first such word, and the reason.
    ip_protocol
        The protocol in the network header, as it is shown.
    all
        Whether it is a ``matchall``.
    """

    protocol: int
    flowid: str = ""
    keys: dict[str, list[Key]] = field(default_factory=dict[str, list[Key]])
    shown: dict[str, str] = field(default_factory=dict[str, str])
    flags: list[str] = field(default_factory=list[str])
    refused: str = ""
    ip_protocol: str = ""
    all: bool = False

    @property
    def six(self) -> bool:
        """Whether the network header is that of IPv6."""
        return self.protocol == _IPV6

    def compare(self, name: str, keys: list[Key], shown: str) -> None:
        """Compare `keys`; of a name that is there twice the last one counts."""
        self.keys[name], self.shown[name] = keys, shown

    def lines(self) -> list[str]:
        """Return what ``tc filter show`` prints of them, in the order of iproute2."""
        said = [f"{name} {self.shown[name]}" for name in _ORDER if name in self.shown]
        if self.protocol != ETHER_ALL and not self.all:
            said.insert(0, f"eth_type {_SHOWN_TYPES.get(self.protocol) or f'{self.protocol:04x}'}")
        return [f"  {line}\n" for line in (*said, *self.flags, "not_in_hw")]


def read_flower(words: list[str], protocol: int) -> Flower:
    """Return what the words after ``flower`` say; raises :class:`LineRefused`."""
    found = Flower(protocol)
    given = list(words)
    while given:
        word = given.pop(0)
        name = word if word in _LATER else matching(word, _NAMES)
        if name is None:
            raise LineRefused(f'What is "{word}"?\nOur flower has {", ".join(_READERS)}.', 1)
        if name in ("skip_hw", "skip_sw"):
            found.flags += [] if name in found.flags else [name]
        elif name in ("classid", "flowid"):
            found.flowid = _class(taken(given))
        elif name in _READERS:
            try:
                _READERS[name](found, name, taken(given))
            except ValueError:
                said = f"icmp {name}" if name in ("type", "code") else name
                raise LineRefused(f'Illegal "{said}"', 1) from None
        elif name in ("vlan_id", "vlan_prio") and protocol not in (0x8100, 0x88A8):
            where = "if ethertype isn't 802.1Q or 802.1AD and num_of_vlans is 0"
            raise LineRefused(f'Can\'t set "{name}" {where}', 1)
        else:
            raise LineRefused(f"flower {name} is not there; our flower has {', '.join(_READERS)}")
    if "skip_sw" in found.flags:
        found.refused = found.refused or _NO_HARDWARE
    return found


def read_match_all(words: list[str], protocol: int) -> Flower:
    """Return what the words after ``matchall`` say; raises :class:`LineRefused`."""
    found = Flower(protocol, all=True)
    given = list(words)
    while given:
        word = given.pop(0)
        if word in ("skip_hw", "skip_sw"):
            # iproute2 wants another word behind these.
            found.flags += [] if word in found.flags else [word]
            if not given:
                taken(given)
        elif word == "flowid" or "classid".startswith(word):
            found.flowid = _class(taken(given))
        elif "action".startswith(word):
            raise LineRefused("matchall action is not there: our filters choose classes (flowid)")
        else:
            raise LineRefused(f'What is "{word}"?', 1)
    if len(found.flags) > 1:
        raise LineRefused("skip_hw and skip_sw are mutually exclusive", 1)
    if "skip_sw" in found.flags:
        found.refused = _NO_HARDWARE
    return found


def _class(text: str) -> str:
    try:
        return class_id(text)
    except ValueError:
        raise LineRefused('Illegal "classid"', 1) from None


def _ip_protocol(found: Flower, name: str, text: str) -> None:
    if found.protocol not in (_IPV4, _IPV6):
        raise LineRefused('Illegal "eth_type" for ip proto\nIllegal "ip_proto"', 1)
    known = matching(text, tuple(_PROTOCOLS))
    if known == ("icmp" if found.six else "icmpv6"):
        raise LineRefused('Illegal "eth_type" for ip proto\nIllegal "ip_proto"', 1)
    value = _PROTOCOLS[known] if known else number(text, 16, 0xFF)
    named = {each: said for said, each in _PROTOCOLS.items()}
    found.ip_protocol = named.get(value, f"{value:02x}")
    found.compare(name, [_key(6 if found.six else 9, 8, value)], found.ip_protocol)


def _address(found: Flower, name: str, text: str) -> None:
    if found.protocol not in (_IPV4, _IPV6):
        raise ValueError(text)
    try:
        address, mask = prefix(text, found.six)
    except ValueError:
        kind = "inet6" if found.six else "inet"
        raise LineRefused(f'Error: {kind} prefix is expected rather than "{text}".', 1) from None
    places = {"src_ip": (12, 8), "dst_ip": (16, 24)}
    at, width = places[name][found.six], 128 if found.six else 32
    keys = [
        Key(at + (width - 32 - shift) // 8, False, part, address >> shift & 0xFFFFFFFF)
        for shift in range(width - 32, -1, -32)
        if (part := mask >> shift & 0xFFFFFFFF)
    ]
    packed = address.to_bytes(width // 8)
    spelled = socket.inet_ntop(socket.AF_INET6 if found.six else socket.AF_INET, packed)
    length = mask.bit_count()
    found.compare(name, keys, spelled if length == width else f"{spelled}/{length}")


def _port(found: Flower, name: str, text: str) -> None:
    first, dash, last = text.partition("-")
    mask = 0xFFFF
    if dash:
        span = [number(part, 10, 0xFFFF) for part in (first, last)]
        if span[1] <= span[0]:
            raise LineRefused(f'max value should be greater than min value\nIllegal "{name}"', 1)
        found.refused = found.refused or f"{name} {text} is not there: give one port, or a mask as in 80/0xfff0"
    elif "/" in text:
        first, _, told = text.partition("/")
        mask = number(told, most=0xFFFF)
    value = number(first, 0 if "/" in text else 10, 0xFFFF)
    if found.ip_protocol not in _WITH_PORTS or not value:
        raise ValueError(text)
    at = (40 if found.six else 20) + (0 if name == "src_port" else 2)
    keys = [_key(at, 16, value & mask, mask)]
    if not found.six:
        # Only datagrams in one piece have ports to flower, and only behind a header without options can they be seen.
        keys += [_key(0, 8, 0x05, 0x0F), _key(6, 16, 0, 0x3FFF)]
    found.compare(name, keys, f"{value}" if mask == 0xFFFF else f"{value}/{mask:#x}")


def _octet(found: Flower, name: str, text: str) -> None:
    """``ip_tos`` and ``ip_ttl``; iproute2 reads values as decimal, else as hexadecimal, and masks as hexadecimal."""
    if found.protocol not in (_IPV4, _IPV6):
        raise ValueError(text)
    value_text, slash, mask_text = text.partition("/")
    mask = number(mask_text, 16, 0xFF) if slash else 0xFF
    try:
        value = number(value_text, 10, 0xFF)
    except ValueError:
        value = number(value_text, 16, 0xFF)
    keys = [_key(8 if name == "ip_ttl" else 1, 8, value & mask, mask)]
    if found.six:
        shift = 0 if name == "ip_ttl" else 20
        keys = [Key(4 if name == "ip_ttl" else 0, False, mask << shift, (value & mask) << shift)]
    found.compare(name, keys, f"{value}" if mask == 0xFF else f"{value}/{mask:#x}")


def _icmp(found: Flower, name: str, text: str) -> None:
    if found.ip_protocol != ("icmpv6" if found.six else "icmp"):
        raise ValueError(text)
    value_text, slash, mask_text = text.partition("/")
    value, mask = number(value_text, 10, 0xFF), number(mask_text, 10, 0xFF) if slash else 0xFF
    at = (40 if found.six else 20) + (name == "code")
    keys = [_key(at, 8, value & mask, mask)]
    if not found.six:
        keys += [_key(0, 8, 0x05, 0x0F), _key(6, 16, 0, 0x3FFF)]
    found.compare(f"icmp_{name}", keys, f"{value}" if mask == 0xFF else f"{value}/{mask:#x}")


def _key(at: int, bits: int, value: int, mask: int | None = None) -> Key:
    """The word that has the value of `bits` bits at the byte `at`."""
    shift = 32 - bits - at % 4 * 8
    return Key(at - at % 4, False, ((1 << bits) - 1 if mask is None else mask) << shift, value << shift)


_READERS: dict[str, Callable[[Flower, str, str], None]] = {
    "ip_proto": _ip_protocol,
    "ip_tos": _octet,
    "ip_ttl": _octet,
    "dst_ip": _address,
    "src_ip": _address,
    "dst_port": _port,
    "src_port": _port,
    "type": _icmp,
    "code": _icmp,
}
_ORDER = ("ip_proto", "ip_tos", "ip_ttl", "dst_ip", "src_ip", "dst_port", "src_port", "icmp_type", "icmp_code")
_LATER = ("num_of_vlans", "pppoe_sid", "ppp_proto")
_NAMES = (
    *("classid", "flowid", "hw_tc", "ip_flags", "verbose", "skip_hw", "skip_sw"),
    *("ct_state", "ct_zone", "ct_mark", "ct_label", "indev", "vlan_id", "vlan_prio", "vlan_ethtype"),
    *("cvlan_id", "cvlan_prio", "cvlan_ethtype", "mpls", "mpls_label", "mpls_tc", "mpls_bos", "mpls_ttl"),
    *("dst_mac", "src_mac", "ip_proto", "ip_tos", "ip_ttl", "dst_ip", "src_ip", "dst_port", "src_port"),
    *("tcp_flags", "type", "code", "arp_tip", "arp_sip", "arp_op", "arp_tha", "arp_sha"),
    *("enc_dst_ip", "enc_src_ip", "enc_key_id", "enc_dst_port", "enc_tos", "enc_ttl", "geneve_opts", "vxlan_opts"),
    *("erspan_opts", "gtp_opts", "action"),
)
