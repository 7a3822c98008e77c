"""The configuration of switches' ports (``OFPPC_*``), read and changed by OpenFlow as ``ovs-ofctl mod-port`` does."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinnet.control.framing import HEADER
from twinnet.lab_process.requests import LabRequests
from twinnet.mininet.tool_connection import ToolConnection

__all__ = ["CONFIGURATION_BITS", "Asked", "Change", "SwitchPorts", "configuration_text"]

CONFIGURATION_BITS = {
    "PORT_DOWN": 1 << 0,
    "NO_STP": 1 << 1,
    "NO_RECV": 1 << 2,
    "NO_RECV_STP": 1 << 3,
    "NO_FLOOD": 1 << 4,
    "NO_FWD": 1 << 5,
    "NO_PACKET_IN": 1 << 6,
}
"""The bits by their names (OpenFlow 1.0.0, section 5.2.1)."""
_KNOWN = {1: 0x7F, 4: 0x65}
"""What each version of the wire has of them."""


@dataclass(frozen=True)
class _Wire:
    """Types and layouts of one version: the question for the ports, its answer, and a change of a port."""

    question: int
    asked: bytes
    answer: int
    skipped: int
    port: struct.Struct
    mod: int
    change: struct.Struct


_WIRES = {
    1: _Wire(5, b"", 6, 24, struct.Struct("!H6s16sI20x"), 15, struct.Struct("!H6sII4x4x")),
    4: _Wire(18, struct.pack("!HH4x", 13, 0), 19, 8, struct.Struct("!I4x6s2x16sI28x"), 16,
             struct.Struct("!I4x6s2xII4x4x")),
}  # fmt: skip
"""OpenFlow 1.0.0, sections 5.3.1 and 5.3.3; 1.3, sections 7.3.5.7 and 7.3.4.3."""


@dataclass(frozen=True)
class Change:
    """The bits `mask` of a port are to be those of `config`."""

    config: int
    mask: int


def configuration_text(config: int) -> str:
    """Return the names of the bits of `config` as ``ovs-ofctl show`` prints them; 0 for none."""
    return " ".join(name for name, bit in CONFIGURATION_BITS.items() if config & bit) or "0"


class SwitchPorts:
    """The ports of the switch `switch` of a lab, which speaks `protocols`."""

    def __init__(self, lab: LabRequests, switch: str, protocols: Sequence[str]) -> None:
        self._lab = lab
        self._switch = switch
        self._version = 1 if "OpenFlow10" in protocols else 4
        self._wire = _WIRES[self._version]

    @property
    def known(self) -> int:
        """The bits that the switch can be told of: OpenFlow 1.3 has no ``NO_FLOOD``."""
        return _KNOWN[self._version]

    def asked(self) -> Asked:
        """Ask for the configurations of the ports; the answer comes while others are asked."""
        return Asked(ToolConnection(self._lab, self._switch, self._version))

    def read(self) -> dict[int, int]:
        """Return the configurations of the ports by their numbers."""
        with self.asked() as asked:
            return asked.configurations()

    def change(self, changes: Mapping[int, Change]) -> None:
        """Make changes of ports, by their numbers; when this returns, they have taken effect."""
        with self.asked() as asked:
            addresses = asked.ports()
            for number, change in changes.items():
                body = self._wire.change.pack(number, addresses[number][0], change.config, change.mask & self.known)
                asked.connection.say(self._wire.mod, body)
            asked.connection.finish()


class Asked:
    """A connection to a switch, as a tool has one, that has asked for the ports."""

    def __init__(self, connection: ToolConnection) -> None:
        self.connection = connection
        self._wire = _WIRES[connection.version]
        connection.say(self._wire.question, self._wire.asked)

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.__exit__()

    def configurations(self) -> dict[int, int]:
        """Return the configurations of the ports by their numbers."""
        return {number: config for number, (_, config) in self.ports().items()}

    def ports(self) -> dict[int, tuple[bytes, int]]:
        """Address and configuration of each port."""
        wire = self._wire
        found: dict[int, tuple[bytes, int]] = {}
        more = True
        while more:
            body = self.connection.hear(wire.answer)[HEADER.size :]
            # A list that is too long for one message comes in several (1.3, 7.3.5).
            more = wire.asked != b"" and bool(int.from_bytes(body[2:4], "big") & 1)
            for number, address, _, config in wire.port.iter_unpack(body[wire.skipped :]):
                found[number] = (address, config)
        return found
