"""What a network in parts and physical machines have in common: agents on several machines, asked as one lab."""

from __future__ import annotations

import contextlib
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from twinnet.errors import LabError, NotAvailable
from twinnet.lab_process.connection import AnswersAtOnce
from twinnet.lab_process.pending_reply import Json, JsonObject, PendingReply
from twinnet.lab_process.replies import AppReply, AppRow, FinishedReply, JobEndedReply, JobReply, JobRow, NowReply
from twinnet.lab_process.requests import LabRequests
from twinnet.machines.clock_setting import StudyClock
from twinnet.machines.delays import judged_delays
from twinnet.machines.remote_programs import RemotePrograms
from twinnet.machines.session import AgentSession, end_all
from twinnet.machines.ssh import Reached
from twinnet.results.flow_report import FlowReport

__all__ = ["SeveralMachines"]

_MOST_AT_ONCE = 64
_TURN_PS = 100_000_000_000
_CLOCKS_STALE_S = 1.0
_Answer = TypeVar("_Answer")


class SeveralMachines(AnswersAtOnce):
    """The agents of several machines as one lab; it lives from here until :meth:`close`.

    Parameters
    ----------
    machines
        The machines; they are reached all at once.
    lab_on
        Makes of an agent what answers the requests for its machine.

    Raises
    ------
    LabError
        An agent cannot be had; the message says which, why and the remedy. No agent is left then.
    """

    def __init__(self, machines: Sequence[Reached], lab_on: Callable[[AgentSession], LabRequests]) -> None:
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._apps: dict[int, tuple[str, int]] = {}
        self._numbers: dict[tuple[str, int], int] = {}
        self._clock: StudyClock
        self._sessions: dict[str, AgentSession] = _opened(machines)
        self._labs: dict[str, LabRequests] = {name: lab_on(one) for name, one in self._sessions.items()}
        self._programs = RemotePrograms(self._sessions, self._labs)

    @abstractmethod
    def _machine_of(self, node: str) -> str:
        """The machine of the node; raises `UnknownNode`."""

    @abstractmethod
    def _machine_at(self, address: str | None) -> str | None:
        """The machine whose node has the address; ``None``: none has."""

    @abstractmethod
    def _check(self) -> None:
        """Raise the failure when the lab cannot go on."""

    @property
    def closed(self) -> bool:
        """True if it was ended, or a machine has gone."""
        return self._closed.is_set()

    def wait_closed(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds; return whether it was ended by then."""
        return self._closed.wait(timeout_s)

    def answer(self, do: str, fields: JsonObject, descriptors: Sequence[int] = ()) -> Json:
        """Refuse a request that several machines have no answer to.

        Raises
        ------
        NotAvailable
            Always, unless the lab was ended.
        """
        self._check()
        raise NotAvailable(
            f"a lab of several machines does not answer {do!r} yet", "run the network on one machine for that"
        )

    def close(self) -> None:
        """End all agents."""
        self._closed.set()
        end_all(list(self._sessions.values()))

    def stop(self) -> None:
        """End the lab."""
        self.close()

    def stop_later(self) -> PendingReply[None]:
        """End the lab."""
        self.close()
        return PendingReply[None].come(None)

    def now(self) -> NowReply:
        """Report the time."""
        self._check()
        return {"now_ps": self._clock.now_ps()}

    def spawn(
        self,
        *,
        host: str,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        terminal: bool | None = None,
        limit_ps: int | None = None,
        descriptors: Sequence[int] = (),
    ) -> JobReply:
        """Start a program on the machine of `host`."""
        self._check()
        whole = None if env is None else dict(env)
        fields: JsonObject = {
            "host": host, "argv": list(argv), "env": whole, "cwd": cwd, "terminal": terminal, "limit_ps": limit_ps
        }  # fmt: skip
        return self._programs.spawn(self._machine_of(host), descriptors, fields)

    def wait(self, *, job: int) -> JobEndedReply:
        """Wait until a program ends."""
        return self._programs.wait(job).result()

    def wait_later(self, *, job: int) -> PendingReply[JobEndedReply]:
        """Return the answer that comes when a program ends."""
        try:
            return self._programs.wait(job)
        except LabError as error:
            return PendingReply[JobEndedReply].refused(error)

    def signal(self, *, job: int, signal: int) -> None:
        """Send a signal to the process group of a program."""
        self._check()
        self._programs.signal(job, signal)

    def jobs(self) -> list[JobRow]:
        """List the programs."""
        self._check()
        return self._programs.jobs()

    def app_start(self, *, host: str, app: JsonObject, at_ps: int | None = None, seed: int | None = None) -> AppReply:
        """Start an app."""
        self._check()
        machine = self._machine_of(host)
        local = self._labs[machine].app_start(host=host, app=app, at_ps=at_ps, seed=seed)["app"]
        with self._lock:
            number = len(self._apps)
            self._apps[number] = (machine, local)
            self._numbers[machine, local] = number
        return {"app": number}

    def app_stop(self, *, app: int) -> None:
        """Ask an app to end."""
        self._check()
        machine, local = self._apps[app]
        self._labs[machine].app_stop(app=local)

    def app_wait(self, *, apps: Sequence[int], until_ps: int | None = None) -> FinishedReply:
        """Wait until apps have finished."""
        left = self._by_machine(apps)
        while True:
            turn_ps = self._clock.now_ps() + _TURN_PS
            end_ps = turn_ps if until_ps is None else min(turn_ps, until_ps)
            for machine, numbers in list(left.items()):
                if self._labs[machine].app_wait(apps=numbers, until_ps=end_ps)["finished"]:
                    del left[machine]
            if not left:
                return {"finished": True}
            # One dies, all die: a flow to a machine that has gone would last to its end.
            self._check()
            if until_ps is not None and self._clock.now_ps() >= until_ps:
                return {"finished": False}

    def app_report(self, *, app: int | None = None, apps: Sequence[int] | None = None) -> list[AppRow]:
        """Report what apps have counted, without one-way delays that the clocks of the machines do not permit."""
        self._check()
        wanted = [app] if app is not None else list(self._apps) if apps is None else list(apps)
        if time.monotonic() - self._clock.compared_s > _CLOCKS_STALE_S:
            self._clock.compare_again()
        found: dict[int, AppRow] = {}
        for machine, numbers in self._by_machine(wanted).items():
            for row in self._labs[machine].app_report(apps=numbers):
                number = self._numbers[machine, row["app"]]
                found[number] = {**row, "app": number, "report": self._judged(row["report"] or {}, machine)}
        return [found[number] for number in wanted]

    def _judged(self, report: Mapping[str, Any], receiver: str) -> JsonObject:
        flows: list[Json] = []
        for flow in report.get("flows") or ():
            sender = self._machine_at(FlowReport.from_spec({"from": flow.get("from")}).source_address)
            apart = flow.get("role") in ("sink", "client") and sender is not None and sender != receiver
            flows.append(judged_delays(flow, self._clock.bound_ps(str(sender), receiver)) if apart else flow)
        return {**report, "flows": flows}

    def _by_machine(self, apps: Sequence[int]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number in apps:
            machine, local = self._apps[number]
            found.setdefault(machine, []).append(local)
        return found

    def _on_all(self, ask: Callable[[str, AgentSession], _Answer]) -> dict[str, _Answer]:
        """Ask all agents side by side."""
        names, sessions = list(self._sessions), list(self._sessions.values())
        with ThreadPoolExecutor(max_workers=min(_MOST_AT_ONCE, len(names)), thread_name_prefix="machine") as pool:
            return dict(zip(names, pool.map(ask, names, sessions), strict=True))


def _opened(machines: Sequence[Reached]) -> dict[str, AgentSession]:
    """Agents on all `machines`, begun side by side; none is left when one cannot be had."""
    with ThreadPoolExecutor(max_workers=min(_MOST_AT_ONCE, len(machines)), thread_name_prefix="ssh") as pool:
        futures = [pool.submit(AgentSession, machine) for machine in machines]
        errors = [error for future in futures if (error := future.exception()) is not None]
        made = [future.result() for future in futures if future.exception() is None]
        if errors:
            with contextlib.suppress(LabError):
                end_all(made)
            raise errors[0]
    return {one.machine.name: one for one in made}
