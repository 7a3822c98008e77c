"""The messages of the lab protocol (docs/reference/lab-protocol.md) on a socket: one JSON object a packet, descriptors
beside, and a memfd for what is too large for a packet."""

from __future__ import annotations

import array
import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any, cast

from twinnet.errors import BadValue

__all__ = ["PACKET_LIMIT_BYTES", "receive", "receive_with_descriptors", "send"]

PACKET_LIMIT_BYTES = 128 * 1024
"""A larger message travels as a memfd."""
_DESCRIPTOR_LIMIT = 16


def send(to: socket.socket, message: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send `message`, and duplicates of `descriptors` beside it.

    Raises
    ------
    BadValue
        When the message is too large for a packet and has descriptors beside.
    """
    # Arguments that are no text in the locale come as the bytes that they were.
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    packet = text.encode(errors="surrogateescape")
    if len(packet) <= PACKET_LIMIT_BYTES:
        socket.send_fds(to, [packet], list(descriptors))
        return
    if descriptors:
        raise BadValue(f"a request of {len(packet)} bytes cannot carry descriptors", "shorten the command")
    memory = os.memfd_create("twinnet-message", os.MFD_CLOEXEC)
    with os.fdopen(memory, "wb") as file:
        file.write(packet)
        file.flush()
        file.seek(0)
        # The number is for a lab that cannot take the descriptor.
        note = {"memfd": True, "id": message["id"]}
        socket.send_fds(to, [json.dumps(note).encode()], [memory])


def receive(sock: socket.socket) -> dict[str, Any] | None:
    """Return the next message, ``None`` when there will be none. Descriptors beside it are closed."""
    message, descriptors = receive_with_descriptors(sock)
    for descriptor in descriptors:
        os.close(descriptor)
    return message


def receive_with_descriptors(sock: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """Return the next message, ``None`` when there will be none, and the descriptors beside it, which belong to the
    caller; raises `ValueError` when it is no JSON."""
    size = array.array("i").itemsize
    limits = (2 * PACKET_LIMIT_BYTES, socket.CMSG_SPACE(_DESCRIPTOR_LIMIT * size), socket.MSG_CMSG_CLOEXEC)
    try:
        packet, ancillary, _, _ = sock.recvmsg(*limits)
    except ConnectionResetError:
        # Told once when the peer left without reading all; what it said before is still to be had.
        packet, ancillary, _, _ = sock.recvmsg(*limits)
    numbers = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers.frombytes(data[: len(data) - len(data) % size])
    descriptors = list(numbers)
    try:
        message: Any = json.loads(packet) if packet else None
        if isinstance(message, dict) and "memfd" in message and descriptors:
            message = json.loads(os.pread(descriptors[0], os.fstat(descriptors[0]).st_size, 0))
            os.close(descriptors.pop(0))
        if not (message is None or isinstance(message, dict)):
            raise ValueError("a message is an object")
        return cast("dict[str, Any] | None", message), descriptors
    except BaseException:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
