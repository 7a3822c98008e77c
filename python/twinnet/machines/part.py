"""The part of a network that one machine carries: the agent's side of a network on several machines.

The part is a lab as any other, which the agent owns. Requests of the lab protocol come through the agent; what a
program writes and reads goes with them, because descriptors do not travel.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from twinnet.control.dialling import Dialling
from twinnet.errors import LabError
from twinnet.lab.underlays import Underlays
from twinnet.lab_process.connection import LabConnection
from twinnet.lab_process.process import LabProcess
from twinnet.machines.part_captures import PartCaptures
from twinnet.machines.program_streams import ProgramStreams
from twinnet.machines.underlay import Echo, Watch, probe

__all__ = ["NetworkPart", "own_address"]

_STOP_PATIENCE_S = 5.0


def own_address() -> str | None:
    """Return the address of this machine at which SSH reached it; ``None`` where it is not IPv4 or not known."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    return words[2] if len(words) == 4 and "." in words[2] and ":" not in words[2] else None


class NetworkPart:
    """The part of a network on this machine; nothing runs before ``part.start``."""

    def __init__(self) -> None:
        self._echo: Echo | None = None
        self._watched: Echo | None = None
        self._watch: Watch | None = None
        self._lab: LabProcess | None = None
        self._programs: ProgramStreams | None = None
        self._captures: PartCaptures | None = None
        self._dialling: Dialling | None = None

    def answer(self, do: str, message: Mapping[str, Any], zero_ns: int | None) -> Any:
        """Answer the request `do` of an agent; raises `TwinnetError` with the reason when it cannot be done."""
        match do:
            case "part.listen":
                return self._listen(str(message["address"]), int(message["port"]), message["allowed"])
            case "part.probe":
                names = ("local", "remote", "port", "size_bytes", "cut", "count", "gap_s")
                return probe(**{name: message[name] for name in names})
            case "part.start":
                return self._start(message["network"], message["options"], zero_ns)
            case "part.watch":
                remotes = [(str(address), int(port)) for address, port in message["remotes"]]
                self._watch = Watch(str(message["address"]), remotes)
                return {}
            case "part.watched":
                return self._watch.echoes() if self._watch is not None else {}
            case "part.ask":
                return self._connection.answer(str(message["request"]), message["fields"])
            case "part.capture":
                return self._captured.start(message["fields"])
            case "part.captured":
                return self._captured.read(int(message["capture"]), int(message["begin"]))
            case "part.capture_stop":
                return self._captured.stop(int(message["capture"]))
            case "part.capture_end":
                return self._captured.forget(int(message["capture"]))
            case "part.controllers_lost":
                return self._controllers_lost()
            case _:
                raise ValueError(f"the agent does not know {do!r}")

    @property
    def _connection(self) -> LabConnection:
        if self._lab is None:
            raise ValueError("no part was started")
        return self._lab.connection

    @property
    def programs(self) -> ProgramStreams:
        """The programs of the part's hosts; raises `ValueError` before its start."""
        if self._programs is None:
            self._programs = ProgramStreams(self._connection)
        return self._programs

    @property
    def _captured(self) -> PartCaptures:
        if self._captures is None:
            self._captures = PartCaptures(self._connection)
        return self._captures

    def _controllers_lost(self) -> list[list[str]]:
        """Each switch without its controller, the controller, and why."""
        troubles = dict(self._dialling.troubles) if self._dialling is not None else {}
        return [[switch, target, why] for (switch, target), why in troubles.items()]

    def _listen(self, address: str, port: int, allowed: Any) -> dict[str, Any]:
        if self._echo is not None:
            self._echo.end()
            self._echo = None
        self._echo = Echo(address, port, [str(one) for one in allowed])
        if self._watched is None:
            self._watched = Echo(address, 0, [str(one) for one in allowed])
        return {"port": self._echo.port, "watched": self._watched.port}

    def _start(self, network: Mapping[str, Any], options: Mapping[str, Any], zero_ns: int | None) -> Any:
        if self._echo is not None:
            # The tunnels take its port.
            self._echo.end()
            self._echo = None
        underlays = Underlays.of(network["nodes"], network["links"])
        try:
            self._lab = LabProcess(None)
            started = {**self._lab.connection.start(network=network, options={**options, "zero_ns": zero_ns})}
            if options.get("realtime") != "off":
                started["realtime"] = self._lab.promote() or bool(started.get("realtime"))
            underlays.attach_to(self._lab.connection)
            # A controller is reached from the machine that its switch is on.
            self._dialling = Dialling(self._lab.connection, network["nodes"])
        finally:
            underlays.close()
        return started

    def close(self) -> None:
        """End the part and all that runs in it."""
        if self._dialling is not None:
            self._dialling.end()
        for one in (self._echo, self._watched, self._watch):
            if one is not None:
                one.end()
        if self._captures is not None:
            self._captures.close()
        if self._programs is not None:
            self._programs.close()
        if self._lab is not None:
            if not self._lab.connection.closed:
                with contextlib.suppress(LabError, TimeoutError):
                    self._lab.connection.stop_later().result(_STOP_PATIENCE_S)
            self._lab.end(_STOP_PATIENCE_S)
            self._lab = None
