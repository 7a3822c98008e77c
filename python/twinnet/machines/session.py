"""The connection to the agent of one machine."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Any

from twinnet.code_version import code_version
from twinnet.errors import LabClosed, LabError
from twinnet.machines.agent import HELLO, SILENCE_S
from twinnet.machines.ssh import Reached, failure_of, ssh_command
from twinnet.machines.wire import Lines, WireError, line_of

__all__ = ["AgentSession", "end_all"]

_START_PATIENCE_S = 30.0
_ANSWER_PATIENCE_S = 60.0
_END_PATIENCE_S = 5.0
_ALIVE_EVERY_S = SILENCE_S / 6
_MOST_ANSWER_BYTES = 1 << 29
_MOST_LINES_BEFORE_HELLO = 1000
_MOST_TOLD_BYTES = 16_384


class AgentSession:
    """An agent on `machine`, started by ssh and ended with this object. Requests of several threads take turns.

    Parameters
    ----------
    machine
        The machine.

    Attributes
    ----------
    hello
        What the agent said first: `version`, `name`, `clock`, `monotonic_ns`.
    started_s
        Seconds from the start of ssh until the agent answered.

    Raises
    ------
    LabError
        No agent answers there; its name and its message tell why, and the remedy.
    """

    def __init__(self, machine: Reached) -> None:
        self.machine = machine
        self._lock = threading.Lock()
        self._next_id = 1
        self._wrote: bytes = b""
        self._ended = threading.Event()
        self._failure: LabClosed | None = None
        begin_s = time.monotonic()
        # A process group of its own: Ctrl-C is for us, and we end the agent in order.
        self._ssh = subprocess.Popen(
            ssh_command(machine),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._ssh.stdout is not None
        self._lines = Lines(self._ssh.stdout.fileno(), _MOST_ANSWER_BYTES)
        self._listener = threading.Thread(target=self._listen_to_errors, name=f"ssh-{machine.name}", daemon=True)
        self._listener.start()
        try:
            self.hello: dict[str, Any] = self._first_words()
        except BaseException:
            self.end()
            raise
        self.started_s: float = time.monotonic() - begin_s
        threading.Thread(target=self._keep_alive, name=f"alive-{machine.name}", daemon=True).start()

    @property
    def ended(self) -> bool:
        """True if the connection has ended."""
        return self._ended.is_set()

    def wait_ended(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds; return whether the connection has ended by then."""
        return self._ended.wait(timeout_s)

    def request(self, do: str, **fields: Any) -> Any:
        """Return the agent's answer to `do`.

        Raises
        ------
        LabError
            The agent refused; the name is the one that it gave.
        LabClosed
            The connection has ended.
        """
        with self._lock:
            if self._ended.is_set():
                raise self._failure or LabClosed(f"the connection to {self.machine.name} was ended")
            number = self._next_id
            self._next_id += 1
            self._say({"id": number, "do": do, **fields})
            try:
                answer = self._lines.next_message(_ANSWER_PATIENCE_S)
            except TimeoutError:
                raise self._gone(f"it gave no answer within {_ANSWER_PATIENCE_S:g} s") from None
            except WireError as error:
                raise self._gone(str(error)) from None
            if answer is None:
                raise self._gone("")
            if answer.get("id") != number:
                raise self._gone("its answers are out of order")
        refused = answer.get("error")
        if refused is not None:
            raise LabError(
                f"{self.machine.name}: {refused.get('message')}",
                str(refused.get("remedy") or ""),
                str(refused.get("name") or "AgentRefused"),
            )
        return answer.get("ok")

    def check(self) -> None:
        """Raise `LabClosed` when the agent has gone, though nobody asked it anything."""
        if self._failure is not None:
            raise self._failure
        if not self._ended.is_set() and self._ssh.poll() is not None:
            raise self._gone("")

    def end(self) -> None:
        """End the agent and the connection; nothing stays on the machine."""
        self._ended.set()
        if self._ssh.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._ssh.stdin.close()
        try:
            self._ssh.wait(_END_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._ssh.kill()
            self._ssh.wait()
        self._listener.join(_END_PATIENCE_S)
        for stream in (self._ssh.stdout, self._ssh.stderr):
            if stream is not None:
                stream.close()

    def _first_words(self) -> dict[str, Any]:
        deadline_s = time.monotonic() + _START_PATIENCE_S
        for _ in range(_MOST_LINES_BEFORE_HELLO):
            try:
                line = self._lines.next_line(deadline_s - time.monotonic())
            except TimeoutError:
                raise failure_of(self.machine, None, self._errors() or "nothing for 30 s") from None
            except WireError as error:
                raise failure_of(self.machine, 1, str(error)) from None
            if line is None:
                break
            if line.startswith(b'{"' + HELLO.encode()):
                return self._checked_hello(line)
        raise failure_of(self.machine, self._status(), self._errors())

    def _checked_hello(self, line: bytes) -> dict[str, Any]:
        hello: dict[str, Any] = json.loads(line)
        # Not the number alone: between two releases what both ends say to each other changes.
        if hello.get("version") != (ours := code_version()):
            raise LabError(
                f"{self.machine.name} ({self.machine.ssh}) has twinnet {hello.get('version')}, this machine has {ours}",
                "install the same on both, from one wheel or from one commit of the source",
                "OtherVersion",
            )
        return hello

    def _say(self, message: dict[str, Any]) -> None:
        assert self._ssh.stdin is not None
        try:
            self._ssh.stdin.write(line_of(message))
            self._ssh.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise self._gone("") from None

    def _gone(self, why: str) -> LabClosed:
        self._ended.set()
        reason = why or failure_of(self.machine, self._status(), self._errors(), answered=True).message
        self._failure = LabClosed(f"the agent on {self.machine.name} has gone: {reason}", "start the run again")
        return self._failure

    def _status(self) -> int:
        try:
            return self._ssh.wait(_END_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._ssh.kill()
            return self._ssh.wait()

    def _errors(self) -> str:
        self._listener.join(0.5)
        return self._wrote.decode(errors="replace")

    def _listen_to_errors(self) -> None:
        assert self._ssh.stderr is not None
        while data := os.read(self._ssh.stderr.fileno(), 4096):
            self._wrote = (self._wrote + data)[-_MOST_TOLD_BYTES:]

    def _keep_alive(self) -> None:
        """Speak often enough that the agent knows that we are there."""
        while not self._ended.wait(_ALIVE_EVERY_S):
            try:
                self.request("alive")
            except LabError:
                return


def end_all(sessions: Sequence[AgentSession]) -> None:
    """End all of `sessions`, side by side."""
    threads = [threading.Thread(target=one.end) for one in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
