"""A connection to a switch of the fabric, as a tool of OpenFlow has one: messages out, answers in."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from twinnet.control.framing import HEADER, Framing
from twinnet.errors import LabError, TwinnetError
from twinnet.lab_process.requests import LabRequests

__all__ = ["OPENFLOW_10", "OPENFLOW_13", "SwitchRefused", "ToolConnection", "best_version", "codec_of"]

OPENFLOW_10, OPENFLOW_13 = 1, 4
"""Versions of the wire."""
_PATIENCE_S = 5.0
_LONGEST_BYTES = 0xFFFF
"""The length of a message is a number of 16 bits."""
_HELLO, _ERROR = 0, 1
_BARRIER = {OPENFLOW_10: 18, OPENFLOW_13: 20}
_STATISTICS = {OPENFLOW_10: 16, OPENFLOW_13: 18}
_MORE = 1
_KINDS = {
    "BadRequest": "OFPBRC",
    "BadAction": "OFPBAC",
    "BadInstruction": "OFPBIC",
    "BadMatch": "OFPBMC",
    "FlowModFailed": "OFPFMFC",
    "GroupModFailed": "OFPGMFC",
    "PortModFailed": "OFPPMFC",
    "QueueOpFailed": "OFPQOFC",
    "SwitchConfigFailed": "OFPSCFC",
    "MeterModFailed": "OFPMMFC",
}
"""The names of codes begin so (OpenFlow 1.3, section 7.4.4)."""


class SwitchRefused(TwinnetError):
    """A switch has answered a message with an error; `code` is its name in the specification."""

    def __init__(self, switch: str, code: str) -> None:
        super().__init__(f"{switch} refused it: {code}")
        self.code = code


def best_version(protocols: Sequence[str]) -> int:
    """Return the newest version that a switch with these `protocols` speaks."""
    return OPENFLOW_13 if "OpenFlow13" in protocols else OPENFLOW_10


def codec_of(version: int) -> Any:
    """Return what writes and reads the messages of `version`."""
    from twinnet._core import OpenFlow10, OpenFlow13

    return OpenFlow13() if version == OPENFLOW_13 else OpenFlow10()


def _code(message: bytes) -> str:
    """The name of the error, which the switch's own code tells as ``GroupModFailed(GroupExists)``."""
    text = codec_of(message[0]).decode(message)[2]["text"]
    kind, _, code = text.rstrip(")").partition("(")
    return f"{_KINDS.get(kind, kind)}_{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', code).upper()}"


class ToolConnection:
    """A connection to the switch `switch` of a lab, in the version `version` of the wire.

    It has to be closed (``with``).
    """

    def __init__(self, lab: LabRequests, switch: str, version: int) -> None:
        self.switch: str = switch
        self.version: int = version
        self._framing = Framing()
        self._heard: list[bytes] = []
        self._socket, far = socket.socketpair()
        self._socket.settimeout(_PATIENCE_S)
        with far:
            lab.controller_attach_later(switch=switch, target="unix:tool", peer="tool", descriptors=[far.fileno()])
        self.say(_HELLO)

    def __enter__(self) -> ToolConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def say(self, kind: int, body: bytes = b"") -> None:
        """Send a message of type `kind`; raises :class:`SwitchRefused` where it is longer than a message can be."""
        length = HEADER.size + len(body)
        if length > _LONGEST_BYTES:
            raise SwitchRefused(self.switch, f"{length} bytes, and a message of OpenFlow has {_LONGEST_BYTES} at most")
        self.send(HEADER.pack(self.version, kind, length, 1) + body)

    def send(self, messages: bytes) -> None:
        """Send whole messages."""
        self._socket.sendall(messages)

    def hear(self, wanted: int) -> bytes:
        """Return the next message of type `wanted`; raises :class:`SwitchRefused`."""
        while True:
            while self._heard:
                message = self._heard.pop(0)
                kind = HEADER.unpack_from(message)[1]
                if kind == _ERROR:
                    raise SwitchRefused(self.switch, _code(message))
                if kind == wanted:
                    return message
            try:
                data = self._socket.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                raise LabError(f"{self.switch} does not answer", "look whether the script's fabric has failed")
            self._heard += self._framing.push(data)

    def ask(self, kind: int, body: bytes = b"") -> bytes:
        """Send a message of type `kind` and return the body of its answer, which is of the next type."""
        self.say(kind, body)
        return self.hear(kind + 1)[HEADER.size :]

    def parts(self, kind: int, asked: bytes = b"") -> Iterator[bytes]:
        """Ask for the statistics `kind` and yield the messages of the answer."""
        # Version 1.3 has four bytes of padding after type and flags.
        self.say(_STATISTICS[self.version], struct.pack("!HH", kind, 0) + bytes(self._padding) + asked)
        more = True
        while more:
            message = self.hear(_STATISTICS[self.version] + 1)
            more = bool(int.from_bytes(message[10:12], "big") & _MORE)
            yield message

    def statistics(self, kind: int, asked: bytes = b"") -> bytes:
        """Ask for the statistics `kind` and return what the answer holds, its parts joined."""
        return b"".join(part[12 + self._padding :] for part in self.parts(kind, asked))

    def finish(self) -> None:
        """Return when all that was sent has taken effect; raises :class:`SwitchRefused` when some of it has not."""
        self.ask(_BARRIER[self.version])

    @property
    def _padding(self) -> int:
        return 4 if self.version == OPENFLOW_13 else 0
