"""The fabric of a script's networks: one lab process that moves the frames of all its switches and shaped links.

The interfaces are virtual Ethernet pairs of the machine, so that every tool of Linux sees them. The fabric holds a
packet socket at each port of a switch, and at the inner ends of links between hosts that can be shaped. It is built
when the first switch or such link is there, and built anew when the topology changes; flows are carried over.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import zlib
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinnet.errors import TwinnetError
from twinnet.mininet import rtnetlink
from twinnet.mininet.advice import Advice
from twinnet.mininet.bare_ports import BarePort, OwnPort, VirtualPort
from twinnet.mininet.fabric_plan import Line, Plan, SwitchPlan
from twinnet.mininet.fabric_process import FabricProcess
from twinnet.mininet.interface_watch import InterfaceState, InterfaceWatch
from twinnet.mininet.kernel import in_network_of
from twinnet.mininet.log import debug
from twinnet.mininet.port_configuration import Change, configuration_text
from twinnet.mininet.tool_connection import ToolConnection
from twinnet.mininet.tool_doors import RUN_VARIABLE
from twinnet.ovsdb.qos_rows import Refused

if TYPE_CHECKING:
    from twinnet.lab_process.replies import GroupsReply, LearntRow
    from twinnet.mininet.base_node import Node
    from twinnet.mininet.link import Intf, Link
    from twinnet.results.fidelity import FidelityRecord

__all__ = ["FABRIC", "Fabric", "Wire", "is_there"]

_SOON_S = 0.05
"""A change that no command waits for takes effect after so long, so that several are made together."""
_LONGEST_MTU = 65_535
"""Of the inner ends of wires: their lines go by the MTUs of the hosts' interfaces."""
_NO_IPV6 = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
"""The kernel would speak at the inner ends by itself."""
_MAC_TEXT = len("00:00:00:00:00:00")
_OWN_ADDRESSES = "0200"
"""The hardware addresses of switches' own interfaces begin so, and go on by the name: the same each time."""
_JOINING_S = 5.0
"""Switches whose controllers answer have so long to agree with them, once: a controller may stay silent."""


@dataclass
class Wire:
    """A link between hosts that can be shaped.

    Parameters
    ----------
    link
        Its link.
    inner
        The names of the inner ends, in the namespace of wires.
    """

    link: Link
    inner: tuple[str, str]


@dataclass
class _State:
    switches: dict[str, SwitchPlan] = field(default_factory=dict[str, SwitchPlan])
    queues: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    interfaces: list[Intf] = field(default_factory=list["Intf"])
    wires: list[Wire] = field(default_factory=list[Wire])
    down: set[str] = field(default_factory=set[str])


class Fabric:
    """The fabric of this process; the module's `FABRIC` is the only one.

    Attributes
    ----------
    records
        What each fabric that has ended measured of itself, of those that moved frames.
    line_counts
        What lines carried until then, in the counters of the lab protocol, by the interfaces at the sending and the
        receiving end.
    shown
        How many frames between switches their interfaces carried until then (``shown``), and how many more there were
        (``left out``).
    """

    def __init__(self) -> None:
        self.advice: Advice = Advice()
        self._state = _State()
        self._process: FabricProcess | None = None
        self._changed = False
        self._in_transaction = False
        self._patience_s = _JOINING_S
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        self._owner = os.getpid()
        self._wires_made = 0
        self._hidden: int | None = None
        self._watch = InterfaceWatch(self._hear)
        self._seen: dict[str, InterfaceState] = {}
        self._own: dict[str, OwnPort] = {}
        self._standing: dict[str, str] = {}
        self.records: list[FidelityRecord] = []
        self.shown: Counter[str] = Counter()
        self.line_counts: dict[tuple[str, str], Counter[str]] = {}

    @property
    def process(self) -> FabricProcess | None:
        """The fabric as it runs, after all changes have taken effect."""
        self.settle()
        return self._process

    def start_switch(self, plan: SwitchPlan) -> None:
        """Have a switch forward."""
        with self._lock:
            self._state.switches[plan.name] = plan
            if plan.with_own and os.getpid() == self._owner:
                plan.own = self._own_port(plan.name)
        self.topology_changed()

    def _own_port(self, name: str, outer: int | None = None) -> OwnPort | None:
        """The own port of the switch `name`, with an interface of that name; none where another one has it."""
        if name in self._own:
            return self._own[name]
        if RUN_VARIABLE not in os.environ:
            # Outside of a script's machine the names belong to somebody else.
            return None
        self._wires_made += 1
        port = OwnPort(name, inner=f"own{self._wires_made}", process=self._hidden_namespace(), outer=outer)
        address = f"{_OWN_ADDRESSES}{zlib.crc32(name.encode()):08x}"
        try:
            rtnetlink.create_pair(port.inner, name, None, address, port.process, outer, mtu1=_LONGEST_MTU, up1=True)
        except OSError as refused:
            debug(f"*** there is no interface {name}: {refused.strerror}\n")
            return None
        self._own[name] = port
        return port

    def internal_port(self, name: str, plan: SwitchPlan) -> OwnPort | BarePort:
        """Return a port of type internal: with an interface `name` where `plan` is. Where there is an interface of that
        name, it is that one."""
        if os.getpid() != self._owner:
            return BarePort(name)
        with self._lock:
            port = self._own_port(name, plan.process)
            if port is None:
                return BarePort(name)
            # Whoever makes it is to use it: no frame is to wait for the fabric to be built anew.
            port.joined = True
            return port

    def _delete_own(self) -> None:
        """Delete the interfaces that the fabric has made for ports that are gone."""
        ports = [port for plan in self._state.switches.values() for port in plan.every_port().values()]
        kept = {port.name for port in ports if isinstance(port, OwnPort)}
        gone = [self._own.pop(name) for name in list(self._own) if name not in kept]
        with contextlib.suppress(OSError):
            rtnetlink.delete_together([port.name for port in gone if port.outer is None])
        for port in (one for one in gone if one.outer is not None):
            with contextlib.suppress(OSError), in_network_of(port.outer):
                rtnetlink.delete_together([port.name])

    def stop_switch(self, name: str) -> None:
        """Have a switch no longer forward."""
        with self._lock:
            if self._state.switches.pop(name, None) is None:
                return
        self.topology_changed()

    def switch(self, name: str) -> SwitchPlan | None:
        """Return the switch `name`, if it forwards."""
        return self._state.switches.get(name)

    def switches(self) -> list[SwitchPlan]:
        """Return the switches that forward."""
        return list(self._state.switches.values())

    @property
    def queues(self) -> dict[str, dict[str, Any]]:
        """The queues that ports have been given by ``ovs-vsctl``, by the interfaces' names."""
        return self._state.queues

    def interface(self, name: str) -> Intf | BarePort:
        """Return the interface `name` of a node, or one of the machine."""
        return next((intf for intf in self._state.interfaces if intf.name == name), None) or BarePort(name)

    def line_end(self, name: str) -> Intf | None:
        """Return the interface `name` of a node, if a line of the fabric begins there."""
        for intf in self._state.interfaces:
            if intf.name == name and intf.link is not None:
                ends = intf.link.ends()
                if any(end.node.is_switch for end in ends) or any(wire.link is intf.link for wire in self._state.wires):
                    return intf
        return None

    def counters(self, intf: Intf | BarePort) -> dict[str, int]:
        """Return the counters of the line that begins at `intf`, in the form of the lab protocol; none where it does
        not run."""
        process = self.process
        return dict(process.port_row(self._plan(), intf).get("counters", {})) if process is not None else {}

    def classes(self, intf: Intf | BarePort) -> list[dict[str, Any]]:
        """Return the counters of the classes of the queue at `intf`, in the form of the lab protocol."""
        process = self.process
        return process.port_row(self._plan(), intf).get("classes", []) if process is not None else []

    def is_connected(self, switch: str) -> bool:
        """Return whether `switch` has agreed on a version with a controller."""
        process = self.process
        return process is not None and process.connected(switch)

    def set_queue(self, port: str, queue: dict[str, Any] | None) -> None:
        """Give a port of a switch the queue `queue` (of the lab protocol), or that of its shaping."""
        with self._lock:
            if queue is None:
                self._state.queues.pop(port, None)
            else:
                self._state.queues[port] = queue
            if self._process is not None and not self._changed and not self._in_transaction:
                self._process.set_queue(port, queue)

    @contextlib.contextmanager
    def transaction(self) -> Generator[None]:
        """Have what is done within take effect together at the end, or not at all where that raises an exception."""
        with self._lock:
            state, process, changed = self._state, self._process, self._changed
            switches, queues = dict(state.switches), dict(state.queues)
            held = {name: plan.held() for name, plan in switches.items()}
            self._in_transaction = True
            try:
                yield
                self._in_transaction = False
                self._apply_queues(queues)
            except BaseException:
                state.switches, state.queues = switches, queues
                for name, plan in switches.items():
                    plan.restore(held[name])
                self._delete_own()
                # Who asked on the way for what the fabric counts has had a part of it take effect.
                self._changed = changed or self._process is not process
                if self._timer is not None and not self._changed:
                    self._timer.cancel()
                    self._timer = None
                raise
            finally:
                self._in_transaction = False

    def _apply_queues(self, before: dict[str, dict[str, Any]]) -> None:
        """Have the fabric as it runs follow the queues that are not as they were."""
        now = self._state.queues
        if self._process is not None and not self._changed:
            for port in [one for one in {**before, **now} if before.get(one) != now.get(one)]:
                self._process.set_queue(port, now.get(port))

    def make_wire(self, link: Link, one: tuple[str, str | None, Node], other: tuple[str, str | None, Node]) -> None:
        """Join two hosts by a line: each a name, a hardware address and a node."""
        hidden = self._hidden_namespace()
        inner: list[str] = []
        for name, address, node in (one, other):
            self._wires_made += 1
            inner.append(f"wire{self._wires_made}")
            process = node.pid if node.inNamespace else None
            try:
                rtnetlink.create_pair(inner[-1], name, None, address, hidden, process, mtu1=_LONGEST_MTU, up1=True)
            except OSError as refused:
                raise Exception(f"Error creating interface {name}: {refused.strerror} ") from None
        with self._lock:
            self._state.wires.append(Wire(link, (inner[0], inner[1])))

    def _hidden_namespace(self) -> int:
        """The process in whose network namespace the inner ends of wires are: not one that scripts see."""
        if self._hidden is None:
            from twinnet.mininet.execution import start_process

            self._hidden = start_process(["mnexec", "-cdn", "sleep", "infinity"]).pid
            # It is in its namespace when it has become its program.
            while os.readlink(f"/proc/{self._hidden}/exe") == os.readlink("/proc/self/exe"):  # noqa: PTH115
                os.sched_yield()
            with in_network_of(self._hidden), contextlib.suppress(OSError):
                _NO_IPV6.write_text("1")
        return self._hidden

    def leave(self, switches: Iterable[str], links: Sequence[Link]) -> list[str]:
        """Take switches and links out, and have that take effect; return the names of the interfaces that the fabric
        has made for these switches, which nobody needs any more."""
        gone = {id(link) for link in links}
        with self._lock:
            own: list[str] = []
            for name in switches:
                plan = self._state.switches.pop(name, None)
                if plan is None:
                    continue
                self._changed = True
                for port in plan.every_port().values():
                    if isinstance(port, OwnPort) and port.outer is None and self._own.pop(port.name, None):
                        own.append(port.name)
            kept = [wire for wire in self._state.wires if id(wire.link) not in gone]
            self._changed |= len(kept) < len(self._state.wires)
            self._state.wires = kept
            ends = {id(intf) for link in links for intf in link.ends()}
            self._state.interfaces = [intf for intf in self._state.interfaces if id(intf) not in ends]
        self.settle()
        return own

    def link_added(self, link: Link) -> None:
        """A link was made: what it joins may be part of the fabric."""
        with self._lock:
            self._state.interfaces += link.ends()
            is_ours = bool(self._state.switches) or any(wire.link is link for wire in self._state.wires)
        if is_ours:
            self.topology_changed()

    def link_deleted(self, link: Link) -> None:
        """A link is gone."""
        with self._lock:
            self._state.wires = [wire for wire in self._state.wires if wire.link is not link]
            self._state.interfaces = [intf for intf in self._state.interfaces if intf not in link.ends()]
        self.topology_changed()

    def topology_changed(self) -> None:
        """Have the fabric built anew, soon or before the next command."""
        if self._process is None and not self._state.switches and not self._state.wires:
            return
        with self._lock:
            self._changed = True
            if self._timer is None and os.getpid() == self._owner:
                self._timer = threading.Timer(_SOON_S, self.settle)
                self._timer.daemon = True
                self._timer.start()

    def shaping_changed(self, intf: Intf) -> None:
        """Have the line of `intf` follow its shaping, while it runs."""
        with self._lock:
            if self._process is not None and not self._changed:
                self._process.shape(self._plan(), intf)

    def taken(self, intf: Intf | BarePort, up: bool) -> None:
        """An interface was taken up or down: between switches of the fabric its link follows."""
        with self._lock:
            if (intf.name not in self._state.down) == up:
                return
            (self._state.down.discard if up else self._state.down.add)(intf.name)
            if self._process is not None and not self._changed:
                self._process.take(self._plan(), intf)

    def follow_interfaces(self) -> None:
        """Have lines follow the MTUs of their interfaces, and links between switches whether these are up, as any
        command has set them."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            if not self._watch.read():
                return
            before, self._seen = self._seen, self._states()
            for name, state in self._seen.items():
                if name in before and before[name].up != state.up:
                    self.taken(self.interface(name), state.up)
            self._join_own()
            if self._process is not None and not self._changed:
                self._process.follow_mtus(self._plan())

    def _join_own(self) -> None:
        """Make the interfaces of switches that were taken up links of theirs."""
        for port in self._own.values():
            if not port.joined and port.name in self._seen and self._seen[port.name].up:
                port.joined = True
                self.topology_changed()

    def _hear(self) -> None:
        # A fabric that has failed is told where it is asked for something.
        with contextlib.suppress(TwinnetError):
            self.follow_interfaces()

    def _states(self) -> dict[str, InterfaceState]:
        """How the interfaces at the ends of lines stand, by their names."""
        places = [
            (port.outer if isinstance(port, OwnPort) else plan.process, port.name)
            for plan in self._state.switches.values()
            for port in plan.every_port().values()
        ]
        for intf in (end for wire in self._state.wires if hasattr(wire.link, "intf2") for end in wire.link.ends()):
            places.append((intf.node.pid if intf.node.inNamespace else None, intf.name))
        self._watch.follow({process for process, _ in places})
        found = ((name, self._watch.state(process, name)) for process, name in places)
        return {name: state for name, state in found if state is not None}

    def settle(self) -> None:
        """Have all changes take effect: switches have joined the controllers that answer, too."""
        if os.getpid() != self._owner:
            return
        self.follow_interfaces()
        self._build()
        process = self._process
        if process is not None and not process.await_joined(self._patience_s):
            self._patience_s = 0

    def _build(self) -> None:
        if not self._changed:
            return
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if not self._changed:
                return
            self._changed = False
            self._watch.read()
            self._seen = self._states()
            plan = self._plan()
            flows = self._process.flows() if self._process is not None else {}
            # A switch that has a controller now, or has none any more, begins anew.
            flows = {name: held for name, held in flows.items() if self._stands_as_it_did(name)}
            self._standing = {name: plan.standing for name, plan in self._state.switches.items()}
            configurations = self._process.configurations() if self._process is not None else {}
            groups = self._process.groups() if self._process is not None else {}
            if self._process is not None:
                self._keep_record(self._process)
                # Two fabrics at the same interfaces would both forward.
                self._process.end(wait=bool(plan.switches or plan.lines))
                self._process = None
            self._delete_own()
            if plan.switches or plan.lines:
                debug(f"*** building the fabric: {len(plan.switches)} switches, {len(plan.lines)} lines\n")
                self._process = FabricProcess(plan, flows, configurations, groups)

    def _stands_as_it_did(self, name: str) -> bool:
        plan = self._state.switches.get(name)
        return plan is not None and plan.standing == self._standing.get(name)

    def _keep_record(self, process: FabricProcess) -> None:
        with contextlib.suppress(TwinnetError):
            record = process.record()
            if record.handed_over:
                self.records.append(record)
            self.shown.update(dict(zip(("shown", "left out"), process.shown(), strict=True)))
            for ends, counters in process.line_counters():
                self.line_counts.setdefault(ends, Counter()).update(counters)

    def learnt(self, switch: str) -> list[LearntRow]:
        """Return the addresses that `switch` has learnt."""
        process = self.process
        return process.lab.learnt(switch=switch) if process is not None else []

    def forget_learnt(self, switch: str) -> None:
        """Have `switch` forget the addresses that it has learnt."""
        if (process := self.process) is not None:
            process.lab.learnt_forget(switch=switch)

    def port_configurations(self, switch: str) -> dict[int, int]:
        """Return the configurations (``OFPPC_*``) of the ports of `switch`, by their numbers."""
        process = self.process
        return process.switch_ports(switch).read() if process is not None else {}

    def configure_port(self, switch: str, number: int, change: Change) -> None:
        """Change the configuration of a port of `switch`; raises `Refused` for what its versions do not have."""
        if (process := self.process) is None:
            return
        ports = process.switch_ports(switch)
        if change.mask & ~ports.known:
            said = configuration_text(change.mask)
            raise Refused(f"OpenFlow 1.3 has no {said}, and {switch} speaks no other version; give it OpenFlow10")
        ports.change({number: change})

    def port_counts(self, plan: SwitchPlan, number: int) -> dict[str, int]:
        """Return what has gone through a port of `plan`: frames and bytes both ways, and what was dropped."""
        names = ("frames", "link_bytes", "received_frames", "received_bytes")
        return dict.fromkeys(names, 0) | self.counters(plan.every_port()[number])

    def protocols(self, switch: str) -> list[str]:
        """Return the versions of OpenFlow that `switch` speaks."""
        return self._running(switch).protocols(switch)

    def connection(self, switch: str, version: int) -> ToolConnection:
        """Return a connection to `switch`, as a tool has one, in the version `version` of the wire."""
        return ToolConnection(self._running(switch).lab, switch, version)

    def groups(self, switch: str) -> GroupsReply:
        """Return the groups and meters of `switch` with their counters."""
        return self._running(switch).lab.groups(switch=switch)

    def _running(self, switch: str) -> FabricProcess:
        process = self.process
        if process is None:
            raise Refused(f"{switch} does not run")
        return process

    def flow_lines(self, switch: str) -> list[str]:
        """Return the flows of `switch` with their counters, as ``ovs-ofctl dump-flows`` prints them."""
        process = self.process
        return process.lab.flows_dump(switch=switch) if process is not None else []

    def add_flows(self, switch: str, flows: Sequence[str]) -> None:
        """Add flows to `switch`: all, or none when one of them is wrong."""
        if (process := self.process) is not None:
            process.lab.flows_add(switch=switch, flows=flows)

    def delete_flows(self, switch: str, match: str) -> None:
        """Delete the flows of `switch` that `match` covers; all when it is empty."""
        if (process := self.process) is not None:
            process.lab.flows_delete(switch=switch, match=match)

    def flows(self, switch: str) -> list[str]:
        """Return the flows of `switch`, as lines that add them."""
        process = self.process
        return process.flows().get(switch, []) if process is not None else []

    def is_down(self, intf: Intf | BarePort) -> bool:
        """Return whether the interface was taken down."""
        if isinstance(intf, OwnPort):
            state = self._seen.get(intf.name)
            return state is None or not state.up
        return intf.name in self._state.down

    def tree_role(self, port: Intf | BarePort) -> str:
        """Return what the spanning tree makes of a port: ``root``, ``designated``, ``alternate`` or ``disabled``."""
        return "disabled" if self.is_down(port) else self._plan().tree_roles().get(id(port), "designated")

    def _plan(self) -> Plan:
        switches = {
            plan.name: replace(
                plan,
                ports={number: intf for number, intf in plan.ports.items() if is_there(intf, plan)},
                own=plan.own if plan.own is not None and is_there(plan.own, plan) else None,
            )
            for plan in self._state.switches.values()
        }
        # A link that is being made has its wire before its interfaces; it is part of the fabric from `link_added` on.
        wires = [wire for wire in self._state.wires if wire.link.is_made()]
        lines = [Line(wire.inner, wire.link.ends(), self._hidden or 0) for wire in wires]
        mtus = {name: state.mtu for name, state in self._seen.items()}
        macs = {name: state.mac for name, state in self._seen.items() if len(state.mac) == _MAC_TEXT}
        return Plan(switches, lines, self._state.queues, frozenset(self._state.down), mtus, macs)

    def end(self) -> None:
        """End the fabric: no switch forwards any more."""
        with self._lock:
            self._state = _State()
            self._changed = self._process is not None
        self.settle()


def is_there(intf: Intf | BarePort, plan: SwitchPlan) -> bool:
    """Return whether the interface of a port of `plan` is there: a script may have deleted it by itself."""
    if isinstance(intf, VirtualPort):
        return True
    with in_network_of(plan.process):
        try:
            socket.if_nametoindex(intf.name)
        except OSError:
            return False
    return True


FABRIC = Fabric()
"""The fabric of this process."""
