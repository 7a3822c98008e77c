"""Frames for the cases, built from the names that OpenFlow gives to their fields.

Nothing here is shared with the switch under test: a rewritten frame is right when it equals one that was built with the
new value, checksums included.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "EXTENSION_HEADERS",
    "arp",
    "build",
    "ethernet",
    "internet_checksum",
    "ipv4",
    "ipv6",
    "mpls",
    "sctp_crc",
    "vlan",
]

ETH_DST = 0x0A00_0000_0002
ETH_SRC = 0x0A00_0000_0001
IPV4_SRC = 0x0A000001
IPV4_DST = 0x0A000002
IPV6_SRC = 0x20010DB8 << 96 | 1
IPV6_DST = 0x20010DB8 << 96 | 2
PAYLOAD = bytes(range(64))

TCP, UDP, SCTP, ICMP, ICMPV6 = 6, 17, 132, 1, 58
NEIGHBOUR_SOLICITATION, NEIGHBOUR_ADVERTISEMENT = 135, 136

EXTENSION_HEADERS = {"none": 1, "esp": 2, "auth": 4, "dest": 8, "frag": 16, "router": 32, "hop": 64}
"""Bits of ``ipv6_exthdr`` that say that a header is there (OpenFlow 1.3.5, 7.2.3.8)."""


def internet_checksum(data: bytes) -> int:
    """Return the checksum of RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def sctp_crc(data: bytes) -> int:
    """Return CRC32c (RFC 9260, appendix A), in the order in which it is written."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return int.from_bytes((crc ^ 0xFFFFFFFF).to_bytes(4, "little"))


def ethernet(dst: int, src: int, ethertype: int, rest: bytes) -> bytes:
    """Return an Ethernet frame without its check sequence, of at least 60 bytes."""
    return (dst.to_bytes(6) + src.to_bytes(6) + ethertype.to_bytes(2) + rest).ljust(60, b"\0")


def vlan(vid: int, pcp: int, ethertype: int, rest: bytes) -> bytes:
    """Return what follows the tag's own Ethernet type."""
    return (pcp << 13 | vid & 0xFFF).to_bytes(2) + ethertype.to_bytes(2) + rest


def mpls(label: int, tc: int, bos: int, ttl: int, rest: bytes) -> bytes:
    """Return a label stack entry and what it is before."""
    return (label << 12 | tc << 9 | bos << 8 | ttl).to_bytes(4) + rest


def ipv4(fields: Mapping[str, int], payload: bytes) -> bytes:
    """Return a packet; `fields` may have ``ip_ttl``, ``ip_fragment`` (flags and offset) and ``ip_options`` (words)."""
    options = bytes([1]) * (4 * fields.get("ip_options", 0))
    words = 5 + len(options) // 4
    head = bytes([0x40 | words, fields.get("ip_dscp", 0) << 2 | fields.get("ip_ecn", 0)])
    head += (4 * words + len(payload)).to_bytes(2) + (7).to_bytes(2) + fields.get("ip_fragment", 0).to_bytes(2)
    head += bytes([fields.get("ip_ttl", 64), fields.get("ip_proto", 253), 0, 0])
    head += fields.get("ipv4_src", IPV4_SRC).to_bytes(4) + fields.get("ipv4_dst", IPV4_DST).to_bytes(4) + options
    return head[:10] + internet_checksum(head).to_bytes(2) + head[12:] + payload


def ipv6(fields: Mapping[str, int], payload: bytes) -> bytes:
    """Return a packet with the extension headers that ``ipv6_exthdr`` names."""
    headers, first = _extension_headers(fields.get("ipv6_exthdr", 0), fields.get("ip_proto", 253))
    payload = headers + payload
    word = 6 << 28 | fields.get("ip_dscp", 0) << 22 | fields.get("ip_ecn", 0) << 20 | fields.get("ipv6_flabel", 0)
    head = word.to_bytes(4) + len(payload).to_bytes(2) + bytes([first, fields.get("ip_ttl", 64)])
    addresses = fields.get("ipv6_src", IPV6_SRC).to_bytes(16) + fields.get("ipv6_dst", IPV6_DST).to_bytes(16)
    return head + addresses + payload


def _extension_headers(wanted: int, protocol: int) -> tuple[bytes, int]:
    """Return the headers in the order of RFC 8200, 4.1, and the number of the first one."""
    chain: list[tuple[int, bytes]] = []
    for name, number, rest in (
        ("hop", 0, bytes([0, 1, 4, 0, 0, 0, 0])),
        ("dest", 60, bytes([0, 1, 4, 0, 0, 0, 0])),
        ("router", 43, bytes([0, 253, 0, 0, 0, 0, 0])),
        ("frag", 44, bytes([0, 0, 0, 0, 0, 0, 9])),
        ("auth", 51, bytes([4, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1]) + bytes(12)),
    ):
        if wanted & EXTENSION_HEADERS[name]:
            chain.append((number, rest))
    last = 59 if wanted & EXTENSION_HEADERS["none"] else 50 if wanted & EXTENSION_HEADERS["esp"] else protocol
    numbers = [number for number, _ in chain] + [last]
    return b"".join(bytes([after]) + rest for (_, rest), after in zip(chain, numbers[1:], strict=True)), numbers[0]


def arp(fields: Mapping[str, int]) -> bytes:
    """Return a packet of ARP."""
    return (
        bytes([0, 1, 8, 0, 6, 4])
        + fields.get("arp_op", 1).to_bytes(2)
        + fields.get("arp_sha", ETH_SRC).to_bytes(6)
        + fields.get("arp_spa", IPV4_SRC).to_bytes(4)
        + fields.get("arp_tha", 0).to_bytes(6)
        + fields.get("arp_tpa", IPV4_DST).to_bytes(4)
    )


def build(**fields: int) -> bytes:
    """Return the frame whose fields have these values; the layers are those that the fields need.

    Beside the names of OpenFlow: ``ip_ttl`` and ``mpls_ttl``, ``vlan_tpid``, ``ip_fragment`` and ``ip_options``,
    ``pbb_tci`` (the upper octet of an I-TAG). ``vlan_vid`` is that of the tag, without OpenFlow's bit for "present".
    """
    ethertype, rest = _network_layer(fields)
    if any(name.startswith("mpls_") for name in fields):
        label = fields.get("mpls_label", 16)
        rest = mpls(label, fields.get("mpls_tc", 0), fields.get("mpls_bos", 1), fields.get("mpls_ttl", 64), rest)
        ethertype = fields.get("eth_type", 0x8847)
    if "pbb_isid" in fields:
        inner = ethernet(ETH_DST, ETH_SRC, ethertype, rest)
        rest = bytes([fields.get("pbb_tci", 0)]) + fields["pbb_isid"].to_bytes(3) + inner
        ethertype = 0x88E7
    if "vlan_vid" in fields or "vlan_pcp" in fields:
        rest = vlan(fields.get("vlan_vid", 1), fields.get("vlan_pcp", 0), ethertype, rest)
        ethertype = fields.get("vlan_tpid", 0x8100)
    return ethernet(fields.get("eth_dst", ETH_DST), fields.get("eth_src", ETH_SRC), ethertype, rest)


def _network_layer(fields: Mapping[str, int]) -> tuple[int, bytes]:
    ethertype = fields.get("eth_type")
    labelled = ethertype in (0x8847, 0x8848, 0x88E7)
    if ethertype == 0x0806 or (ethertype is None and any(name.startswith("arp_") for name in fields)):
        return 0x0806, arp(fields)
    of_six = ("ipv6_src", "ipv6_dst", "ipv6_flabel", "ipv6_exthdr", "ipv6_nd_target", "icmpv6_type", "icmpv6_code")
    if ethertype == 0x86DD or ((ethertype is None or labelled) and any(name in fields for name in of_six)):
        return 0x86DD, ipv6(fields, _transport_layer(fields, six=True))
    if ethertype is None or ethertype == 0x0800 or labelled:
        return 0x0800, ipv4(fields, _transport_layer(fields, six=False))
    return ethertype, PAYLOAD


def _transport_layer(fields: Mapping[str, int], *, six: bool) -> bytes:
    protocol = fields.get("ip_proto", 253)
    names = {TCP: "tcp", UDP: "udp", SCTP: "sctp"}
    if protocol in names:
        name = names[protocol]
        ports = fields.get(f"{name}_src", 1000).to_bytes(2) + fields.get(f"{name}_dst", 2000).to_bytes(2)
    else:
        ports = b""
    if protocol == TCP:
        segment = ports + bytes([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0]) + PAYLOAD
        return _summed(fields, segment, 16, six=six)
    if protocol == UDP:
        return _summed(fields, ports + (8 + len(PAYLOAD)).to_bytes(2) + b"\0\0" + PAYLOAD, 6, six=six)
    if protocol == SCTP:
        packet = ports + bytes([0, 0, 0, 9, 0, 0, 0, 0, 0, 3, 0, 4 + len(PAYLOAD)]) + PAYLOAD
        return packet[:8] + sctp_crc(packet).to_bytes(4) + packet[12:]
    if protocol == ICMP and not six:
        message = bytes([fields.get("icmpv4_type", 8), fields.get("icmpv4_code", 0), 0, 0, 0, 1, 0, 2]) + PAYLOAD
        return message[:2] + internet_checksum(message).to_bytes(2) + message[4:]
    if protocol == ICMPV6 and six:
        kind = fields.get("icmpv6_type", 128)
        message = bytes([kind, fields.get("icmpv6_code", 0), 0, 0])
        if kind in (NEIGHBOUR_SOLICITATION, NEIGHBOUR_ADVERTISEMENT):
            message += bytes(4) + fields.get("ipv6_nd_target", IPV6_DST).to_bytes(16)
            option, name = (1, "ipv6_nd_sll") if kind == NEIGHBOUR_SOLICITATION else (2, "ipv6_nd_tll")
            message += bytes([option, 1]) + fields.get(name, ETH_SRC).to_bytes(6)
        else:
            message += bytes([0, 1, 0, 2]) + PAYLOAD
        return _summed(fields, message, 2, six=True)
    return PAYLOAD


def _summed(fields: Mapping[str, int], segment: bytes, at: int, *, six: bool) -> bytes:
    """Return `segment` with its checksum over a pseudo-header at `at`."""
    protocol = fields.get("ip_proto", 253)
    if six:
        pseudo = fields.get("ipv6_src", IPV6_SRC).to_bytes(16) + fields.get("ipv6_dst", IPV6_DST).to_bytes(16)
    else:
        pseudo = fields.get("ipv4_src", IPV4_SRC).to_bytes(4) + fields.get("ipv4_dst", IPV4_DST).to_bytes(4)
    pseudo += len(segment).to_bytes(4) + protocol.to_bytes(4)
    total = internet_checksum(pseudo + segment)
    if total == 0 and protocol == UDP:
        total = 0xFFFF
    return segment[:at] + total.to_bytes(2) + segment[at + 2 :]
