"""Groups and meters of a switch, carried over when its fabric is built anew: flows use them by their numbers."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from twinnet.mininet.tool_connection import ToolConnection

__all__ = ["CarriedMessage", "carry_over", "messages_of"]

CarriedMessage = tuple[int, bytes]
"""Type and body of a message."""
_GROUP_MOD, _METER_MOD = 15, 29
_ADD, _MODIFY = 0, 1
_GROUP_DESCRIPTIONS, _METER_CONFIGURATIONS = 7, 10
_EVERY_METER = struct.pack("!I4x", 0xFFFF_FFFF)


def messages_of(connection: ToolConnection) -> list[CarriedMessage]:
    """Return the messages of OpenFlow 1.3 that make the groups and meters of a switch anew (sections 7.3.4.2, 7.3.4.4,
    7.3.5.7 and 7.3.5.13)."""
    groups = list(_entries(connection.statistics(_GROUP_DESCRIPTIONS)))
    # A bucket may use another group, which has to be there already.
    made = [(_GROUP_MOD, struct.pack("!HBxI", _ADD, 0, struct.unpack_from("!I", entry, 4)[0])) for entry in groups]
    filled = [(_GROUP_MOD, struct.pack("!H", _MODIFY) + entry[2:]) for entry in groups]
    meters = _entries(connection.statistics(_METER_CONFIGURATIONS, _EVERY_METER))
    return [*((_METER_MOD, struct.pack("!H", _ADD) + entry[2:]) for entry in meters), *made, *filled]


def _entries(told: bytes) -> Iterator[bytes]:
    """The entries of statistics, each of which begins with its length."""
    while told:
        length = struct.unpack_from("!H", told)[0]
        yield told[:length]
        told = told[length:]


def carry_over(connection: ToolConnection, messages: Sequence[CarriedMessage]) -> None:
    """Give a switch the groups and meters; when this returns, it has them."""
    for kind, body in messages:
        connection.say(kind, body)
    connection.finish()
