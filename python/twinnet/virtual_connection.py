"""The lab of the virtual clock, which lives in this process, with the face of a connection to a lab process.

It answers the requests of docs/reference/lab-protocol.md and one of its own, ``advance``. Time passes in slices that
take a fraction of a second each, so that an interrupt is heard and another thread can end the lab; slices leave no
trace in the events.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twinnet.errors import LabClosed, LabError, NotAvailable
from twinnet.lab_connection import PendingReply

if TYPE_CHECKING:
    from twinnet._core import VirtualLab

__all__ = ["VirtualConnection", "no_programs"]

_FIRST_SLICE_PS = 1_000_000_000
_LONGEST_SLICE_PS = 3_600_000_000_000_000
_SLICE_S = 0.1
_MOST_FASTER = 4
_LAST_MOMENT_PS = (1 << 64) - 1
_OF_REAL_HOSTS = ("spawn", "wait", "signal")


def no_programs(host: str | None, clock: str = "virtual") -> NotAvailable:
    """The refusal of what needs a real host."""
    if clock == "wall":
        return NotAvailable(
            f"{host} is a model and runs no programs",
            "describe it without model=True (model: true), or use an app such as tn.apps.ping",
        )
    who = f"{host} is a model on the virtual clock and runs" if host else "hosts are models on the virtual clock and run"
    return NotAvailable(f"{who} no programs", "use net.emulate(), or an app such as tn.apps.ping")


class VirtualConnection:
    """A lab on the virtual clock; it stands at time zero when it is made.

    Parameters
    ----------
    network
        The network in the form of the lab protocol.
    options
        Options of the lab.

    Raises
    ------
    LabError
        When the network cannot be simulated; the name of the refusal is in it.
    NotAvailable
        When the compiled part of the package cannot be loaded.
    """

    def __init__(self, network: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        try:
            from twinnet import _core
        except ImportError as error:
            raise NotAvailable(
                f"the compiled part of twinnet cannot be loaded ({error})", "install it again with: pip install ."
            ) from None
        self._refusal = _core.CoreError
        # Requests are answered one after the other, whichever thread they come from.
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._slice_ps = _FIRST_SLICE_PS
        self.given_up: Callable[[], bool] = lambda: False
        """Asked between slices; when it says yes, what waits for time to pass returns early."""
        self._lab: VirtualLab = self._guarded(lambda: _core.VirtualLab(json.dumps(network), json.dumps(options)))

    @property
    def closed(self) -> bool:
        """Whether the lab was ended."""
        return self._closed.is_set()

    def wait_closed(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds of real time; return whether the lab was ended by then."""
        return self._closed.wait(min(timeout_s, threading.TIMEOUT_MAX))

    def request(self, do: str, descriptors: Sequence[int] = (), **fields: Any) -> Any:
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
        if do in _OF_REAL_HOSTS or descriptors:
            raise no_programs(fields.get("host"))
        if do == "jobs":
            return []
        if do == "stop":
            self.close()
            return {}
        if do == "advance":
            return self._advance(int(fields["until_ps"]))
        if do == "app.wait":
            return self._wait_for(fields["apps"], fields.get("until_ps"))
        return self._ask({"do": do, **fields})

    def submit(self, do: str, descriptors: Sequence[int] = (), **fields: Any) -> PendingReply:
        """Answer the request `do` now, and return the answer as one that has come."""
        try:
            return PendingReply.come({"ok": self.request(do, descriptors, **fields)})
        except LabError as error:
            told = {"name": error.name, "message": error.message, "remedy": error.remedy}
            return PendingReply.come({"error": told})

    def close(self) -> None:
        """End the lab; whoever waits for time to pass is told so."""
        self._closed.set()

    def _advance(self, until_ps: int) -> Any:
        now_ps = self._now_ps()
        while True:
            end_ps = min(until_ps, now_ps + self._slice_ps)
            now_ps = int(self._timed({"do": "advance", "until_ps": end_ps}, now_ps)["now_ps"])
            if now_ps >= until_ps or self.given_up():
                return {"now_ps": now_ps}

    def _wait_for(self, apps: Sequence[int], until_ps: int | None) -> Any:
        last_ps = _LAST_MOMENT_PS if until_ps is None else until_ps
        now_ps = self._now_ps()
        while True:
            end_ps = min(last_ps, now_ps + self._slice_ps)
            answer = self._timed({"do": "app.wait", "apps": list(apps), "until_ps": end_ps}, now_ps)
            if answer["finished"] or end_ps >= last_ps or self.given_up():
                return answer
            now_ps = max(end_ps, self._now_ps())

    def _timed(self, body: Mapping[str, Any], now_ps: int) -> Any:
        """Let time pass until `until_ps`, and fit the length of the next slice to how long that took."""
        begin_s = time.monotonic()
        answer = self._ask(body)
        took_s = max(time.monotonic() - begin_s, 1e-6)
        passed_ps = max(int(body["until_ps"]) - now_ps, 1)
        wanted_ps = int(passed_ps * min(_SLICE_S / took_s, _MOST_FASTER))
        # A short last slice says little: it never makes the next one shorter unless it was slow.
        if took_s > _SLICE_S or wanted_ps > self._slice_ps:
            self._slice_ps = min(max(wanted_ps, _FIRST_SLICE_PS // 1000), _LONGEST_SLICE_PS)
        return answer

    def _now_ps(self) -> int:
        return int(self._ask({"do": "now"})["now_ps"])

    def _ask(self, body: Mapping[str, Any]) -> Any:
        if self.closed:
            raise LabClosed("the lab was ended", "start a new one")
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        with self._lock:
            return json.loads(self._guarded(lambda: self._lab.request(text)))

    def _guarded(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except self._refusal as error:
            name, message, remedy = error.args
            raise LabError(message, remedy, name) from None
