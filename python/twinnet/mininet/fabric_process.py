"""A fabric that runs: its lab process, the connections of its switches to controllers, and what can be asked of it."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from twinnet.control.targets import parse_target
from twinnet.errors import LabError
from twinnet.lab_process.process import LabProcess
from twinnet.mininet import outside
from twinnet.mininet.carried_groups import CarriedMessage, carry_over, messages_of
from twinnet.mininet.fabric_plan import BarePort, Plan, SwitchPlan
from twinnet.mininet.kernel import in_network_of
from twinnet.mininet.log import debug, warn
from twinnet.mininet.port_configuration import Change, SwitchPorts
from twinnet.mininet.tool_connection import OPENFLOW_13, ToolConnection
from twinnet.mininet.tool_doors import ToolDoors
from twinnet.mininet.virtual_time import on_virtual_clock, wait_for_a_round_moment

if TYPE_CHECKING:
    from twinnet.lab_process.pending_reply import PendingReply
    from twinnet.lab_process.requests import LabRequests
    from twinnet.mininet.link import Intf
    from twinnet.results.fidelity import FidelityRecord

__all__ = ["FabricProcess"]

_PATIENCE_S = 5.0
_SOL_PACKET, _PACKET_VNET_HDR = 263, 15
"""Of packet(7); the module `socket` has neither."""
_OFFERED_AT_ONCE = 64
"""The kernel permits so many descriptors on their way, and several times more."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
_COUNTED = re.compile(r"(duration|n_packets|n_bytes|idle_age|hard_age)=[^,\s]*,?\s*")
_USUAL_QUEUE: dict[str, Any] = {"kind": "fifo", "limit_frames": 1000}
_NO_VERSION = "no OpenFlow version in common"
"""What the fabric says where a controller has ended the talk for this."""
_TOLD: set[str] = set()
_UNSHAPED: dict[str, Any] = {
    "rate_bps": None,
    "framing": "none",
    "delay_ps": 0,
    "jitter": None,
    "reorder": False,
    "loss": None,
    "duplicate": 0.0,
    "corrupt": 0.0,
}


def _sends(intf: object) -> object:
    """The shaping that the interface has itself: behind a switch of the fabric its own line has it."""
    return getattr(intf, "shaping", None)


def _keep_silent(interface: str) -> None:
    """Have the kernel answer no ARP at `interface`, for it would do so for all addresses of its namespace: what comes
    in there is the fabric's, as the ports of Open vSwitch are its own."""
    with contextlib.suppress(OSError):
        Path(f"/proc/sys/net/ipv4/conf/{interface}/arp_ignore").write_text("8")


def _note(log: Path, line: str) -> None:
    """Add a line to a log, unless it is the last already: a fabric that was built anew connects again."""
    try:
        if log.exists() and log.read_text().endswith(line):
            return
        with log.open("a") as file:
            file.write(line)
    except OSError as refused:
        debug(f"{log}: {refused.strerror}\n")


class FabricProcess:
    """The lab process of `plan`; its switches begin with `flows`, lines by the switches' names, and with `groups`, and
    their ports with `configurations` (``OFPPC_*``), by the names of switches and interfaces."""

    def __init__(
        self,
        plan: Plan,
        flows: dict[str, list[str]],
        configurations: Mapping[tuple[str, str], int] | None = None,
        groups: Mapping[str, Sequence[CarriedMessage]] | None = None,
    ) -> None:
        self.spec: dict[str, Any] = plan.spec(flows)
        self._plan = plan
        self._ended = threading.Event()
        self._process = LabProcess(None)
        try:
            self._offer(plan)
            wait_for_a_round_moment()
            self.lab.start(network=self.spec, options={"interface": "auto"})
            self._configure_ports(configurations or {})
            self._carry_over(groups or {})
            self._attach_tunnels(plan)
            self._show(plan)
            outside.promote(self._process.pid)
        except BaseException:
            self._process.end(_PATIENCE_S)
            raise
        for node in self.spec["nodes"]:
            debug(f"*** {self.name}: {node['kind']} {node['name']} with {len(node['ports'])} ports\n")
        self._doors = ToolDoors(self.lab, self.spec["nodes"])
        self._first: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._awaited = 0
        for switch in plan.switches.values():
            for targets in [switch.controllers] if switch.in_turn else [[one] for one in switch.controllers]:
                if targets:
                    self._awaited += 1
                    threading.Thread(target=self._dial, args=(switch, targets), daemon=True).start()

    @property
    def lab(self) -> LabRequests:
        """The connection to the lab process."""
        return self._process.connection

    @property
    def name(self) -> str:
        """The name of the lab."""
        return self._process.name

    def _offer(self, plan: Plan) -> None:
        from twinnet import _core

        offered: deque[PendingReply[None]] = deque()
        links = {link[end]["node"]: link for link in self.spec["links"] for end in "ab"}
        for attached in plan.attached():
            debug(f"*** {self.name}: taking {attached.interface} for {attached.node}\n")
            with in_network_of(attached.process):
                _keep_silent(attached.interface)
                try:
                    packet, watch, index, mtu = _core.open_interface(attached.interface)
                except _core.CoreError as error:
                    name, message, remedy = error.args
                    raise LabError(message, remedy, name) from None
            # It may have been given another since the plan was made.
            link = links[attached.node]
            link["mtu"] = min(link["mtu"], mtu)
            given = (packet, watch)
            try:
                asked = self.lab.interface_offer_later(descriptors=given, node=attached.node, index=index, mtu=mtu)
                offered.append(asked)
            finally:
                os.close(packet)
                os.close(watch)
            if len(offered) > _OFFERED_AT_ONCE:
                offered.popleft().result()
        for asked in offered:
            asked.result()

    def _attach_tunnels(self, plan: Plan) -> None:
        """Give the tunnels of ports their sockets, in this machine; those that cannot be had are told, and carry
        nothing."""
        if not plan.tunnels():
            return
        from twinnet.lab.underlays import Underlays

        nodes = [node for node in self.spec["nodes"] if node["kind"] == "tunnel"]
        links = [link for link in self.spec["links"] if link["a"]["node"] in {node["name"] for node in nodes}]
        Underlays.of(nodes, links, lambda refused: warn(f"*** {refused}\n")).attach_to(self.lab)

    def _show(self, plan: Plan) -> None:
        """Have the interfaces at links between switches carry a copy of what the lines between them do, for captures
        and for the kernel's counters: it leaves by the sending end when it has arrived at the other."""
        ports: dict[int | None, dict[str, str]] = {}
        for pair in plan.inner_links():
            for (sender, leaves), (_, arrives) in (pair, pair[::-1]):
                ports.setdefault(sender.process, {})[arrives.name] = leaves.name
        for process, interfaces in ports.items():
            with in_network_of(process), socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as copies:
                copies.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
                indexes: dict[str, int] = {}
                for port, interface in interfaces.items():
                    _keep_silent(interface)
                    with contextlib.suppress(OSError):
                        indexes[port] = socket.if_nametoindex(interface)
                self.lab.ports_show(ports=indexes, descriptors=[copies.fileno()])

    def shown(self) -> tuple[int, int]:
        """Return how many frames between switches their interfaces have carried, and how many more there were."""
        told = self.lab.ports_shown()
        return told["frames"], told["left_out"]

    def _dial(self, switch: SwitchPlan, targets: Sequence[str]) -> None:
        """Keep `switch` connected to one of the controllers at `targets`: to the next when one is lost."""
        pause_s = _FIRST_PAUSE_S
        for attempt, text in enumerate(itertools.cycle(targets)):
            if self._ended.wait(pause_s if pause_s > _FIRST_PAUSE_S else 0):
                return
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            target = parse_target(text)
            pending = None
            try:
                with outside.connect(target.address, target.port) as sock:
                    given = [sock.fileno()]
                    pending = self.lab.controller_attach_later(switch=switch.name, target=text, descriptors=given)
                if attempt == 0:
                    self._first.put(switch.name)
                if switch.log is not None:
                    _note(switch.log, f"{text}: connected\n")
                ended = str(pending.result()["ended"])
                if _NO_VERSION in ended:
                    # Switches of one network speak the same, mostly: it is told once for a controller.
                    self._tell_once(f"{switch.name}: {text}: {ended}")
                else:
                    pause_s = 2 * _FIRST_PAUSE_S
            except (LabError, OSError):
                if attempt == 0 and pending is None:
                    self._first.put(None)
                if self.lab.closed:
                    return

    def _tell_once(self, said: str) -> None:
        why = said.partition(": ")[2]
        if why not in _TOLD:
            _TOLD.add(why)
            warn(f"*** {said}\n")

    def await_joined(self, patience_s: float) -> bool:
        """Wait until the switches whose controllers answered their first call have agreed on a version with these;
        return whether that took no longer than `patience_s`."""
        end_s = time.monotonic() + patience_s
        answered: set[str] = set()
        try:
            while self._awaited:
                name = self._first.get(timeout=max(0.0, end_s - time.monotonic()))
                self._awaited -= 1
                answered |= {name} if name is not None else set()
            if answered:
                waits = self.lab.controllers_wait_later(switches=sorted(answered))
                waits.result(max(0.0, end_s - time.monotonic()))
        except (LabError, TimeoutError, queue.Empty):
            self._awaited = 0
            return self.lab.closed
        return True

    def flows(self) -> dict[str, list[str]]:
        """Return the flows of all switches, as lines that add them."""
        found: dict[str, list[str]] = {}
        for node in self.spec["nodes"]:
            if node["kind"] == "switch":
                lines = self.lab.flows_dump(switch=node["name"])
                found[node["name"]] = [
                    _COUNTED.sub("", line).strip().replace(" actions=", ",actions=") for line in lines
                ]
        return found

    def protocols(self, switch: str) -> list[str]:
        """Return the versions of OpenFlow that `switch` speaks."""
        return next(node["protocols"] for node in self.spec["nodes"] if node["name"] == switch)

    def switch_ports(self, switch: str) -> SwitchPorts:
        """Return the ports of `switch`, whose configuration can be read and changed."""
        return SwitchPorts(self.lab, switch, self.protocols(switch))

    def groups(self) -> dict[str, list[CarriedMessage]]:
        """Return what makes the groups and meters of each switch anew."""
        found: dict[str, list[CarriedMessage]] = {}
        for node in self.spec["nodes"]:
            if node["kind"] == "switch" and "OpenFlow13" in node["protocols"]:
                told = self.lab.groups(switch=node["name"])
                if told["groups"] or told["meters"]:
                    with ToolConnection(self.lab, node["name"], OPENFLOW_13) as connection:
                        found[node["name"]] = messages_of(connection)
        return found

    def _carry_over(self, groups: Mapping[str, Sequence[CarriedMessage]]) -> None:
        for node in self.spec["nodes"]:
            if messages := groups.get(node["name"]):
                if "OpenFlow13" not in node["protocols"]:
                    warn(f"*** {node['name']} speaks OpenFlow10 only now, and has lost its groups and meters\n")
                    continue
                with ToolConnection(self.lab, node["name"], OPENFLOW_13) as connection:
                    carry_over(connection, messages)

    def configurations(self) -> dict[tuple[str, str], int]:
        """Return the configurations of ports that differ from the usual one, by switch and interface."""
        found: dict[tuple[str, str], int] = {}
        switches = [node for node in self.spec["nodes"] if node["kind"] == "switch" and node["ports"]]
        with contextlib.ExitStack() as talks:
            asked = [talks.enter_context(self.switch_ports(node["name"]).asked()) for node in switches]
            for node, ports in zip(switches, asked, strict=True):
                names = {port["number"]: port["name"] for port in node["ports"]}
                for number, config in ports.configurations().items():
                    if config and number in names:
                        found[node["name"], names[number]] = config
        return found

    def _configure_ports(self, configurations: Mapping[tuple[str, str], int]) -> None:
        for node in self.spec["nodes"]:
            wanted = {
                port["number"]: Change(config, config)
                for port in node["ports"]
                if node["kind"] == "switch" and (config := configurations.get((node["name"], port["name"]), 0))
            }
            if wanted:
                self.switch_ports(node["name"]).change(wanted)

    def connected(self, switch: str) -> bool:
        """Return whether `switch` has agreed on a version with a controller."""
        rows = self.lab.controllers()
        return any(row["switch"] == switch and row.get("version") for row in rows)

    def shape(self, plan: Plan, intf: Intf) -> None:
        """Have the line of `intf` follow its shaping."""
        for number, (at_b, at_a, sends, arrives) in enumerate(plan.links()):
            link = self.spec["links"][number]
            for sender, shaping, way, end in ((at_b, sends, "ba", "b"), (at_a, arrives, "ab", "a")):
                if sender is not intf or (way == "ab" and shaping is not _sends(sender)):
                    continue
                self.lab.link_set(
                    link=number, direction="ab" if way == "ab" else "ba", set={**_UNSHAPED, **shaping.direction()}
                )
                place = link[end]
                self.lab.queues_set(node=place["node"], port=place["port"], queue=shaping.queue or _USUAL_QUEUE)

    def take(self, plan: Plan, intf: Intf | BarePort) -> None:
        """Take the link between switches up or down that ends at `intf`, as `plan` has it."""
        for number, link in enumerate(plan.spec({})["links"]):
            ends = plan.links()[number][:2]
            if "up" in link and any(one is intf for one in ends):
                self.lab.link_set(link=number, set={"up": link["up"]})

    def follow_mtus(self, plan: Plan) -> None:
        """Have lines carry what their ends' MTUs are by now."""
        for number, (link, mtu) in enumerate(zip(self.spec["links"], plan.link_mtus(), strict=False)):
            if link["mtu"] != mtu:
                self.lab.link_set(link=number, set={"mtu": mtu})
                link["mtu"] = mtu

    def port_row(self, plan: Plan, intf: Intf | BarePort) -> dict[str, Any]:
        """Return the counters of the line that begins at `intf` and of the classes of its queue, in the form of the
        lab protocol."""
        for link, (at_b, at_a, _, _) in zip(self.spec["links"], plan.links(), strict=False):
            for sender, end in ((at_b, "b"), (at_a, "a")):
                if sender is intf:
                    node = next(node for node in self.spec["nodes"] if node["name"] == link[end]["node"])
                    port = node["ports"][link[end]["port"]]["name"]
                    return dict(next(row for row in self.lab.ports() if row["port"] == port))
        return {}

    def line_counters(self) -> Iterator[tuple[tuple[str, str], dict[str, int]]]:
        """Yield the interfaces at the sending and the receiving end of each line, with the line's counters."""
        rows = {row["port"]: row["counters"] for row in self.lab.ports()}
        nodes = {node["name"]: node for node in self.spec["nodes"]}
        for link, (at_b, at_a, _, _) in zip(self.spec["links"], self._plan.links(), strict=False):
            names = {"a": at_a.name if at_a is not None else "(outside)", "b": at_b.name}
            for end, far in ("ab", "ba"):
                port = nodes[link[end]["node"]]["ports"][link[end]["port"]]["name"]
                yield (names[end], names[far]), cast("dict[str, int]", rows[port])

    def record(self) -> FidelityRecord:
        """Return what the fabric measured of itself."""
        from twinnet.results.fidelity import FidelityRecord

        record = FidelityRecord.from_spec(self.lab.fidelity())
        if on_virtual_clock():
            # There nothing waits for a processor, and the guest has no counters for that.
            return replace(record, sources=dict.fromkeys(record.sources or {}, True))
        return record

    def set_queue(self, port: str, queue: dict[str, Any] | None) -> None:
        """Give the port of a switch of that interface's name another queue."""
        for node in self.spec["nodes"]:
            for index, one in enumerate(node["ports"]):
                if node["kind"] == "switch" and one["name"] == port:
                    wanted = queue or one["queue"] or _USUAL_QUEUE
                    self.lab.queues_set(node=node["name"], port=index, queue=wanted)

    def end(self, wait: bool = True) -> None:
        """End the lab process. With `wait` it is gone afterwards; otherwise it goes beside what this process does
        next: the kernel takes milliseconds to close the socket at each interface."""
        self._ended.set()
        self._doors.end()
        for node in self.spec["nodes"]:
            debug(f"*** {self.name}: {node['kind']} {node['name']} goes\n")
        if wait:
            self._process.end(_PATIENCE_S)
        else:
            threading.Thread(target=self._process.end, args=(_PATIENCE_S,), daemon=True).start()
