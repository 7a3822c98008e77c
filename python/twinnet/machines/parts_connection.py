"""One network on several machines as one lab: requests of the lab protocol, each answered by the part that it is
about."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from twinnet.errors import BadValue, LabClosed, LabError, NotAvailable, TwinnetError, UnknownNode, did_you_mean
from twinnet.lab_process.connection import PendingReply
from twinnet.machines.clock_setting import StudyClock
from twinnet.machines.delays import judged_delays
from twinnet.machines.parts_controllers import joined_when
from twinnet.machines.parts_sampler import PartsSampler
from twinnet.machines.remote_capture import RemoteCapture
from twinnet.machines.remote_programs import RemotePrograms
from twinnet.machines.session import AgentSession, end_all
from twinnet.machines.underlay_paths import (
    UnderlayPath,
    first_free_port,
    late_share,
    measured_path,
    reduced_delay_ps,
    refuse_slow_links,
)
from twinnet.network.cut import CutLink, Way, cut_network
from twinnet.network.placement import PartMachine
from twinnet.results.flow_report import FlowReport

__all__ = ["PartsConnection"]

_TURN_PS = 50_000_000_000
_AHEAD_PS = 1_000_000_000_000
"""How long before a change that is scheduled all machines are told of it, at least."""
_LOOK_S = 0.5
_CLOCKS_STALE_S = 1.0
_WAYS: tuple[Way, Way] = ("ab", "ba")
_Answer = TypeVar("_Answer")


class PartsConnection:
    """The parts of one network, each in a lab on its machine; it lives from here until :meth:`close`.

    Parameters
    ----------
    spec
        The whole network in the form of the lab protocol.
    placed
        The machine of every node.
    options
        The options of ``start``.

    Attributes
    ----------
    started
        What is told of the start: `hosts`, `setup_ms`, `machines` (what each part told), `clocks`, `underlay` (the
        ways between machines as they were measured) and `links` (what each cut link is now).

    Raises
    ------
    LabError
        A machine or a way between two cannot carry its part; the message tells which, why and the remedy. Nothing is
        left running then.
    """

    def __init__(self, spec: Mapping[str, Any], placed: Mapping[str, PartMachine], options: Mapping[str, Any]) -> None:
        begin_s = time.monotonic()
        self._spec = spec
        self._part_of: dict[str, str] = {node: machine.name for node, machine in placed.items()}
        # The key tells labs apart that share an underlay; nothing that is measured depends on it.
        self._cut = cut_network(spec, self._part_of, random.SystemRandom().randrange(1 << 24))
        self._closed = threading.Event()
        self._failure: LabClosed | None = None
        self._lock = threading.Lock()
        self._apps: dict[int, tuple[str, int]] = {}
        self._numbers: dict[tuple[str, int], int] = {}
        self._captures: dict[int, RemoteCapture] = {}
        self._samplers: dict[int, PartsSampler] = {}
        machines = list({one.name: one for one in placed.values()}.values())
        self._sessions = _opened(machines)
        self._programs = RemotePrograms(self._sessions, lambda name, do, fields: self._ask(name, do, **fields))
        try:
            self._addresses = _tunnel_addresses(machines, self._sessions)
            port, watched = first_free_port(self._sessions, self._addresses)
            self._paths = self._measured_paths(port)
            refuse_slow_links(list(self._paths.values()))
            self._path_of = {link.index: path for path, links in self._paths.values() for link in links}
            for link in self._cut.links:
                for way in _WAYS:
                    left_ps = reduced_delay_ps(link, self._path_of[link.index], link.delays_ps[way])
                    self._cut.shorten(link, way, left_ps)
            cut_packets = {index: path.whole_bytes == 0 for index, path in self._path_of.items()}
            self._cut.connect(self._addresses, port, cut_packets)
            self._clock = StudyClock(list(self._sessions.values()), self._addresses)
            parts = self._on_all(
                lambda name, one: one.request("part.start", network=self._cut.parts[name], options=dict(options))
            )
            self._watch(watched)
            self._schedule_all(spec.get("schedule") or ())
            self._on_all(lambda name, one: one.request("part.ask", request="fidelity.reset", fields={}))
        except BaseException:
            self.close()
            raise
        self._since_ps = self._clock.now_ps()
        self.started: dict[str, Any] = {
            "hosts": sum(int(one["hosts"]) for one in parts.values()),
            "setup_ms": (time.monotonic() - begin_s) * 1000,
            "interface": next(iter(parts.values()))["interface"],
            "realtime": all(one.get("realtime") for one in parts.values()),
            "machines": parts,
            "clocks": {name: clock.to_spec() for name, clock in self._clock.clocks.items()},
            "underlay": [path.to_spec() for path, _ in self._paths.values()],
            "links": [self._told_link(link) for link in self._cut.links],
        }
        threading.Thread(target=self._look_after, name="parts", daemon=True).start()

    @property
    def closed(self) -> bool:
        """True if it was ended, or a part has gone."""
        return self._closed.is_set()

    def wait_closed(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds; return whether it was ended by then."""
        return self._closed.wait(timeout_s)

    def request(self, do: str, descriptors: Sequence[int] = (), **fields: Any) -> Any:
        """Answer the request `do` of the lab protocol.

        Raises
        ------
        LabError
            A part refused, or has gone.
        NotAvailable
            A network on several machines cannot do that.
        """
        if do in ("wait", "controllers.wait"):
            return self.submit(do, **fields).result()
        if self.closed:
            raise self._failure or LabClosed("the lab was ended", "start a new one")
        if do == "spawn":
            return self._programs.spawn(self._machine_of(str(fields["host"])), descriptors, fields)
        if do == "capture.start":
            return self._start_capture(descriptors, fields)
        if do == "stop":
            self.close()
            return {}
        answers: dict[str, Callable[..., Any]] = {
            "app.start": self._start_app,
            "app.stop": self._stop_app,
            "app.wait": self._wait_apps,
            "app.report": self._reports,
            "now": lambda: {"now_ps": self._clock.now_ps()},
            "describe": lambda: {**self._spec, "interface": self.started["interface"]},
            "fidelity": self._fidelity,
            "fidelity.reset": self._reset,
            "jobs": self._programs.jobs,
            "signal": self._programs.signal,
            "links": self._links,
            "ports": self._ports,
            "tunnels": lambda: [row for _, rows in self._ask_all("tunnels").items() for row in rows],
            "link.set": self._set_link,
            "schedule": self._schedule,
            "controllers": self._controllers,
            "interfaces": list,
            "samples.start": self._start_sampler,
            "samples.read": self._read_sampler,
            "samples.stop": self._stop_sampler,
            "capture.stop": self._stop_capture,
        }
        if do in answers:
            return answers[do](**fields)
        node = fields.get("switch") or fields.get("node")
        if do in ("flows.add", "flows.delete", "flows.dump", "queues.set") and node is not None:
            return self._ask(self._machine_of(str(node)), do, **fields)
        raise NotAvailable(
            f"a network on several machines does not answer {do!r} yet", "run the network on one machine for that"
        )

    def submit(self, do: str, descriptors: Sequence[int] = (), **fields: Any) -> PendingReply:
        """Ask, and return the answer as one that has come; that of ``wait`` comes when the program ends."""
        try:
            if do == "wait":
                return self._programs.wait(int(fields["job"]))
            if do == "controllers.wait":
                return joined_when(fields["switches"], self._controllers, self._closed)
            return PendingReply.come({"ok": self.request(do, descriptors, **fields)})
        except TwinnetError as error:
            return PendingReply.refused(error)

    def lost_controllers(self) -> dict[tuple[str, str], str]:
        """The reasons why switches are without a controller, by switch and controller."""
        told = self._on_all(lambda name, one: one.request("part.controllers_lost"))
        return {(switch, target): why for rows in told.values() for switch, target, why in rows}

    def close(self) -> None:
        """End all parts."""
        for capture in list(self._captures.values()):
            # What was captured is brought before the machine that has it goes.
            with contextlib.suppress(TwinnetError):
                capture.stop()
        self._closed.set()
        end_all(list(self._sessions.values()))

    def _look_after(self) -> None:
        """One dies, all die: a network with a hole measures nothing."""
        while not self._closed.wait(_LOOK_S):
            try:
                for name in self._sessions:
                    self._ask(name, "now")
            except TwinnetError as error:
                if not self._closed.is_set():
                    self._failure = LabClosed(f"a part of the network has gone: {error.message}", "start it again")
                    self.close()
                return

    def _measured_paths(self, port: int) -> dict[tuple[str, str], tuple[UnderlayPath, list[CutLink]]]:
        links_of: dict[tuple[str, str], list[CutLink]] = {}
        for link in self._cut.links:
            pair = (min(link.machine_a, link.machine_b), max(link.machine_a, link.machine_b))
            links_of.setdefault(pair, []).append(link)
        return {
            pair: (measured_path(self._sessions, self._addresses, port, links), links)
            for pair, links in links_of.items()
        }

    def _watch(self, ports: Mapping[str, int]) -> None:
        for here in self._sessions:
            others = {b if a == here else a for a, b in self._paths if here in (a, b)}
            remotes = [[self._addresses[other], ports[other]] for other in sorted(others)]
            self._sessions[here].request("part.watch", address=self._addresses[here], remotes=remotes)

    def _told_link(self, link: CutLink) -> dict[str, Any]:
        path = self._path_of[link.index]
        left = {way: link.delays_ps[way] - path.delay_ps for way in _WAYS}
        return {
            "link": link.index,
            "a": link.a,
            "b": link.b,
            "machines": [link.machine_a, link.machine_b],
            "vni": link.key,
            "delays_ps": dict(link.delays_ps),
            "underlay_delay_ps": path.delay_ps,
            "line_delays_ps": left,
            "packets_are_cut": path.whole_bytes == 0,
        }

    def _machine_of(self, node: str) -> str:
        found = self._part_of.get(node)
        if found is None:
            raise UnknownNode(f"the lab has no node {node!r}", did_you_mean(node, self._part_of))
        return found

    def _ask(self, machine: str, do: str, **fields: Any) -> Any:
        try:
            return self._sessions[machine].request("part.ask", request=do, fields=fields)
        except LabClosed:
            # All were ended because one had gone: that is the reason to tell.
            if self._failure is not None:
                raise self._failure from None
            raise

    def _ask_all(self, do: str) -> dict[str, Any]:
        return self._on_all(lambda name, _: self._ask(name, do))

    def _on_all(self, ask: Callable[[str, AgentSession], _Answer]) -> dict[str, _Answer]:
        names, sessions = list(self._sessions), list(self._sessions.values())
        with ThreadPoolExecutor(max_workers=len(names), thread_name_prefix="part") as pool:
            return dict(zip(names, pool.map(ask, names, sessions), strict=True))

    def _start_app(self, host: str, **fields: Any) -> dict[str, int]:
        machine = self._machine_of(host)
        local = int(self._ask(machine, "app.start", host=host, **fields)["app"])
        with self._lock:
            number = len(self._apps)
            self._apps[number] = (machine, local)
            self._numbers[machine, local] = number
        return {"app": number}

    def _stop_app(self, app: int) -> Any:
        machine, local = self._apps[app]
        return self._ask(machine, "app.stop", app=local)

    def _by_machine(self, apps: Sequence[int]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number in apps:
            machine, local = self._apps[number]
            found.setdefault(machine, []).append(local)
        return found

    def _wait_apps(self, apps: Sequence[int], until_ps: int | None = None) -> dict[str, bool]:
        left = self._by_machine(apps)
        while True:
            turn_ps = self._clock.now_ps() + _TURN_PS
            end_ps = turn_ps if until_ps is None else min(turn_ps, until_ps)
            for machine, numbers in list(left.items()):
                if self._ask(machine, "app.wait", apps=numbers, until_ps=end_ps)["finished"]:
                    del left[machine]
            if not left:
                return {"finished": True}
            if self._failure is not None:
                raise self._failure
            if until_ps is not None and self._clock.now_ps() >= until_ps:
                return {"finished": False}

    def _reports(self, apps: Sequence[int] | None = None) -> list[Any]:
        wanted = list(self._apps) if apps is None else list(apps)
        if time.monotonic() - self._clock.compared_s > _CLOCKS_STALE_S:
            self._clock.compare_again()
        found: dict[int, Any] = {}
        for machine, numbers in self._by_machine(wanted).items():
            for report in self._ask(machine, "app.report", apps=numbers):
                number = self._numbers[machine, int(report["app"])]
                found[number] = self._judged({**report, "app": number}, machine)
        return [found[number] for number in wanted]

    def _judged(self, report: Mapping[str, Any], receiver: str) -> Mapping[str, Any]:
        """`report` without one-way delays between machines that their clocks do not permit."""
        flows: list[Any] = []
        told: Mapping[str, Any] = report.get("report") or {}
        for flow in told.get("flows") or ():
            sender = self._machine_at(FlowReport.from_spec({"from": flow.get("from")}).source_address)
            apart = flow.get("role") in ("sink", "client") and sender is not None and sender != receiver
            flows.append(judged_delays(flow, self._clock.bound_ps(str(sender), receiver)) if apart else flow)
        return {**report, "report": {**told, "flows": flows}}

    def _machine_at(self, address: str | None) -> str | None:
        for node in self._spec["nodes"]:
            for port in node["ports"]:
                if any(one.partition("/")[0] == address for one in port.get("addresses") or ()):
                    return self._part_of[node["name"]]
        return None

    def _controllers(self) -> list[Any]:
        return [row for rows in self._ask_all("controllers").values() for row in rows]

    def _machine_of_port(self, name: str) -> str:
        owner = next((node for node in self._spec["nodes"] for port in node["ports"] if port["name"] == name), None)
        if owner is None:
            raise UnknownNode(f"the lab has no port {name!r}", "ports are called like s1-eth1")
        return self._part_of[owner["name"]]

    def _start_capture(self, descriptors: Sequence[int], fields: Mapping[str, Any]) -> dict[str, int]:
        session = self._sessions[self._machine_of_port(str(fields["port"]))]
        capture = RemoteCapture(session, fields, descriptors[0])
        with self._lock:
            number = len(self._captures) + 1
            self._captures[number] = capture
        return {"capture": number}

    def _stop_capture(self, capture: int) -> dict[str, Any]:
        return self._captures[capture].stop()

    def _start_sampler(self, interval_ps: int, ports: Sequence[str]) -> dict[str, int]:
        by_machine: dict[str, list[str]] = {}
        for port in ports:
            by_machine.setdefault(self._machine_of_port(port), []).append(port)

        def ask(do: str, fields: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
            return self._on_all(lambda name, _: self._ask(name, do, **fields[name]) if name in fields else None)

        sampler = PartsSampler(
            lambda do, fields: {name: told for name, told in ask(do, fields).items() if name in fields},
            interval_ps,
            by_machine,
        )
        with self._lock:
            number = len(self._samplers) + 1
            self._samplers[number] = sampler
        return {"sampler": number}

    def _sampler(self, number: int) -> PartsSampler:
        if number not in self._samplers:
            raise LabError(f"the lab has no sampler {number}", "it may have been stopped")
        return self._samplers[number]

    def _read_sampler(self, sampler: int) -> dict[str, Any]:
        return self._sampler(sampler).read()

    def _stop_sampler(self, sampler: int) -> dict[str, Any]:
        found = self._sampler(sampler)
        del self._samplers[sampler]
        return found.stop()

    def _links(self) -> list[Any]:
        told = self._ask_all("links")
        cut = {link.index: link for link in self._cut.links}
        rows: list[Any] = []
        for index, link in enumerate(self._spec["links"]):
            a, b = link["a"]["node"], link["b"]["node"]
            machine_a, machine_b = self._part_of[a], self._part_of[b]
            row_a = dict(told[machine_a][self._cut.numbers[machine_a][index]])
            if index in cut:
                row_b = told[machine_b][self._cut.numbers[machine_b][index]]
                row_a |= {"ba": row_b["ba"]}
            rows.append({**row_a, "link": index, "a": a, "b": b})
        return rows

    def _ports(self) -> list[Any]:
        ends = {f"{link.tunnel}-eth0" for link in self._cut.links}
        return [row for rows in self._ask_all("ports").values() for row in rows if row["port"] not in ends]

    def _set_link(self, **fields: Any) -> Any:
        for machine, one in self._link_changes(fields):
            self._ask(machine, "link.set", **one)
        return {}

    def _schedule_all(self, changes: Sequence[Mapping[str, Any]]) -> None:
        """Tell all parts of the changes that the description schedules."""
        now_ps = self._clock.now_ps()
        early = [one for one in changes if int(one["at_ps"]) < now_ps + _AHEAD_PS]
        if early:
            first = self._spec["links"][early[0]["set"]["link"]]
            raise BadValue(
                f"the change of {first['a']['node']} - {first['b']['node']} at {int(early[0]['at_ps']) / 1e12:g} s is "
                f"too early: the machines were ready {now_ps / 1e12:.2f} s after the start, and need "
                f"{_AHEAD_PS / 1e12:g} s more to be told of changes",
                f"schedule it for {(now_ps + 2 * _AHEAD_PS) / 1e12:.0f} s or later",
            )
        for one in changes:
            self._schedule(int(one["at_ps"]), one["set"])

    def _schedule(self, at_ps: int, set: Mapping[str, Any]) -> Any:
        left_ps = at_ps - self._clock.now_ps()
        if left_ps < _AHEAD_PS:
            # Machines are told one after the other, and both ends of a link are to change together.
            raise BadValue(
                f"the change is due in {max(0, left_ps) / 1e12:.2f} s, and a network on several machines needs "
                f"{_AHEAD_PS / 1e12:g} s to tell all of them",
                "schedule it for later",
            )
        for machine, one in self._link_changes(set):
            self._ask(machine, "schedule", at_ps=at_ps, set=one)
        return {}

    def _link_changes(self, fields: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """The changes of parts that a ``link.set`` of the whole network stands for."""
        index = fields.get("link")
        if index is None:
            ends = {fields.get("a"), fields.get("b")}
            index = next(n for n, one in enumerate(self._spec["links"]) if {one["a"]["node"], one["b"]["node"]} == ends)
        change, direction = dict(fields.get("set") or {}), str(fields.get("direction") or "both")
        link = next((one for one in self._cut.links if one.index == index), None)
        if link is None:
            machine = self._part_of[self._spec["links"][index]["a"]["node"]]
            number = self._cut.numbers[machine][index]
            return [(machine, {"link": number, "direction": direction, "set": change})]
        if "delay_ps" in change:
            change["delay_ps"] = reduced_delay_ps(link, self._path_of[index], int(change["delay_ps"]))
        if "up" in change:
            # Both halves are down, or what is on its way arrives at an end that is up.
            return [
                (machine, {"link": self._cut.numbers[machine][index], "direction": "both", "set": change})
                for machine in (link.machine_a, link.machine_b)
            ]
        ways: list[Way] = [way for way in _WAYS if direction in (way, "both")]
        return [
            (
                link.sender(way),
                {"link": self._cut.numbers[link.sender(way)][index], "direction": way, "set": change},
            )
            for way in ways
        ]

    def _reset(self) -> Any:
        self._since_ps = self._clock.now_ps()
        self._ask_all("fidelity.reset")
        return {}

    def _fidelity(self) -> dict[str, Any]:
        records = self._ask_all("fidelity")
        watched = self._on_all(lambda name, one: one.request("part.watched"))
        for name, record in records.items():
            record["clock_to_first"] = self._clock.clocks[name].to_spec()
        return {
            "clock": "wall",
            "elapsed_ps": self._clock.now_ps() - self._since_ps,
            "handed_over": sum(int(one["handed_over"]) for one in records.values()),
            "steal_s": sum(float(one.get("steal_s") or 0) for one in records.values()),
            "cores": sum(int(one.get("cores") or 1) for one in records.values()),
            "realtime": all(one.get("realtime") for one in records.values()),
            "machines": records,
            "underlay": [self._told_underlay(link, watched) for link in self._cut.links],
        }

    def _told_underlay(self, link: CutLink, watched: Mapping[str, Any]) -> dict[str, Any]:
        """How the way of `link` was while the network ran."""
        sent, ways = 0, list[int]()
        for here, there in ((link.machine_a, link.machine_b), (link.machine_b, link.machine_a)):
            told = watched[here].get(self._addresses[there], {"sent": 0, "way_ps": []})
            sent += int(told["sent"])
            ways += [int(one) for one in told["way_ps"]]
        ways.sort()
        return {
            "link": link.name,
            "sent": sent,
            "received": len(ways),
            "delay_ps": ways[len(ways) // 2] if ways else None,
            "late_share": late_share(ways, link) if ways else (1.0 if sent > 1 else 0.0),
        }


def _tunnel_addresses(machines: Sequence[PartMachine], sessions: Mapping[str, AgentSession]) -> dict[str, str]:
    addresses: dict[str, str] = {}
    for machine in machines:
        address = machine.address or sessions[machine.name].hello.get("address")
        if not address:
            raise LabError(
                f"the IPv4 address of {machine.name} is not known: SSH reaches it in another way",
                f"name it: {{ssh: {machine.ssh}, address: 192.0.2.2}}",
                "UnderlayAddress",
            )
        addresses[machine.name] = str(address)
    return addresses


def _opened(machines: Sequence[PartMachine]) -> dict[str, AgentSession]:
    """Agents on all `machines`, begun side by side; none is left when one cannot be had."""
    with ThreadPoolExecutor(max_workers=len(machines), thread_name_prefix="ssh") as pool:
        futures = [pool.submit(AgentSession, machine) for machine in machines]
        errors = [error for future in futures if (error := future.exception()) is not None]
        made = [future.result() for future in futures if future.exception() is None]
        if errors:
            with contextlib.suppress(LabError):
                end_all(made)
            raise errors[0]
    return {one.machine.name: one for one in made}
