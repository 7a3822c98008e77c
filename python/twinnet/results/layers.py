"""From payload to the network layer, the link layer and the wire: what headers, framing and padding add to packets.

Sizes: IPv4 header 20 bytes (RFC 791); IPv6 header 40, and 8 in each fragment (RFC 8200); UDP 8 (RFC 768); TCP 20
(RFC 9293) and 12 of timestamps (RFC 7323), as Linux sends them; Ethernet header 14 (IEEE 802.3). On the wire also
preamble 8, FCS 4 and inter-frame gap 12, and at least 64 bytes with FCS. VLAN tags are not counted.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["ETHERNET_BYTES", "HEADER_BYTES", "IpVersion", "Layer", "carried_bytes", "payload_limit_bytes"]

Layer = Literal["payload", "network", "link", "wire"]
IpVersion = Literal[4, 6]
Vector = npt.NDArray[np.float64]

ETHERNET_BYTES = 14
"""The bytes that the link layer adds to a packet."""
WIRE_BYTES = 24
SMALLEST_FRAME_BYTES = 60
IP_BYTES: dict[IpVersion, int] = {4: 20, 6: 40}
FRAGMENT_BYTES: dict[IpVersion, int] = {4: 0, 6: 8}
HEADER_BYTES = {"udp": 8, "rtp": 8, "tcp": 20 + 12, "http": 20 + 12, "icmp": 8}
"""Bytes from the end of the IP header to the payload; that of RTP is the payload of UDP, with the header of RTP."""


def payload_limit_bytes(protocol: str, mtu_bytes: int = 1500, ip_version: IpVersion = 4) -> int:
    """The most payload that one packet carries at `mtu_bytes`.

    Examples
    --------
    >>> payload_limit_bytes("tcp"), payload_limit_bytes("tcp", 9000, 6)
    (1448, 8928)
    """
    return mtu_bytes - IP_BYTES[ip_version] - HEADER_BYTES[protocol]


def carried_bytes(
    payload_bytes: Vector,
    packets: Vector | None,
    protocol: str,
    layer: Layer,
    mtu_bytes: int = 1500,
    ip_version: IpVersion = 4,
) -> Vector:
    """The bytes that `layer` carried for `payload_bytes` of `protocol`: an estimate, exact for packets of one size.

    Receivers of datagrams that know the path's MTU count packet by packet (`network_bytes` and `wire_bytes` of the
    table `intervals`); this is for what only gives totals.

    Parameters
    ----------
    payload_bytes
        Bytes that the application received, per interval.
    packets
        Packets per interval where they were counted (UDP), all taken to be of the mean size; otherwise full segments
        are assumed, as bulk TCP sends them. Retransmissions and acknowledgements are not in it.
    mtu_bytes, ip_version
        Of the path.
    """
    if layer == "payload":
        return payload_bytes
    counted = payload_bytes / payload_limit_bytes(protocol, mtu_bytes, ip_version) if packets is None else packets
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_payload = np.where(counted > 0, payload_bytes / np.maximum(counted, 1e-12), 0.0)
    return counted * _carried(mean_payload + HEADER_BYTES[protocol], layer, mtu_bytes, ip_version)


def _carried(transport: Vector, layer: Layer, mtu_bytes: int, ip_version: IpVersion) -> Vector:
    """Bytes at `layer` of packets with `transport` bytes after the IP header, in fragments where they are longer than
    the path takes."""
    header, more = IP_BYTES[ip_version], FRAGMENT_BYTES[ip_version]
    # A thousandth of a byte: a mean that differs from a whole number only by floating point is that.
    whole = transport + header <= mtu_bytes + 1e-3
    room = max(8, (mtu_bytes - header - more) // 8 * 8)
    full = np.where(whole, 0.0, np.ceil((transport - 1e-3) / room) - 1)
    each = np.where(whole, header, header + more)
    last = each + transport - full * room
    if layer == "wire":
        return full * _on_wire(each + room) + _on_wire(last)
    network = full * (each + room) + last
    return network if layer == "network" else network + (full + 1) * ETHERNET_BYTES


def _on_wire(packet: Vector) -> Vector:
    return np.maximum(packet + ETHERNET_BYTES, SMALLEST_FRAME_BYTES) + WIRE_BYTES
