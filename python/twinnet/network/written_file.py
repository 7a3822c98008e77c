"""A network as a file that :func:`twinnet.network.topology_file.load_network` opens again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from math import isclose
from typing import Any, cast

import yaml

from twinnet.control.choice import APP_TARGET
from twinnet.errors import NotAvailable, UsageError
from twinnet.network import addressing
from twinnet.network.topology_file import parse_network
from twinnet.network.written_link import written_jitter, written_settings
from twinnet.qos.queue_text import with_units
from twinnet.units import format_duration, format_size

__all__ = ["written_network"]

_DEFAULT = {"delay": "0 s", "duplicate": 0, "corrupt": 0, "reorder": False, "framing": "ethernet"}
_MTU = 1500


def written_network(spec: Mapping[str, Any], head: Sequence[str] = ()) -> str:
    """Return the network `spec` as the text of a network file.

    Parameters
    ----------
    spec
        The network in the form of the lab protocol.
    head
        Lines for the beginning of the file, which become comments.

    Raises
    ------
    NotAvailable
        A network file cannot say all that the network has; the message names what.
    """
    content = _Content(spec).keys
    body = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
    text = "".join(f"# {line}\n" for line in head) + body
    # Nobody is to find out later that a file opens as another network.
    try:
        again = parse_network(text).to_spec()
    except UsageError as error:
        raise NotAvailable(f"a network file cannot say what this network has: {error}") from None
    difference = _difference(again, spec, "")
    if difference:
        raise NotAvailable(f"a network file cannot say what this network has: {difference} would be another")
    return text


class _Content:
    """The keys of the file of a network."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._nodes: dict[str, Mapping[str, Any]] = {node["name"]: node for node in spec["nodes"]}
        self._counts = {"hosts": 0, "routers": 0}
        self.keys: dict[str, Any] = {"seed": spec.get("seed", 1)}
        self._controller()
        for node in spec["nodes"]:
            self._add(node)
        links: list[dict[str, Any]] = []
        pairs: set[frozenset[str]] = set()
        for link in spec["links"]:
            described = self._link(link)
            pair = frozenset(described["between"])
            if pair in pairs:
                described["parallel"] = True
            pairs.add(pair)
            links.append(described)
        self.keys["links"] = links
        if changes := spec.get("schedule"):
            self.keys["schedule"] = [self._change(one, spec["links"]) for one in changes]

    def _controller(self) -> None:
        """A controller in the lab's process is that of the network."""
        targets = {one for node in self._nodes.values() for one in node.get("controllers") or ()}
        if len(targets) == 1 and (target := targets.pop()).startswith(APP_TARGET):
            self.keys["controller"] = {"app": target.removeprefix(APP_TARGET)}

    def _add(self, node: Mapping[str, Any]) -> None:
        kind, name = node["kind"], node["name"]
        if kind == "host":
            kind = "router" if node.get("forwarding") else "host"
            self._counts[f"{kind}s"] += 1
            described = _host(node, self._counts[f"{kind}s"])
        elif kind == "switch":
            described = self._switch(node)
        elif kind == "interface":
            described = {"interface": node["interface"]}
        else:
            raise NotAvailable(f"{name} is a {kind}: the file of a network with one cannot be made here")
        self.keys.setdefault(f"{kind}es" if kind == "switch" else f"{kind}s", {})[name] = described

    def _switch(self, node: Mapping[str, Any]) -> dict[str, Any]:
        said: dict[str, Any] = {}
        number = re.search(r"[0-9]+$", node["name"])
        if number is None or int(number[0]) != node["dpid"]:
            said["dpid"] = node["dpid"]
        if (datapath := node.get("datapath") or "own") != "own":
            said |= {"kind": "ovs", "datapath": datapath}
        if node["fail_mode"] != "standalone":
            said["fail_mode"] = node["fail_mode"]
        for key, name in (("delay_ps", "delay"), ("control_delay_ps", "control_delay")):
            if node.get(key):
                said[name] = format_duration(node[key])
        if "controller" not in self.keys and node.get("controllers"):
            said["controllers"] = list(node["controllers"])
        for name in ("flows", "listen", "tls", "protocols"):
            if node.get(name):
                said[name] = node[name]
        vlans = {port["number"]: _given(port["vlans"]) for port in node["ports"] if port.get("vlans")}
        if vlans:
            said["vlans"] = vlans
        if node.get("mirrors"):
            said["mirrors"] = [_given(mirror) for mirror in node["mirrors"]]
        if node.get("spanning_tree"):
            said["spanning_tree"] = True
        return said

    def _link(self, link: Mapping[str, Any]) -> dict[str, Any]:
        said: dict[str, Any] = {"between": [link[end]["node"] for end in "ab"]}
        if link["mtu"] != _MTU:
            said["mtu"] = link["mtu"]
        if not link.get("up", True):
            said["up"] = False
        if tunnel := link.get("tunnel"):
            said["tunnel"] = {
                tunnel["kind"]: {key: one for key, one in tunnel.items() if key != "kind" and one is not None}
            }
        there, back = (_changed(link[way]) for way in ("ab", "ba"))
        both = {key: value for key, value in there.items() if back.get(key) == value}
        said |= both
        for name, way in (("a_to_b", there), ("b_to_a", back)):
            if rest := {key: value for key, value in way.items() if key not in both}:
                said[name] = rest
        for end in "ab":
            said |= self._end(link[end], end)
        return said

    def _end(self, place: Mapping[str, Any], end: str) -> dict[str, Any]:
        node = self._nodes[place["node"]]
        port = node["ports"][place["port"]]
        said: dict[str, Any] = {}
        if port.get("queue"):
            said[f"queue_{end}"] = with_units(port["queue"])
        if node["kind"] == "switch" and port["number"] != place["port"] + 1:
            said[f"port_{end}"] = port["number"]
        addresses = list(port.get("addresses") or ())
        if node["kind"] == "host" and (node.get("forwarding") or (addresses if place["port"] else _is_many(addresses))):
            said[f"address_{end}"] = addresses
        return said

    def _change(self, moment: Mapping[str, Any], links: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """A change of the schedule; the protocol names its link by its number or its ends."""
        change = moment["set"]
        ends: list[Any] = [change.get(end) for end in "ab"]
        if None in ends:
            ends = [links[change["link"]][end]["node"] for end in "ab"]
        direction = change.get("direction") or "both"
        settings = written_settings(change["set"])
        return {"at": format_duration(moment["at_ps"]), "link": ends, "direction": direction, "set": settings}


def _host(node: Mapping[str, Any], number: int) -> dict[str, Any]:
    said: dict[str, Any] = {}
    ports: Sequence[Mapping[str, Any]] = node.get("ports") or []
    if ports and not node.get("forwarding"):
        addresses: list[str] = list(ports[0].get("addresses") or ())
        for key, mark, usual in (("ip", ".", addressing.host_ip(number)), ("ip6", ":", addressing.host_ip6(number))):
            own: str | bool = next((one for one in addresses if mark in one and not _is_many(addresses)), False)
            if own != usual:
                said[key] = own
        if ports[0].get("mac") not in (None, addressing.host_mac(number, 0)):
            said["mac"] = ports[0]["mac"]
    if routes := node.get("routes"):
        said["routes"] = [{"to": route["to"], "via": route["via"]} for route in routes]
    if sysctls := node.get("sysctls"):
        said["sysctls"] = dict(sysctls)
    if node.get("model"):
        said["model"] = True
    if processing := node.get("processing"):
        said["processing"] = format_duration(processing.get("delay_ps") or 0)
        if jitter := written_jitter(processing.get("jitter")):
            said["processing_jitter"] = jitter
    if coalescing := node.get("coalescing"):
        said["interrupt_delay"] = format_duration(coalescing["delay_ps"])
        if coalescing.get("frames"):
            said["interrupt_frames"] = coalescing["frames"]
    if limits := node.get("limits"):
        if limits["processors"] is not None:
            said["processors"] = limits["processors"]
        if limits["memory_bytes"] is not None:
            said["memory"] = format_size(limits["memory_bytes"])
    if image := node.get("image"):
        said["image"] = image["name"]
        for key, value in (("environment", image["environment"]), ("command", shlex.join(image["command"]))):
            said |= {key: value} if value else {}
        if volumes := image["volumes"]:
            ways = [(one, ":ro" if one["read_only"] else "") for one in volumes]
            said["volumes"] = [f"{one['source']}:{one['target']}{way}" for one, way in ways]
    return said


def _is_many(addresses: Sequence[str]) -> bool:
    """True if a host's first interface has others than one address of each version, in their usual order."""
    return [("." in one, ":" in one) for one in addresses] not in (
        [],
        [(True, False)],
        [(False, True)],
        [(True, False), (False, True)],
    )


def _changed(direction: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a direction that are not as by default."""
    return {
        key: one for key, one in written_settings(direction).items() if one is not None and one != _DEFAULT.get(key)
    }


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value}


def _difference(again: object, wanted: object, place: str) -> str:
    """Where `again` says something that `wanted` does not; what is empty there may be left out here."""
    if isinstance(again, dict) and isinstance(wanted, Mapping):
        left, right = cast("dict[str, object]", again), cast("Mapping[str, object]", wanted)
        found = (_difference(value, right.get(key), f"{place}.{key}") for key, value in left.items())
        return next(filter(None, found), "")
    if isinstance(again, (list, tuple)) and isinstance(wanted, (list, tuple)):
        ours, theirs = list(cast("Sequence[Any]", again)), list(cast("Sequence[Any]", wanted))
        if place == ".nodes":
            # A file has nodes by their kinds.
            ours, theirs = (sorted(rows, key=lambda node: node["name"]) for rows in (ours, theirs))
        if len(ours) != len(theirs):
            return f"the number of {place.removeprefix('.')}"
        pairs = enumerate(zip(ours, theirs, strict=True))
        return next(filter(None, (_difference(a, b, f"{place}[{at}]") for at, (a, b) in pairs)), "")
    if isinstance(again, float) and isinstance(wanted, (int, float)):
        return "" if isclose(again, wanted) else place.removeprefix(".")
    return "" if again == wanted or (not again and not wanted) else place.removeprefix(".")
