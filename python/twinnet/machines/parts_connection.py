"""One network on several machines as one lab: requests of the lab protocol, each answered by the part that it is
about."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from twinnet.errors import BadValue, LabClosed, LabError, TwinnetError, UnknownNode, did_you_mean
from twinnet.lab_process.pending_reply import JsonObject, PendingReply
from twinnet.lab_process.replies import (
    Captured,
    CaptureReply,
    ControllerRow,
    DeletedReply,
    FinishedReply,
    FollowedFrame,
    GroupsReply,
    InterfaceRow,
    LearntRow,
    LinkRow,
    PortRow,
    SamplerReply,
    SamplesTold,
    TunnelRow,
)
from twinnet.lab_process.requests import LabRequests
from twinnet.machines.agent_lab import PartLab
from twinnet.machines.clock_setting import StudyClock
from twinnet.machines.parts_controllers import joined_when
from twinnet.machines.parts_sampler import PartsSampler
from twinnet.machines.remote_capture import RemoteCapture
from twinnet.machines.session import AgentSession
from twinnet.machines.several_machines import SeveralMachines
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

__all__ = ["PartsConnection"]

_AHEAD_PS = 1_000_000_000_000
"""How long before a change that is scheduled all machines know of it, at least."""
_LOOK_S = 0.5
_WAYS: tuple[Way, Way] = ("ab", "ba")


class PartsConnection(SeveralMachines):
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
        What is known of the start: `hosts`, `setup_ms`, `machines` (what each part reported), `clocks`, `underlay` (the
        ways between machines as they were measured) and `links` (what each cut link is now).

    Raises
    ------
    LabError
        A machine or a way between two cannot carry its part; the message says which, why and the remedy. Nothing is
        left running then.
    """

    def __init__(self, spec: Mapping[str, Any], placed: Mapping[str, PartMachine], options: Mapping[str, Any]) -> None:
        begin_s = time.monotonic()
        self._spec = spec
        self._part_of: dict[str, str] = {node: machine.name for node, machine in placed.items()}
        # The key tells labs apart that share an underlay; nothing that is measured depends on it.
        self._cut = cut_network(spec, self._part_of, random.SystemRandom().randrange(1 << 24))
        self._failure: LabClosed | None = None
        self._captures: dict[int, RemoteCapture] = {}
        self._samplers: dict[int, PartsSampler] = {}
        machines = list({one.name: one for one in placed.values()}.values())
        super().__init__(machines, lambda session: PartLab(session, lambda: self._failure))
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
            self._on_all(lambda name, _: self._labs[name].fidelity_reset())
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
            "links": [self._link_record(link) for link in self._cut.links],
        }
        threading.Thread(target=self._look_after, name="parts", daemon=True).start()

    def describe(self) -> JsonObject:
        """Report the network."""
        return {**self._spec, "interface": self.started["interface"]}

    def tunnels(self) -> list[TunnelRow]:
        """Report how the tunnels to other speakers stand."""
        return [row for rows in self._on_all(lambda name, _: self._labs[name].tunnels()).values() for row in rows]

    def interfaces(self) -> list[InterfaceRow]:
        """Report the state of the interfaces of the machine: there are none in a network on several machines."""
        return []

    def flows_add(self, *, switch: str, flows: Sequence[str]) -> None:
        """Add flow entries, all or none."""
        self._lab_of(switch).flows_add(switch=switch, flows=flows)

    def flows_delete(self, *, switch: str, match: str | None = None) -> DeletedReply:
        """Delete flow entries."""
        return self._lab_of(switch).flows_delete(switch=switch, match=match)

    def flows_dump(self, *, switch: str) -> list[str]:
        """Report the flow entries."""
        return self._lab_of(switch).flows_dump(switch=switch)

    def learnt(self, *, switch: str) -> list[LearntRow]:
        """Report the addresses that a switch has learnt."""
        return self._lab_of(switch).learnt(switch=switch)

    def groups(self, *, switch: str) -> GroupsReply:
        """Report groups and meters with what they have counted."""
        return self._lab_of(switch).groups(switch=switch)

    def learnt_forget(self, *, switch: str) -> DeletedReply:
        """Have a switch forget the addresses that it has learnt."""
        return self._lab_of(switch).learnt_forget(switch=switch)

    def follow(self, *, switch: str, in_port: int, frame: str) -> FollowedFrame:
        """Say what would become of a frame in a switch."""
        return self._lab_of(switch).follow(switch=switch, in_port=in_port, frame=frame)

    def queues_set(self, *, port: str | int, queue: JsonObject, node: str | None = None) -> None:
        """Give a port another queue."""
        owner = node if node is not None else self._node_of_port(str(port))
        self._lab_of(owner).queues_set(port=port, queue=queue, node=node)

    def lost_controllers(self) -> dict[tuple[str, str], str]:
        """The reasons why switches are without a controller, by switch and controller."""
        lost = self._on_all(lambda name, one: one.request("part.controllers_lost"))
        return {(switch, target): why for rows in lost.values() for switch, target, why in rows}

    def close(self) -> None:
        """End all parts."""
        for capture in list(self._captures.values()):
            # What was captured is brought before the machine that has it goes.
            with contextlib.suppress(TwinnetError):
                capture.stop()
        super().close()

    def _look_after(self) -> None:
        """One dies, all die: a network with a hole measures nothing."""
        while not self._closed.wait(_LOOK_S):
            try:
                for lab in self._labs.values():
                    lab.now()
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

    def _link_record(self, link: CutLink) -> dict[str, Any]:
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

    def _check(self) -> None:
        if self._failure is not None or self.closed:
            raise self._failure or LabClosed("the lab was ended", "start a new one")

    def _machine_of(self, node: str) -> str:
        found = self._part_of.get(node)
        if found is None:
            raise UnknownNode(f"the lab has no node {node!r}", did_you_mean(node, self._part_of))
        return found

    def _lab_of(self, node: str) -> LabRequests:
        self._check()
        return self._labs[self._machine_of(node)]

    def _machine_at(self, address: str | None) -> str | None:
        for node in self._spec["nodes"]:
            for port in node["ports"]:
                if any(one.partition("/")[0] == address for one in port.get("addresses") or ()):
                    return self._part_of[node["name"]]
        return None

    def controllers(self, *, said: bool | None = None) -> list[ControllerRow]:
        """Report how the connections of controllers stand, and what was `said`."""
        every = self._on_all(lambda name, _: self._labs[name].controllers(said=said))
        return [row for rows in every.values() for row in rows]

    def controllers_wait(self, *, switches: Sequence[str], until_ps: int | None = None) -> FinishedReply:
        """Wait until each switch has agreed on a version with a controller."""
        return self.controllers_wait_later(switches=switches, until_ps=until_ps).result()

    def controllers_wait_later(
        self, *, switches: Sequence[str], until_ps: int | None = None
    ) -> PendingReply[FinishedReply]:
        """Return the answer that comes when each switch has agreed on a version with a controller."""
        return joined_when(switches, self.controllers, self._closed)

    def _node_of_port(self, name: str) -> str:
        for node in self._spec["nodes"]:
            if any(port["name"] == name for port in node["ports"]):
                return str(node["name"])
        raise UnknownNode(f"the lab has no port {name!r}", "ports are called like s1-eth1")

    def capture_start(
        self,
        *,
        port: str,
        path: str | None = None,
        file: str | None = None,
        limit_bytes: int | None = None,
        snap: int | None = None,
        direction: Literal["in", "out", "both"] | None = None,
        ring: JsonObject | None = None,
        descriptors: Sequence[int] = (),
    ) -> CaptureReply:
        """Capture a port; what the machine of its node writes is brought here."""
        self._check()
        session = self._sessions[self._machine_of(self._node_of_port(port))]
        fields: JsonObject = {
            "port": port, "file": file, "limit_bytes": limit_bytes, "snap": snap, "direction": direction, "ring": ring
        }  # fmt: skip
        capture = RemoteCapture(session, fields, descriptors[0])
        with self._lock:
            number = len(self._captures) + 1
            self._captures[number] = capture
        return {"capture": number}

    def capture_stop(self, *, capture: int) -> Captured:
        """End a capture."""
        return self._captures[capture].stop()

    def samples_start(self, *, interval_ps: int, ports: Sequence[str]) -> SamplerReply:
        """Count what ports do in each interval."""
        self._check()
        by_machine: dict[str, list[str]] = {}
        for port in ports:
            by_machine.setdefault(self._machine_of(self._node_of_port(port)), []).append(port)
        sampler = PartsSampler({name: self._labs[name] for name in by_machine}, interval_ps, by_machine)
        with self._lock:
            number = len(self._samplers) + 1
            self._samplers[number] = sampler
        return {"sampler": number}

    def samples_read(self, *, sampler: int, skip: int | None = None) -> SamplesTold:
        """Report what was counted so far, without the first `skip` intervals."""
        return self._sampler(sampler).read(skip)

    def samples_stop(self, *, sampler: int, skip: int | None = None) -> SamplesTold:
        """Report what was counted, without the first `skip` intervals, and end the sampler."""
        found = self._sampler(sampler)
        del self._samplers[sampler]
        return found.stop(skip)

    def _sampler(self, number: int) -> PartsSampler:
        self._check()
        if number not in self._samplers:
            raise LabError(f"the lab has no sampler {number}", "it may have been stopped")
        return self._samplers[number]

    def links(self) -> list[LinkRow]:
        """Report the links; each direction of one that is cut is reported by the machine of its sender."""
        self._check()
        links = self._on_all(lambda name, _: self._labs[name].links())
        cut = {link.index: link for link in self._cut.links}
        rows: list[LinkRow] = []
        for index, link in enumerate(self._spec["links"]):
            a, b = link["a"]["node"], link["b"]["node"]
            machine_a, machine_b = self._part_of[a], self._part_of[b]
            row = links[machine_a][self._cut.numbers[machine_a][index]]
            back = links[machine_b][self._cut.numbers[machine_b][index]] if index in cut else row
            rows.append({"link": index, "a": a, "b": b, "ab": row["ab"], "ba": back["ba"]})
        return rows

    def ports(self) -> list[PortRow]:
        """Report the ports, without the ends of the tunnels between machines."""
        self._check()
        ports = self._on_all(lambda name, _: self._labs[name].ports())
        ends = {f"{link.tunnel}-eth0" for link in self._cut.links}
        return [row for rows in ports.values() for row in rows if row["port"] not in ends]

    def link_set(
        self,
        *,
        set: JsonObject,
        link: int | None = None,
        a: str | None = None,
        b: str | None = None,
        direction: Literal["ab", "ba", "both"] | None = None,
    ) -> None:
        """Change a link; both ends of one that is cut."""
        self._check()
        for machine, one in self._link_changes({"set": set, "link": link, "a": a, "b": b, "direction": direction}):
            self._labs[machine].link_set(**one)

    def _schedule_all(self, changes: Sequence[Mapping[str, Any]]) -> None:
        """Tell all parts of the changes that the description schedules."""
        now_ps = self._clock.now_ps()
        early = [one for one in changes if int(one["at_ps"]) < now_ps + _AHEAD_PS]
        if early:
            first = self._spec["links"][early[0]["set"]["link"]]
            raise BadValue(
                f"the change of {first['a']['node']} - {first['b']['node']} at {int(early[0]['at_ps']) / 1e12:g} s is "
                f"too early: the machines were ready {now_ps / 1e12:.2f} s after the start, and need "
                f"{_AHEAD_PS / 1e12:g} s more to hear of changes",
                f"schedule it for {(now_ps + 2 * _AHEAD_PS) / 1e12:.0f} s or later",
            )
        for one in changes:
            self.schedule(at_ps=int(one["at_ps"]), set=one["set"])

    def schedule(self, *, at_ps: int, set: JsonObject) -> None:
        """Change a link at a given time; both ends of one that is cut."""
        self._check()
        left_ps = at_ps - self._clock.now_ps()
        if left_ps < _AHEAD_PS:
            # Machines hear of it one after the other, and both ends of a link are to change together.
            raise BadValue(
                f"the change is due in {max(0, left_ps) / 1e12:.2f} s, and a network on several machines needs "
                f"{_AHEAD_PS / 1e12:g} s to tell all of them",
                "schedule it for later",
            )
        for machine, one in self._link_changes(set):
            self._labs[machine].schedule(at_ps=at_ps, set=one)

    def _link_changes(self, fields: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """The changes of parts that a ``link.set`` of the whole network stands for."""
        index = fields.get("link")
        if index is None:
            ends = {fields.get("a"), fields.get("b")}
            index = next(n for n, one in enumerate(self._spec["links"]) if {one["a"]["node"], one["b"]["node"]} == ends)
        change, direction = dict(fields["set"]), fields.get("direction") or "both"
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

    def fidelity_reset(self) -> None:
        """Begin the fidelity record anew."""
        self._check()
        self._since_ps = self._clock.now_ps()
        self._on_all(lambda name, _: self._labs[name].fidelity_reset())

    def fidelity(self) -> JsonObject:
        """Report how closely the parts kept their schedule, and how the ways between machines were."""
        self._check()
        watched = self._on_all(lambda name, one: one.request("part.watched"))
        records: dict[str, Any] = {
            name: {**record, "clock_to_first": self._clock.clocks[name].to_spec()}
            for name, record in self._on_all(lambda name, _: self._labs[name].fidelity()).items()
        }
        return {
            "clock": "wall",
            "elapsed_ps": self._clock.now_ps() - self._since_ps,
            "handed_over": sum(int(one["handed_over"]) for one in records.values()),
            "steal_s": sum(float(one.get("steal_s") or 0) for one in records.values()),
            "cores": sum(int(one.get("cores") or 1) for one in records.values()),
            "realtime": all(one.get("realtime") for one in records.values()),
            "machines": records,
            "underlay": [self._underlay_record(link, watched) for link in self._cut.links],
        }

    def _underlay_record(self, link: CutLink, watched: Mapping[str, Any]) -> dict[str, Any]:
        """How the way of `link` was while the network ran."""
        sent, ways = 0, list[int]()
        for here, there in ((link.machine_a, link.machine_b), (link.machine_b, link.machine_a)):
            seen = watched[here].get(self._addresses[there], {"sent": 0, "way_ps": []})
            sent += int(seen["sent"])
            ways += [int(one) for one in seen["way_ps"]]
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
