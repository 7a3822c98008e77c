"""``ovs-vsctl`` in a script's machine: its commands, done on the switches of the fabric.

What our switches do not have is refused with its name.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from twinnet.mininet.bare_ports import BarePort, VirtualPort, virtual_columns
from twinnet.mininet.fabric import Fabric
from twinnet.mininet.fabric_plan import SwitchPlan
from twinnet.mininet.switch_columns import (
    POLICING_COLUMNS,
    TABLES,
    VLAN_COLUMNS,
    Refused,
    cell_text,
    check_port_columns,
    checked_row,
    columns_of,
    members,
    mirror_of,
    port_identifier,
    queue_of,
    record_text,
    row_identifier,
    vlans_of,
    with_names,
)

if TYPE_CHECKING:
    from twinnet.mininet.link import Intf

__all__ = ["Refused", "SwitchDatabase"]

_OF_COMMANDS = ("--id=", "--may-exist", "--if-exists", "--all", "--columns")
_OPTIONS_WITH_VALUES = ("-t", "--timeout", "--db")
_OFF = ("stp_enable", "rstp_enable", "mcast_snooping_enable")
_IGNORED_COLUMNS = {"datapath_type": '""', **dict.fromkeys(_OFF, "false")}
"""Columns of bridges that make no difference and are read back, with what they are at first."""


@dataclass
class SwitchDatabase:
    """What ``ovs-vsctl`` reads and writes.

    Parameters
    ----------
    fabric
        The fabric whose switches are meant.
    rows
        Rows of the tables QoS and Queue, by identifier.
    port_qos
        The row of the table QoS of each port.
    bridge_mirrors
        The rows of the table Mirror of each bridge.
    bridge_columns
        What bridges were given in columns that make no difference.
    targets
        The targets of the rows of the table Controller that were made, by identifier.
    managers
        What ``set-manager`` was given.
    notes
        What is to be said beside the answer to the command line that is being done.
    """

    fabric: Fabric
    rows: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    port_qos: dict[str, str] = field(default_factory=dict[str, str])
    bridge_mirrors: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    bridge_columns: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    targets: dict[str, str] = field(default_factory=dict[str, str])
    managers: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    _coming: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict[str, tuple[str, dict[str, str]]])
    """The types and options of ports without an interface that the command line tells of, by their names."""

    def run(self, arguments: list[str]) -> str:
        """Do a whole command line, and return what it prints; raises :class:`Refused`."""
        words = list(arguments)
        while words and words[0].startswith("-") and words[0] != "--" and not words[0].startswith(_OF_COMMANDS):
            word = words.pop(0)
            if word in ("-V", "--version"):
                return "ovs-vsctl (twinnet) 2.17.0\n"
            if word in _OPTIONS_WITH_VALUES and words:
                words.pop(0)
        commands: list[list[str]] = [[]]
        for word in words:
            if word == "--":
                commands.append([])
            else:
                commands[-1].append(word)
        commands = [command for command in commands if command]
        # Rows are made before those that name them.
        names: dict[str, str] = {}
        for command in commands:
            if command[0].startswith("--id=@"):
                found = port_identifier(command[3]) if command[1:2] == ["get"] else str(uuid.uuid4())
                names["@" + command[0].removeprefix("--id=@")] = found
        self._coming = _virtual_ports(commands)
        said = ""
        for command in sorted(commands, key=lambda command: command[1:2] != ["create"]):
            said += self._one([with_names(word, names) for word in command])
        return said

    def _one(self, command: list[str]) -> str:
        options = [word for word in command if word.startswith("--")]
        words = [word for word in command if not word.startswith("--")]
        if not words:
            raise Refused("missing command name (use --help for help)")
        identifier = next((one.removeprefix("--id=") for one in options if one.startswith("--id=")), None)
        if words[0] == "create":
            return self._create(words[1:], identifier or str(uuid.uuid4()))
        call: Callable[[list[str], list[str]], str | None] | None = getattr(
            self, "_do_" + words[0].replace("-", "_"), None
        )
        if call is None:
            raise Refused(f"unknown command '{words[0]}'; our switches have no such setting")
        return call(words[1:], options) or ""

    def _bridge(self, name: str) -> SwitchPlan:
        plan = self.fabric.switch(name)
        if plan is None:
            raise Refused(f"no bridge named {name}")
        return plan

    def _port(self, name: str) -> tuple[SwitchPlan, int]:
        for plan in self.fabric.switches():
            for number, intf in plan.ports.items():
                if intf.name == name:
                    return plan, number
        raise Refused(f"no port named {name}")

    def _do_init(self, _words: list[str], _options: list[str]) -> None:
        pass

    def _do_show(self, _words: list[str], _options: list[str]) -> str:
        lines = [str(uuid.uuid5(uuid.NAMESPACE_OID, "twinnet"))]
        for plan in self.fabric.switches():
            lines.append(f"    Bridge {plan.name}")
            for target in plan.controllers:
                lines.append(f'        Controller "{target}"')
                if self.fabric.is_connected(plan.name):
                    lines.append("            is_connected: true")
            lines.append(f"        fail_mode: {plan.fail_mode}")
            for number in sorted(plan.ports):
                name = plan.ports[number].name
                lines += [f"        Port {name}", f"            Interface {name}"]
            lines += [
                f"        Port {plan.name}",
                f"            Interface {plan.name}",
                "                type: internal",
            ]
        return "\n".join(lines) + '\n    ovs_version: "2.17.0"\n'

    def _do_list_br(self, _words: list[str], _options: list[str]) -> str:
        return "".join(f"{plan.name}\n" for plan in self.fabric.switches())

    def _do_br_exists(self, words: list[str], _options: list[str]) -> None:
        self._bridge(words[0])

    def _do_list_ports(self, words: list[str], _options: list[str]) -> str:
        return "".join(f"{intf.name}\n" for intf in self._bridge(words[0]).ports.values())

    _do_list_ifaces = _do_list_ports

    def _do_port_to_br(self, words: list[str], _options: list[str]) -> str:
        return self._port(words[0])[0].name + "\n"

    _do_iface_to_br = _do_port_to_br

    def _do_add_br(self, words: list[str], options: list[str]) -> None:
        if self.fabric.switch(words[0]) is not None:
            if "--may-exist" in options:
                return
            raise Refused(f"cannot create a bridge named {words[0]} because a bridge named {words[0]} already exists")
        dpid = int.from_bytes(uuid.uuid5(uuid.NAMESPACE_OID, words[0]).bytes[:6], "big")
        self.fabric.start_switch(SwitchPlan(words[0], dpid, {}, fail_mode="standalone"))

    def _do_del_br(self, words: list[str], options: list[str]) -> None:
        if self.fabric.switch(words[0]) is None and "--if-exists" in options:
            return
        self._bridge(words[0])
        self.fabric.stop_switch(words[0])

    def _do_add_port(self, words: list[str], options: list[str]) -> None:
        plan, name = self._bridge(words[0]), words[1]
        if any(intf.name == name for intf in plan.ports.values()):
            if "--may-exist" in options:
                return
            raise Refused(f"cannot create a port named {name} because a port named {name} already exists on "
                          f"bridge {plan.name}")  # fmt: skip
        columns = columns_of(words[2:])
        vlans = {column: columns.pop(column) for column in VLAN_COLUMNS if column in columns}
        vlans_of(vlans)
        check_port_columns("Port", columns)
        intf = self._port_to_be(name)
        owned = next((number for number, one in getattr(intf.node, "intfs", {}).items() if one is intf), None)
        free = next(number for number in range(1, 1 << 16) if number not in plan.ports)
        plan.ports[owned if owned and owned not in plan.ports else free] = intf
        if vlans:
            plan.vlans[name] = vlans
        self.fabric.topology_changed()

    def _port_to_be(self, name: str) -> Intf | BarePort:
        """The interface `name`, or the port without one that the command line tells of."""
        if name not in self._coming:
            return self.fabric.interface(name)
        port = VirtualPort(name)
        port.change(*self._coming[name])
        return port

    def _do_del_port(self, words: list[str], options: list[str]) -> None:
        name = words[-1]
        try:
            plan, number = self._port(name)
        except Refused:
            if "--if-exists" in options:
                return
            raise
        del plan.ports[number]
        plan.vlans.pop(name, None)
        plan.policing.pop(name, None)
        for row in (row for row in self.rows.values() if row["table"] == "mirror"):
            for column in ("select_src_port", "select_dst_port", "output_port"):
                kept = [one for one in members(row.get(column, "")) if one not in (name, port_identifier(name))]
                row[column] = ",".join(kept)
        self._apply_mirrors()

    def _do_set_controller(self, words: list[str], _options: list[str]) -> None:
        self._bridge(words[0]).set_targets(words[1:])
        self.fabric.topology_changed()

    def _do_get_controller(self, words: list[str], _options: list[str]) -> str:
        return "".join(f"{target}\n" for target in self._bridge(words[0]).controllers)

    def _do_del_controller(self, words: list[str], _options: list[str]) -> None:
        self._do_set_controller(words[:1], [])

    def _do_set_manager(self, words: list[str], _options: list[str]) -> None:
        self.managers = list(words)
        self.notes += [f"{one} is not dialled here; write ptcp:PORT" for one in words if not one.startswith("p")]

    def _do_get_manager(self, _words: list[str], _options: list[str]) -> str:
        return "".join(f"{target}\n" for target in self.managers)

    def _do_del_manager(self, _words: list[str], _options: list[str]) -> None:
        self.managers = []

    def _do_set_fail_mode(self, words: list[str], _options: list[str]) -> None:
        if words[1] not in ("secure", "standalone"):
            raise Refused('fail-mode must be "secure" or "standalone"')
        self._bridge(words[0]).fail_mode = words[1]
        self.fabric.topology_changed()

    def _do_get_fail_mode(self, words: list[str], _options: list[str]) -> str:
        return self._bridge(words[0]).fail_mode + "\n"

    def _do_del_fail_mode(self, words: list[str], _options: list[str]) -> None:
        self._do_set_fail_mode([words[0], "standalone"], [])

    def _do_set(self, words: list[str], _options: list[str]) -> None:
        table, record, settings = words[0].lower(), words[1], words[2:]
        if table in ("bridge", "br"):
            self._set_bridge(self._bridge(record), settings)
        elif table == "port":
            self._set_port(record, settings)
        elif table in ("interface", "iface"):
            plan, number = self._port(record)
            columns = columns_of(settings)
            virtual = virtual_columns(columns) if isinstance(plan.ports[number], VirtualPort) else None
            if virtual is not None:
                self._change_virtual(plan.ports[number], *virtual)
            policing = {one: columns.pop(one) for one in POLICING_COLUMNS if one in columns}
            check_port_columns("Interface", columns)
            if policing:
                plan.police(number, policing)
                self.fabric.topology_changed()
            wanted = int(columns.get("ofport_request", number))
            if wanted not in plan.ports:
                plan.ports[wanted] = plan.ports.pop(number)
                self.fabric.topology_changed()
        elif table == "controller":
            pass
        elif table in TABLES:
            self._rows(record, table).update(checked_row(table, columns_of(settings)))
            self.apply()
        else:
            raise Refused(
                f"table {words[0]} is not there; our switches have Bridge, Port, Interface, QoS, Queue and Mirror"
            )

    def _change_virtual(self, port: Intf | BarePort, kind: str, options: dict[str, str]) -> None:
        """Have a port without an interface be of another type, or have other options."""
        if isinstance(port, VirtualPort):
            port.change(kind or port.kind, options)
            self.fabric.topology_changed()

    def _identifier(self, record: str, table: str) -> str:
        """The identifier of the row that has it, or of the one with that name in its column `name`."""
        rows = {key: row for key, row in self.rows.items() if row["table"] == table}
        if record in rows:
            return record
        named = next((key for key, row in rows.items() if row.get("name") == record), None)
        if named is None:
            raise Refused(f'no row "{record}" in table {TABLES[table]}')
        return named

    def _rows(self, record: str, table: str = "qos") -> dict[str, Any]:
        return self.rows[self._identifier(record, table)]

    def _set_bridge(self, plan: SwitchPlan, settings: list[str]) -> None:
        for column, value in columns_of(settings).items():
            if column == "protocols":
                plan.protocols = [one for one in re.split(r"[,\s\[\]]+", value) if one]
            elif column == "fail_mode":
                plan.fail_mode = value
            elif column == "other_config:datapath-id":
                plan.dpid = int(value, 16)
            elif column == "controller":
                plan.set_targets([self.targets[one] for one in members(value) if one in self.targets])
            elif column == "mirrors":
                self._set_mirrors(plan, members(value))
            elif column in _IGNORED_COLUMNS:
                self.bridge_columns.setdefault(plan.name, {})[column] = value
            elif column.split(":")[0] != "other_config":
                raise Refused(f"Bridge has no column {column} that our switches know")
        self.fabric.topology_changed()

    def _set_port(self, port: str, settings: list[str]) -> None:
        self._port(port)
        columns = columns_of(settings)
        for column in columns:
            if column not in ("qos", *VLAN_COLUMNS):
                raise Refused(f"Port {port}: our switches have no {column}")
        if "qos" in columns:
            self._rows(columns["qos"])
            self.port_qos[port] = columns["qos"]
            self._apply_qos(port)
        self._change_vlans(port, {column: columns[column] for column in VLAN_COLUMNS if column in columns})

    def _change_vlans(self, port: str, changes: dict[str, str]) -> None:
        """Give the port these columns; what is empty goes."""
        if changes:
            plan, _ = self._port(port)
            wanted = {column: value for column, value in (plan.vlans.get(port, {}) | changes).items() if members(value)}
            vlans_of(wanted)
            plan.vlans[port] = wanted
            self.fabric.topology_changed()

    def _set_mirrors(self, plan: SwitchPlan, mirrors: list[str]) -> None:
        self.bridge_mirrors[plan.name] = [self._identifier(one, "mirror") for one in mirrors]
        self._apply_mirrors()

    def _apply_mirrors(self) -> None:
        """Give the bridges the mirrors of their rows."""
        for plan in self.fabric.switches():
            ports: dict[str, int] = {}
            for number, intf in plan.ports.items():
                ports |= {intf.name: number, port_identifier(intf.name): number}
            mirrors = [mirror_of(self.rows[one], ports) for one in self.bridge_mirrors.get(plan.name, ())]
            plan.mirrors = [one for one in mirrors if one is not None]
        self.fabric.topology_changed()

    def _create(self, words: list[str], identifier: str) -> str:
        table = words[0].lower()
        if table == "controller":
            target = columns_of(words[1:]).get("target")
            if target is None:
                raise Refused("a Controller needs target=")
            self.targets[identifier] = target
            return identifier + "\n"
        if table not in TABLES:
            known = ", ".join(("Controller", *TABLES.values()))
            raise Refused(f"a row of table {words[0]} cannot be made here; {known} can")
        self.rows[identifier] = {"table": table, **checked_row(table, columns_of(words[1:]))}
        return identifier + "\n"

    def apply(self) -> None:
        """Give ports and bridges what their rows say; raises :class:`Refused` for what our switches do not have."""
        for port in self.port_qos:
            self._apply_qos(port)
        if self.bridge_mirrors:
            self._apply_mirrors()

    def _apply_qos(self, port: str) -> None:
        self.fabric.set_queue(port, queue_of(self._rows(self.port_qos[port]), lambda one: self._rows(one, "queue")))

    def _do_add(self, words: list[str], _options: list[str]) -> None:
        table, record, column, values = words[0].lower(), words[1], words[2].replace("-", "_"), words[3:]
        if table == "port" and column == "trunks":
            plan, _ = self._port(record)
            held = members(plan.vlans.get(record, {}).get(column, ""))
            self._change_vlans(record, {column: ",".join([*held, *values])})
        elif table in ("bridge", "br") and column == "mirrors":
            plan = self._bridge(record)
            self._set_mirrors(plan, [*self.bridge_mirrors.get(plan.name, []), *values])
        else:
            raise Refused(f"{' '.join(words)} cannot be added here; trunks of a port and mirrors of a bridge can")

    def _do_remove(self, words: list[str], options: list[str]) -> None:
        table, record, column, values = words[0].lower(), words[1], words[2].replace("-", "_"), words[3:]
        if table == "port" and column == "trunks":
            plan, _ = self._port(record)
            held = members(plan.vlans.get(record, {}).get(column, ""))
            self._change_vlans(record, {column: ",".join(one for one in held if one not in values)})
        elif table in ("bridge", "br") and column == "mirrors":
            plan = self._bridge(record)
            gone = [self._identifier(one, "mirror") for one in values]
            self._set_mirrors(plan, [one for one in self.bridge_mirrors.get(plan.name, []) if one not in gone])
        else:
            self._do_clear(words[:3], options)

    def _do_clear(self, words: list[str], _options: list[str]) -> None:
        table, record, columns = words[0].lower(), words[1], [one.replace("-", "_") for one in words[2:]]
        if table in ("bridge", "br") and columns == ["mirrors"]:
            self._set_mirrors(self._bridge(record), [])
            return
        if table != "port" or not set(columns) <= {"qos", *VLAN_COLUMNS}:
            raise Refused(
                f"{' '.join(words)} cannot be cleared here; qos, tag, trunks and vlan_mode of a port and mirrors of a "
                "bridge can"
            )
        self._port(record)
        if "qos" in columns and self.port_qos.pop(record, None) is not None:
            self.fabric.set_queue(record, None)
        self._change_vlans(record, dict.fromkeys((one for one in columns if one != "qos"), ""))

    def _do_destroy(self, words: list[str], options: list[str]) -> None:
        table, gone = words[0].lower(), set[str]()
        if table not in TABLES:
            raise Refused(
                f"rows of table {words[0]} cannot be destroyed here; those of {', '.join(TABLES.values())} can"
            )
        if "--all" in options:
            gone = {key for key, row in self.rows.items() if row["table"] == table}
        for record in words[1:]:
            try:
                gone.add(self._identifier(record, table))
            except Refused:
                if "--if-exists" not in options:
                    raise
        self.rows = {key: row for key, row in self.rows.items() if key not in gone}
        if table == "mirror":
            held = self.bridge_mirrors.items()
            self.bridge_mirrors = {bridge: [one for one in rows if one not in gone] for bridge, rows in held}
            self._apply_mirrors()

    def _do_list(self, words: list[str], _options: list[str]) -> str:
        table = words[0].lower()
        if table in TABLES:
            rows = {key: row for key, row in self.rows.items() if row["table"] == table}
            return "\n".join(record_text({"_uuid": key, **row}) for key, row in rows.items())
        if table in ("port", "interface", "iface"):
            names = words[1:] or [intf.name for plan in self.fabric.switches() for intf in plan.ports.values()]
            return "\n".join(record_text(self._port_row(name)) for name in names)
        if table in ("bridge", "br"):
            plans = [plan for plan in self.fabric.switches() if len(words) < 2 or plan.name == words[1]]
            return "\n".join(record_text(self._bridge_row(plan)) for plan in plans)
        if table == "controller":
            names = [f"{plan.name}.{at}" for plan in self.fabric.switches() for at in range(len(plan.controllers))]
            return "\n".join(record_text({"_uuid": name, **self._controller_row(name)}) for name in names)
        raise Refused(f"table {words[0]} cannot be listed here")

    def _bridge_row(self, plan: SwitchPlan) -> dict[str, Any]:
        row = {"_uuid": row_identifier("Bridge", plan.name), "name": plan.name, "fail_mode": plan.fail_mode}
        row |= {"datapath_id": f'"{plan.dpid:016x}"', "protocols": f"[{', '.join(plan.protocols)}]"}
        row |= _IGNORED_COLUMNS | self.bridge_columns.get(plan.name, {})
        row["mirrors"] = f"[{', '.join(self.bridge_mirrors.get(plan.name, []))}]"
        return {**row, "controller": f"[{', '.join(f'{plan.name}.{at}' for at in range(len(plan.controllers)))}]"}

    def _port_row(self, name: str) -> dict[str, Any]:
        plan, number = self._port(name)
        row = {"_uuid": port_identifier(name), "name": name, "ofport": number, "qos": self.port_qos.get(name, "[]")}
        row |= dict(zip(POLICING_COLUMNS, plan.policing.get(name, (0, 0)), strict=True))
        port = plan.ports[number]
        row |= {"type": port.kind, "options": port.options} if isinstance(port, VirtualPort) else {"type": '""'}
        held = plan.vlans.get(name, {})
        row |= {"tag": held.get("tag", "[]"), "trunks": f"[{', '.join(members(held.get('trunks', '')))}]"}
        return {**row, "vlan_mode": held.get("vlan_mode", "[]"), "statistics": self._statistics(plan, number)}

    def _statistics(self, plan: SwitchPlan, number: int) -> dict[str, int]:
        """The column `statistics` of an interface: what has gone through the port."""
        counts = self.fabric.counters(plan.ports[number])
        dropped = sum(count for name, count in counts.items() if name.startswith("dropped_"))
        columns = {"rx_bytes": "received_bytes", "rx_packets": "received_frames", "tx_bytes": "link_bytes"}
        counted = {column: counts.get(name, 0) for column, name in columns.items()}
        return {**counted, "tx_dropped": dropped, "tx_packets": counts.get("frames", 0)}

    def _controller_row(self, record: str) -> dict[str, Any]:
        """The row that `create` has given, or the one that a bridge names: `s1.0`."""
        for plan in self.fabric.switches():
            rows = {f"{plan.name}.{at}": target for at, target in enumerate(plan.controllers)}
            rows |= {one: target for one, target in self.targets.items() if target in plan.controllers}
            if record in rows:
                connected = self.fabric.is_connected(plan.name)
                return {"target": f'"{rows[record]}"', "is_connected": str(connected).lower()}
        raise Refused(f'no row "{record}" in table Controller')

    def _do_get(self, words: list[str], _options: list[str]) -> str:
        table, record, columns = words[0].lower(), words[1], words[2:]
        if table == "controller":
            row = self._controller_row(record)
        elif table in ("bridge", "br"):
            row = self._bridge_row(self._bridge(record))
        elif table in ("interface", "iface", "port"):
            row = self._port_row(record)
        elif table in TABLES:
            row = self._rows(record, table)
        else:
            raise Refused(f"table {words[0]} is not there")
        for column, value in list(row.items()):
            # A key of a column that is a map: statistics:rx_bytes.
            if column in ("statistics", "options"):
                row |= {f"{column}:{key}": one for key, one in value.items()}
        missing = [column for column in columns if column.lower() not in row]
        if missing:
            raise Refused(f"{words[0]} has no column {missing[0]} here")
        return "".join(f"{cell_text(row[column.lower()])}\n" for column in columns)


def _virtual_ports(commands: list[list[str]]) -> dict[str, tuple[str, dict[str, str]]]:
    """The types and options that `commands` give to ports without an interface, by the ports' names."""
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for command in commands:
        words = [word for word in command if not word.startswith("--")]
        if len(words) > 3 and words[0] == "set" and words[1].lower() in ("interface", "iface"):
            kind, options = virtual_columns(columns_of(words[3:])) or ("", {})
            if kind:
                found[words[2]] = (kind, options)
    return found
