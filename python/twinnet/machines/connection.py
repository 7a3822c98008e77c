"""The machines of a network as one lab: requests of the lab protocol about apps, answered by the agents."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from twinnet.errors import LabClosed, NotAvailable, UnknownNode, did_you_mean
from twinnet.lab_process.pending_reply import Json, JsonObject
from twinnet.machines.agent_lab import MachineItself
from twinnet.machines.checks import check_interface, check_routes
from twinnet.machines.clock_setting import StudyClock
from twinnet.machines.session import AgentSession
from twinnet.machines.several_machines import SeveralMachines
from twinnet.network.machines import PhysicalMachine
from twinnet.network.network import Network

__all__ = ["MachinesConnection"]

_LOOK_S = 0.2
_GROWING = ("steal_s", "busy_s", "overruns", "rx_packets", "tx_packets", "rx_errors", "tx_errors", "rx_dropped",
            "tx_dropped")  # fmt: skip


class MachinesConnection(SeveralMachines):
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
        What is known of the start: `hosts`, `setup_ms`, `ssh_ms` (by machine, from the start of ssh to the agent's
        first words), `clocks`.

    Raises
    ------
    LabError
        A machine cannot be a host; the message says which, why and the remedy. No agent is left then.
    """

    def __init__(self, network: Network, layout: JsonObject) -> None:
        begin_s = time.monotonic()
        self._layout = layout
        machines = [host for host in network.hosts if isinstance(host, PhysicalMachine)]
        self._interfaces: dict[str, str] = {str(one.name): one.interface for one in machines}
        self._addresses: dict[str, str] = {str(host.name): str(host.ip or host.ip6) for host in machines}
        self._by_address = {address: name for name, address in self._addresses.items()}
        super().__init__(machines, MachineItself)
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
            self._check_agents()
        return self.closed

    def answer(self, do: str, fields: JsonObject, descriptors: Sequence[int] = ()) -> Json:
        """Refuse a request that real machines and cables have no answer to.

        Raises
        ------
        NotAvailable
            Always, unless the lab was ended.
        """
        self._check()
        raise NotAvailable(
            f"physical machines do not answer {do!r}: twinnet has no part in their cables and switches",
            "use the wall clock or the virtual clock for that",
        )

    def describe(self) -> JsonObject:
        """Report the network."""
        return self._layout

    def processors(self) -> dict[str, str]:
        """Return, for each machine, whether the thread that sends had its own processor: `own` or `shared`."""
        counted = self._on_all(self._counters)
        return {name: "shared" if one["processor"]["shared"] else "own" for name, one in counted.items()}

    def _check(self) -> None:
        if self.closed:
            raise LabClosed("the lab was ended", "start a new one")
        self._check_agents()

    def _check_agents(self) -> None:
        for session in self._sessions.values():
            session.check()

    def _machine_of(self, node: str) -> str:
        if node not in self._sessions:
            raise UnknownNode(f"{node} is no physical machine", did_you_mean(node, self._sessions))
        return node

    def _machine_at(self, address: str | None) -> str | None:
        return self._by_address.get(address or "")

    def _conditions(self, name: str, session: AgentSession) -> dict[str, Any]:
        interface = session.request("interface", interface=self._interfaces[name])
        return {"interface": interface, **session.request("describe")}

    def _counters(self, name: str, session: AgentSession) -> dict[str, Any]:
        return dict(session.request("counters", interface=self._interfaces[name]))

    def fidelity_reset(self) -> None:
        """Begin the fidelity record anew."""
        self._check()
        self._since_ps = self._clock.now_ps()
        self._counted = self._on_all(self._counters)

    def fidelity(self) -> JsonObject:
        """Report how closely the machines kept the schedule."""
        self._check()
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
