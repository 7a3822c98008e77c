"""The requests of the lab protocol (docs/reference/lab-protocol.md) as methods.

Written by ``python tools/lab_client.py`` from crates/lab/src/protocol; change it there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast

from twinnet.lab_process.answering_lab import AnsweringLab
from twinnet.lab_process.pending_reply import Json, JsonObject, PendingReply
from twinnet.lab_process.replies import (
    AppReply,
    AppRow,
    Captured,
    CaptureReply,
    ConnectionReply,
    ControllerRow,
    DeletedReply,
    EndedReply,
    FinishedReply,
    FollowedFrame,
    GroupsReply,
    InterfaceRow,
    JobEndedReply,
    JobReply,
    JobRow,
    LearntRow,
    LinkCounters,
    LinkRow,
    NextReply,
    NowReply,
    Passed,
    PortRow,
    SamplerReply,
    SamplesTold,
    ShownReply,
    StartedReply,
    TunnelRow,
)

__all__ = ["LabRequests"]


class LabRequests(AnsweringLab):
    """A lab that answers requests: a lab process, a lab in this process, or the parts of a network on several machines.

    Each request is a method with the request's fields. It returns the value of the answer, and raises `LabError` with
    the name of a refusal, or `LabClosed` when the lab has ended. Methods called ``..._later`` return at once.
    """

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

    def interface_offer_later(
        self, *, node: str, index: int, mtu: int, descriptors: Sequence[int] = ()
    ) -> PendingReply[None]:
        """Ask as :meth:`interface_offer` does, and return at once."""
        return cast(
            "PendingReply[None]", self.submit("interface.offer", _given(node=node, index=index, mtu=mtu), descriptors)
        )

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
        `env`: The whole environment; when null that of the lab's owner, or that of the host's image.
        `cwd`: The working directory; when null that of the lab's owner, or that of the host's image.
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

    def code_bring(
        self, *, kind: str, name: str, called: str, of: str, file: str, search: Sequence[str], source: str | None = None
    ) -> None:
        """Brings Python code of the user's along: apps of real hosts may name it then.

        `kind`: `application` or `estimator`.
        `name`: The name by which apps name it.
        `called`: What messages and reports call it.
        `of`: Where it is: `module:Class`.
        `file`: The file of the module.
        `source`: The text of that file; null: the module is imported.
        `search`: Where Python looks for modules.
        """
        self.answer(
            "code.bring", _given(kind=kind, name=name, called=called, of=of, file=file, search=search, source=source)
        )

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

    def learnt(self, *, switch: str) -> list[LearntRow]:
        """Reports the addresses that a switch has learnt, as a switch without a controller and the action `normal` do.

        `switch`: The switch.
        """
        return cast("list[LearntRow]", self.answer("learnt", _given(switch=switch)))

    def groups(self, *, switch: str) -> GroupsReply:
        """Reports groups and meters with what they have counted.

        `switch`: The switch.
        """
        return cast("GroupsReply", self.answer("groups", _given(switch=switch)))

    def learnt_forget(self, *, switch: str) -> DeletedReply:
        """Has a switch forget the addresses that it has learnt.

        `switch`: The switch.
        """
        return cast("DeletedReply", self.answer("learnt.forget", _given(switch=switch)))

    def follow(self, *, switch: str, in_port: int, frame: str) -> FollowedFrame:
        """Says what would become of a frame in a switch, and why. Nothing is sent, counted or learnt; meters are taken
        to let it pass.

        `switch`: The switch.
        `in_port`: The number of the port by which it comes in.
        `frame`: The frame from the Ethernet header on, without FCS, in hexadecimal.
        """
        return cast("FollowedFrame", self.answer("follow", _given(switch=switch, in_port=in_port, frame=frame)))

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

    def controllers(self, *, said: bool | None = None) -> list[ControllerRow]:
        """Reports how the connections of controllers stand.

        `said`: Whether it is also told what was said: `received` and `sent` by type, and the `newest` messages.
        """
        return cast("list[ControllerRow]", self.answer("controllers", _given(said=said)))

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
        `set`: Any fields of a direction, `up` and `mtu`. What is not named stays as it is.
        """
        self.answer("link.set", _given(set=set, link=link, a=a, b=b, direction=direction))

    def links(self) -> list[LinkRow]:
        """Reports the links."""
        return cast("list[LinkRow]", self.answer("links", {}))

    def links_counters(self) -> LinkCounters:
        """Reports what changes often of the links, in little space: of each direction a row, from `a` to `b` first."""
        return cast("LinkCounters", self.answer("links.counters", {}))

    def links_counters_later(self) -> PendingReply[LinkCounters]:
        """Ask as :meth:`links_counters` does, and return at once."""
        return cast("PendingReply[LinkCounters]", self.submit("links.counters", {}))

    def ports(self) -> list[PortRow]:
        """Reports the ports."""
        return cast("list[PortRow]", self.answer("ports", {}))

    def ports_later(self) -> PendingReply[list[PortRow]]:
        """Ask as :meth:`ports` does, and return at once."""
        return cast("PendingReply[list[PortRow]]", self.submit("ports", {}))

    def samples_start(self, *, interval_ps: int, ports: Sequence[str]) -> SamplerReply:
        """Counts what ports do in each interval.

        `interval_ps`: The interval, at least 1 us.
        `ports`: Interface names.
        """
        return cast("SamplerReply", self.answer("samples.start", _given(interval_ps=interval_ps, ports=ports)))

    def samples_read(self, *, sampler: int, skip: int | None = None) -> SamplesTold:
        """Reports what was counted so far.

        `sampler`: The sampler.
        `skip`: So many intervals, the first ones, are left out: those that were told before.
        """
        return cast("SamplesTold", self.answer("samples.read", _given(sampler=sampler, skip=skip)))

    def samples_stop(self, *, sampler: int, skip: int | None = None) -> SamplesTold:
        """Reports what was counted and ends the sampler.

        `sampler`: The sampler.
        `skip`: As in `samples.read`.
        """
        return cast("SamplesTold", self.answer("samples.stop", _given(sampler=sampler, skip=skip)))

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

    def ports_show(self, *, ports: Mapping[str, int], descriptors: Sequence[int] = ()) -> None:
        """Writes what arrives at ports of switches to interfaces of the machine, so that programs see it there.
        Descriptor: a packet socket, not bound, with `PACKET_VNET_HDR`, in the network namespace of the interfaces.

        `ports`: By the name of a port the index of an interface.
        """
        self.answer("ports.show", _given(ports=ports), descriptors)

    def ports_shown(self) -> ShownReply:
        """Reports how much of what arrived at shown ports was written, and how much was not for want of time."""
        return cast("ShownReply", self.answer("ports.shown", {}))

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

    def events_next(self) -> NextReply:
        """Reports when something happens next on the virtual clock."""
        return cast("NextReply", self.answer("events.next", {}))

    def advance(self, *, until_ps: int) -> Passed:
        """Lets time pass on the virtual clock.

        `until_ps`: Until then.
        """
        return cast("Passed", self.answer("advance", _given(until_ps=until_ps)))


def _given(**fields: Json) -> JsonObject:
    """The fields that are not null; the others may be left out."""
    return {name: value for name, value in fields.items() if value is not None}
