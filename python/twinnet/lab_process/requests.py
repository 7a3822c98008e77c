"""The requests of the lab protocol (docs/reference/lab-protocol.md) as methods, and their answers as classes.

Written by ``python tools/lab_client.py`` from crates/lab/src/protocol; change it there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypedDict, cast

from twinnet.lab_process.pending_reply import Json, JsonObject, PendingReply

__all__ = [
    "AppReply",
    "AppRow",
    "CaptureReply",
    "Captured",
    "ConnectionReply",
    "ControllerRow",
    "DeletedReply",
    "DirectionRow",
    "EndedReply",
    "FinishedReply",
    "InterfaceRow",
    "JobEndedReply",
    "JobReply",
    "JobRow",
    "LabRequests",
    "LinkRow",
    "NowReply",
    "Passed",
    "PortCounters",
    "PortRow",
    "SamplerReply",
    "SamplesTold",
    "StartedReply",
    "TunnelRow",
]


class AppReply(TypedDict):
    """The answer to `app.start`."""

    app: int
    """The app's number."""


class AppRow(TypedDict):
    """An app and what it counted."""

    app: int
    """Its number."""
    finished: bool
    """`true` if it has nothing more to do."""
    host: str
    """The host."""
    kind: str
    """Its kind."""
    report: JsonObject | None
    """Its report; `None` when it is gone with its host."""


class CaptureReply(TypedDict):
    """The answer to `capture.start`."""

    capture: int
    """The capture's number."""


class Captured(TypedDict):
    """The outcome of a capture."""

    dropped: int
    """Frames that are in none."""
    failure: str | None
    """Why it failed."""
    files: list[str]
    """The files that are there, the oldest first."""
    frames: int
    """Frames that are in files, also in those that a ring has removed since."""
    write_failed: bool
    """`true` if writing failed."""


class ConnectionReply(TypedDict):
    """The answer to `controller.open`."""

    connection: int
    """The connection's number."""


class ControllerRow(TypedDict):
    """A connection of a switch."""

    connection: NotRequired[int]
    """Its number."""
    errors: NotRequired[int]
    """Errors that it was answered."""
    messages: NotRequired[int]
    """Messages that came."""
    packet_ins: NotRequired[int]
    """Frames that it was sent."""
    peer: Literal["controller", "tool"]
    """The kind of the peer."""
    role: NotRequired[str]
    """`"equal"`, `"master"` or `"slave"`."""
    switch: str
    """The switch."""
    target: str
    """The name of the peer."""
    version: NotRequired[str | None]
    """`"1.0"`, `"1.3"`, or `null` before both sides agreed and the controller said more than its hello."""


class DeletedReply(TypedDict):
    """The answer to `flows.delete`."""

    deleted: int
    """Entries that are gone."""


class DirectionRow(TypedDict):
    """A direction of a link."""

    config: JsonObject | None
    """Its settings."""
    counters: PortCounters
    """The counters of the port."""
    port: str
    """The port that sends into it."""
    up: bool | None
    """`true` if it carries anything."""


class EndedReply(TypedDict):
    """The answer to `controller.attach`."""

    ended: str
    """Why the connection ended."""


class FinishedReply(TypedDict):
    """The answer to `app.wait` and `controllers.wait` on the wall clock."""

    finished: bool
    """`true` if all apps have finished, or all controllers have joined."""


class InterfaceRow(TypedDict):
    """An interface of the machine."""

    interface: str
    """Its name."""
    node: str | None
    """The node that it is."""
    state: Literal["up", "down", "gone"]
    """Its state."""


class JobEndedReply(TypedDict):
    """The answer to `wait`."""

    elapsed_ps: int
    """The time that it ran, in picoseconds."""
    limit: bool
    """`true` if its time was over."""
    signal: int | None
    """The signal that ended it otherwise."""
    status: int | None
    """Its exit status, when it exited."""


class JobReply(TypedDict):
    """The answer to `spawn`."""

    job: int
    """The program's number."""
    pid: int
    """Its process."""


class JobRow(TypedDict):
    """A program."""

    argv: list[str]
    """The program and its arguments."""
    host: str
    """The host."""
    job: int
    """Its number."""
    pid: int | None
    """Its process, once it runs."""
    signal: int | None
    """The signal that ended it otherwise."""
    state: str
    """`starting`, `running`, `ended` or `lost`."""
    status: int | None
    """Its exit status, when it exited."""


class LinkRow(TypedDict):
    """A link."""

    a: str
    """The node at one end."""
    ab: DirectionRow
    """From `a` to `b`."""
    b: str
    """The node at the other end."""
    ba: DirectionRow
    """From `b` to `a`."""
    link: int
    """Its number."""


class NowReply(TypedDict):
    """The answer to `now`."""

    now_ps: int
    """The lab's time."""


class Passed(TypedDict):
    """The virtual time that was reached."""

    controllers: bool
    """`true` if controllers are to be told something at this moment."""
    finished: NotRequired[bool | None]
    """`true` if what was waited for has come; of `advance` nothing is said."""
    now_ps: int
    """The lab's time."""
    paused: bool
    """`true` if the caller's patience ended first."""
    programs: NotRequired[bool]
    """`true` if programs have done something at this moment that the lab's owner is to be told first."""


class PortCounters(TypedDict):
    """The counters of a port."""

    backlog_bytes: int
    """Their bytes at the link layer."""
    backlog_frames: int
    """Frames that wait at it."""
    corrupted: int
    """Frames with a flipped bit."""
    dropped_down: int
    """Frames that met a link that was down, or were on it when it went down."""
    dropped_early: int
    """Frames that the queue discipline dropped early."""
    dropped_loop: int
    """Frames that ended here because they had passed too many switches."""
    dropped_overlimit: int
    """Frames that the queue discipline refused for its limit."""
    dropped_oversize: int
    """Frames longer than the link's MTU allows."""
    dropped_unclassified: int
    """Frames that no class of the queue discipline takes."""
    dropped_unfragmentable: int
    """Frames that a tunnel would have had to cut into fragments, and may not."""
    duplicated: int
    """Frames that arrived twice."""
    frames: int
    """Frames whose last bit has left."""
    link_bytes: int
    """Their bytes."""
    lost: int
    """Frames lost by the loss model."""
    marked: int
    """Frames that the queue discipline marked as having met congestion (ECN) instead of dropping them."""
    received_bytes: int
    """Their bytes at the link layer."""
    received_frames: int
    """Frames that arrived at it."""
    wire_bytes: int
    """Their bytes with the link's framing."""


class PortRow(TypedDict):
    """A port."""

    classes: list[JsonObject]
    """The counters of the classes of its queue discipline."""
    counters: PortCounters
    """Its counters."""
    port: str
    """Its interface name."""


class SamplerReply(TypedDict):
    """The answer to `samples.start`."""

    sampler: int
    """The sampler's number."""


class SamplesTold(TypedDict):
    """The columns of a sampler."""

    full: bool
    """`true` if it ended because it keeps no more."""
    interval_ps: int
    """The length of an interval."""
    ports: dict[str, dict[str, list[int]]]
    """For each port its columns by name."""
    start_ps: int
    """The time when the first began."""


class StartedReply(TypedDict):
    """The answer to `start`."""

    fabric_threads: int
    """Threads that move the network."""
    hosts: int
    """Real hosts."""
    interface: str
    """The way hosts are joined to the fabric: `tap` or `veth`."""
    pid: int
    """The process of the lab."""
    protocol: int
    """The version of the protocol."""
    realtime: bool
    """`true` if the loop runs under real-time scheduling."""
    setup_ms: float
    """Milliseconds that it took to build the network."""


class TunnelRow(TypedDict):
    """A tunnel to another speaker."""

    counters: dict[str, int]
    """Its counters, as its end counts them."""
    inner_mtu: int
    """The longest packet that goes through it."""
    node: str
    """The node that it is."""
    path_mtu: int
    """The MTU of the way to the remote."""
    refused: dict[str, int]
    """The numbers of what its socket has refused, by reason."""
    remote: str
    """The other speaker."""
    tunnel: JsonObject
    """The encapsulation."""


class LabRequests(ABC):
    """A lab that answers requests: a lab process, a lab in this process, or the parts of a network on several machines.

    Each request is a method with the request's fields. It returns the value of the answer, and raises `LabError` with
    the name of a refusal, or `LabClosed` when the lab has ended. Methods called ``..._later`` return at once.
    """

    @abstractmethod
    def answer(self, do: str, fields: JsonObject, descriptors: Sequence[int] = ()) -> Json:
        """Return the value of the answer to the request `do` with `fields`; `descriptors` go with it."""

    @abstractmethod
    def submit(self, do: str, fields: JsonObject, descriptors: Sequence[int] = ()) -> PendingReply[Json]:
        """Ask as :meth:`answer` does, and return at once."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """True if the lab has ended."""

    @abstractmethod
    def wait_closed(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds; return whether the lab has ended by then."""

    @abstractmethod
    def close(self) -> None:
        """End the connection."""

    def start(
        self, *, network: JsonObject, options: JsonObject | None = None, protocol: int | None = None
    ) -> StartedReply:
        """Builds the network and starts the lab's clock.

        `network`: The description, below.
        `options`: Below.
        `protocol`: The version that the client speaks; another one than the lab's is refused.
        """
        return cast("StartedReply", self.answer("start", _given(network=network, options=options, protocol=protocol)))

    def describe(self) -> JsonObject:
        """Reports the network as it was built, with addresses, interface names and port numbers."""
        return cast("JsonObject", self.answer("describe", {}))

    def now(self) -> NowReply:
        """Reports the time."""
        return cast("NowReply", self.answer("now", {}))

    def now_later(self) -> PendingReply[NowReply]:
        """Ask as :meth:`now` does, and return at once."""
        return cast("PendingReply[NowReply]", self.submit("now", {}))

    def stop(self) -> None:
        """Ends the lab."""
        self.answer("stop", {})

    def stop_later(self) -> PendingReply[None]:
        """Ask as :meth:`stop` does, and return at once."""
        return cast("PendingReply[None]", self.submit("stop", {}))

    def interface_offer(self, *, node: str, index: int, mtu: int, descriptors: Sequence[int] = ()) -> None:
        """Gives the lab an interface of the machine before `start`. Descriptors: a packet socket, a socket that hears
        of the interface.

        `node`: The node that it is.
        `index`: Its index in the network namespace of the lab's owner.
        `mtu`: Its MTU.
        """
        self.answer("interface.offer", _given(node=node, index=index, mtu=mtu), descriptors)

    def interfaces(self) -> list[InterfaceRow]:
        """Reports the state of the interfaces of the machine."""
        return cast("list[InterfaceRow]", self.answer("interfaces", {}))

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
        """Starts a program in a real host. Descriptors: stdin, stdout, stderr; with `terminal` one, the pty's slave.

        `host`: The host.
        `argv`: The program and its arguments.
        `env`: The whole environment; that of the lab's owner when null.
        `cwd`: The working directory; that of the lab's owner when null.
        `terminal`: `true` if it has a terminal.
        `limit_ps`: The time after which it is ended.
        """
        return cast(
            "JobReply",
            self.answer(
                "spawn",
                _given(host=host, argv=argv, env=env, cwd=cwd, terminal=terminal, limit_ps=limit_ps),
                descriptors,
            ),
        )

    def wait(self, *, job: int) -> JobEndedReply:
        """Waits until a program ends.

        `job`: Its number.
        """
        return cast("JobEndedReply", self.answer("wait", _given(job=job)))

    def wait_later(self, *, job: int) -> PendingReply[JobEndedReply]:
        """Ask as :meth:`wait` does, and return at once."""
        return cast("PendingReply[JobEndedReply]", self.submit("wait", _given(job=job)))

    def signal(self, *, job: int, signal: int) -> None:
        """Sends a signal to the process group of a program.

        `job`: Its number.
        `signal`: The signal's number.
        """
        self.answer("signal", _given(job=job, signal=signal))

    def jobs(self) -> list[JobRow]:
        """Lists the programs."""
        return cast("list[JobRow]", self.answer("jobs", {}))

    def app_start(self, *, host: str, app: JsonObject, at_ps: int | None = None, seed: int | None = None) -> AppReply:
        """Starts an app.

        `host`: The host.
        `app`: The app's description.
        `at_ps`: When; null: now.
        `seed`: The seed of its random numbers; null: derived from the app's number.
        """
        return cast("AppReply", self.answer("app.start", _given(host=host, app=app, at_ps=at_ps, seed=seed)))

    def app_stop(self, *, app: int) -> None:
        """Asks an app to end.

        `app`: Its number.
        """
        self.answer("app.stop", _given(app=app))

    def app_report(self, *, app: int | None = None, apps: Sequence[int] | None = None) -> list[AppRow]:
        """Reports what apps have counted.

        `app`: One app; without it and `apps` all are reported.
        `apps`: Several apps.
        """
        return cast("list[AppRow]", self.answer("app.report", _given(app=app, apps=apps)))

    def app_wait(self, *, apps: Sequence[int], until_ps: int | None = None) -> FinishedReply:
        """Waits until apps have finished. On the virtual clock time passes meanwhile.

        `apps`: Their numbers.
        `until_ps`: The time at which it is answered at the latest.
        """
        return cast("FinishedReply", self.answer("app.wait", _given(apps=apps, until_ps=until_ps)))

    def flows_add(self, *, switch: str, flows: Sequence[str]) -> None:
        """Adds flow entries, all or none.

        `switch`: The switch.
        `flows`: Lines in the syntax of flows.
        """
        self.answer("flows.add", _given(switch=switch, flows=flows))

    def flows_delete(self, *, switch: str, match: str | None = None) -> DeletedReply:
        """Deletes flow entries.

        `switch`: The switch.
        `match`: The line that they match; all when it is empty or null.
        """
        return cast("DeletedReply", self.answer("flows.delete", _given(switch=switch, match=match)))

    def flows_dump(self, *, switch: str) -> list[str]:
        """Reports the flow entries.

        `switch`: The switch.
        """
        return cast("list[str]", self.answer("flows.dump", _given(switch=switch)))

    def controller_attach(
        self,
        *,
        switch: str,
        target: str,
        peer: Literal["controller", "tool"] | None = None,
        descriptors: Sequence[int] = (),
    ) -> EndedReply:
        """Serves the connection of a controller until it ends. Descriptor: a connected stream socket. Wall clock only.

        `switch`: The switch.
        `target`: A text that names the peer.
        `peer`: The kind of the peer; null: a controller.
        """
        return cast(
            "EndedReply", self.answer("controller.attach", _given(switch=switch, target=target, peer=peer), descriptors)
        )

    def controller_attach_later(
        self,
        *,
        switch: str,
        target: str,
        peer: Literal["controller", "tool"] | None = None,
        descriptors: Sequence[int] = (),
    ) -> PendingReply[EndedReply]:
        """Ask as :meth:`controller_attach` does, and return at once."""
        return cast(
            "PendingReply[EndedReply]",
            self.submit("controller.attach", _given(switch=switch, target=target, peer=peer), descriptors),
        )

    def controller_open(self, *, switch: str, target: str) -> ConnectionReply:
        """Makes a connection between a switch and a controller on the virtual clock.

        `switch`: The switch.
        `target`: A text that names the peer.
        """
        return cast("ConnectionReply", self.answer("controller.open", _given(switch=switch, target=target)))

    def controller_close(self, *, connection: int) -> None:
        """Ends such a connection.

        `connection`: Its number.
        """
        self.answer("controller.close", _given(connection=connection))

    def controllers(self) -> list[ControllerRow]:
        """Reports how the connections of controllers stand."""
        return cast("list[ControllerRow]", self.answer("controllers", {}))

    def controllers_wait(self, *, switches: Sequence[str], until_ps: int | None = None) -> FinishedReply:
        """Waits until each switch has agreed on a version with a controller; on the virtual clock also until nothing
        more is on its way between them.

        `switches`: The switches.
        `until_ps`: The time at which it is answered at the latest; needed on the virtual clock.
        """
        return cast("FinishedReply", self.answer("controllers.wait", _given(switches=switches, until_ps=until_ps)))

    def controllers_wait_later(
        self, *, switches: Sequence[str], until_ps: int | None = None
    ) -> PendingReply[FinishedReply]:
        """Ask as :meth:`controllers_wait` does, and return at once."""
        return cast(
            "PendingReply[FinishedReply]", self.submit("controllers.wait", _given(switches=switches, until_ps=until_ps))
        )

    def queues_set(self, *, port: str | int, queue: JsonObject, node: str | None = None) -> None:
        """Gives a port another queue; what waits moves into it.

        `port`: An interface name or, with `node`, the index of one of its ports.
        `node`: The node whose port it is.
        `queue`: The queue configuration.
        """
        self.answer("queues.set", _given(port=port, queue=queue, node=node))

    def link_set(
        self,
        *,
        set: JsonObject,
        link: int | None = None,
        a: str | None = None,
        b: str | None = None,
        direction: Literal["ab", "ba", "both"] | None = None,
    ) -> None:
        """Changes a link: all together or nothing.

        `link`: The link's number; or `a` and `b`.
        `a`: The node at one end.
        `b`: The node at the other end.
        `direction`: The directions that are meant; null: both.
        `set`: Any fields of a direction, and `up`. What is not named stays as it is.
        """
        self.answer("link.set", _given(set=set, link=link, a=a, b=b, direction=direction))

    def links(self) -> list[LinkRow]:
        """Reports the links."""
        return cast("list[LinkRow]", self.answer("links", {}))

    def links_later(self) -> PendingReply[list[LinkRow]]:
        """Ask as :meth:`links` does, and return at once."""
        return cast("PendingReply[list[LinkRow]]", self.submit("links", {}))

    def ports(self) -> list[PortRow]:
        """Reports the ports."""
        return cast("list[PortRow]", self.answer("ports", {}))

    def samples_start(self, *, interval_ps: int, ports: Sequence[str]) -> SamplerReply:
        """Counts what ports do in each interval.

        `interval_ps`: The interval, at least 1 us.
        `ports`: Interface names.
        """
        return cast("SamplerReply", self.answer("samples.start", _given(interval_ps=interval_ps, ports=ports)))

    def samples_read(self, *, sampler: int) -> SamplesTold:
        """Reports what was counted so far.

        `sampler`: The sampler.
        """
        return cast("SamplesTold", self.answer("samples.read", _given(sampler=sampler)))

    def samples_stop(self, *, sampler: int) -> SamplesTold:
        """Reports what was counted and ends the sampler.

        `sampler`: The sampler.
        """
        return cast("SamplesTold", self.answer("samples.stop", _given(sampler=sampler)))

    def schedule(self, *, at_ps: int, set: JsonObject) -> None:
        """Changes a link at a given time.

        `at_ps`: When.
        `set`: The fields of a `link.set`.
        """
        self.answer("schedule", _given(at_ps=at_ps, set=set))

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
        """Captures a port to a file. Descriptor on the wall clock: the file to write; with a ring its folder.

        `port`: The interface name.
        `path`: The path of the file; virtual clock only.
        `file`: The name that a ring's files get a number into; wall clock only.
        `limit_bytes`: Bytes of file; what comes later is counted only.
        `snap`: Bytes of each frame that are kept.
        `direction`: The frames that are meant; null: both.
        `ring`: `{"files": n, "bytes": n or null, "duration_ps": n or null}`: files that follow each other.
        """
        return cast(
            "CaptureReply",
            self.answer(
                "capture.start",
                _given(
                    port=port, path=path, file=file, limit_bytes=limit_bytes, snap=snap, direction=direction, ring=ring
                ),
                descriptors,
            ),
        )

    def capture_stop(self, *, capture: int) -> Captured:
        """Ends a capture.

        `capture`: Its number.
        """
        return cast("Captured", self.answer("capture.stop", _given(capture=capture)))

    def tunnel_attach(self, *, node: str, underlay: str, mtu: int, descriptors: Sequence[int] = ()) -> None:
        """Gives a tunnel's end its socket. Descriptor: the socket.

        `node`: The tunnel's end.
        `underlay`: A name; tunnels that share a socket give the same.
        `mtu`: The MTU of the way to the remote.
        """
        self.answer("tunnel.attach", _given(node=node, underlay=underlay, mtu=mtu), descriptors)

    def tunnels(self) -> list[TunnelRow]:
        """Reports how the tunnels to other speakers stand."""
        return cast("list[TunnelRow]", self.answer("tunnels", {}))

    def fidelity(self) -> JsonObject:
        """Reports how closely the lab kept its schedule."""
        return cast("JsonObject", self.answer("fidelity", {}))

    def fidelity_reset(self) -> None:
        """Begins the fidelity record anew."""
        self.answer("fidelity.reset", {})

    def advance(self, *, until_ps: int) -> Passed:
        """Lets time pass on the virtual clock.

        `until_ps`: Until then.
        """
        return cast("Passed", self.answer("advance", _given(until_ps=until_ps)))


def _given(**fields: Json) -> JsonObject:
    """The fields that are not null; the others may be left out."""
    return {name: value for name, value in fields.items() if value is not None}
