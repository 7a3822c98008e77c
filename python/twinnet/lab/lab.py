"""A network that is running: start it, run programs and traffic in it, change it, measure it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Literal

from twinnet.control.controller import Controller
from twinnet.control.tls import check_tls
from twinnet.errors import BadValue, LabClosed, LabError, NotAvailable
from twinnet.guest import needed
from twinnet.guest.processor import features
from twinnet.lab.app_starter import AppStarter
from twinnet.lab.attached_job import AttachedJob
from twinnet.lab.by_hand import CHANGES, ByHand
from twinnet.lab.capture_plan import CapturePlan
from twinnet.lab.controllers import LabControllers
from twinnet.lab.following import Packet, Way, follow
from twinnet.lab.guest_options import GuestOptions
from twinnet.lab.interfaces import RealInterfaces
from twinnet.lab.joining import wait_until_joined
from twinnet.lab.known_neighbours import introduce
from twinnet.lab.live_page import LivePage
from twinnet.lab.notebook import notebook_part, notebook_widget
from twinnet.lab.own_of_hosts import commands_of, limit_programs, look_for_images, refuse_own
from twinnet.lab.parts import AppHandle, Capture, LabHost, LabLink, LabMoment, LabSwitch, Layout
from twinnet.lab.port_sampler import PortSampler
from twinnet.lab.underlays import Underlays
from twinnet.lab.virtual_connection import VirtualConnection, no_programs
from twinnet.lab.virtual_service import VirtualService
from twinnet.lab_process.connection import LabConnection
from twinnet.lab_process.control_groups import ControlGroups
from twinnet.lab_process.job import DEVNULL, PIPE, Completed, Job, Stream, check_stream, start_job
from twinnet.lab_process.process import LabProcess
from twinnet.lab_process.replies import InterfaceRow, JobRow, LinkRow, PortRow, TunnelRow
from twinnet.lab_process.requests import LabRequests
from twinnet.network.named_nodes import NamedNodes
from twinnet.network.names_of_mininet import AnswersToMininet
from twinnet.network.network import Network
from twinnet.open_vswitch import Instance
from twinnet.open_vswitch.programs import HOST as OPEN_VSWITCH
from twinnet.qos.queue import Queue
from twinnet.ranges import moment_ps
from twinnet.results.fidelity import FidelityRecord
from twinnet.results.flow_report import AppReport
from twinnet.traffic.app import App, Flow
from twinnet.units import Duration, Size, duration_ps, format_duration

if TYPE_CHECKING:
    from anywidget import AnyWidget

    from twinnet.lab.database import LabDatabase

__all__ = ["DEVNULL", "PIPE", "AppHandle", "Capture", "Completed", "Job", "Lab"]

_STOP_PATIENCE_S = 10.0
_SHORTEST_SAMPLE_PS = 1_000_000


class Lab(AnswersToMininet):
    """A network that is running; started by ``with``. On the wall clock (``net.emulate()``) hosts are
    real and time passes by itself; on the virtual clock (``net.simulate()``) hosts are models and time
    passes in :meth:`run_until` and :meth:`wait` only, as fast as the machine can.

    Parameters
    ----------
    network
        What to build; ``None`` for a lab that another process built (:func:`twinnet.lab.attach`).
    name
        The name under which other terminals find it. When you give none, twinnet chooses one on the wall clock, and
        a lab on the virtual clock has none.
    interface
        ``tap``, ``veth`` or ``auto``; on the wall clock only.
    clock
        ``wall``, ``virtual``, or ``real`` for :class:`twinnet.machines.machine_lab.MachineLab`.
    seed
        The seed of all randomness in the place of the network's.
    static_neighbours
        Whether hosts on the virtual clock know each other's hardware addresses beforehand.
    programs
        Whether hosts on the virtual clock are real and run programs, but for those that are described as models.
    realtime
        ``auto``: ask for real-time priority; ``off``. On the wall clock only.
    slip_after_ps
        How far the fabric may be behind before it moves its clock, in picoseconds; default: derived from the
        fastest link. On the wall clock only.
    fabric_threads
        How many threads move the network, each a part of its switches with what hangs there: a whole number from 1, as
        far as the network can be divided; ``auto``: by the processors that are free, and only where links between
        switches have a delay. Default: what the network says. On the wall clock only.

    Attributes
    ----------
    clock
        ``wall``, ``virtual`` or ``real``.
    started
        What the lab said when it started: ``hosts``, ``setup_ms``, on the wall clock ``pid``, ``interface``,
        ``realtime``, ``fabric_threads``, and with programs on the virtual clock the guest's ``kernel``, of
        ``guest`` what is not as usual of ``memory``, ``date`` and ``patience``, and under ``processor`` the
        instructions of this machine's processor by which programs choose their routines.
    queues_given
        The queues that this process has given to ports while the lab ran, by interface.
    by_hand
        The record of what was changed by hand while the lab ran: by the live page, at the prompt, by ``twinnet do``, or
        by another program that attached.
    """

    shares_files: bool = True
    """Whether programs in the hosts see the files of this machine; not where hosts are on other machines."""

    def __init__(
        self,
        network: Network | None,
        name: str | None = None,
        interface: str = "auto",
        clock: Literal["wall", "virtual", "real"] = "wall",
        seed: int | None = None,
        static_neighbours: bool = False,
        programs: bool = False,
        guest: GuestOptions | None = None,
        trace: Path | None = None,
        realtime: Literal["auto", "off"] = "auto",
        slip_after_ps: int | None = None,
        fabric_threads: int | Literal["auto"] | None = None,
    ) -> None:
        if interface not in ("auto", "tap", "veth"):
            raise BadValue(f"the interface is {interface!r}; allowed are 'auto', 'tap' and 'veth'")
        if clock == "virtual" and interface != "auto":
            raise BadValue("a lab on the virtual clock has no interfaces of the kernel", "leave it away")
        if clock == "virtual" and (realtime != "auto" or slip_after_ps is not None or fabric_threads is not None):
            raise BadValue(
                "a lab on the virtual clock has neither realtime nor slip_after_ps nor fabric_threads",
                "leave them away",
            )
        if fabric_threads is None and network is not None:
            fabric_threads = network.fabric_threads
        self._network = network
        self._name = name
        self.clock: Literal["wall", "virtual", "real"] = clock
        self._seed = seed
        self._static_neighbours = static_neighbours
        self._programs = programs
        self._guest = guest or GuestOptions()
        self._trace = trace
        self._options = {
            "interface": interface,
            "realtime": realtime,
            "slip_after_ps": slip_after_ps,
            "fabric_threads": fabric_threads,
        }
        self._connection: LabRequests | None = None
        self._process: LabProcess | None = None
        self._groups: ControlGroups | None = None
        self._service: VirtualService | None = None
        self._layout: Layout | None = None
        self._controllers: LabControllers | None = None
        self._open_vswitch: Instance | None = None
        self._owner = network is not None
        self._pages: list[LivePage] = []
        self._database: LabDatabase | None = None
        self._apps = AppStarter(self._owner)
        self.by_hand: ByHand = ByHand(self._owner)
        self.queues_given: dict[str, Queue] = {}
        self.started: Mapping[str, Any] = {}

    def __repr__(self) -> str:
        if self._network is not None:
            from twinnet.drawing.summary import summary_of

            said = f" of {summary_of(self._network)}"
        else:
            said = ""
        name = f" {self._name}" if self._name is not None else ""
        state = "running" if self.running else "not running"
        return f"<Lab{name}{said}, {self.clock} clock, {state}>"

    def _repr_html_(self) -> str:
        return notebook_part(self)

    def open(self) -> Lab:
        """Build the network and start it; ``with`` does so too. All is undone when building fails."""
        if self._connection is not None or self._network is None:
            raise BadValue("the lab was started already", "make a new one with net.emulate()")
        controllers = LabControllers(self._network.controller_choice, in_guest=self._programs)
        spec = self._network.to_spec()
        controllers.place(spec)
        check_tls(spec["nodes"])
        if self._seed is not None:
            spec["seed"] = self._seed
        if self._static_neighbours:
            spec["static_neighbours"] = True
        if self.clock == "virtual":
            self._open_on_virtual_clock(spec, controllers)
        else:
            self._open_on_wall_clock(spec, controllers)
        return self

    def _open_on_virtual_clock(self, spec: dict[str, Any], controllers: LabControllers) -> None:
        if self._programs:
            refuse_own(spec["nodes"], "on the virtual clock")
        begin_s = time.monotonic()
        kernel = needed() if self._programs else None
        guest = self._guest.to_settings(kernel) if kernel is not None else None
        self._connection = VirtualConnection(spec, guest, self._trace)
        self._controllers = controllers
        try:
            controllers.start_in_lockstep(self._connection, spec)
            # It is built as it is described: asking for it would take a large network's memory several times.
            self._layout = Layout(spec)
            if self._static_neighbours and self._programs:
                introduce(self)
            hosts = sum(node["kind"] == "host" for node in spec["nodes"])
            self.started = {"hosts": hosts, "setup_ms": (time.monotonic() - begin_s) * 1000}
            if kernel is not None:
                self.started |= {"kernel": kernel.version, "guest": self._guest.to_record(), "processor": features()}
            if self._name is not None:
                self._service = VirtualService(self._connection, self._name or None)
                self._name = self._service.name
                self._connection.heard = self._heard
                self.by_hand.open(self._name)
        except BaseException:
            self.stop()
            raise

    def _open_on_wall_clock(self, spec: dict[str, Any], controllers: LabControllers) -> None:
        look_for_images(spec["nodes"])
        self._open_vswitch = Instance(spec["nodes"])
        self._controllers = controllers
        with contextlib.ExitStack() as opened:
            interfaces = RealInterfaces.of(spec["nodes"])
            opened.callback(interfaces.close)
            underlays = Underlays.of(spec["nodes"], spec["links"])
            opened.callback(underlays.close)
            self._process = LabProcess(self._name)
            opened.pop_all()
        self._name, self._connection = self._process.name, self._process.connection
        self._connection.heard = self._heard
        self.by_hand.open(self._name)
        self._groups = ControlGroups(self._process.pid)
        try:
            interfaces.offer_to(self._connection)
            limit_programs(spec["nodes"], self._groups)
            started = {**self._connection.start(network=spec, options=self._options)}
            if _has_schedule(spec["links"], spec["schedule"]):
                # Also a fabric that got it by itself: the agent is promoted with it.
                started["realtime"] = self.promote() or bool(started.get("realtime"))
            self.started = started
            underlays.attach_to(self._connection)
            controllers.start(self._connection, spec)
            self._open_vswitch.start(self._connection)
            for host, command in commands_of(spec["nodes"]):
                self.start_program(host, command, (DEVNULL, DEVNULL, DEVNULL))
        except BaseException:
            underlays.close()
            controllers.end()
            self._open_vswitch.end()
            self.by_hand.close()
            self._process.end(_STOP_PATIENCE_S)
            self._groups.end()
            raise

    @property
    def controller(self) -> Controller:
        """The controller that runs in this process; raises `NotAvailable` when there is none."""
        if self._controllers is None or self._controllers.controller is None:
            raise NotAvailable("no controller runs in this process", "attach one with net.controller(MyController())")
        return self._controllers.controller

    def wait_for_controllers(self, timeout: Duration = "10 s") -> None:
        """Wait until every switch that has controllers has agreed on a version with one of them, and what a controller
        in this process sent it on joining has taken effect. On the virtual clock time passes meanwhile, until nothing
        more is on its way between controllers and switches.

        Parameters
        ----------
        timeout
            How long.

        Raises
        ------
        TimeLimit
            When that takes longer; the message names each switch that waits, and the last output of the controller
            when the lab has started it.
        NotAvailable
            At once, when the controller is a program that the lab has started and that has ended.
        """
        wait_until_joined(self, self._controllers, timeout)

    def check_controllers(self) -> None:
        """Raise `NotAvailable` when a switch has lost a controller, or never had it, as far as this process knows. When
        the controller is a program that the lab has started and that has ended, the message has what it wrote last."""
        if self._controllers is None:
            return
        self._controllers.check()
        for (switch, target), why in self.lost_controllers.items():
            ended = self._controllers.program_end()
            raise NotAvailable(
                f"{switch} has lost its controller {target}: {ended or why}", "see what the controller writes"
            )

    @property
    def controller_is_gone(self) -> bool:
        """True if the controller that the lab has started cannot come back: its program has ended, or it raised."""
        return self._controllers is not None and self._controllers.gone

    @property
    def lost_controllers(self) -> Mapping[tuple[str, str], str]:
        """The reasons why switches are without a controller, by switch and target, as far as this process knows."""
        lost = dict(self._controllers.troubles) if self._controllers is not None else {}
        if self._open_vswitch is not None:
            lost.update(self._open_vswitch.troubles)
        return lost

    def controller_trouble(self, switch: str, target: str) -> str | None:
        """Return why the last connection of `switch` to `target` failed or ended, as far as this process made it."""
        trouble = self._controllers.trouble(switch, target) if self._controllers is not None else None
        relays = self._open_vswitch
        return trouble or (relays.troubles.get((switch, target)) if relays is not None else None)

    def dial_controllers(self, switch: str, targets: Sequence[str]) -> None:
        """Connect `switch` to the controllers `targets`, as ``set_controllers`` of a switch does."""
        if self._controllers is None:
            raise NotAvailable(
                "another program has started the lab, and connects its switches", "have that one name the controllers"
            )
        held: Sequence[str] = self.layout.node(switch, "switch").get("controllers") or ()
        self._controllers.dial(switch, held, targets)
        self.layout.change(switch, controllers=list(targets))

    def promote(self) -> bool:
        """Ask for real-time scheduling of the fabric and of the agent, where we own the lab and may; return whether
        the fabric has it now.

        It is asked for when a link has a rate or a delay: the fabric then has moments to keep. Without any it would
        only take the processor from the programs that it serves.
        """
        wanted = self._options.get("realtime", "auto") == "auto"
        return self._process is not None and wanted and self._process.promote()

    def adopt(self, connection: LabRequests, layout: Layout | None = None) -> None:
        """Use `connection` to a lab that runs already, with the network `layout` if it is known."""
        self._connection, self._layout = connection, layout
        if isinstance(connection, LabConnection) and self._name:
            connection.heard = self._heard
            self.by_hand.open(self._name)

    def _heard(self, do: str, fields: Mapping[str, Any]) -> None:
        if do in CHANGES:
            self.by_hand.changed(do, fields, self.now)

    def stop(self) -> None:
        """End the lab and all that runs in it. A lab that was attached to goes on; only the connection ends."""
        if self._connection is None:
            return
        for page in self._pages:
            page.stop()
        if self._database is not None:
            self._database.stop()
            self._database = None
        if self._service is not None:
            self._service.close()
            self._service = None
        self.by_hand.close()
        failure = self._controllers.end() if self._controllers is not None else None
        if self._open_vswitch is not None:
            self._open_vswitch.end()
        if self._owner and not self._connection.closed:
            # It has ended already, or it will when its owner's socket closes, which is the next thing to happen.
            with contextlib.suppress(LabError, TimeoutError):
                self._connection.stop_later().result(_STOP_PATIENCE_S)
        if self._process is not None:
            self._process.end(_STOP_PATIENCE_S)
            if self._groups is not None:
                self._groups.end()
        else:
            self._connection.close()
        if failure is not None:
            raise failure

    def __enter__(self) -> Lab:
        return self.open() if self._owner else self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except Exception as failure:
            if error is None:
                raise
            # What went wrong first is what is raised.
            error.add_note(f"the lab's end failed as well: {failure}")

    @property
    def name(self) -> str:
        """The name under which other terminals find the lab."""
        if self.clock == "virtual" and self._name is None:
            raise NotAvailable("this lab has no name, and no other terminal finds it", "give it one: simulate(name=)")
        if self.clock == "real":
            raise NotAvailable(
                "a lab of physical machines has no name: no other terminal finds it", "use net.emulate()"
            )
        if self._name is None:
            raise LabClosed("the lab has no name before it is started", "enter it with: with net.emulate() as lab:")
        return self._name

    @property
    def pid(self) -> int:
        """The lab process as its owner sees it; raises `LabClosed` when it is not ours or not running."""
        if self.clock == "virtual":
            raise NotAvailable("a lab on the virtual clock has no process of its own", "use os.getpid()")
        if self._process is None:
            raise LabClosed("the lab process belongs to another program, or is not running", "ask its owner")
        return self._process.pid

    @property
    def connection(self) -> LabRequests:
        """The connection that answers requests of the lab protocol; raises `LabClosed` before the start."""
        if self._connection is None:
            how = {"wall": "emulate", "virtual": "simulate", "real": "operate"}[self.clock]
            raise LabClosed("the lab is not running yet", f"enter it with: with net.{how}() as lab:")
        return self._connection

    @property
    def running(self) -> bool:
        """True if the lab is running."""
        return self._connection is not None and not self._connection.closed

    @property
    def layout(self) -> Layout:
        """The network as it was built."""
        if self._layout is None:
            self._layout = Layout(self.connection.describe())
        return self._layout

    def describe(self) -> Mapping[str, Any]:
        """Return the network as it was built, in the form of the lab protocol."""
        return self.layout.spec

    @property
    def hosts(self) -> NamedNodes[LabHost]:
        """All hosts, routers among them: ``lab.hosts[0]``, ``lab.hosts["h1"]``."""
        return NamedNodes(LabHost(self, name) for name in self.layout.names("host"))

    @property
    def switches(self) -> NamedNodes[LabSwitch]:
        """All switches: ``lab.switches[0]``, ``lab.switches["s1"]``."""
        return NamedNodes(LabSwitch(self, name) for name in self.layout.names("switch"))

    def __getitem__(self, name: str) -> LabHost:
        """Return the host `name`; raises `UnknownNode`."""
        self.layout.node(name, "host")
        return LabHost(self, name)

    def switch(self, name: str) -> LabSwitch:
        """Return the switch `name`; raises `UnknownNode`."""
        self.layout.node(name, "switch")
        return LabSwitch(self, name)

    def link(self, a: str, b: str) -> LabLink:
        """Return the link between the nodes or interfaces `a` and `b`: where two nodes have several links, the first is
        meant by their names, and each by those of its interfaces, ``lab.link("s1-eth3", "s2-eth3")``."""
        return LabLink(self, a, b)

    def at(self, when: Duration) -> LabMoment:
        """Return the moment `when` after the lab's start: ``lab.at("2 s").link("h1", "s1").set(up=False)``. Raises
        `BadValue` when it is past."""
        return LabMoment(self, self._moment_ps(when))

    def now(self) -> float:
        """Return the lab's time in seconds since its start."""
        return self.now_ps() / 1e12

    def now_ps(self) -> int:
        """Return the lab's time in picoseconds since its start."""
        return self.connection.now()["now_ps"]

    def run_until(self, when: Duration) -> None:
        """Go on until the lab's clock shows `when`: on the virtual clock by doing all that happens until then, on the
        wall clock by waiting."""
        until_ps = moment_ps(when)
        if self.clock == "virtual":
            if until_ps > self.now_ps():
                self.connection.advance(until_ps=until_ps)
            return
        while (left_ps := until_ps - self.now_ps()) > 0:
            if self.connection.wait_closed(left_ps / 1e12):
                raise LabClosed(
                    f"the lab ended before its clock showed {when}", "its last messages are on its standard error"
                )

    def while_time_passes(self, look_up: Callable[[int], bool]) -> None:
        """On the virtual clock, have `look_up` called with the lab's time in picoseconds several times a second while
        :meth:`run_until` or :meth:`wait` let time pass; when it returns true they return early."""
        connection = self.connection
        if isinstance(connection, VirtualConnection):
            connection.looked_up = look_up

    def links(self) -> list[LinkRow]:
        """Return configuration and counters of every link and direction, in the form of the lab protocol."""
        return self.connection.links()

    def ports(self) -> list[PortRow]:
        """Return the counters of every port, in the form of the lab protocol."""
        return self.connection.ports()

    def follow(
        self,
        source: str,
        destination: str,
        protocol: str = "udp",
        *,
        port: int = 5001,
        source_port: int = 49152,
        size: int = 64,
        ip6: bool = False,
    ) -> Way:
        """Return the way that a packet would take now, and what each node on it would do: ``print(lab.follow("h1",
        "h2"))``. Nothing is sent, counted or learnt.

        Parameters
        ----------
        source, destination
            The host that sends it, and the host or address that it is for.
        protocol
            ``udp``, ``tcp`` (the first segment of a connection) or ``icmp`` (an echo request).
        port, source_port
            The ports that it is for and from.
        size
            Bytes of its payload.
        ip6
            IPv6 where `destination` is a host.

        Raises
        ------
        UnknownNode, BadValue, BadTopology
            There is no such host, packet or address.
        """
        return follow(self, source, destination, Packet(protocol, port, source_port, size), 6 if ip6 else 4)

    def interfaces(self) -> list[InterfaceRow]:
        """Return how the interfaces of the machine stand that are part of the network: ``node``, ``interface`` and
        ``state`` (``up``, ``down``, ``gone``)."""
        return self.connection.interfaces()

    def tunnels(self) -> list[TunnelRow]:
        """Return how the tunnels to other speakers stand, in the form of the lab protocol: ``node``, ``remote``,
        ``path_mtu``, ``inner_mtu``, ``counters`` and the packets ``refused``."""
        return self.connection.tunnels()

    def jobs(self) -> list[JobRow]:
        """Return all programs that were started, in the form of the lab protocol."""
        return [job for job in self.connection.jobs() if job["host"] != OPEN_VSWITCH]

    def fidelity(self, reset: bool = False) -> FidelityRecord:
        """Return how well the lab kept its schedule so far; with `reset` the record begins anew. On the virtual clock
        nothing is ever late: the record says how much happened, since the start. What was changed by hand stays in it,
        as the network stays changed."""
        spec = {**self.connection.fidelity()}
        if self._controllers is not None and (pauses := self._controllers.pauses(reset)):
            spec["controllers"] = dict(pauses)
        if (told := self.by_hand.record()) and told["first"]:
            spec["by_hand"] = told
        record = FidelityRecord.from_spec(spec)
        if reset and self.clock != "virtual":
            self.connection.fidelity_reset()
        return record

    @property
    def trace_hash(self) -> str:
        """A hash over all events so far, in their order: 16 hexadecimal digits. Equal hashes mean equal runs.

        Raises
        ------
        NotAvailable
            On the wall clock, where no two runs have the same events.
        """
        if self.clock != "virtual":
            raise NotAvailable(
                f"the {self.clock} clock has no trace hash: real hosts never do the same twice", "use net.simulate()"
            )
        return self.fidelity().trace_hash

    def start(self, traffic: App | Flow, at: Duration | None = None, name: str | None = None) -> AppHandle:
        """Start traffic now, or at the lab's time `at`. A receiver that an earlier flow started is shared.

        Parameters
        ----------
        traffic
            An app, or a flow of a sender and the receiver that it needs.
        at
            When it begins; `BadValue` when that is past.
        name
            What its randomness is derived from, with the lab's seed. Without one it is its host, kind, target and
            port, and how many equal ones were started before: so another flow leaves this one's randomness as it was.

        Examples
        --------
        ``flow = lab.start(tn.apps.tcp_bulk("h1", "h4", duration="10 s"))``, then ``lab.wait([flow])`` and
        ``flow.report().throughput_bps``.
        """
        if not isinstance(traffic, (App, Flow)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadValue(
                f"{traffic!r} is neither an app nor a flow",
                'write for example tn.apps.tcp_bulk("h1", "h2", duration="5 s"); lab["h1"].run(...) runs a program',
            )
        at_ps = self._moment_ps(at) if at is not None else None
        if isinstance(traffic, App):
            flow = self._apps.flow_number(traffic)
            number = self._apps.start(self, traffic, flow, at_ps, name)
            return AppHandle(self, None, number, None) if traffic.receives else AppHandle(self, number, None, flow)
        receiver = self.start_receiver(traffic.receiver)
        flow = self._apps.flow_number(traffic.sender)
        return AppHandle(self, self._apps.start(self, traffic.sender, flow, at_ps, name), receiver, flow)

    def wait(self, apps: Iterable[AppHandle], until: Duration | None = None) -> bool:
        """Wait until all of `apps` have finished, at most until the lab's time `until`; return whether they have."""
        numbers = [handle.app for handle in apps]
        until_ps = moment_ps(until) if until is not None else None
        return self.connection.app_wait(apps=numbers, until_ps=until_ps)["finished"]

    def reports(self, apps: Sequence[int] | None = None) -> list[AppReport]:
        """Return what `apps` (numbers; default: all) measured so far, in the order asked for."""
        wanted = None if apps is None else list(apps)
        found = [AppReport.from_spec(one) for one in self.connection.app_report(apps=wanted)]
        if apps is None:
            return found
        place = {number: index for index, number in enumerate(apps)}
        return sorted(found, key=lambda report: place[report.app])

    def capture(
        self,
        interface: str,
        path: str | os.PathLike[str] | IO[bytes],
        limit: Size | None = None,
        snap: Size | None = None,
        ring: tuple[int, str] | None = None,
        direction: Literal["both", "in", "out"] = "both",
    ) -> Capture:
        """Write the frames of `interface` to the pcapng file `path` until the capture is stopped.

        Parameters
        ----------
        interface
            Such as ``s1-eth1``.
        path
            The file to write; an existing one is replaced. Or a binary file or pipe that is open: the standard input
            of ``wireshark -k -i -`` shows frames while they pass.
        limit
            The most data that is written, with unit.
        snap
            How much of each frame is kept, with unit.
        ring
            How many files are kept, and when one is full: ``(10, "50 MB")`` or ``(24, "1 h")``. The files are called
            like `path` with a number before the dot, and sort by time; a new one takes the place of the oldest.
        direction
            What the port's node receives (``in``), what it sends (``out``), or both.
        """
        self.layout.port(interface)
        asked = CapturePlan(path, limit, snap, ring, direction)
        place = asked.open()
        try:
            # Also for a lab that another process of ours owns.
            path = f"/proc/{os.getpid()}/fd/{place}" if asked.stream else str(asked.path.resolve())
            where: dict[str, Any] = {"file": asked.name} if self.clock == "wall" else {"path": path}
            descriptors = () if self.clock == "virtual" else (place,)
            answer = self.connection.capture_start(port=interface, **where, **asked.settings, descriptors=descriptors)
        finally:
            os.close(place)
        return Capture(self, answer["capture"], str(asked.path), is_stream=asked.stream is not None)

    def sample(self, interfaces: Sequence[str], interval: Duration = "100 ms") -> PortSampler:
        """Begin to count what `interfaces` send, receive and drop in each `interval`, of at least a microsecond.

        It goes on until its ``stop()``, or until 1,048,576 intervals of all its ports together are kept; then
        `full` of what it has read says so.
        """
        for interface in interfaces:
            self.layout.port(interface)
        length = _sampling_ps(interval)
        answer = self.connection.samples_start(interval_ps=length, ports=list(interfaces))
        return PortSampler(self, answer["sampler"])

    def live(
        self,
        out: str | os.PathLike[str] | None = None,
        control: bool = False,
        positions: str | os.PathLike[str] | None = None,
    ) -> LivePage:
        """Serve a page that shows the lab while it runs, for a browser on this machine: open its ``address``. It ends
        with the lab, or by its ``stop()``. With `out`, all that it could show from now on is in this HTML file then,
        which opens without twinnet, or in a table if the name ends in ``.parquet``. With `control` the page may change
        links, queues and flows, start traffic, capture, and open shells in hosts. Nodes stand where the file
        `positions` says; with `control`, those that are dragged are kept in it.

        Raises
        ------
        BadValue
            No file can be written at `out`, or the file `positions` has something else.
        NotAvailable
            On physical machines, on the virtual clock without a name, or where the extra ``live`` is not installed.
        """
        page = LivePage(self.name, out, control, positions)
        self._pages.append(page)
        return page

    def serve_ovsdb(self, *places: str, tell: Callable[[str], None] | None = None) -> LabDatabase:
        """Serve the switches as Open vSwitch's database, for clients of OVSDB (RFC 7047) such as ``ovs-vsctl`` and
        controllers that set queues by it. It ends with the lab, or by its ``stop()``. Whoever reaches a place changes
        the queues.

        Parameters
        ----------
        places
            ``ptcp:[PORT][:ADDRESS]`` (default: port 6640 of 127.0.0.1), or ``punix:PATH``.
        tell
            Called, from another thread, with each note on what a client has written and has no effect; default: a
            `ControllerWarning`.

        Raises
        ------
        BadValue
            A place is none, or none is given.
        NotAvailable
            A place is not to be had, the lab serves it already, or it is not on the wall clock, on one machine, and of
            twinnet's own switches.
        """
        from twinnet.lab.database import LabDatabase

        if not places:
            raise BadValue("there is no place where OVSDB is to be served", 'write for example "ptcp:6640"')
        if self._database is not None and self._database.is_served:
            raise NotAvailable("the lab serves OVSDB already", "name all places at once, or stop() what serves it")
        self._database = LabDatabase(self, places, tell)
        return self._database

    def widget(self, height: int = 640) -> AnyWidget:
        """Return the live page for the cell of a notebook, `height` pixels high: put ``lab.widget()`` on the cell's
        last line. It hears of the lab from the notebook's own kernel, so it needs no address and works where the
        notebook runs on another machine. What asks the lab (flow tables, following, changes) is on the page of
        :meth:`live` alone.

        Raises
        ------
        BadValue
            The height is not from 100 to 10000 pixels, or the network is too large to be drawn.
        NotAvailable
            On physical machines, on the virtual clock without a name, or where the extra ``notebook`` is not installed.
        """
        return notebook_widget(self, height)

    def _moment_ps(self, when: Duration) -> int:
        """The moment `when` of the lab's clock, which must not be past."""
        at_ps, now_ps = moment_ps(when), self.now_ps()
        if at_ps < now_ps:
            raise BadValue(
                f"the moment {when!r} is past: the lab's clock shows {format_duration(now_ps)}",
                "name a later moment, or none for now",
            )
        return at_ps

    def require_programs(self, host: str) -> None:
        """Raise `NotAvailable` when `host` is a model, which runs no programs."""
        if self.clock == "virtual" and not self._programs:
            raise no_programs(host)
        if self.layout.node(host, "host").get("model"):
            raise no_programs(host, "wall")

    def start_program(
        self,
        host: str,
        argv: Sequence[str],
        streams: Sequence[Stream],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        limit_ps: int | None = None,
    ) -> Job:
        """Start `argv` in `host`, as :meth:`LabHost.popen` does; `streams` are stdin, stdout and stderr."""
        for stream, named in zip(streams, ("stdin", "stdout", "stderr"), strict=True):
            check_stream(stream, named)
        connection = self.connection
        if isinstance(connection, VirtualConnection) and connection.programs is not None:
            fields = {"env": dict(env) if env is not None else None, "cwd": cwd, "limit_ps": limit_ps}
            return connection.programs.start(host, argv, streams[0], streams[1:], fields)
        kind = AttachedJob if self.clock == "virtual" else Job
        return start_job(connection, host, argv, streams, env=env, cwd=cwd, limit_ps=limit_ps, kind=kind)

    def start_receiver(self, app: App) -> int:
        """Start the sink or server `app` unless an equal one runs, and return its number."""
        return self._apps.start_receiver(self, app)


def _sampling_ps(interval: Duration) -> int:
    length = duration_ps(interval, "interval")
    if length < _SHORTEST_SAMPLE_PS:
        raise BadValue(f"the interval {interval!r} is too short; ports are sampled every microsecond at most")
    return length


def _has_schedule(links: Iterable[Mapping[str, Any]], changes: Sequence[Any]) -> bool:
    """Return True if the fabric has events to schedule for these links: a rate, a delay or a change to come."""
    ways = [link[way] for link in links for way in ("ab", "ba")]
    return bool(changes) or any(
        way.get("rate_bps") or way.get("delivery_trace") or way.get("delay_ps") or way.get("jitter") for way in ways
    )
