"""Frames that our own ``ovs-ofctl`` has a switch send: ``packet-out``, in its two forms."""

from __future__ import annotations

import re
from collections.abc import Mapping

from twinnet.mininet.ofctl_call import Call, Command
from twinnet.mininet.tool_connection import codec_of
from twinnet.ovsdb.qos_rows import Refused

__all__ = ["PACKET_COMMANDS"]

_LEAST_BYTES = 14
"""Of a frame of Ethernet: its header."""
_NO_BUFFER = 0xFFFF_FFFF
_ANY = 0xFFFF_FFFF
_RESERVED: Mapping[str, int] = {
    "in_port": 0xFFFF_FFF8,
    "table": 0xFFFF_FFF9,
    "normal": 0xFFFF_FFFA,
    "flood": 0xFFFF_FFFB,
    "all": 0xFFFF_FFFC,
    "controller": 0xFFFF_FFFD,
    "local": 0xFFFF_FFFE,
    "any": _ANY,
    "none": _ANY,
}
"""Ports that are no places of a switch (OpenFlow 1.3, section 7.2.1)."""
_LAST_OF_10 = 0xFFFF


def _port(text: str) -> int | None:
    """The port that `text` names or numbers; the last 256 of 16 bits are those that are no places."""
    if (port := _RESERVED.get(text.lower())) is not None:
        return port
    if not text.isdecimal() or int(text) > _ANY:
        return None
    number = int(text)
    return number | 0xFFFF_0000 if 0xFF00 <= number <= _LAST_OF_10 else number


def _frame(text: str) -> bytes:
    digits = re.sub(r"[\s.:]", "", text)
    if len(digits) % 2 or not re.fullmatch(r"[0-9A-Fa-f]*", digits):
        raise Refused("Trailing garbage in packet data")
    if len(digits) < 2 * _LEAST_BYTES:
        raise Refused("Packet data too short for Ethernet")
    return bytes.fromhex(digits)


def _said(text: str) -> tuple[int, str, list[bytes]]:
    """The port, the actions and the frame of a word such as ``in_port=1 packet=... actions=...``."""
    found = re.search(r"(?:^|[\s,])actions?=", text)
    before, actions = (text[: found.start()], text[found.end() :]) if found else (text, "")
    port, frame = _ANY, None
    for name, value in (one.partition("=")[::2] for one in re.split(r"[\s,]+", before) if one):
        if name == "in_port":
            if (number := _port(value)) is None:
                raise Refused(f"{value} is not a valid OpenFlow port")
            port = number
        elif name == "packet":
            try:
                frame = _frame(value)
            except Refused as refused:
                raise Refused(f"packet: {refused}") from None
        else:
            raise Refused(f"unknown keyword {name}")
    if frame is None:
        raise Refused("must specify packet")
    return port, actions, [frame]


def _packet_out(call: Call) -> str:
    if len(call.words) == 1:
        port, actions, frames = _said(call.words[0])
    else:
        if len(call.words) == 2:
            raise Refused("Too many arguments (4)")
        named, actions, *packets = call.words
        if named.startswith("in_port="):
            raise Refused("unknown action packet: write in_port=..., packet=... and actions=... as one word")
        found = _port(named)
        if found is None:
            raise Refused(f"{call.plan.name}: unknown port `{named}'")
        port, frames = found, [_frame(one) for one in packets]
    if not call.version:
        return ""
    with call.connection() as connection:
        codec = codec_of(connection.version)
        for frame in frames:
            try:
                connection.send(codec.packet_out(port, actions or "drop", frame, _NO_BUFFER, 1))
            except (ValueError, NotImplementedError) as refused:
                raise Refused(f"{actions}: {refused}") from None
        connection.finish()
    return ""


PACKET_COMMANDS = {"packet-out": Command(_packet_out, 1 << 30, 2)}
