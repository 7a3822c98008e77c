"""As much of frames as controllers look at: addresses, types, ARP, and what tells flows apart."""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = [
    "ARP",
    "IPV4",
    "IPV6",
    "ArpPacket",
    "eth_type",
    "flow_words",
    "is_group",
    "mac_bytes",
    "mac_text",
    "payload",
]

ARP = 0x0806
IPV4 = 0x0800
IPV6 = 0x86DD
_VLANS = (0x8100, 0x88A8)
_ARP_REQUEST, _ARP_REPLY = 1, 2
_ARP = struct.Struct("!HHBBH6s4s6s4s")
_WITH_PORTS = (6, 17, 132)


def mac_text(address: bytes) -> str:
    """Return six bytes as ``00:00:00:00:00:01``."""
    return ":".join(f"{byte:02x}" for byte in address)


def mac_bytes(address: str) -> bytes:
    """Return ``00:00:00:00:00:01`` as six bytes."""
    return bytes.fromhex(address.replace(":", ""))


def is_group(address: str) -> bool:
    """Return whether `address` is a broadcast or multicast address.

    Examples
    --------
    >>> is_group("ff:ff:ff:ff:ff:ff"), is_group("00:00:00:00:00:01")
    (True, False)
    """
    return int(address[:2] or "0", 16) & 1 == 1


def payload(frame: bytes) -> tuple[int, int]:
    """Return the type of what `frame` carries behind VLAN tags, and the byte at which that begins."""
    at = 12
    while len(frame) >= at + 4 and int.from_bytes(frame[at : at + 2], "big") in _VLANS:
        at += 4
    return int.from_bytes(frame[at : at + 2], "big"), at + 2


def eth_type(frame: bytes) -> int:
    """Return the type of what `frame` carries, behind VLAN tags."""
    return payload(frame)[0]


@dataclass(frozen=True)
class ArpPacket:
    """An ARP packet for IPv4 over Ethernet (RFC 826)."""

    is_request: bool
    sender_mac: str
    sender_ip: str
    target_mac: str
    target_ip: str

    @classmethod
    def parse(cls, frame: bytes) -> ArpPacket | None:
        """Return the ARP packet in `frame`; ``None`` when it holds none."""
        kind, at = payload(frame)
        if kind != ARP or len(frame) < at + _ARP.size:
            return None
        hardware, protocol, mac_bytes_, ip_bytes, operation, *addresses = _ARP.unpack_from(frame, at)
        if (hardware, protocol, mac_bytes_, ip_bytes) != (1, IPV4, 6, 4):
            return None
        sender_mac, sender_ip, target_mac, target_ip = addresses
        ip = [".".join(str(byte) for byte in one) for one in (sender_ip, target_ip)]
        return cls(operation == _ARP_REQUEST, mac_text(sender_mac), ip[0], mac_text(target_mac), ip[1])

    def reply(self, mac: str) -> bytes:
        """Return the frame that answers this request: its target has the address `mac`."""
        ip = [bytes(int(part) for part in one.split(".")) for one in (self.target_ip, self.sender_ip)]
        asker, owner = mac_bytes(self.sender_mac), mac_bytes(mac)
        packet = _ARP.pack(1, IPV4, 6, 4, _ARP_REPLY, owner, ip[0], asker, ip[1])
        return (asker + owner + ARP.to_bytes(2, "big") + packet).ljust(60, b"\0")


@dataclass(frozen=True)
class _Words:
    conditions: str
    key: bytes


def flow_words(frame: bytes) -> _Words:
    """Return what tells the flow of `frame` apart: as conditions in ``ovs-ofctl`` syntax, and as bytes to hash.

    IPv4 goes by addresses, protocol and (where it is no fragment) ports; all else by hardware addresses and type.
    """
    kind, at = payload(frame)
    dst, src = mac_text(frame[0:6]), mac_text(frame[6:12])
    words = [f"dl_src={src}", f"dl_dst={dst}", f"dl_type=0x{kind:04x}"]
    key = frame[0:12] + kind.to_bytes(2, "big")
    if kind == IPV4 and len(frame) >= at + 20:
        protocol, addresses = frame[at + 9], frame[at + 12 : at + 20]
        source, target = (".".join(str(byte) for byte in addresses[n : n + 4]) for n in (0, 4))
        words += [f"nw_src={source}", f"nw_dst={target}", f"nw_proto={protocol}"]
        key += addresses + bytes([protocol])
        ports_at = at + 4 * (frame[at] & 15)
        whole = int.from_bytes(frame[at + 6 : at + 8], "big") & 0x3FFF == 0
        if protocol in _WITH_PORTS and whole and len(frame) >= ports_at + 4:
            ports = frame[ports_at : ports_at + 4]
            words += [f"tp_src={int.from_bytes(ports[:2], 'big')}", f"tp_dst={int.from_bytes(ports[2:], 'big')}"]
            key += ports
    return _Words(",".join(words), key)
