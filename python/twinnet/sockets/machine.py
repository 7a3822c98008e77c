"""The machine as a host: starts apps on its own sockets and reads what they measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from twinnet._core import CoreError, SocketAgent
from twinnet.errors import LabError
from twinnet.results.flow_report import AppReport
from twinnet.traffic.app import App

__all__ = ["HERE", "Machine", "Processor"]

HERE = "machine"
"""The host's name of apps on the machine itself."""
_LOOK_PS = 200_000_000_000
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Processor:
    """The state of the processor of the sending and receiving thread.

    Parameters
    ----------
    shared
        Whether another program used the thread's processor.
    realtime
        Whether the thread has real-time scheduling for that reason.
    waited_s
        How long the thread could have run while another program had the processor.
    cpu_s
        CPU time that the thread used itself.
    """

    shared: bool
    realtime: bool
    waited_s: float
    cpu_s: float

    @property
    def text(self) -> str:
        """One sentence for people."""
        if not self.shared:
            return "The sender had a processor to itself."
        remedy = "with real-time scheduling" if self.realtime else "without real-time scheduling: run it as root"
        return f"The sender shared its processor with others ({self.waited_s * 1e3:.1f} ms waited), {remedy}."


class Machine:
    """Apps on real sockets of this machine. A context manager: leaving it closes all sockets."""

    def __init__(self) -> None:
        self._agent = _asked(SocketAgent)

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self._agent.close()

    def now_ps(self) -> int:
        """Return the machine's monotonic clock in picoseconds, on which all times of reports stand."""
        return self._agent.now_ps()

    def start(self, app: App, *, at_ps: int | None = None, seed: int | None = None) -> int:
        """Start `app`, now or at `at_ps`; return its number."""
        wanted = {"kind": app.kind, **app.fields}
        return int(self._request("app.start", app=wanted, at_ps=at_ps, seed=seed)["app"])

    def stop(self, number: int) -> None:
        """Ask app `number` to end."""
        self._request("app.stop", app=number)

    def wait(self, numbers: Sequence[int], until_ps: int | None = None) -> bool:
        """Wait until apps have ended, at most until `until_ps`; return whether they have."""
        while True:
            look_ps = self.now_ps() + _LOOK_PS
            end_ps = look_ps if until_ps is None else min(look_ps, until_ps)
            # Short waits, so that an interrupt is heard.
            if self._request("app.wait", apps=list(numbers), until_ps=end_ps)["finished"]:
                return True
            if until_ps is not None and self.now_ps() >= until_ps:
                return False

    def reports(self, numbers: Sequence[int]) -> list[AppReport]:
        """Return what apps measured so far, in the order of `numbers`."""
        found: list[Mapping[str, Any]] = self._request("app.report", apps=list(numbers))
        return [AppReport.from_spec(one) for one in found]

    def processor(self) -> Processor:
        """Return what the thread found about its processor."""
        used = json.loads(self._agent.usage())
        return Processor(bool(used["shared"]), bool(used["realtime"]), float(used["waited_s"]), float(used["cpu_s"]))

    def _request(self, what: str, **fields: Any) -> Any:
        body = json.dumps({"do": what, **{name: value for name, value in fields.items() if value is not None}})
        return json.loads(_asked(lambda: self._agent.request(body)))


def _asked(call: Callable[[], _Answer]) -> _Answer:
    try:
        return call()
    except CoreError as error:
        name, message, remedy = (str(part) for part in error.args)
        raise LabError(message, remedy, name) from None
