"""The machines of a network as one lab: requests of the lab protocol about apps, answered by the agents."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from twinnet.errors import LabClosed, LabError, NotAvailable, UnknownNode, did_you_mean
from twinnet.lab_process.connection import PendingReply
from twinnet.machines.checks import check_interface, check_routes
from twinnet.machines.clock_setting import StudyClock
from twinnet.machines.delays import judged_delays
from twinnet.machines.remote_programs import RemotePrograms
from twinnet.machines.session import AgentSession, end_all
from twinnet.network.machines import PhysicalMachine
from twinnet.network.network import Network
from twinnet.results.flow_report import FlowReport

__all__ = ["MachinesConnection"]

_MOST_AT_ONCE = 64
_TURN_PS = 100_000_000_000
_CLOCKS_STALE_S = 1.0
_LOOK_S = 0.2
_PS_PER_S = 1e12
_GROWING = ("steal_s", "busy_s", "overruns", "rx_packets", "tx_packets", "rx_errors", "tx_errors", "rx_dropped",
            "tx_dropped")  # fmt: skip
_Answer = TypeVar("_Answer")


class MachinesConnection:
    """The machines of `network`, each with an agent; it lives from here until :meth:`close`.

    Parameters
    ----------
    network
        The network; its machines are reached all at once.
    layout
        The network in the form of the lab protocol.

    Attributes
    ----------
    started
        What is told of the start: `hosts`, `setup_ms`, `ssh_ms` (by machine, from the start of ssh to the agent's
        first words), `clocks`.

    Raises
    ------
    LabError
        A machine cannot be a host; the message tells which, why and the remedy. No agent is left then.
    """

    def __init__(self, network: Network, layout: Mapping[str, Any]) -> None:
        begin_s = time.monotonic()
        self._layout = layout
        machines = [host for host in network.hosts if isinstance(host, PhysicalMachine)]
        self._interfaces: dict[str, str] = {str(one.name): one.interface for one in machines}
        self._closed = threading.Event()
        self._apps: dict[int, tuple[AgentSession, int]] = {}
        self._numbers: dict[tuple[str, int], int] = {}
        self._lock = threading.Lock()
        self._addresses: dict[str, str] = {str(host.name): str(host.ip or host.ip6) for host in machines}
        self._by_address = {address: name for name, address in self._addresses.items()}
        self._sessions: dict[str, AgentSession] = {one.machine.name: one for one in _opened(machines)}
        self._programs = RemotePrograms(self._sessions, self._ask_of_programs)
        try:
            self._before = self._on_all(self._conditions)
            for machine in machines:
                check_interface(network, machine, self._before[machine.name]["interface"])
            check_routes(self._sessions, self._addresses, self._interfaces)
            self._clock = StudyClock(list(self._sessions.values()), self._addresses)
            self._since_ps = 0
            self._counted = self._on_all(self._counters)
        except BaseException:
            self.close()
            raise
        self.started: dict[str, Any] = {
            "hosts": len(machines),
            "setup_ms": (time.monotonic() - begin_s) * 1000,
            "ssh_ms": {name: session.started_s * 1000 for name, session in self._sessions.items()},
            "clocks": {name: clock.to_spec() for name, clock in self._clock.clocks.items()},
        }

    @property
    def closed(self) -> bool:
        """True if it was ended."""
        return self._closed.is_set()

    def wait_closed(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds; return whether it was ended by then.

        Raises
        ------
        LabClosed
            An agent has gone.
        """
        deadline_s = time.monotonic() + timeout_s
        while (left_s := deadline_s - time.monotonic()) > 0:
            if self._closed.wait(min(left_s, _LOOK_S)):
                return True
            self._check_all()
        return self.closed

    def request(self, do: str, descriptors: Sequence[int] = (), **fields: Any) -> Any:
        """Answer the request `do` of the lab protocol.

        Raises
        ------
        LabError
            A machine refused, or has gone.
        NotAvailable
            Real machines and cables cannot do that.
        """
        if self.closed:
            raise LabClosed("the lab was ended", "start a new one")
        answers: dict[str, Callable[..., Any]] = {
            "app.start": self._start,
            "app.stop": self._stop,
            "app.wait": self._wait,
            "app.report": self._reports,
            "now": lambda: {"now_ps": self._clock.now_ps()},
            "describe": lambda: self._layout,
            "fidelity": self._fidelity,
            "fidelity.reset": self._reset,
            "jobs": self._programs.jobs,
            "signal": self._programs.signal,
        }
        if do == "wait":
            return self.submit(do, **fields).result()
        if do == "stop":
            self.close()
            return {}
        self._check_all()
        if do == "spawn":
            host = self._session(str(fields["host"])).machine.name
            return self._programs.spawn(host, descriptors, fields)
        if do not in answers or descriptors:
            raise NotAvailable(
                f"physical machines do not answer {do!r}: twinnet has no part in their cables and switches",
                "use the wall clock or the virtual clock for that",
            )
        return answers[do](**fields)

    def submit(self, do: str, descriptors: Sequence[int] = (), **fields: Any) -> PendingReply:
        """Answer the request `do` now, and return the answer as one that has come; that of ``wait`` comes when the
        program ends."""
        try:
            if do == "wait":
                return self._programs.wait(int(fields["job"]))
            return PendingReply.come({"ok": self.request(do, descriptors, **fields)})
        except LabError as error:
            return PendingReply.refused(error)

    def close(self) -> None:
        """End all agents."""
        self._closed.set()
        end_all(list(self._sessions.values()))

    def processors(self) -> dict[str, str]:
        """Return, for each machine, whether the thread that sends had its own processor: `own` or `shared`."""
        counted = self._on_all(self._counters)
        return {name: "shared" if one["processor"]["shared"] else "own" for name, one in counted.items()}

    def _start(self, host: str, app: Mapping[str, Any], at_ps: int | None = None, seed: int | None = None) -> Any:
        session = self._session(host)
        local = int(session.request("app.start", app=dict(app), at_ps=at_ps, seed=seed)["app"])
        with self._lock:
            number = len(self._apps)
            self._apps[number] = (session, local)
            self._numbers[host, local] = number
        return {"app": number}

    def _ask_of_programs(self, machine: str, do: str, fields: Mapping[str, Any]) -> Any:
        return self._session(machine).request("program.ask", request=do, fields=dict(fields))

    def _check_all(self) -> None:
        for session in self._sessions.values():
            session.check()

    def _session(self, host: str) -> AgentSession:
        found = self._sessions.get(host)
        if found is None:
            raise UnknownNode(f"{host} is no physical machine", did_you_mean(host, self._sessions))
        return found

    def _stop(self, app: int) -> Any:
        session, local = self._apps[app]
        return session.request("app.stop", app=local)

    def _wait(self, apps: Sequence[int], until_ps: int | None = None) -> Any:
        left = self._by_session(apps)
        while True:
            turn_ps = self._clock.now_ps() + _TURN_PS
            end_ps = turn_ps if until_ps is None else min(turn_ps, until_ps)
            for session, numbers in list(left.items()):
                if session.request("app.wait", apps=numbers, until_ps=end_ps)["finished"]:
                    del left[session]
            if not left:
                return {"finished": True}
            # One dies, all die: a flow to a machine that has gone would last to its end.
            self._check_all()
            if until_ps is not None and self._clock.now_ps() >= until_ps:
                return {"finished": False}

    def _reports(self, apps: Sequence[int] | None = None) -> list[Any]:
        wanted = list(self._apps) if apps is None else list(apps)
        if time.monotonic() - self._clock.compared_s > _CLOCKS_STALE_S:
            self._clock.compare_again()
        found: dict[int, Any] = {}
        for session, numbers in self._by_session(wanted).items():
            for report in session.request("app.report", apps=numbers):
                number = self._numbers[session.machine.name, int(report["app"])]
                found[number] = self._judged({**report, "app": number}, session.machine.name)
        return [found[number] for number in wanted]

    def _judged(self, report: Mapping[str, Any], receiver: str) -> Mapping[str, Any]:
        """`report` without one-way delays that the clocks do not permit."""
        flows: list[Any] = []
        told: Mapping[str, Any] = report.get("report") or {}
        for flow in told.get("flows") or ():
            sender = self._by_address.get(FlowReport.from_spec({"from": flow.get("from")}).source_address or "")
            of_receiver = flow.get("role") in ("sink", "client") and sender is not None and sender != receiver
            flows.append(judged_delays(flow, self._clock.bound_ps(str(sender), receiver)) if of_receiver else flow)
        return {**report, "host": receiver, "report": {**told, "flows": flows}}

    def _by_session(self, apps: Sequence[int]) -> dict[AgentSession, list[int]]:
        found: dict[AgentSession, list[int]] = {}
        for number in apps:
            session, local = self._apps[number]
            found.setdefault(session, []).append(local)
        return found

    def _conditions(self, session: AgentSession) -> dict[str, Any]:
        interface = session.request("interface", interface=self._interfaces[session.machine.name])
        return {"interface": interface, **session.request("describe")}

    def _counters(self, session: AgentSession) -> dict[str, Any]:
        return dict(session.request("counters", interface=self._interfaces[session.machine.name]))

    def _reset(self) -> Any:
        self._since_ps = self._clock.now_ps()
        self._counted = self._on_all(self._counters)
        return {}

    def _fidelity(self) -> dict[str, Any]:
        now_ps, counted = self._clock.now_ps(), self._on_all(self._counters)
        elapsed_ps = now_ps - self._since_ps
        machines: dict[str, dict[str, Any]] = {
            name: _record(elapsed_ps, self._counted[name], counted[name])
            | {"clock_to_first": self._clock.clocks[name].to_spec(), "name": self._sessions[name].hello["name"]}
            for name in self._sessions
        }
        return {
            "clock": "real",
            "elapsed_ps": elapsed_ps,
            "handed_over": sum(one["handed_over"] for one in machines.values()),
            "steal_s": sum(one["steal_s"] for one in machines.values()),
            "cores": sum(one["cores"] for one in machines.values()),
            "cpu_s": {"agent": sum(one["cpu_s"]["agent"] for one in machines.values())},
            "machines": machines,
        }

    def conditions(self) -> dict[str, Any]:
        """Return, for each machine, its description `before` the traffic and `after` it."""
        after = self._on_all(self._conditions)
        return {name: {"before": self._before[name], "after": after[name]} for name in self._sessions}

    def _on_all(self, ask: Callable[[AgentSession], _Answer]) -> dict[str, _Answer]:
        sessions = list(self._sessions.values())
        with ThreadPoolExecutor(max_workers=min(_MOST_AT_ONCE, len(sessions)), thread_name_prefix="agent") as pool:
            return {one.machine.name: told for one, told in zip(sessions, pool.map(ask, sessions), strict=True)}


def _opened(machines: Sequence[PhysicalMachine]) -> list[AgentSession]:
    """Agents on all `machines`, begun side by side; none is left when one cannot be had."""
    with ThreadPoolExecutor(max_workers=min(_MOST_AT_ONCE, len(machines)), thread_name_prefix="ssh") as pool:
        futures = [pool.submit(AgentSession, machine) for machine in machines]
        errors = [error for future in futures if (error := future.exception()) is not None]
        if errors:
            end_all([future.result() for future in futures if future.exception() is None])
            raise errors[0]
        return [future.result() for future in futures]


def _record(elapsed_ps: int, before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The record of one machine in the form that a lab's record of fidelity has."""
    grown = {name: now[name] - before[name] for name in _GROWING}
    return {
        "clock": "real",
        "elapsed_ps": elapsed_ps,
        "handed_over": grown["rx_packets"],
        "interface_drops": grown["overruns"],
        "steal_s": grown["steal_s"],
        "busy_s": grown["busy_s"],
        "cores": now["cores"],
        "cpu_s": {"agent": now["processor"]["cpu_s"]},
        "realtime": now["processor"]["realtime"],
        "processor": "shared" if now["processor"]["shared"] else "own",
        "agent": now["agent"],
        "sources": now["sources"],
        "interface": {name: grown[name] for name in _GROWING[3:]},
    }
