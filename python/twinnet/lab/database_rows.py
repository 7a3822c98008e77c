"""The switches of a running lab as rows of Open vSwitch's database (``ovs-vswitchd.conf.db(5)``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twinnet.control.targets import PROTOCOLS
from twinnet.lab_process.replies import ControllerRow, DirectionRow, PortCounters
from twinnet.ovsdb.database import Row
from twinnet.ovsdb.draft import Draft
from twinnet.ovsdb.row_texts import first, map_of, references, row_identifier
from twinnet.ovsdb.schema import VERSION
from twinnet.ovsdb.values import Value

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["LOCAL_PORT", "RowsOfLab", "switches_of"]

LOCAL_PORT = 65534
"""The number of a bridge's own port."""
_ROOT = row_identifier("Open_vSwitch", "")
_ROLES = {"equal": "other", "master": "master", "slave": "slave"}
_DROPPED_ON_LEAVING = (
    "dropped_overlimit",
    "dropped_early",
    "dropped_unclassified",
    "dropped_down",
    "dropped_oversize",
    "dropped_unfragmentable",
)


def switches_of(lab: Lab) -> list[Mapping[str, Any]]:
    """Return the switches of `lab` in the form of the lab protocol."""
    return [lab.layout.node(name) for name in lab.layout.names("switch")]


class RowsOfLab:
    """Writes what the switches of `lab` are into `draft`, which then has rows of them, and of nothing that is gone."""

    def __init__(self, lab: Lab, draft: Draft, qos: Mapping[str, str]) -> None:
        self._lab = lab
        self._draft = draft
        self._qos = qos
        self._connections: Sequence[ControllerRow] = lab.connection.controllers()
        self._lines: dict[str, tuple[DirectionRow, int | None]] = {}
        for link, described in zip(lab.links(), lab.layout.links, strict=True):
            for way in (link["ab"], link["ba"]):
                self._lines[way["port"]] = (way, described.get("mtu"))

    def write(self) -> None:
        """Write all."""
        bridges = [self._bridge(node) for node in switches_of(self._lab)]
        root: Row = {"bridges": references(bridges), "ovs_version": (VERSION,)}
        self._draft.put("Open_vSwitch", next(iter(self._draft.tables["Open_vSwitch"]), _ROOT), root)

    def _bridge(self, node: Mapping[str, Any]) -> str:
        name = str(node["name"])
        ports = [self._port(port) for port in node["ports"]]
        own: Row = {"ofport": (LOCAL_PORT,), "type": ("internal",), "admin_state": ("up",), "link_state": ("up",)}
        ports.append(self._port_row(name, own, {}))
        row: Row = {
            "name": (name,),
            "ports": references(ports),
            "controller": references(self._controllers(node)),
            "mirrors": references([self._mirror(node, at) for at in range(len(node.get("mirrors") or ()))]),
            "fail_mode": (str(node.get("fail_mode") or "standalone"),),
            "protocols": tuple(sorted(node.get("protocols") or PROTOCOLS)),
            "stp_enable": (bool(node.get("spanning_tree")),),
            "datapath_id": (f"{node['dpid']:016x}",),
        }
        return self._draft.put_new("Bridge", name, row)

    def _port(self, port: Mapping[str, Any]) -> str:
        name = str(port["name"])
        inner: Row = {"ofport": (int(port["number"]),), "admin_state": ("up",)}
        if name in self._lines:
            way, mtu = self._lines[name]
            config: Mapping[str, Any] = way["config"] or {}
            rate_bps = config.get("rate_bps")
            inner |= {
                "link_state": ("up" if way["up"] else "down",),
                "link_speed": (int(rate_bps),) if rate_bps else (),
                "mtu": (mtu,) if mtu is not None else (),
                "statistics": _statistics(way["counters"]),
            }
        vlans: Mapping[str, Any] = port.get("vlans") or {}
        row: Row = {
            "qos": references([self._qos[name]] if name in self._qos else []),
            "tag": (int(vlans["tag"]),) if vlans.get("tag") else (),
            "trunks": tuple(sorted(vlans.get("trunks") or ())),
            "vlan_mode": (str(vlans["mode"]),) if vlans.get("mode") else (),
        }
        return self._port_row(name, inner, row)

    def _port_row(self, name: str, inner: Row, row: Row) -> str:
        interface = self._draft.put_new("Interface", name, {"name": (name,), **inner})
        return self._draft.put_new("Port", name, {"name": (name,), "interfaces": references([interface]), **row})

    def _controllers(self, node: Mapping[str, Any]) -> list[str]:
        """The rows of what the switch dials and of where it listens; rows that clients have written anew stay."""
        name, tables = str(node["name"]), self._draft.tables
        bridge = tables["Bridge"].get(row_identifier("Bridge", name))
        rows = [str(one) for one in bridge["controller"]] if bridge is not None else []
        held = {first(tables["Controller"][one]["target"]): one for one in rows}
        found: list[str] = []
        for target in (*(node.get("controllers") or ()), node.get("listen")):
            if target is not None:
                identifier = held.get(target, row_identifier("Controller", f"{name} {target}"))
                found.append(self._draft.put("Controller", identifier, self._controller(name, target)))
        return found

    def _controller(self, switch: str, target: str) -> Row:
        rows = [one for one in self._connections if (one["switch"], one["target"]) == (switch, target)]
        found = next((one for one in rows if one.get("version")), None)
        connected = found is not None
        role = _ROLES.get(str(found.get("role")), "other") if found is not None else None
        trouble = None if connected else self._lab.controller_trouble(switch, target)
        state, error = "ACTIVE" if connected else "BACKOFF", {"last_error": trouble} if trouble else {}
        return {
            "target": (target,),
            "is_connected": (connected,),
            "role": (role,) if role is not None else (),
            # Where a switch listens it waits for nobody.
            "status": {} if target.startswith("p") else map_of({"state": state} | error),
        }

    def _mirror(self, node: Mapping[str, Any], at: int) -> str:
        mirror, name = node["mirrors"][at], f"{node['name']}-mirror{at + 1}"
        names = {port["number"]: row_identifier("Port", str(port["name"])) for port in node["ports"]}

        def ports(numbers: Sequence[int]) -> Value:
            return references([names[number] for number in numbers])

        to = mirror["to"]
        row: Row = {
            "name": (name,),
            "select_all": (bool(mirror.get("all")),),
            "select_src_port": ports(mirror.get("from") or ()),
            "select_dst_port": ports(mirror.get("towards") or ()),
            "select_vlan": tuple(sorted(mirror.get("vlans") or ())),
            "output_port": ports([to["port"]] if "port" in to else []),
            "output_vlan": (int(to["vlan"]),) if "vlan" in to else (),
        }
        return self._draft.put_new("Mirror", name, row)


def _statistics(counters: PortCounters) -> Value:
    """What a port has counted, as its node sees it; bytes are those of the link layer."""
    told: Mapping[str, Any] = counters
    return {
        "collisions": 0,
        "rx_bytes": counters["received_bytes"],
        "rx_crc_err": 0,
        "rx_dropped": counters["dropped_loop"],
        "rx_errors": 0,
        "rx_frame_err": 0,
        "rx_over_err": 0,
        "rx_packets": counters["received_frames"],
        "tx_bytes": counters["link_bytes"],
        "tx_dropped": sum(int(told[name]) for name in _DROPPED_ON_LEAVING),
        "tx_errors": 0,
        "tx_packets": counters["frames"],
    }
