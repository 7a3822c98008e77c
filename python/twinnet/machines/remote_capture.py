"""A capture of a port on another machine: what is written there is brought here while it runs."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Mapping
from typing import Any

from twinnet.errors import NotAvailable, TwinnetError
from twinnet.lab_process.replies import Captured
from twinnet.machines.session import AgentSession

__all__ = ["RemoteCapture"]

_LOOK_S = 0.1


class RemoteCapture:
    """A capture of a port whose node is on the machine of `session`.

    Parameters
    ----------
    session
        The agent there.
    fields
        Of a ``capture.start`` of the lab protocol.
    descriptor
        The file here, or a stream. It stays the caller's.

    Raises
    ------
    NotAvailable
        A ring of files is asked for.
    """

    def __init__(self, session: AgentSession, fields: Mapping[str, Any], descriptor: int) -> None:
        if fields.get("ring") is not None:
            raise NotAvailable(
                "a capture in a network on several machines has no ring of files", "leave ring out, or give a limit"
            )
        self._session = session
        self._failure: str | None = None
        self._stopped = threading.Event()
        self._result: Captured | None = None
        self._lock = threading.Lock()
        self._number = int(session.request("part.capture", fields=dict(fields))["capture"])
        self._file = os.dup(descriptor)
        self._thread = threading.Thread(target=self._bring, name="capture", daemon=True)
        self._thread.start()

    def stop(self) -> Captured:
        """Stop it, bring the rest and return what ``capture.stop`` of the lab protocol answers.

        Raises
        ------
        LabError
            The machine has gone.
        """
        with self._lock:
            if self._result is None:
                try:
                    captured: Captured = self._session.request("part.capture_stop", capture=self._number)
                finally:
                    self._stopped.set()
                    self._thread.join()
                failed = captured["write_failed"] or self._failure is not None
                failure = self._failure or captured["failure"]
                self._result = {**captured, "files": [], "write_failed": failed, "failure": failure}
            return self._result

    def _bring(self) -> None:
        position = 0
        try:
            while True:
                # Asked for before the piece: what comes after the last empty one would be lost otherwise.
                is_last = self._stopped.is_set()
                reply = self._session.request("part.captured", capture=self._number, begin=position)
                piece = base64.b64decode(reply["data"])
                _write(self._file, piece)
                position += len(piece)
                if not piece and is_last:
                    self._session.request("part.capture_end", capture=self._number)
                    return
                if not piece:
                    self._stopped.wait(_LOOK_S)
        except TwinnetError as error:
            self._failure = error.message
        except OSError as error:
            self._failure = error.strerror or str(error)
        finally:
            os.close(self._file)


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
