"""From payload to the link layer and to the wire: what headers, framing and padding add to every packet.

Sizes: Ethernet header 14 bytes (IEEE 802.3); IPv4 header 20 (RFC 791); UDP 8 (RFC 768); TCP 20 (RFC 9293) and 12 of
timestamps (RFC 7323), as Linux sends them. On the wire also preamble 8, FCS 4 and inter-frame gap 12, and at least 64
bytes with FCS.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["HEADER_BYTES", "Layer", "carried_bytes", "payload_limit_bytes"]

Layer = Literal["payload", "link", "wire"]
Vector = npt.NDArray[np.float64]

ETHERNET_BYTES = 14
WIRE_BYTES = 24
SMALLEST_FRAME_BYTES = 60
HEADER_BYTES = {"udp": 20 + 8, "rtp": 20 + 8, "tcp": 20 + 20 + 12, "http": 20 + 20 + 12, "icmp": 20 + 8}
"""Bytes from the IP header to the payload; that of RTP is the payload of UDP, with the header of RTP."""


def payload_limit_bytes(protocol: str, mtu_bytes: int = 1500) -> int:
    """The most payload that one packet carries at `mtu_bytes`.

    Examples
    --------
    >>> payload_limit_bytes("tcp")
    1448
    """
    return mtu_bytes - HEADER_BYTES[protocol]


def carried_bytes(
    payload_bytes: Vector, packets: Vector | None, protocol: str, layer: Layer, mtu_bytes: int = 1500
) -> Vector:
    """The bytes that `layer` carried for `payload_bytes` of `protocol`.

    Parameters
    ----------
    payload_bytes
        Bytes that the application received, per interval.
    packets
        Packets per interval where they were counted (UDP); otherwise full segments are assumed, as bulk TCP sends them.
        Retransmissions and acknowledgements are not in it.
    """
    if layer == "payload":
        return payload_bytes
    counted = payload_bytes / payload_limit_bytes(protocol, mtu_bytes) if packets is None else packets
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_payload = np.where(counted > 0, payload_bytes / np.maximum(counted, 1e-12), 0.0)
    # A datagram larger than the MTU travels as fragments, each with its own IP and Ethernet headers.
    transport = HEADER_BYTES[protocol] - 20
    fragments = np.maximum(1.0, np.ceil((mean_payload + transport) / (mtu_bytes - 20)))
    frame = mean_payload + transport + fragments * (20 + ETHERNET_BYTES)
    frame = np.maximum(frame, SMALLEST_FRAME_BYTES)
    if layer == "wire":
        frame = frame + fragments * WIRE_BYTES
    return counted * frame
