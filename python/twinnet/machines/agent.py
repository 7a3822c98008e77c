"""The agent of a machine: `twinnet agent`, which a lab starts over SSH. It runs apps on the machine's own sockets, or
programs as its user, or the machine's part of a network, and is gone when the connection ends.

It reads requests from its standard input and answers on its standard output, a line of JSON each. Nothing listens for
it, and it writes no file that has a name.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from twinnet._core import CoreError, SocketAgent
from twinnet.errors import TwinnetError
from twinnet.machines.condition import interface_facts, machine_counters
from twinnet.machines.machine_programs import MachinePrograms
from twinnet.machines.part import NetworkPart, own_address
from twinnet.machines.program_streams import ProgramStreams
from twinnet.machines.wire import Lines, WireError, line_of
from twinnet.sockets.clocks import this_clock

__all__ = ["HELLO", "PROTOCOL", "MachineTeller", "serve"]

HELLO = "twinnet_agent"
"""The key by which the first line of an agent is known: a login shell may write lines of its own before it."""
PROTOCOL = 1
SILENCE_S = 30.0
"""A lab speaks more often than this. When it does not, the connection hangs, and the agent ends."""
_MOST_REQUEST_BYTES = 1 << 28
_APPS = ("app.start", "app.stop", "app.wait", "app.report")


@dataclass(frozen=True)
class MachineTeller:
    """What describes a machine and its software, for the record of a run.

    Parameters
    ----------
    version
        The version of twinnet, with the hash of its code.
    machine, versions
        Return the description of the machine as it is now, and of the software.
    """

    version: str
    machine: Callable[[], Mapping[str, Any]]
    versions: Callable[[], Mapping[str, Any]]


def serve(requests: int, answers: int, teller: MachineTeller) -> None:
    """Answer what comes by the descriptor `requests` by the descriptor `answers`, until it ends or is silent."""
    lines = Lines(requests, _MOST_REQUEST_BYTES)
    agent = _Agent(teller)
    try:
        _write(answers, line_of(agent.hello()))
        while (message := lines.next_message(SILENCE_S)) is not None:
            _write(answers, line_of({"id": message.get("id"), **agent.answered(message)}))
    except (TimeoutError, WireError, BrokenPipeError):
        # The lab is gone, or no lab: there is nobody to tell.
        return
    finally:
        agent.close()


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


class _Agent:
    def __init__(self, teller: MachineTeller) -> None:
        self._teller = teller
        self._sockets: SocketAgent | None = None
        self._zero_ns: int | None = None
        self._part: NetworkPart | None = None
        self._machine_programs = MachinePrograms()
        self._streams = ProgramStreams(self._machine_programs)

    def hello(self) -> dict[str, Any]:
        return {
            HELLO: PROTOCOL,
            "version": self._teller.version,
            "name": socket.gethostname()[:253],
            "clock": str(this_clock()),
            "monotonic_ns": time.monotonic_ns(),
            "address": own_address(),
        }

    def answered(self, message: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return {"ok": self._answer(str(message.get("do")), message)}
        except CoreError as error:
            name, text, remedy = (str(part) for part in error.args)
            return _refusal(name, text, remedy)
        except TwinnetError as error:
            return _refusal(error.name, error.message, error.remedy)
        except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
            return _refusal("BadRequest", f"{type(error).__name__}: {error}")

    def _answer(self, do: str, message: Mapping[str, Any]) -> Any:
        if do in _APPS:
            if self._sockets is None:
                raise ValueError("no clock was set: ask for 'begin' first")
            fields = {name: value for name, value in message.items() if name != "id" and value is not None}
            return json.loads(self._sockets.request(json.dumps(fields)))
        if do.startswith("part."):
            if self._part is None:
                self._part = NetworkPart()
            return self._part.answer(do, message, self._zero_ns)
        if do.startswith("program."):
            programs = self._streams if self._part is None else self._part.programs
            return programs.answer(do, message)
        match do:
            case "alive":
                return {}
            case "monotonic":
                return {"monotonic_ns": time.monotonic_ns()}
            case "begin":
                # Another clock for all that follows; what ran on the one before is over.
                self._close_sockets()
                self._zero_ns = int(message["zero_ns"])
                self._sockets = SocketAgent(self._zero_ns)
                return {}
            case "interface":
                return interface_facts(str(message["interface"]))
            case "routes":
                return [_source_towards(str(one)) for one in message["to"]]
            case "describe":
                return {"machine": dict(self._teller.machine()), "versions": dict(self._teller.versions())}
            case "counters":
                return machine_counters(str(message["interface"])) | self._timing()
            case _:
                raise ValueError(f"the agent does not know {do!r}")

    def _timing(self) -> dict[str, Any]:
        if self._sockets is None:
            return {}
        return {"agent": json.loads(self._sockets.timeliness()), "processor": json.loads(self._sockets.usage())}

    def close(self) -> None:
        self._close_sockets()
        self._machine_programs.close()
        self._streams.close()
        if self._part is not None:
            self._part.close()
            self._part = None

    def _close_sockets(self) -> None:
        if self._sockets is not None:
            self._sockets.close()
            self._sockets = None


def _refusal(name: str, message: str, remedy: str = "") -> dict[str, Any]:
    return {"error": {"name": name, "message": message, "remedy": remedy}}


def _source_towards(address: str) -> str | None:
    """The address that this machine sends from towards `address`; ``None`` where there is no route. Nothing is sent."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect((address, 9))
        except OSError:
            return None
        return str(asked.getsockname()[0])
