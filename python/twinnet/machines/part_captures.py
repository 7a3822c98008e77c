"""Captures of the part of a network on this machine: the agent's side.

A capture goes to a file without a name, which is gone with the agent, and is read from there piece by piece.
"""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Mapping
from typing import IO, Any

from twinnet.lab_process.replies import Captured
from twinnet.lab_process.requests import LabRequests

__all__ = ["PartCaptures"]

_PIECE_BYTES = 1 << 20


class PartCaptures:
    """The captures of the part that `lab` carries."""

    def __init__(self, lab: LabRequests) -> None:
        self._lab = lab
        self._files: dict[int, IO[bytes]] = {}

    def start(self, fields: Mapping[str, Any]) -> dict[str, int]:
        """Start the capture that the `fields` of the lab protocol describe."""
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by forget and close
        try:
            number = self._lab.capture_start(**fields, descriptors=[file.fileno()])["capture"]
        except BaseException:
            file.close()
            raise
        self._files[number] = file
        return {"capture": number}

    def read(self, number: int, begin: int) -> dict[str, str]:
        """Return a piece of the file from its byte `begin` on, in Base64; empty where nothing was written yet."""
        piece = os.pread(self._files[number].fileno(), _PIECE_BYTES, begin)
        return {"data": base64.b64encode(piece).decode()}

    def stop(self, number: int) -> Captured:
        """Stop the capture; its file can be read until :meth:`forget`."""
        return self._lab.capture_stop(capture=number)

    def forget(self, number: int) -> None:
        """Let go of the file."""
        self._files.pop(number).close()

    def close(self) -> None:
        """Let go of all files."""
        for file in self._files.values():
            file.close()
        self._files.clear()
