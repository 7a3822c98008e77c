"""A script's network as a network file of twinnet: hosts, routers, switches, links and controllers.

What a script did by commands in nodes is in the file as far as it shows in addresses, routes and forwarding. What the
file cannot say is said, line by line, at its head.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

from twinnet.errors import BadName
from twinnet.mininet.controllers import RemoteController
from twinnet.mininet.fabric import FABRIC
from twinnet.mininet.shaping import Shaping
from twinnet.mininet.switch_columns import vlans_of
from twinnet.mininet.switches import Switch
from twinnet.network import addressing
from twinnet.units import format_duration, format_rate, format_size

if TYPE_CHECKING:
    from twinnet.mininet.base_node import Node
    from twinnet.mininet.link import Intf
    from twinnet.mininet.net import Mininet

__all__ = ["ExportedNetwork"]

_STATE = (
    "ip -j addr",
    "ip -j route",
    "ip -j -6 route",
    "cat /proc/sys/net/ipv4/ip_forward",
    "ip rule; ip -6 rule",
    "iptables-save; ip6tables-save; iptables-legacy-save; ip6tables-legacy-save",
    "nft list ruleset",
)
_BETWEEN = "\n== of the next ==\n"
_RULES_OF_LINUX = ("from all lookup local", "from all lookup main", "from all lookup default")
_LONGEST_NAME = 10
_PROTOCOLS = ("OpenFlow10", "OpenFlow13")
_UNITS = {"_bps": format_rate, "_bytes": format_size, "_ps": format_duration}


class ExportedNetwork:
    """The description of the network `net` as it is now.

    Attributes
    ----------
    content
        The keys of a network file.
    notes
        What of the network is not in it, or differs.
    """

    def __init__(self, net: Mininet) -> None:
        self.content: dict[str, Any] = {}
        self.notes: list[str] = []
        self._names: dict[int, str] = {}
        self._state: dict[int, _HostState] = {}
        self._dpids: dict[int, str] = {}
        ends = [end for link in net.links for end in link.ends()]
        # The addresses of a host are those of its first link; reversed, so that the first of several stays.
        self._first: dict[int, Intf] = {id(end.node): end for end in reversed(ends)}
        for node in [*net.hosts, *net.switches]:
            self._name(node)
        for host in net.hosts:
            self._add_host(host)
        for switch in net.switches:
            self._add_switch(switch)
        self._add_controller(net)
        links: list[dict[str, Any]] = []
        for link in net.links:
            found = self._link(*link.ends())
            if found is not None:
                links.append(found)
        links += self._outer_interfaces(net)
        pairs: set[frozenset[str]] = set()
        for link in links:
            pair = frozenset(link["between"])
            if pair in pairs:
                link["parallel"] = True
            pairs.add(pair)
        self.content["links"] = links

    def text(self, head: str) -> str:
        """Return the file, with `head` and the notes as comments before it."""
        lines = [head, *(f"- {note}" for note in self.notes)]
        body = yaml.safe_dump(self.content, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
        return "".join(f"# {line}\n" for line in lines) + body

    def _name(self, node: Node) -> None:
        """Choose a name that network files allow."""
        taken = set(self._names.values())
        name = node.name
        try:
            addressing.checked_name(name)
        except BadName:
            name = re.sub(r"[^A-Za-z0-9_-]", "-", name)
            name = (name if name[:1].isalpha() else "n" + name)[:_LONGEST_NAME]
        count = 1
        base = name
        while name in taken:
            count += 1
            name = base[: _LONGEST_NAME - len(str(count))] + str(count)
        if name != node.name:
            self.notes.append(
                f"{node.name} is called {name} here: names are letters, digits, - and _, at most {_LONGEST_NAME}"
            )
        self._names[id(node)] = name

    def _add_host(self, host: Node) -> None:
        state = self._state[id(host)] = _HostState(host)
        name = self._names[id(host)]
        self.notes += [f"{name}: {note}" for note in state.notes]
        routes = [{"to": to, "via": via} for to, via in state.routes]
        if state.forwards:
            self.content.setdefault("routers", {})[name] = {"routes": routes} if routes else {}
            return
        described: dict[str, Any] = {"ip": False, "ip6": False}
        if (first := self._first.get(id(host))) is not None:
            addresses = state.addresses(first)
            for key, version in (("ip", "."), ("ip6", ":")):
                described[key] = next((one for one in addresses if version in one), False)
            if mac := state.macs.get(first.name, first.MAC()):
                described["mac"] = mac
        gateway = next((via for to, via in state.routes if to == "default"), None)
        if gateway is not None:
            described["gateway"] = gateway
        if others := [route for route in routes if route["to"] != "default"]:
            described["routes"] = others
        self.content.setdefault("hosts", {})[name] = described

    def _add_switch(self, switch: Switch) -> None:
        plan = FABRIC.switch(switch.name)
        dpid = plan.dpid if plan is not None else int(switch.dpid, 16) or 1
        if dpid in self._dpids:
            free = next(one for one in itertools.count(1) if one not in self._dpids)
            note = (
                f"{switch.name} has the datapath ID {dpid:016x} of {self._dpids[dpid]} in the script, here {free:016x}"
            )
            self.notes.append(f"{note}, for a network has each once")
            dpid = free
        self._dpids[dpid] = switch.name
        described: dict[str, Any] = {"dpid": f"{dpid:016x}"}
        if plan is not None:
            described["fail_mode"] = plan.fail_mode
            spoken = [one for one in plan.protocols if one in _PROTOCOLS]
            if spoken:
                described["protocols"] = spoken
            if plan.fail_mode == "secure" and not plan.controllers and (flows := FABRIC.flows(switch.name)):
                described["flows"] = flows
            vlans = {number: vlans_of(plan.vlans.get(intf.name, {})) for number, intf in sorted(plan.ports.items())}
            if any(vlans.values()):
                described["vlans"] = {number: one for number, one in vlans.items() if one is not None}
            if plan.spanning_tree:
                described["spanning_tree"] = True
            if plan.mirrors:
                described["mirrors"] = [{key: value for key, value in one.items() if value} for one in plan.mirrors]
        self.content.setdefault("switches", {})[self._names[id(switch)]] = described

    def _add_controller(self, net: Mininet) -> None:
        """Name the controllers: a program that listens by its place, ours as the app in the lab's process."""
        plans = {switch: FABRIC.switch(switch.name) for switch in net.switches}
        led = [switch for switch, plan in plans.items() if plan is not None and plan.controllers]
        if not led:
            return
        commands = {one.command.split()[0].rpartition("/")[2] for one in net.controllers if one.port and one.command}
        remote = [one for one in net.controllers if isinstance(one, RemoteController)]
        if not remote and commands == {"controller"} and len(led) < len(plans):
            for switch in led:
                name = self._names[id(switch)]
                self.content["switches"][name]["fail_mode"] = "standalone"
                self.notes.append(f"{name} learns by itself, without the script's learning controller")
            return
        if not remote and commands == {"controller"}:
            self.content["controller"] = {"app": "learning"}
            return
        for one in net.controllers:
            if one not in remote:
                self.notes.append(f"the controller {one.name} was started by the script: {one.command}; start it first")
        for switch in led:
            plan = plans[switch]
            assert plan is not None
            self.content["switches"][self._names[id(switch)]]["controllers"] = list(plan.controllers)

    def _link(self, first: Intf, second: Intf) -> dict[str, Any] | None:
        ends = (first, second)
        if first.node is second.node:
            self.notes.append(f"the link of {first.node.name} to itself is left out")
            return None
        for one in ends:
            if id(one.node) not in self._names:
                self.notes.append(f"the link {first}<->{second} is left out: {one.node.name} is no host or switch")
                return None
        described: dict[str, Any] = {"between": [self._names[id(one.node)] for one in ends]}
        described |= self._directions(first.shaping, second.shaping)
        for one, end in zip(ends, "ab", strict=True):
            described |= self._end(one, end)
        if FABRIC.is_down(first) or FABRIC.is_down(second):
            described["up"] = False
        return described

    def _directions(self, first: Shaping, second: Shaping) -> dict[str, Any]:
        there, back = _settings(first.direction()), _settings(second.direction())
        if there == back:
            return there if len(there) > 1 else {}
        both = {key: value for key, value in there.items() if back.get(key) == value}
        ways = (("a_to_b", there), ("b_to_a", back))
        return both | {name: rest for name, way in ways if (rest := {k: v for k, v in way.items() if k not in both})}

    def _end(self, intf: Intf, end: str) -> dict[str, Any]:
        node = intf.node
        said: dict[str, Any] = {}
        queue = FABRIC.queues.get(intf.name, intf.shaping.queue)
        if queue is not None:
            said[f"queue_{end}"] = _settings(queue)
        if isinstance(node, Switch):
            if number := node.ports.get(intf):
                said[f"port_{end}"] = number
            return said
        state = self._state[id(node)]
        if state.forwards or self._first[id(node)] is not intf:
            said[f"address_{end}"] = state.addresses(intf)
        return said

    def _outer_interfaces(self, net: Mininet) -> list[dict[str, Any]]:
        """Interfaces of the machine itself that are ports of switches."""
        found: list[dict[str, Any]] = []
        for switch in net.switches:
            for number, intf in switch.data_ports().items():
                if intf.link is None:
                    self.content.setdefault("interfaces", {})[intf.name] = {"interface": intf.name}
                    ends = [self._names[id(switch)], intf.name]
                    found.append({"between": ends, "port_a": number})
        return found


class _HostState:
    """The addresses, routes and forwarding of a host, read in its namespace."""

    def __init__(self, host: Node) -> None:
        self.notes: list[str] = []
        self.routes: list[tuple[str, str]] = []
        self.macs: dict[str, str] = {}
        self.forwards = False
        self._found: dict[str, list[str]] = {}
        if not host.inNamespace:
            self.notes.append("in the script it has no network namespace of its own")
            self._found = {intf.name: [f"{intf.IP()}/{intf.prefixLen}"] for intf in host.intfList() if intf.IP()}
            return
        asked = f"; printf '{_BETWEEN}'; ".join(f"{{ {commands}; }} 2>/dev/null" for commands in _STATE)
        said, _, _ = host.pexec(["sh", "-c", asked])
        addresses, routes, routes6, forwarding, rules, filters, ruleset = said.split(_BETWEEN)
        for row in json.loads(addresses):
            self.macs[row["ifname"]] = row.get("address", "")
            own = [one for one in row["addr_info"] if one["scope"] == "global"]
            self._found[row["ifname"]] = [f"{one['local']}/{one['prefixlen']}" for one in own]
        for row in [*json.loads(routes or "[]"), *json.loads(routes6 or "[]")]:
            to, via = row["dst"], row.get("gateway")
            if via is not None:
                self.routes.append(("::/0" if to == "default" and ":" in via else to, via))
            elif row.get("protocol") not in ("kernel", "ra"):
                self.notes.append(f"the route to {to} by {row.get('dev')} has no next hop and is left out")
        self._leave_out(rules, filters, ruleset)
        self.forwards = forwarding.strip() == "1" and len(host.intfList()) > 1
        if getattr(host, "privateDirs", None):
            self.notes.append("it has folders of its own in the script")

    def _leave_out(self, rules: str, filters: str, ruleset: str) -> None:
        """Note what decides over packets here and has no word in a network file: as ``ip rule``, ``iptables-save`` and
        ``nft list ruleset`` print it."""
        own = [line.partition(":")[2].strip() for line in rules.splitlines()]
        self.notes += [f"the rule of routing {rule!r} is left out" for rule in own if rule not in _RULES_OF_LINUX]
        filtered = [line for line in filters.splitlines() if line.startswith("-A ")]
        self.notes += [f"the rule of iptables {line!r} is left out" for line in filtered]
        if ruleset.strip() and not filtered:
            self.notes.append("its rules of nft are left out")

    def addresses(self, intf: Intf) -> list[str]:
        """Return the addresses of an interface, with prefix lengths."""
        return self._found.get(intf.name, [])


def _settings(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of the lab protocol as network files have them: with units."""
    said: dict[str, Any] = {}
    for key, value in spec.items():
        unit = next((end for end in _UNITS if key.endswith(end)), None)
        if value is None:
            continue
        if unit is not None:
            said[key.removesuffix(unit)] = _UNITS[unit](value)
        elif key == "loss":
            share: float = value if isinstance(value, float) else value["probability"]
            said[key] = f"{share * 100:.10g} %"
        elif key == "jitter":
            said[key] = format_duration(value["scale_ps"])
        elif key == "queues":
            said[key] = {int(number): _settings(queue) for number, queue in value.items()}
        elif key == "queue":
            said[key] = _settings(value)
        elif key in ("bands", "classes"):
            said[key] = [_settings(one) for one in value]
        else:
            said[key] = value
    return said
