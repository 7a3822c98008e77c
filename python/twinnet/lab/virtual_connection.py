"""The lab of the virtual clock, which lives in this process, with the face of a connection to a lab process.

It answers the requests of docs/reference/lab-protocol.md and one of its own, ``advance``. While time passes it looks
up several times a second, so that an interrupt is heard and another thread can end the lab; that leaves no trace in the
events. Several threads may let time pass, such as those of other terminals: they take turns, step by step.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinnet.errors import LabClosed, LabError, NotAvailable
from twinnet.lab.turns import Turns
from twinnet.lab.virtual_programs import VirtualPrograms
from twinnet.lab_process.compiled_part import require_compiled_part
from twinnet.lab_process.connection import AnswersAtOnce
from twinnet.lab_process.pending_reply import Json, JsonObject
from twinnet.lab_process.replies import JobRow

if TYPE_CHECKING:
    from twinnet._core import VirtualLab
    from twinnet.control.virtual_control import VirtualControl

__all__ = ["LETS_TIME_PASS", "VirtualConnection", "no_programs"]

_PATIENCE_S = 0.1
_LAST_PS = (1 << 63) - 1
"""The end of the clock, as `crates/lab` has it."""
_OF_REAL_HOSTS = ("spawn", "wait", "signal")
LETS_TIME_PASS = ("advance", "app.wait", "controllers.wait")
"""The requests in which time passes."""


def no_programs(host: str | None, clock: str = "virtual") -> NotAvailable:
    """The refusal of what needs a real host."""
    if clock == "wall":
        return NotAvailable(
            f"{host} is a model and runs no programs",
            "describe it without model=True (model: true), or use an app such as tn.apps.ping",
        )
    who = (
        f"{host} is a model on the virtual clock and runs" if host else "hosts are models on the virtual clock and run"
    )
    return NotAvailable(f"{who} no programs", "use net.emulate(), or an app such as tn.apps.ping")


class VirtualConnection(AnswersAtOnce):
    """A lab on the virtual clock; it stands at time zero when it is made.

    Parameters
    ----------
    network
        The network in the form of the lab protocol.
    guest
        The settings of the guest in which real hosts live (:func:`twinnet.lab.virtual_programs.guest_settings`);
        ``None``: all hosts are models.
    trace
        The file into which the trace is written; ``None``: none.

    Attributes
    ----------
    programs
        The programs of real hosts; ``None`` when all hosts are models.
    turns
        Held by the thread that lets time pass, for each step.

    Raises
    ------
    LabError
        When the network cannot be simulated; the name of the refusal is in it.
    NotAvailable
        When the compiled part of the package cannot be loaded.
    """

    def __init__(self, network: JsonObject, guest: JsonObject | None = None, trace: Path | None = None) -> None:
        require_compiled_part()
        from twinnet import _core

        self._refusal = _core.CoreError
        self._closed = threading.Event()
        self.turns: Turns = Turns()
        self.heard: Callable[[str, JsonObject], None] | None = None
        """Called with each request that was answered by its value, before :meth:`answer` returns."""
        self.looked_up: Callable[[int], bool] = lambda _: False
        """Called with the lab's time while time passes; when it says yes, the request that let time pass returns."""
        self._lab: VirtualLab = self.guarded(
            lambda: _core.VirtualLab(
                json.dumps(network),
                None if guest is None else json.dumps(guest),
                None if trace is None else str(trace.absolute()),
            )
        )
        self.programs: VirtualPrograms | None = None if guest is None else VirtualPrograms(self._lab, self)
        self.control: VirtualControl | None = None
        """The link to the controllers, which runs before time passes."""

    @property
    def closed(self) -> bool:
        """True if the lab was ended."""
        return self._closed.is_set()

    def wait_closed(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds of real time; return whether the lab was ended by then."""
        return self._closed.wait(min(timeout_s, threading.TIMEOUT_MAX))

    def answer(self, do: str, fields: JsonObject, descriptors: Sequence[int] = ()) -> Json:
        """Answer the request `do`.

        Raises
        ------
        LabError
            When the lab refused.
        LabClosed
            When it was ended.
        NotAvailable
            When only a lab with real hosts can do that.
        """
        if descriptors or (do in _OF_REAL_HOSTS and (self.programs is None or do != "signal")):
            host = fields.get("host")
            raise no_programs(str(host) if host is not None else None)
        if do == "stop":
            self.close()
            return {}
        if do in LETS_TIME_PASS:
            return self.let_time_pass({"do": do, **fields})
        with self.turns:
            value = self._ask({"do": do, **fields})
        if self.heard is not None:
            self.heard(do, fields)
        return value

    def jobs(self) -> list[JobRow]:
        """Return all programs."""
        return [] if self.programs is None else self.programs.rows()

    def close(self) -> None:
        """End the lab; whoever waits for time to pass hears of it."""
        self._closed.set()
        if self.programs is not None:
            self._lab.end_programs()
        self.guarded(self._lab.end_trace)

    def take_control(self) -> Sequence[tuple[int, bytes, str | None]]:
        """Return what controllers are to get now: connection, messages, and why it is over then, if it is."""
        return self._lab.take_control()

    def give_control(self, connection: int, data: bytes) -> None:
        """A controller says `data`."""
        self.guarded(lambda: self._lab.give_control(connection, data))

    def open_control(self, switch: str, target: str) -> int:
        """Begin a connection of `switch` to the controller `target` and return its number."""
        return self.controller_open(switch=switch, target=target)["connection"]

    def close_control(self, connection: int) -> None:
        """The controller ended the connection."""
        self.controller_close(connection=connection)

    def pass_until(self, stop: Callable[[], bool], limit_ps: int | None = None) -> bool:
        """Let time pass until `stop`, which is asked when programs have done something, says yes, at most `limit_ps`
        picoseconds; return whether it did."""
        if not stop():
            until_ps = _LAST_PS if limit_ps is None else min(self._now_ps() + limit_ps, _LAST_PS)
            self.let_time_pass({"do": "advance", "until_ps": until_ps}, stop)
        return stop()

    def let_time_pass(self, body: Mapping[str, Any], stop: Callable[[], bool] = lambda: False) -> Any:
        """Answer the request `body`, in which time passes; early when `stop` says yes."""
        looked_s = time.monotonic()
        while True:
            with self.turns:
                # Another thread may have heard what this one waits for.
                step = self._settled(body)
                if stop():
                    return {"now_ps": self._now_ps(), "paused": True, "controllers": False}
                answer = self._ask(step, _PATIENCE_S)
                if answer.get("programs") and self.programs is not None:
                    self.programs.take_news()
                    continue
                on_the_way = answer["paused"] or answer["controllers"]
                if not on_the_way and (step == body or answer.get("finished")):
                    self._settled(body)
                    return answer
            if answer["paused"] or time.monotonic() - looked_s > _PATIENCE_S:
                looked_s = time.monotonic()
                if self.looked_up(int(answer["now_ps"])):
                    return answer

    def _settled(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Lets controllers speak, and returns `body` with the time until which none of them wants to be called."""
        if self.control is None:
            return body
        self.control.settle(self._now_ps())
        timer_ps = self.control.next_timer_ps
        until_ps = body.get("until_ps")
        if timer_ps is None or (until_ps is not None and timer_ps >= until_ps):
            return body
        return {**body, "until_ps": timer_ps}

    def _now_ps(self) -> int:
        return int(self._ask({"do": "now"})["now_ps"])

    def _ask(self, body: Mapping[str, Any], patience_s: float | None = None) -> Any:
        if self.closed:
            raise LabClosed("the lab was ended", "start a new one")
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        return json.loads(self.guarded(lambda: self._lab.request(text, patience_s)))

    def guarded(self, call: Callable[[], Any]) -> Any:
        """Return what `call` returns; a refusal of the core is raised as `LabError`."""
        try:
            return call()
        except self._refusal as error:
            name, message, remedy = error.args
            raise LabError(message, remedy, name) from error.__cause__
