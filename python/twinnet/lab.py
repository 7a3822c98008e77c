"""A network that is running: start it, run programs and traffic in it, change it, measure it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from twinnet.app_report import AppReport
from twinnet.apps import App, Flow
from twinnet.errors import BadValue, LabClosed, LabError
from twinnet.fidelity import FidelityRecord
from twinnet.job import DEVNULL, PIPE, Completed, Job
from twinnet.lab_connection import LabConnection, connect
from twinnet.lab_parts import AppHandle, Capture, LabHost, LabLink, LabMoment, LabSwitch, Layout
from twinnet.lab_process import LabProcess
from twinnet.network import Network
from twinnet.units import duration_ps, size_bytes

__all__ = ["DEVNULL", "PIPE", "AppHandle", "Capture", "Completed", "Job", "Lab", "LabInfo", "attach", "labs"]

_STOP_PATIENCE_S = 10.0


class Lab:
    """A lab on the wall clock; made by :meth:`twinnet.Network.emulate`, started by ``with``.

    Parameters
    ----------
    network
        What to build; ``None`` for a lab that another process built (:func:`attach`).
    name
        The name under which other terminals find it; chosen when nothing is said.
    interface
        ``tap``, ``veth`` or ``auto``.
    options
        Further options of the lab process, handed on as they are.

    Attributes
    ----------
    started
        What the lab process told when it started: ``pid``, ``hosts``, ``setup_ms``, ``interface``, ``realtime``.
    """

    def __init__(
        self, network: Network | None, name: str | None = None, interface: str = "auto", **options: Any
    ) -> None:
        if interface not in ("auto", "tap", "veth"):
            raise BadValue(f"the interface is {interface!r}; allowed are 'auto', 'tap' and 'veth'")
        self._network = network
        self._name = name
        self._options = {"interface": interface, **options}
        self._connection: LabConnection | None = None
        self._process: LabProcess | None = None
        self._layout: Layout | None = None
        self._owner = network is not None
        self._flows = 0
        self._receivers: dict[tuple[str, str, int], tuple[App, int]] = {}
        self.started: Mapping[str, Any] = {}

    def open(self) -> Lab:
        """Build the network and start it; ``with`` does so too. All is undone when building fails."""
        if self._connection is not None or self._network is None:
            raise BadValue("the lab was started already", "make a new one with net.emulate()")
        spec = self._network.to_spec()
        self._process = LabProcess(self._name)
        self._name, self._connection = self._process.name, self._process.connection
        try:
            started = dict(self._connection.request("start", network=spec, options=self._options))
            if not started.get("realtime") and _has_schedule(spec["links"], spec["schedule"]):
                started["realtime"] = self.promote()
            self.started = started
        except BaseException:
            self._process.end(_STOP_PATIENCE_S)
            raise
        return self

    def promote(self) -> bool:
        """Ask for real-time scheduling of the fabric, where we own the lab and may; return whether it has it now.

        It is asked for when a link has a rate or a delay: the fabric then has moments to keep. Without any it would
        only take the processor from the programs that it serves.
        """
        wanted = self._options.get("realtime", "auto") == "auto"
        return self._process is not None and wanted and self._process.promote()

    def adopt(self, connection: LabConnection) -> None:
        """Use `connection` to a lab that runs already."""
        self._connection = connection

    def stop(self) -> None:
        """End the lab and all that runs in it. A lab that was attached to goes on; only the connection ends."""
        if self._connection is None:
            return
        if self._owner and not self._connection.closed:
            # It has ended already, or it will when its owner's socket closes, which is the next thing to happen.
            with contextlib.suppress(LabError, TimeoutError):
                self._connection.submit("stop").result(_STOP_PATIENCE_S)
        if self._process is not None:
            self._process.end(_STOP_PATIENCE_S)
        else:
            self._connection.close()

    def __enter__(self) -> Lab:
        return self.open() if self._owner else self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def name(self) -> str:
        """The name under which other terminals find the lab."""
        if self._name is None:
            raise LabClosed("the lab has no name before it is started", "enter it with: with net.emulate() as lab:")
        return self._name

    @property
    def pid(self) -> int:
        """The lab process as its owner sees it; raises `LabClosed` when it is not ours or not running."""
        if self._process is None:
            raise LabClosed("the lab process belongs to another program, or is not running", "ask its owner")
        return self._process.pid

    @property
    def connection(self) -> LabConnection:
        """The connection to the lab process; raises `LabClosed` before the start."""
        if self._connection is None:
            raise LabClosed("the lab is not running yet", "enter it with: with net.emulate() as lab:")
        return self._connection

    @property
    def running(self) -> bool:
        """Whether the lab is running."""
        return self._connection is not None and not self._connection.closed

    @property
    def layout(self) -> Layout:
        """The network as it was built."""
        if self._layout is None:
            self._layout = Layout(self.connection.request("describe"))
        return self._layout

    def describe(self) -> Mapping[str, Any]:
        """Return the network as it was built, in the form of the lab protocol."""
        return self.layout.spec

    @property
    def hosts(self) -> list[LabHost]:
        """All hosts, routers among them."""
        return [LabHost(self, name) for name in self.layout.names("host")]

    @property
    def switches(self) -> list[LabSwitch]:
        """All switches."""
        return [LabSwitch(self, name) for name in self.layout.names("switch")]

    def __getitem__(self, name: str) -> LabHost:
        """Return the host `name`; raises `UnknownNode`."""
        self.layout.node(name, "host")
        return LabHost(self, name)

    def switch(self, name: str) -> LabSwitch:
        """Return the switch `name`; raises `UnknownNode`."""
        self.layout.node(name, "switch")
        return LabSwitch(self, name)

    def link(self, a: str, b: str) -> LabLink:
        """Return the link between the nodes `a` and `b`."""
        return LabLink(self, a, b)

    def at(self, when: str) -> LabMoment:
        """Return the moment `when` after the lab's start: ``lab.at("2 s").link("h1", "s1").set(up=False)``."""
        return LabMoment(self, duration_ps(when, "time"))

    def now(self) -> float:
        """Return the lab's time in seconds since its start."""
        return self.now_ps() / 1e12

    def now_ps(self) -> int:
        """Return the lab's time in picoseconds since its start."""
        return int(self.connection.request("now")["now_ps"])

    def run_until(self, when: str) -> None:
        """Wait until the lab's clock shows `when` (on the wall clock time passes by itself)."""
        until_ps = duration_ps(when, "time")
        while (left_ps := until_ps - self.now_ps()) > 0:
            if self.connection.wait_closed(left_ps / 1e12):
                raise LabClosed(
                    f"the lab ended before its clock showed {when}", "its last words are on its standard error"
                )

    def links(self) -> list[Mapping[str, Any]]:
        """Return configuration and counters of every link and direction, in the form of the lab protocol."""
        return list(self.connection.request("links"))

    def ports(self) -> list[Mapping[str, Any]]:
        """Return the counters of every port, in the form of the lab protocol."""
        return list(self.connection.request("ports"))

    def jobs(self) -> list[Mapping[str, Any]]:
        """Return all programs that were started, in the form of the lab protocol."""
        return list(self.connection.request("jobs"))

    def fidelity(self, reset: bool = False) -> FidelityRecord:
        """Return how well the lab kept its schedule so far; with `reset` the record begins anew."""
        record = FidelityRecord.from_spec(self.connection.request("fidelity"))
        if reset:
            self.connection.request("fidelity.reset")
        return record

    def start(self, traffic: App | Flow, at: str | None = None) -> AppHandle:
        """Start traffic now, or at the lab's time `at`. A receiver that an earlier flow started is shared.

        Examples
        --------
        ``flow = lab.start(tn.apps.tcp_bulk("h1", "h4", duration="10 s"))``, then ``lab.wait([flow])`` and
        ``flow.report().throughput_bps``.
        """
        at_ps = duration_ps(at, "time") if at is not None else None
        if isinstance(traffic, App):
            flow = self._flow_number(traffic)
            number = self._start(traffic, flow, at_ps)
            return AppHandle(self, None, number, None) if traffic.receives else AppHandle(self, number, None, flow)
        receiver = self.start_receiver(traffic.receiver)
        flow = self._flow_number(traffic.sender)
        return AppHandle(self, self._start(traffic.sender, flow, at_ps), receiver, flow)

    def wait(self, apps: Iterable[AppHandle], until: str | None = None) -> bool:
        """Wait until all of `apps` have finished, at most until the lab's time `until`; return whether they have."""
        numbers = [handle.app for handle in apps]
        until_ps = duration_ps(until, "time") if until is not None else None
        return bool(self.connection.request("app.wait", apps=numbers, until_ps=until_ps)["finished"])

    def reports(self, apps: Sequence[int] | None = None) -> list[AppReport]:
        """Return what `apps` (numbers; all when nothing is said) measured so far, in the order asked for."""
        fields = {"apps": list(apps)} if apps is not None else {}
        found = [AppReport.from_spec(one) for one in self.connection.request("app.report", **fields)]
        if apps is None:
            return found
        return sorted(found, key=lambda report: list(apps).index(report.app))

    def capture(self, interface: str, path: str, limit: str | None = None, snap: str | None = None) -> Capture:
        """Write the frames of `interface` to the pcapng file `path` until the capture is stopped.

        Parameters
        ----------
        interface
            Such as ``s1-eth1``.
        path
            The file to write; an existing one is replaced.
        limit
            The most data that is written, with unit.
        snap
            How much of each frame is kept, with unit.
        """
        self.layout.port(interface)
        limit_bytes = size_bytes(limit, "limit") if limit is not None else None
        snap_bytes = size_bytes(snap, "snap") if snap is not None else None
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise BadValue(f"the capture file {path!r} cannot be written: {error.strerror}") from None
        try:
            number = self.connection.request(
                "capture.start", [file], port=interface, limit_bytes=limit_bytes, snap=snap_bytes
            )["capture"]
        finally:
            os.close(file)
        return Capture(self, int(number), path)

    def sample(self, interfaces: Sequence[str], interval: str = "100 ms") -> int:
        """Begin to count what `interfaces` transmit in each `interval`; return the sampler's number for
        :meth:`samples`."""
        for interface in interfaces:
            self.layout.port(interface)
        length = duration_ps(interval, "interval")
        return int(self.connection.request("samples.start", interval_ps=length, ports=list(interfaces))["sampler"])

    def samples(self, sampler: int) -> Mapping[str, Any]:
        """Return what the sampler counted so far, in the form of the lab protocol."""
        return self.connection.request("samples.read", sampler=sampler)

    def _flow_number(self, app: App) -> int | None:
        if "flow" not in app.fields:
            return None
        given = app.fields["flow"]
        if given is not None:
            return int(given)
        self._flows += 1
        # Several clients of one lab choose numbers at once: the process number keeps them apart.
        return (os.getpid() & 0xFFFF) << 16 | self._flows if not self._owner else self._flows

    def _start(self, app: App, flow: int | None, at_ps: int | None) -> int:
        self.layout.node(app.host, "host")
        fields = dict(app.fields)
        if "to" in fields:
            fields["to"] = self.layout.address(str(fields["to"]))
        if "flow" in fields:
            fields["flow"] = flow
        wanted = {"kind": app.kind, **fields}
        seed = self._seed_of(app, flow)
        return int(self.connection.request("app.start", host=app.host, app=wanted, at_ps=at_ps, seed=seed)["app"])

    def _seed_of(self, app: App, flow: int | None) -> int:
        """Return the seed of `app`: another in a network of another seed, so that repetitions differ; the same
        whatever other apps there are."""
        text = json.dumps([self.layout.spec.get("seed", 0), app.host, app.kind, app.fields.get("port"), flow])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")

    def start_receiver(self, app: App) -> int:
        """Start the sink or server `app` unless an equal one runs, and return its number."""
        key = (app.host, app.kind, int(app.fields["port"]))
        known = self._receivers.get(key)
        if known is not None:
            if known[0] != app:
                raise BadValue(
                    f"{app.host} has a {app.kind} on port {key[2]} already, with other settings", "choose another port"
                )
            return known[1]
        number = self._start(app, None, None)
        self._receivers[key] = (app, number)
        return number


@dataclass(frozen=True)
class LabInfo:
    """A running lab of this user.

    Parameters
    ----------
    name
        Its name.
    """

    name: str


def _has_schedule(links: Iterable[Mapping[str, Any]], changes: Sequence[Any]) -> bool:
    """Whether the fabric of these links has moments to keep: a rate, a delay or a change to come."""
    ways = [link[way] for link in links for way in ("ab", "ba")]
    return bool(changes) or any(way.get("rate_bps") or way.get("delay_ps") or way.get("jitter") for way in ways)


def attach(name: str) -> Lab:
    """Return the running lab `name` of this user, which another process owns and which goes on when we leave.

    Raises
    ------
    NotAvailable
        When there is no such lab.
    """
    connection = connect(name)
    lab = Lab(None, name)
    lab.adopt(connection)
    return lab


def labs() -> list[LabInfo]:
    """Return the running labs of this user, by name."""
    from twinnet._core import list_labs

    return [LabInfo(name) for name in list_labs()]
