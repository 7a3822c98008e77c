"""The database of Open vSwitch that clients of OVSDB see: the switches of the script, both ways.

Before a client reads, rows become what the switches are; after a client wrote, the switches become what the rows say.
What our switches do not have stays in the rows, as it does in a database that nobody follows.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from twinnet.control.targets import parse_listen
from twinnet.errors import TwinnetError
from twinnet.mininet.bare_ports import VIRTUAL_KINDS, BarePort, OwnPort, VirtualPort
from twinnet.mininet.fabric import Fabric
from twinnet.mininet.fabric_plan import SwitchPlan
from twinnet.mininet.log import warn
from twinnet.mininet.switch_columns import (
    INTERNAL,
    KEPT_COLUMNS,
    POLICING_COLUMNS,
    TABLES,
    TREE_COLUMNS,
    VLAN_COLUMNS,
)
from twinnet.mininet.switch_database import SwitchDatabase
from twinnet.mininet.tool_doors import bound
from twinnet.ovsdb.database import Database, Row, Tables
from twinnet.ovsdb.draft import Draft
from twinnet.ovsdb.qos_rows import Refused
from twinnet.ovsdb.row_texts import (
    first,
    references,
    row_identifier,
    row_of,
    strings_of,
    text_of,
    value_of,
    whole_number,
)
from twinnet.ovsdb.schema import VERSION, open_vswitch
from twinnet.ovsdb.server import Server
from twinnet.ovsdb.values import Atom, ColumnType, Value

if TYPE_CHECKING:
    from twinnet.mininet.link import Intf

__all__ = ["FollowedDatabase"]

_ROOT = row_identifier("Open_vSwitch", "")
_LOCAL_PORT = 65534


class FollowedDatabase:
    """The rows of the switches of `switches`, and the server of them.

    Parameters
    ----------
    switches
        What ``ovs-vsctl`` works on.
    door
        A socket that listens, for clients on this machine.
    """

    def __init__(self, switches: SwitchDatabase, door: socket.socket) -> None:
        self._door = door
        self._switches = switches
        self._fabric: Fabric = switches.fabric
        self.database: Database = Database(open_vswitch())
        self.server: Server = Server(self.database, self.pull, self.push)
        self.follow_managers()

    def pull(self) -> None:
        """Have the rows tell what the switches are."""
        draft = Draft(self.database)
        bridges = [self._pull_bridge(draft, plan) for plan in self._fabric.switches()]
        for table in TABLES.values():
            rows = draft.tables[table]
            draft.tables[table] = {one: row for one, row in rows.items() if one in self._switches.rows}
        for identifier, strings in self._switches.rows.items():
            table = TABLES[strings["table"]]
            draft.put(table, identifier, row_of(self.database.schema.tables[table], strings, draft.ports))
        managers = [draft.named("Manager", "target", target, {}) for target in self._switches.managers]
        version: Value = (VERSION,)
        root: Row = {"bridges": references(bridges), "manager_options": references(managers), "ovs_version": version}
        root |= self._kept("Open_vSwitch", ".")
        draft.put("Open_vSwitch", next(iter(draft.tables["Open_vSwitch"]), _ROOT), root)
        self.database.put(draft.tables)

    def _kept(self, table: str, record: str) -> Row:
        """The columns of a row that make no difference."""
        schema = self.database.schema.tables[table]
        row = row_of(schema, self._switches.kept.get((table, record), {}), {})
        return {column: row.get(column, schema.columns[column].default()) for column in KEPT_COLUMNS[table]}

    def _pull_bridge(self, draft: Draft, plan: SwitchPlan) -> str:
        ports: list[str] = []
        for number, intf in [*sorted(plan.ports.items()), (_LOCAL_PORT, None)]:
            name = plan.name if intf is None else intf.name
            is_made = intf is None or isinstance(intf, OwnPort)
            inner: Row = {"ofport": (number,), "type": (INTERNAL,) if is_made else ("",)}
            if isinstance(intf, VirtualPort):
                inner |= {"type": (intf.kind,), "options": dict[Atom, Atom](intf.options.items())}
            port = plan.own if intf is None else intf
            up = port is None or not self._fabric.is_down(port)
            inner |= dict(zip(POLICING_COLUMNS, ((one,) for one in plan.policing.get(name, (0, 0))), strict=True))
            inner |= {"admin_state": ("up" if up else "down",), "link_state": ("up" if up else "down",)}
            inner |= self._kept("Interface", name)
            row: Row = {"interfaces": references([draft.named("Interface", "name", name, inner)])}
            vlans = plan.vlans.get(name, {})
            row |= {one: value_of(draft.column("Port", one), vlans.get(one, "")) for one in VLAN_COLUMNS}
            row |= self._kept("Port", name)
            row["qos"] = references([self._switches.port_qos[name]] if name in self._switches.port_qos else [])
            ports.append(draft.named("Port", "name", name, row))
            draft.ports[name] = ports[-1]
        connected = self._fabric.is_connected(plan.name) if plan.controllers else False
        controllers = [
            draft.put_new("Controller", f"{plan.name} {target}", {"target": (target,), "is_connected": (connected,)})
            for target in plan.controllers
        ]
        held = draft.find("Bridge", "name", plan.name) or {}
        # Ports that ours cannot have, such as tunnels, stay rows of their bridge.
        others = [str(one) for one in held.get("ports", ()) if not _is_port_of_ours(draft, str(one))]
        mirrors = self._switches.bridge_mirrors.get(plan.name, [])
        return draft.named(
            "Bridge",
            "name",
            plan.name,
            {
                "ports": references([*ports, *others]),
                "controller": references(controllers),
                "mirrors": references(mirrors),
                "fail_mode": (plan.fail_mode,),
                "protocols": ColumnType.ordered(set(plan.protocols)),
                **{column: (column in plan.spanning_tree,) for column in TREE_COLUMNS},
                "datapath_id": (f"{plan.dpid:016x}",),
                **self._kept("Bridge", plan.name),
            },
        )

    def push(self) -> None:
        """Have the switches become what the rows say, and tell that they are."""
        rows = self.database.tables
        wanted = {str(row["name"][0]): row for row in rows["Bridge"].values()}  # pyright: ignore[reportArgumentType]
        for plan in self._fabric.switches():
            if plan.name not in wanted:
                self._fabric.stop_switch(plan.name)
        self._push_rows(rows, wanted)
        for name, row in wanted.items():
            self._push_bridge(rows, name, row)
        try:
            self._switches.apply()
            self._listen([str(row["target"][0]) for row in rows["Manager"].values()])  # pyright: ignore[reportArgumentType]
            self._fabric.settle()
        except (Refused, TwinnetError, OSError, ValueError) as refused:
            warn(f"*** OVSDB: {refused}\n")
        self.pull()
        for identifier, row in self.database.tables["Open_vSwitch"].items():
            done = {**self.database.tables["Open_vSwitch"], identifier: row | {"cur_cfg": row["next_cfg"]}}
            self.database.tables = {**self.database.tables, "Open_vSwitch": done}

    def _push_rows(self, rows: Tables, bridges: Mapping[str, Row]) -> None:
        """Have ``ovs-vsctl`` find the rows of QoS, Queue and Mirror, and what ports and bridges have of them."""
        names = {identifier: str(first(row["name"])) for identifier, row in rows["Port"].items()}
        self._switches.rows = {
            identifier: {"table": table, **strings_of(self.database.schema.tables[name], row, names)}
            for table, name in TABLES.items()
            for identifier, row in rows[name].items()
        }
        self._switches.kept = {
            (table, _record_of(table, row)): {
                name: text
                for name, text in strings_of(self.database.schema.tables[table], row, {}).items()
                if name.partition(":")[0] in columns
            }
            for table, columns in KEPT_COLUMNS.items()
            for row in rows[table].values()
        }
        held = self._switches.port_qos
        self._switches.port_qos = {
            names[identifier]: str(first(row["qos"])) for identifier, row in rows["Port"].items() if row["qos"]
        }
        for port in held.keys() - self._switches.port_qos.keys():
            self._fabric.set_queue(port, None)
        self._switches.bridge_mirrors = {name: [str(one) for one in row["mirrors"]] for name, row in bridges.items()}

    def _push_bridge(self, rows: Tables, name: str, row: Row) -> None:
        plan = self._fabric.switch(name)
        if plan is None:
            dpid = int(row_identifier("dpid", name).replace("-", "")[:12], 16)
            plan = SwitchPlan(name, dpid, {}, fail_mode="standalone", with_own=True)
            self._fabric.start_switch(plan)
        before = repr(plan)
        vlans: dict[str, dict[str, str]] = {}
        numbers: dict[str, int | None] = {}
        virtual: dict[str, VirtualPort | None] = {}
        internal: set[str] = set()
        policing: dict[str, tuple[int, int]] = {}
        for port in (rows["Port"][str(one)] for one in row["ports"]):
            intf = rows["Interface"][str(first(port["interfaces"]))]
            port_name = str(first(intf["name"]))
            if port_name != name and _is_ours(intf):
                numbers[port_name] = whole_number(intf["ofport_request"])
                virtual[port_name] = _virtual_port(intf)
                internal |= {port_name} if first(intf["type"]) == INTERNAL else set()
                rate, burst = (whole_number(intf[one]) or 0 for one in POLICING_COLUMNS)
                policing[port_name] = (rate, burst)
                vlans[port_name] = {one: text_of(port[one]) for one in VLAN_COLUMNS if port[one]}
        plan.policing = {port: rates for port, rates in policing.items() if any(rates)}
        plan.vlans = {port: columns for port, columns in vlans.items() if columns}
        kept = {
            intf.name: (number, self._port_for(plan, intf, virtual[intf.name], intf.name in internal))
            for number, intf in plan.ports.items()
            if intf.name in numbers
        }
        ports = {numbers[port] or number: intf for port, (number, intf) in kept.items()}
        for port, asked in numbers.items():
            if port not in kept:
                free = next(number for number in range(1, _LOCAL_PORT) if number not in ports)
                made = self._port_for(plan, self._fabric.interface(port), virtual[port], port in internal)
                ports[asked if asked and asked not in ports else free] = made
        if plan.ports != ports:
            plan.ports = ports
        targets = [str(first(rows["Controller"][str(one)]["target"])) for one in row["controller"]]
        plan.controllers = [target for target in targets if not target.startswith("p")]
        plan.fail_mode = str(first(row["fail_mode"]) or "standalone")
        plan.protocols = [str(one) for one in row["protocols"]]
        plan.spanning_tree = [column for column in TREE_COLUMNS if first(row[column]) is True]
        other = row["other_config"]
        if isinstance(other, Mapping) and "datapath-id" in other:
            plan.dpid = int(str(other["datapath-id"]), 16)
        if repr(plan) != before:
            self._fabric.topology_changed()

    def _port_for(
        self, plan: SwitchPlan, held: Intf | BarePort, wanted: VirtualPort | None, is_internal: bool
    ) -> Intf | BarePort:
        """The port `held` where it is as rows want it, or another in its place."""
        if is_internal:
            return self._fabric.internal_port(held.name, plan) if type(held) is BarePort else held
        if wanted is None:
            return self._fabric.interface(held.name) if isinstance(held, VirtualPort) else held
        same = isinstance(held, VirtualPort) and (held.kind, held.options) == (wanted.kind, wanted.options)
        return held if same else wanted

    def _listen(self, managers: list[str]) -> None:
        """Listen where the managers' targets say; dial none."""
        self._switches.managers = managers
        self.follow_managers()

    def follow_managers(self) -> None:
        """Listen where ``set-manager`` said. Raises `OSError` or `BadValue`."""
        doors: dict[str, Callable[[], socket.socket]] = {"punix": lambda: self._door}
        for target in (one for one in self._switches.managers if one.startswith("p")):
            doors[target] = partial(_opened, target)
        self.server.listen(doors)


def _record_of(table: str, row: Row) -> str:
    """The word by which ``ovs-vsctl`` names a row."""
    return "." if table == "Open_vSwitch" else str(first(row["name"]))


def _opened(target: str) -> socket.socket:
    place = parse_listen(target)
    if place.path is not None:
        return bound(place.path)
    # In the script's machine, which nobody reaches from outside.
    return socket.create_server(("0.0.0.0" if target.count(":") == 1 else place.address, place.port))


def _is_ours(interface: Row) -> bool:
    return first(interface["type"]) in ("", "system", INTERNAL) or _virtual_port(interface) is not None


def _is_port_of_ours(draft: Draft, port: str) -> bool:
    """Return whether our switches can have the port of that row."""
    row = draft.tables["Port"].get(port)
    return row is None or _is_ours(draft.tables["Interface"][str(first(row["interfaces"]))])


def _virtual_port(interface: Row) -> VirtualPort | None:
    """Return the port without an interface that the row tells of, if ours can have it."""
    kind, options = str(first(interface["type"])), interface["options"]
    if kind not in VIRTUAL_KINDS or not isinstance(options, Mapping):
        return None
    port = VirtualPort(str(first(interface["name"])))
    try:
        port.change(kind, {str(key): str(one) for key, one in options.items()})
    except Refused:
        return None
    return port
