"""The parts of a running lab that calls go to: hosts, switches, links, and moments to come."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from twinnet.errors import BadTopology, BadValue, NotAvailable, UnknownNode, did_you_mean
from twinnet.lab.listening import wait_listening
from twinnet.lab_process.job import DEVNULL, PIPE, Completed, Job, Stream, command_argv, run_job
from twinnet.network.link_settings import direction_spec
from twinnet.network.moment import Side, turned
from twinnet.network.names_of_mininet import AnswersToMininet
from twinnet.open_vswitch import Bridge, is_open_vswitch
from twinnet.qos.queue import Queue
from twinnet.units import duration_ps

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.lab_process.replies import GroupRow, GroupsReply, MeterRow
    from twinnet.network.link_settings import LineChange
    from twinnet.results.flow_report import AppReport, FlowReport

__all__ = ["AppHandle", "Capture", "LabHost", "LabLink", "LabMoment", "LabSwitch", "Layout"]


class Layout:
    """The network of a lab as it was built: who is where."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec: Mapping[str, Any] = spec
        self.nodes: dict[str, Mapping[str, Any]] = {node["name"]: node for node in spec.get("nodes", ())}
        self.links: list[Mapping[str, Any]] = list(spec.get("links", ()))

    def node(self, name: str, kind: str | None = None) -> Mapping[str, Any]:
        """Return the node `name`; raises `UnknownNode` when there is none (of that kind)."""
        node = self.nodes.get(name)
        if node is None or (kind is not None and node["kind"] != kind):
            names = [n for n, one in self.nodes.items() if kind is None or one["kind"] == kind]
            raise UnknownNode(f"the lab has no {kind or 'node'} {name!r}", did_you_mean(str(name), names))
        return node

    def change(self, name: str, **fields: Any) -> None:
        """Have the node `name` be described with other `fields`."""
        self.nodes[name] = {**self.nodes[name], **fields}
        self.spec = {**self.spec, "nodes": list(self.nodes.values())}

    def names(self, kind: str) -> list[str]:
        """Return the names of all hosts or switches."""
        return [name for name, node in self.nodes.items() if node["kind"] == kind]

    def address(self, name: str, version: int = 4) -> str:
        """Return the first address of the host `name` in IP version `version`, or `name` itself when it is an
        address."""
        if name not in self.nodes and (":" in name or name[:1].isdigit()):
            return name
        mark = "." if version == 4 else ":"
        ports = self.node(name, "host").get("ports", ())
        found = [address for port in ports for address in port.get("addresses") or () if mark in address]
        if not found:
            if not self.node(name, "host").get("ports"):
                raise BadTopology(f"the host {name} has no link, and so no address", f"link {name} to a switch or host")
            raise BadTopology(f"the host {name} has no IPv{version} address", "give it one, or name an address instead")
        return found[0].split("/")[0]

    def link(self, a: str, b: str) -> tuple[int, bool]:
        """Return the number of the link between `a` and `b`, nodes or interfaces, and whether it was described from
        `b` to `a`. Of several links between two nodes it is the first; an interface is of one alone."""
        here, there = self._end(a), self._end(b)
        for index, link in enumerate(self.links):
            if _is_at(link["a"], here) and _is_at(link["b"], there):
                return index, False
            if _is_at(link["a"], there) and _is_at(link["b"], here):
                return index, True
        raise BadTopology(f"{a} and {b} are not linked", "see the links with: links")

    def _end(self, name: str) -> tuple[str, int | None]:
        """The node `name`, or node and index of the interface `name`."""
        if name not in self.nodes:
            with contextlib.suppress(UnknownNode):
                return self.port(name)
        return str(self.node(name)["name"]), None

    def port(self, interface: str) -> tuple[str, int]:
        """Return node and index of the port called `interface`."""
        for name, node in self.nodes.items():
            for index, port in enumerate(node.get("ports", ())):
                if port["name"] == interface:
                    return name, index
        names = [port["name"] for node in self.nodes.values() for port in node.get("ports", ())]
        raise UnknownNode(f"the lab has no interface {interface!r}", did_you_mean(interface, names))


def _is_at(end: Mapping[str, Any], place: tuple[str, int | None]) -> bool:
    """Whether an end of a link is at a node, or at one port of it."""
    return end["node"] == place[0] and place[1] in (None, end["port"])


class LabHost(AnswersToMininet):
    """A host of a running lab. Programs run in real ones; a model runs apps only."""

    def __init__(self, lab: Lab, name: str) -> None:
        self._lab = lab
        self.name = name

    def __repr__(self) -> str:
        return f"<LabHost {self.name}>"

    @property
    def ip(self) -> str:
        """The first IPv4 address without its prefix length."""
        return self._lab.layout.address(self.name, 4)

    @property
    def ip6(self) -> str:
        """The first IPv6 address without its prefix length."""
        return self._lab.layout.address(self.name, 6)

    @property
    def has_image(self) -> bool:
        """Whether its files are those of a container's image, and not the machine's."""
        return self._lab.layout.node(self.name, "host").get("image") is not None

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: str | None = None,
        check: bool = False,
        shell: bool = False,
        input: str | bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        """Run a program to its end.

        Parameters
        ----------
        command
            A list, or text that is split as a shell would.
        timeout
            After this time the program is killed.
        check
            Raise `ProgramFailed` unless it gives status 0.
        shell
            Give the text to ``/bin/sh -c``.
        input
            What it reads on stdin; nothing when not given.
        env, cwd
            Its environment and folder; those of the lab, or of the host's image, when not given.

        Raises
        ------
        TimeLimit
            When it did not end within `timeout`; ``completed`` has what it wrote.
        NotAvailable
            When the host is a model, as all are on the virtual clock unless it has programs.
        """
        self._lab.require_programs(self.name)
        limit = duration_ps(timeout, "timeout") if timeout is not None else None
        argv = command_argv(command, shell)
        streams = (PIPE if input is not None else DEVNULL, PIPE, PIPE)
        job = self._lab.start_program(self.name, argv, streams, env=env, cwd=cwd, limit_ps=limit)
        return run_job(job, input, limit, check)

    def popen(
        self,
        command: str | Sequence[str],
        *,
        shell: bool = False,
        stdin: Stream = DEVNULL,
        stdout: Stream = PIPE,
        stderr: Stream = PIPE,
        limit: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Job:
        """Start a program and return at once.

        Parameters
        ----------
        command, shell, env, cwd
            As for :meth:`run`.
        stdin, stdout, stderr
            ``tn.lab.PIPE`` (read the pipe, or the program stops when it is full), ``tn.lab.DEVNULL``, a file that is
            open, or a descriptor. On the virtual clock all that `stdin` holds is read before the program starts, so
            what has no end there is refused; what is written to a pipe (``job.stdin``) comes at that moment of virtual
            time.
        limit
            After this time the program is killed.
        """
        self._lab.require_programs(self.name)
        limit_ps = duration_ps(limit, "limit") if limit is not None else None
        argv = command_argv(command, shell)
        return self._lab.start_program(self.name, argv, (stdin, stdout, stderr), env=env, cwd=cwd, limit_ps=limit_ps)

    def wait_listening(self, port: int, protocol: Literal["tcp", "udp"] = "tcp", timeout: str = "10 s") -> None:
        """Wait until a program of the host listens: a server takes a moment before clients reach it.

        Parameters
        ----------
        port
            The port, at any address of the host.
        protocol
            ``tcp``, or ``udp``: a socket that takes datagrams of anybody.
        timeout
            How long, by the lab's clock.

        Raises
        ------
        TimeLimit
            When none listens by then.
        """
        self._lab.require_programs(self.name)
        wait_listening(self._lab, self.name, port, protocol, timeout)


class LabSwitch:
    """A switch of a running lab."""

    def __init__(self, lab: Lab, name: str) -> None:
        self._lab = lab
        self.name = name

    def __repr__(self) -> str:
        return f"<LabSwitch {self.name}>"

    @property
    def open_vswitch(self) -> Bridge | None:
        """The bridge that the switch is, when it is Open vSwitch."""
        node = self._lab.layout.node(self.name, "switch")
        return Bridge(self._lab.connection, node) if is_open_vswitch(node) else None

    def add_flow(self, flow: str) -> None:
        """Add one flow in ``ovs-ofctl`` syntax, such as ``priority=10,ip,nw_dst=10.0.0.4,actions=enqueue:4:1``."""
        self.add_flows([flow])

    def add_flows(self, flows: Sequence[str]) -> None:
        """Add flows: all, or none when one of them is wrong."""
        if isinstance(flows, str):
            raise BadValue("the flows are one text", "give a list of lines, or use add_flow")
        if (bridge := self.open_vswitch) is not None:
            bridge.add_flows(flows)
            self._changed("flows.add", flows=list(flows))
            return
        self._lab.connection.flows_add(switch=self.name, flows=list(flows))

    def delete_flows(self, match: str = "") -> int:
        """Delete the flows that `match` covers (all when it is empty) and return how many they were."""
        if (bridge := self.open_vswitch) is not None:
            deleted = bridge.delete_flows(match)
            self._changed("flows.delete", match=match)
            return deleted
        return self._lab.connection.flows_delete(switch=self.name, match=match)["deleted"]

    def _changed(self, do: str, **fields: Any) -> None:
        """Something was changed that the lab itself was not told of."""
        self._lab.by_hand.changed(do, {"switch": self.name, **fields}, self._lab.now)

    def dump_flows(self) -> list[str]:
        """Return the flows with their counters, as ``ovs-ofctl dump-flows`` prints them."""
        if (bridge := self.open_vswitch) is not None:
            return bridge.dump_flows()
        return self._lab.connection.flows_dump(switch=self.name)

    def groups(self) -> list[GroupRow]:
        """Return the groups of OpenFlow 1.3 that controllers have made, by number, with what they and their buckets
        have counted; raises `NotAvailable` for a switch of Open vSwitch."""
        return self._groups_and_meters("groups")["groups"]

    def meters(self) -> list[MeterRow]:
        """Return the meters of OpenFlow 1.3 that controllers have made, by number, with what they and their bands have
        counted; raises `NotAvailable` for a switch of Open vSwitch."""
        return self._groups_and_meters("meters")["meters"]

    def _groups_and_meters(self, what: str) -> GroupsReply:
        if self.open_vswitch is not None:
            raise NotAvailable(f"Open vSwitch keeps the {what} of {self.name}", f"ask it: ovs-ofctl dump-{what}")
        return self._lab.connection.groups(switch=self.name)

    @property
    def controller_state(self) -> list[dict[str, Any]]:
        """The state of each controller that the switch was described with, and of each tool that is connected.

        Each row has ``target``, ``peer`` (``controller`` or ``tool``), ``version`` (``"1.0"``, ``"1.3"``; ``None``:
        not connected), ``role``, ``messages`` (received), ``packet_ins`` (sent), ``errors`` (answered), and
        ``trouble``: why the last connection failed or ended.
        """
        if (bridge := self.open_vswitch) is not None:
            rows = bridge.controllers()
            troubles = [self._lab.controller_trouble(self.name, row["target"]) or row["trouble"] for row in rows]
            return [row | {"trouble": trouble} for row, trouble in zip(rows, troubles, strict=True)]
        every = self._lab.connection.controllers()
        rows: list[dict[str, Any]] = [{**row} for row in every if row["switch"] == self.name]
        connected = {row["target"] for row in rows}
        absent = {"role": None, "version": None, "messages": 0, "packet_ins": 0, "errors": 0}
        described: Sequence[str] = self._lab.layout.node(self.name, "switch").get("controllers", ())
        rows += [{"target": one, "peer": "controller", **absent} for one in described if one not in connected]
        return [
            {key: value for key, value in row.items() if key not in ("switch", "connection")}
            | {"trouble": self._lab.controller_trouble(self.name, row["target"])}
            for row in rows
        ]

    def controller_messages(self) -> list[dict[str, Any]]:
        """Return what was said on each connection of the switch with a controller or a tool.

        Each row has ``target`` and ``peer``, as :attr:`controller_state` has them, ``received`` and ``sent`` (how many
        messages of each type came and were sent; types have the names of the OpenFlow specification without
        ``OFPT_``), and ``newest``: the 32 newest messages, the oldest of them first, each with ``at_ps`` (of the lab's
        clock), ``sent`` (by the switch), ``type``, ``xid`` and ``bytes`` (with its header).

        Raises
        ------
        NotAvailable
            Open vSwitch keeps no such list.
        """
        if self.open_vswitch is not None:
            raise NotAvailable(
                f"Open vSwitch keeps no messages of {self.name}", "capture them at the controller's port"
            )
        rows = [row for row in self._lab.connection.controllers(said=True) if row["switch"] == self.name]
        found = [(row, row.get("said")) for row in rows]
        return [{"target": row["target"], "peer": row["peer"], **said} for row, said in found if said is not None]

    def set_controllers(self, targets: Sequence[str]) -> None:
        """Connect the switch to the controllers `targets` and to no others, while the lab runs; with none it goes on by
        its fail mode.

        Parameters
        ----------
        targets
            Addresses, such as ``tcp:127.0.0.1:6653``.

        Raises
        ------
        BadValue
            One of them is no controller's address.
        NotAvailable
            Another program has started the lab, it is not on the wall clock, the controller in this process would come
            or go, or the switch is Open vSwitch.
        """
        if isinstance(targets, str):
            raise BadValue("the controllers are one text", "give a list of addresses")
        if self.open_vswitch is not None:
            raise NotAvailable(
                f"the controllers of {self.name}, which is Open vSwitch, cannot change while the lab runs",
                "name them before the lab starts",
            )
        wanted = list(dict.fromkeys(targets))
        self._lab.dial_controllers(self.name, wanted)
        self._changed("controllers", targets=wanted)

    def set_links(self, up: bool) -> list[str]:
        """Take all links of the switch up or down, and return the nodes at their other ends."""
        others: list[str] = []
        for index, link in enumerate(self._lab.layout.links):
            ends = [link["a"]["node"], link["b"]["node"]]
            if self.name in ends:
                ends.remove(self.name)
                self._lab.connection.link_set(link=index, direction="both", set=direction_spec({"up": up}))
                others.append(str(ends[0]))
        return others

    def set_queue(self, port: str | int, queue: Queue) -> None:
        """Replace the queue configuration of the interface (or OpenFlow port number) `port`."""
        name = f"{self.name}-eth{port}" if isinstance(port, int) else port
        node, index = self._lab.layout.port(name)
        if (bridge := self.open_vswitch) is not None and node == self.name:
            bridge.set_queue(name, index, queue)
            self._changed("queues.set", port=name, queue=queue.to_spec())
        else:
            self._lab.connection.queues_set(node=node, port=index, queue=queue.to_spec())
        self._lab.queues_given[name] = queue


class LabLink:
    """A link of a running lab, seen from its first named end."""

    def __init__(self, lab: Lab, a: str, b: str) -> None:
        self._lab = lab
        self.index: int
        self.index, self._turned = lab.layout.link(a, b)

    def __repr__(self) -> str:
        link = self._lab.layout.links[self.index]
        a, b = (link[end]["node"] for end in ("ba" if self._turned else "ab"))
        return f"<LabLink {a} - {b}>"

    def set(self, direction: Side = "both", **settings: Unpack[LineChange]) -> LabLink:
        """Change settings while the link runs, together: ``rate``, ``delay``, ``jitter``, ``loss``, ``up``, ...

        Parameters
        ----------
        direction
            ``ab`` is from the first named node to the second.
        settings
            As :meth:`twinnet.Network.link` takes them.
        """
        self._lab.connection.link_set(**self.change(direction, settings))
        if settings.keys() & {"rate", "delivery_trace", "delay", "jitter"}:
            self._lab.promote()
        return self

    def set_queue(self, queue: Queue, direction: Side = "both") -> LabLink:
        """Replace the queue before the line, while it runs; what waits moves into it.

        Parameters
        ----------
        queue
            The queue discipline.
        direction
            ``ab`` is what the first named node sends.
        """
        link, one_way = self._lab.layout.links[self.index], turned(direction, self._turned)
        for way in ("ab", "ba"):
            if one_way not in (way, "both"):
                continue
            name, port = link[way[0]]["node"], link[way[0]]["port"]
            node = self._lab.layout.node(name)
            if node["kind"] == "switch":
                self._lab.switch(name).set_queue(node["ports"][port]["name"], queue)
            else:
                self._lab.connection.queues_set(node=name, port=port, queue=queue.to_spec())
                self._lab.queues_given[node["ports"][port]["name"]] = queue
        return self

    def change(self, direction: Side, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the change in the form of the lab protocol."""
        if not settings:
            raise BadValue("nothing to set was given", 'give for example rate="10 Mbit"')
        one_way = turned(direction, self._turned)
        return {"link": self.index, "direction": one_way, "set": direction_spec(settings)}


@dataclass(frozen=True)
class LabMoment:
    """A moment of a lab's clock at which links change; made by :meth:`twinnet.Lab.at`."""

    lab: Lab
    at_ps: int

    def link(self, a: str, b: str) -> LabMomentLink:
        """Return the link between `a` and `b` at this moment."""
        return LabMomentLink(self, LabLink(self.lab, a, b))


@dataclass(frozen=True)
class LabMomentLink:
    """A link at a moment of a lab's clock."""

    moment: LabMoment
    on: LabLink

    def set(self, direction: Side = "both", **settings: Unpack[LineChange]) -> LabMomentLink:
        """Schedule that `settings` take effect together at this moment."""
        change = self.on.change(direction, settings)
        self.moment.lab.connection.schedule(at_ps=self.moment.at_ps, set=change)
        return self


class AppHandle:
    """An app (or a flow's two apps) that was started in a lab.

    Attributes
    ----------
    flow
        The flow's number, ``None`` for a sink or server alone.
    """

    def __init__(self, lab: Lab, sender: int | None, receiver: int | None, flow: int | None) -> None:
        self._lab = lab
        self.sender = sender
        self.receiver = receiver
        self.flow = flow

    def __repr__(self) -> str:
        flow = "" if self.flow is None else f", flow {self.flow}"
        return f"<AppHandle of app {self.app}{flow}>"

    @property
    def app(self) -> int:
        """The number of the app that decides when this is finished: the sender, or the receiver when there is no
        other."""
        return self.sender if self.sender is not None else int(self.receiver or 0)

    def reports(self) -> list[AppReport]:
        """Return what each end measured so far, the sender first."""
        return self._lab.reports([app for app in (self.sender, self.receiver) if app is not None])

    def report(self) -> FlowReport:
        """Return the flow as its receiver saw it, or as its sender did when no receiver counts (ping, HTTP, nothing
        received).

        Raises
        ------
        BadValue
            When no app has seen the flow yet.
        """
        seen = [one for app in reversed(self.reports()) for one in app.flows if self.flow in (None, one.flow)]
        wanted = [one for one in seen if one.role != "server"]
        if not wanted and not seen:
            raise BadValue("the flow has not begun yet", "wait for it with lab.wait()")
        return (wanted or seen)[0]

    def stop(self) -> None:
        """End the sender (or the sink or server, when it is alone)."""
        self._lab.connection.app_stop(app=self.app)


class Capture:
    """A capture that runs; use it with ``with``, or stop it."""

    def __init__(self, lab: Lab, number: int, path: str, is_stream: bool = False) -> None:
        self._lab = lab
        self._is_stream = is_stream
        self.number = number
        self.path = path
        self.stopped: bool = False
        self.frames: int = 0
        self.dropped: int = 0
        self.failure: str | None = None
        self.files: list[str] = []

    def __repr__(self) -> str:
        state = f"{self.frames} frames, {self.dropped} dropped" if self.stopped else "running"
        return f"<Capture {self.path}: {state}>"

    def stop(self) -> Capture:
        """End the capture; afterwards `frames`, `dropped` (frames that no file could take), `failure` (why, when a
        file could not be written) and `files` (those that are there, the oldest first; none of a stream) are known."""
        if not self.stopped:
            result = self._lab.connection.capture_stop(capture=self.number)
            self.frames, self.dropped, self.stopped = result["frames"], result["dropped"], True
            self.failure = result["failure"]
            folder = Path(self.path).parent
            if self._is_stream:
                return self
            self.files = [str(folder / Path(name).name) for name in result["files"] if name] or [self.path]
        return self

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
