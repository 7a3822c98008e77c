"""The part of a network that one machine carries: the agent's side of a network on several machines.

The part is a lab as any other, which the agent owns. Requests of the lab protocol come through the agent; what a
program writes and reads goes with them, because descriptors do not travel.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import select
import struct
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twinnet.control.dialling import Dialling
from twinnet.errors import LabError
from twinnet.lab.underlays import Underlays
from twinnet.lab_process.connection import LabConnection, PendingReply
from twinnet.lab_process.process import LabProcess
from twinnet.machines.part_captures import PartCaptures
from twinnet.machines.underlay import Echo, Watch, probe

__all__ = ["NetworkPart", "own_address"]

_STOP_PATIENCE_S = 5.0
_PIECE_BYTES = 1 << 20
_MOST_TURN_S = 0.2


def own_address() -> str | None:
    """Return the address of this machine at which SSH reached it; ``None`` where it is not IPv4 or not known."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    return words[2] if len(words) == 4 and "." in words[2] and ":" not in words[2] else None


class _Program:
    """A program of the part with its streams."""

    def __init__(self, end: PendingReply, write: int | None, reads: Mapping[str, int]) -> None:
        self.end = end
        self.write = write
        self.reads = dict(reads)

    def close(self) -> None:
        for one in ([self.write] if self.write is not None else []) + list(self.reads.values()):
            # A terminal is both.
            with contextlib.suppress(OSError):
                os.close(one)
        self.write, self.reads = None, {}


class NetworkPart:
    """The part of a network on this machine; nothing runs before ``part.start``."""

    def __init__(self) -> None:
        self._echo: Echo | None = None
        self._watched: Echo | None = None
        self._watch: Watch | None = None
        self._lab: LabProcess | None = None
        self._programs: dict[int, _Program] = {}
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
                return self._watch.told() if self._watch is not None else {}
            case "part.ask":
                return self._connection.request(str(message["request"]), **message["fields"])
            case "part.spawn":
                return self._spawn(dict(message["fields"]), list(message["streams"]), message.get("size"))
            case "part.job":
                return self._job(int(message["job"]), float(message["turn_s"]))
            case "part.feed":
                return self._feed(int(message["job"]), message.get("data"))
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
    def _captured(self) -> PartCaptures:
        if self._captures is None:
            self._captures = PartCaptures(self._connection)
        return self._captures

    def _controllers_lost(self) -> list[list[str]]:
        """Each switch without its controller, the controller, and why."""
        troubles = self._dialling.troubles if self._dialling is not None else {}
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
            started = dict(
                self._lab.connection.request("start", network=network, options={**options, "zero_ns": zero_ns})
            )
            if not started.get("realtime") and options.get("realtime") != "off":
                started["realtime"] = self._lab.promote()
            underlays.attach_to(self._lab.connection)
            # A controller is reached from the machine that its switch is on.
            self._dialling = Dialling(self._lab.connection, network["nodes"])
        finally:
            underlays.close()
        return started

    def _spawn(self, fields: dict[str, Any], streams: list[bool], size: str | None) -> Any:
        """Start a program; `streams` says which of its standard streams lead somewhere."""
        theirs: list[int] = []
        ours: list[tuple[str, int]] = []
        try:
            if fields.get("terminal"):
                near, far = os.openpty()
                theirs.append(far)
                ours.append(("terminal", near))
                if size:
                    fcntl.ioctl(
                        near, termios.TIOCSWINSZ, struct.pack("HHHH", *[int(one) for one in size.split()], 0, 0)
                    )
            else:
                for name, wanted in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                    if not wanted:
                        theirs.append(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
                        continue
                    read, write = os.pipe2(os.O_CLOEXEC)
                    theirs.append(read if name == "stdin" else write)
                    ours.append((name, write if name == "stdin" else read))
            if fields.get("cwd") and not Path(str(fields["cwd"])).is_dir():
                # A folder of the machine at which one sits need not be here.
                fields["cwd"] = None
            started = self._connection.request("spawn", theirs, **fields)
        except BaseException:
            for _, one in ours:
                os.close(one)
            raise
        finally:
            for one in theirs:
                os.close(one)
        number = int(started["job"])
        write = next((one for name, one in ours if name in ("stdin", "terminal")), None)
        if write is not None:
            os.set_blocking(write, False)
        reads = {name: one for name, one in ours if name != "stdin"}
        self._programs[number] = _Program(self._connection.submit("wait", job=number), write, reads)
        return started

    def _job(self, number: int, turn_s: float) -> dict[str, Any]:
        """What the program wrote, and how it ended: at once when there is something, otherwise after `turn_s`."""
        program = self._programs[number]
        ended = program.end.done()
        told: dict[str, str] = {}
        wait_s = 0.0 if ended else min(max(turn_s, 0.0), _MOST_TURN_S)
        ready, _, _ = select.select(list(program.reads.values()), [], [], wait_s)
        for name, one in list(program.reads.items()):
            if one not in ready:
                continue
            try:
                data = os.read(one, _PIECE_BYTES)
            except OSError:
                # EIO: the last program on the terminal has closed it.
                data = b""
            if data:
                told[name] = base64.b64encode(data).decode()
            else:
                del program.reads[name]
                if one != program.write:
                    os.close(one)
        answer: dict[str, Any] = {"wrote": told, "end": None}
        if ended and not told:
            # What it left running in the background keeps the pipes, and is not waited for.
            answer["end"] = program.end.result(0)
            program.close()
            del self._programs[number]
        return answer

    def _feed(self, number: int, data: str | None) -> dict[str, Any]:
        """Give the program input; no data: there will be none. Returns how many bytes it took."""
        program = self._programs.get(number)
        if program is None or program.write is None:
            return {"taken": None}
        if data is None:
            if "terminal" not in program.reads:
                os.close(program.write)
            program.write = None
            return {"taken": 0}
        try:
            return {"taken": os.write(program.write, base64.b64decode(data))}
        except BlockingIOError:
            return {"taken": 0}
        except OSError:
            return {"taken": None}

    def close(self) -> None:
        """End the part and all that runs in it."""
        if self._dialling is not None:
            self._dialling.end()
        for one in (self._echo, self._watched, self._watch):
            if one is not None:
                one.end()
        if self._captures is not None:
            self._captures.close()
        for program in self._programs.values():
            program.close()
        if self._lab is not None:
            if not self._lab.connection.closed:
                with contextlib.suppress(LabError, TimeoutError):
                    self._lab.connection.submit("stop").result(_STOP_PATIENCE_S)
            self._lab.end(_STOP_PATIENCE_S)
            self._lab = None
