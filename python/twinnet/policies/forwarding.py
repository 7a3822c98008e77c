"""The rules by which switches forward, apart from classes: fewest prefixes of hardware addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinnet.policies.paths import Attachment, Paths
from twinnet.policies.prefixes import Prefix, fewest_prefixes

__all__ = ["Routes", "forwarding_rules", "route_rules"]

_GROUPS = "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00"
_GROUP_PRIORITY, _PREFIX_PRIORITY, _DEFAULT_PRIORITY = 3, 2, 1
_MAC_BITS = 48

Routes = Mapping[tuple[str, str], Sequence[str]]
"""By source and destination host: the switches of the path, from the source's to the destination's."""


def forwarding_rules(paths: Paths) -> dict[str, list[str]]:
    """Return for each switch the rules that forward every frame on a shortest path, without table and prefix.

    Frames for groups go along a spanning tree. Where the switches are a tree, the port behind which most hosts are
    takes what no prefix covers; a frame for an address that nobody has then ends where it would go back. Where they
    have loops, prefixes cover known addresses only, or such a frame would circle.
    """
    known = sorted(one.mac for one in paths.attachments)
    at_switch: dict[str, list[Attachment]] = {}
    for one in paths.attachments:
        at_switch.setdefault(one.switch, []).append(one)
    groups = paths.tree_ports()
    ways = [(target, paths.towards(target), [one.mac for one in hosts]) for target, hosts in at_switch.items()]
    rules: dict[str, list[str]] = {}
    for name in paths.switches:
        members: dict[int, list[int]] = {}
        for target, towards, macs in ways:
            if target != name:
                members.setdefault(towards[name], []).extend(macs)
        # A default must lead to another switch, or a host would get what is meant for nobody.
        most = min(members, key=lambda port: (-len(members[port]), port)) if paths.is_tree and members else None
        if most is not None:
            del members[most]
        for one in at_switch.get(name, ()):
            members.setdefault(one.port, []).append(one.mac)
        lines = [f"priority={_GROUP_PRIORITY},{_GROUPS},actions={_outputs(groups[name])}"]
        for port, macs in sorted(members.items()):
            prefixes = fewest_prefixes(sorted(macs), known, _MAC_BITS, exact=not paths.is_tree)
            lines += [f"priority={_PREFIX_PRIORITY},{_mac_condition(one)},actions=output:{port}" for one in prefixes]
        if most is not None:
            lines.append(f"priority={_DEFAULT_PRIORITY},actions=output:{most}")
        rules[name] = lines
    return rules


def route_rules(paths: Paths, routes: Routes) -> dict[str, list[str]]:
    """Return for each switch on one of the `routes` the rules that send along them, both ways apart, without table.

    Where all routes to a host leave a switch by one port, its address is condition enough.
    """
    by_switch: dict[str, dict[str, dict[str, int]]] = {}
    for (source, target), switches in routes.items():
        for place, here in enumerate(switches):
            if place + 1 < len(switches):
                port = next(port for port, there, _ in paths.lines[here] if there == switches[place + 1])
            else:
                port = paths.of_host[target].port
            by_switch.setdefault(here, {}).setdefault(target, {})[source] = port
    rules: dict[str, list[str]] = {}
    for name, targets in by_switch.items():
        lines = rules.setdefault(name, [])
        for target, ports in sorted(targets.items()):
            destination = f"dl_dst={_mac(paths.of_host[target].mac)}"
            if len(set(ports.values())) == 1:
                lines.append(f"priority=1,{destination},actions=output:{next(iter(ports.values()))}")
                continue
            for source, port in sorted(ports.items()):
                origin = f"dl_src={_mac(paths.of_host[source].mac)}"
                lines.append(f"priority=2,{origin},{destination},actions=output:{port}")
    return rules


def _outputs(ports: Sequence[int]) -> str:
    return ",".join(f"output:{port}" for port in ports) or "drop"


def _mac(value: int) -> str:
    digits = f"{value:012x}"
    return ":".join(digits[place : place + 2] for place in range(0, 12, 2))


def _mac_condition(prefix: Prefix) -> str:
    value, length = prefix
    if length == _MAC_BITS:
        return f"dl_dst={_mac(value)}"
    mask = ((1 << length) - 1) << (_MAC_BITS - length)
    return f"dl_dst={_mac(value)}/{_mac(mask)}"
