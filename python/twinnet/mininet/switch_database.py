"""``ovs-vsctl`` in a script's machine: its commands, done on the switches of the fabric.

What our switches do not have is refused with its name.
"""

from __future__ import annotations

import contextlib
import copy
import re
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from twinnet.mininet.bare_ports import LOCAL_PORT, BarePort, OwnPort, VirtualPort, virtual_columns
from twinnet.mininet.column_checks import boolean, check_columns, column_type, table_named
from twinnet.mininet.fabric import Fabric
from twinnet.mininet.fabric_plan import PROTOCOLS, SwitchPlan
from twinnet.mininet.listed_rows import Form, full_row, listed
from twinnet.mininet.switch_columns import (
    POLICING_COLUMNS,
    TABLES,
    TREE_COLUMNS,
    VLAN_COLUMNS,
    atom_text,
    cell_text,
    check_port_columns,
    checked_row,
    columns_of,
    mirror_of,
    port_identifier,
    vlans_of,
    with_names,
)
from twinnet.ovsdb.qos_rows import Refused, ineffective, queue_of
from twinnet.ovsdb.row_texts import members, row_identifier

if TYPE_CHECKING:
    from twinnet.mininet.link import Intf

__all__ = ["Refused", "SwitchDatabase"]

_OF_COMMANDS = ("--id=", "--may-exist", "--if-exists", "--all", "--columns")
_SHORT_OPTIONS = {
    "-t": "--timeout",
    "-f": "--format",
    "-d": "--data",
    "-V": "--version",
    "-v": "--verbose",
    "-p": "--private-key",
    "-c": "--certificate",
    "-C": "--ca-cert",
}
_OPTIONS_WITH_VALUES = ("--timeout", "--db", "--format", "--data", "--private-key", "--certificate", "--ca-cert")
_OPTIONS_WITHOUT = (
    *("--version", "--no-wait", "--dry-run", "--oneline", "--bare", "--no-headings", "--pretty", "--retry"),
    *("--verbose", "--no-syslog", "--syslog-method", "--syslog-target", "--log-file", "--leader-only"),
    *("--no-leader-only", "--shuffle-remotes", "--no-shuffle-remotes"),
)
_IGNORED_COLUMNS = {"datapath_type": '""', "mcast_snooping_enable": "false"}
"""Columns of bridges that make no difference and are read back, with what they are at first."""
_KEPT = ("rows", "port_qos", "bridge_mirrors", "bridge_columns", "targets", "managers")
"""The attributes that a command line leaves as they were where one of its commands is refused."""


class _Undone(Exception):
    """A command line is done for its output alone (``--dry-run``)."""


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
    _form: Form = field(default_factory=Form)

    def run(self, arguments: list[str]) -> str:
        """Do a whole command line, and return what it prints; raises :class:`Refused`."""
        words, settings = _globals(arguments)
        if "--version" in settings:
            return "ovs-vsctl (twinnet) 2.17.0\n"
        self._form = _form(settings)
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
        said: list[str] = []
        with self._transaction("--dry-run" in settings):
            for command in sorted(commands, key=lambda command: command[1:2] != ["create"]):
                said.append(self._one([with_names(word, names) for word in command]))
        if "--oneline" in settings:
            said = [one.removesuffix("\n").replace("\n", "\\n") + "\n" for one in said]
        return "".join(said)

    @contextlib.contextmanager
    def _transaction(self, dry: bool) -> Generator[None]:
        """Have the commands of a line all be done or, where one is refused or they are `dry`, none."""
        held = {name: copy.deepcopy(getattr(self, name)) for name in _KEPT}
        try:
            with self.fabric.transaction():
                yield
                self._check_references(held["rows"])
                if dry:
                    raise _Undone
        except BaseException as ended:
            for name, value in held.items():
                setattr(self, name, value)
            if not isinstance(ended, _Undone):
                raise

    def _check_references(self, before: Mapping[str, Mapping[str, str]]) -> None:
        """Refuse to destroy rows that are referred to, as the database server does when a transaction ends."""
        for gone in before.keys() - self.rows.keys():
            held = [*self.port_qos.values(), *(value for row in self.rows.values() for value in row.values())]
            if number := sum(gone in value for value in held):
                table = TABLES[before[gone]["table"]]
                said = f"cannot delete {table} row {gone} because of {number} remaining reference(s)"
                raise Refused(f'transaction error: {{"details":"{said}","error":"referential integrity violation"}}')

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

    def _bridge(self, name: str, table: str | None = None) -> SwitchPlan:
        """The bridge `name`, which a command names, or a row of `table`."""
        plan = self.fabric.switch(name)
        if plan is None:
            raise Refused(f"no bridge named {name}" if table is None else f'no row "{name}" in table {table}')
        return plan

    def _port(self, name: str, table: str | None = None) -> tuple[SwitchPlan, int]:
        for plan in self.fabric.switches():
            for number, intf in plan.every_port().items():
                if intf.name == name:
                    return plan, number
        raise Refused(f"no port named {name}" if table is None else f'no row "{name}" in table {table}')

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
        self.fabric.start_switch(SwitchPlan(words[0], dpid, {}, fail_mode="standalone", with_own=True))

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
        if number == LOCAL_PORT:
            raise Refused(f"cannot delete port {name} because it is the local port for bridge {name} "
                          "(deleting this port requires deleting the entire bridge)")  # fmt: skip
        del plan.ports[number]
        self.fabric.topology_changed()
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
        self._check(table, settings)
        if table in ("bridge", "br"):
            self._set_bridge(self._bridge(record, "Bridge"), settings)
        elif table == "port":
            self._set_port(record, settings)
        elif table in ("interface", "iface"):
            plan, number = self._port(record, "Interface")
            columns = columns_of(settings)
            port = plan.every_port()[number]
            virtual = virtual_columns(columns) if isinstance(port, VirtualPort) else None
            if virtual is not None:
                self._change_virtual(port, *virtual)
            policing = {one: columns.pop(one) for one in POLICING_COLUMNS if one in columns}
            check_port_columns("Interface", columns)
            if policing:
                plan.police(number, policing)
                self.fabric.topology_changed()
            wanted = int(columns.get("ofport_request", number))
            if wanted not in plan.ports and number in plan.ports:
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

    def _check(self, table: str, settings: list[str]) -> dict[str, str]:
        """Return the columns of `settings`; raises :class:`Refused` for what Open vSwitch's tables do not take."""
        columns = columns_of(settings)
        check_columns(table_named(table), settings, columns)
        self.notes += ineffective(columns)
        return columns

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
                if plan.protocols and not set(plan.protocols) & set(PROTOCOLS):
                    spoken = " and ".join(PROTOCOLS)
                    self.notes.append(f"{plan.name} cannot speak {', '.join(plan.protocols)}, and speaks {spoken}")
            elif column == "fail_mode":
                plan.fail_mode = value
            elif column == "other_config:datapath-id":
                plan.dpid = int(value, 16)
            elif column == "controller":
                plan.set_targets([self.targets[one] for one in members(value) if one in self.targets])
            elif column == "mirrors":
                self._set_mirrors(plan, members(value))
            elif column in TREE_COLUMNS:
                others = [one for one in plan.spanning_tree if one != column]
                plan.spanning_tree = [*others, column] if boolean(value) else others
            elif column in _IGNORED_COLUMNS:
                self.bridge_columns.setdefault(plan.name, {})[column] = value
            elif column.split(":")[0] != "other_config":
                raise Refused(f"Bridge has no column {column} that our switches know")
        self.fabric.topology_changed()

    def _set_port(self, port: str, settings: list[str]) -> None:
        self._port(port, "Port")
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
            for number, intf in plan.every_port().items():
                ports |= {intf.name: number, port_identifier(intf.name): number}
            mirrors = [mirror_of(self.rows[one], ports) for one in self.bridge_mirrors.get(plan.name, ())]
            placed = [one for one in mirrors if one is not None]
            if placed != plan.mirrors:
                plan.mirrors = placed
                self.fabric.topology_changed()

    def _create(self, words: list[str], identifier: str) -> str:
        table = words[0].lower()
        columns = self._check(table, words[1:])
        if table == "controller":
            target = columns.get("target")
            if target is None:
                raise Refused("a Controller needs target=")
            self.targets[identifier] = target
            return identifier + "\n"
        if table not in TABLES:
            known = ", ".join(("Controller", *TABLES.values()))
            raise Refused(f"a row of table {words[0]} cannot be made here; {known} can")
        self.rows[identifier] = {"table": table, **checked_row(table, columns)}
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

    def _do_list(self, words: list[str], options: list[str]) -> str:
        table = table_named(words[0])
        return self._text(table, self._listed(table, words[1:]), options)

    def _do_find(self, words: list[str], options: list[str]) -> str:
        table = table_named(words[0])
        bare = Form(data="bare")
        rows = self._listed(table, [])
        for condition in words[1:]:
            found = re.fullmatch(r"([\w-]+)(!?=)(.*)", condition)
            if found is None:
                raise Refused(f"{condition}: find compares by column=value and column!=value here")
            column = found[1].replace("-", "_")
            if column != "_uuid":
                column_type(table, column)
            wanted, same = " ".join(members(found[3])), found[2] == "="
            rows = [row for row in rows if (bare.cell(table, column, row.get(column, "")) == wanted) == same]
        return self._text(table, rows, options)

    def _text(self, table: str, rows: list[dict[str, Any]], options: list[str]) -> str:
        columns = [one.removeprefix("--columns=") for one in options if one.startswith("--columns=")]
        wanted = [one.replace("-", "_") for word in columns for one in word.split(",") if one]
        for column in wanted:
            if column != "_uuid":
                column_type(table, column)
        return listed(table, rows, wanted, self._form)

    def _listed(self, table: str, records: list[str]) -> list[dict[str, Any]]:
        """The rows of `table`, or those that `records` name."""
        if table.lower() in TABLES:
            keys = [self._identifier(one, table.lower()) for one in records]
            rows = {key: row for key, row in self.rows.items() if row["table"] == table.lower()}
            return [{"_uuid": key, **full_row(table, rows[key])} for key in keys or rows]
        if table in ("Port", "Interface"):
            every = (intf.name for plan in self.fabric.switches() for intf in plan.every_port().values())
            names = records or list(every)
            return [self._port_row(name) for name in names]
        if table == "Bridge":
            plans = [self._bridge(one, table) for one in records] if records else self.fabric.switches()
            return [self._bridge_row(plan) for plan in plans]
        if table == "Controller":
            names = [f"{plan.name}.{at}" for plan in self.fabric.switches() for at in range(len(plan.controllers))]
            return [{"_uuid": name, **self._controller_row(name)} for name in records or names]
        raise Refused(f"table {table} cannot be listed here")

    def _absent(self, table: str, record: str, column: str) -> str:
        """The cell of a column that no row of ours has: Open vSwitch's at first, or a refusal where it has none."""
        name, colon, key = column.replace("-", "_").partition(":")
        column_type(table, name)
        if colon:
            raise Refused(f'no key {key} in {table} record "{record}" column {name}')
        return listed(table, [{}], [name], Form(headings=False)).removesuffix("\n")

    def _bridge_row(self, plan: SwitchPlan) -> dict[str, Any]:
        row = {"_uuid": row_identifier("Bridge", plan.name), "name": plan.name, "fail_mode": plan.fail_mode}
        row |= {"datapath_id": f'"{plan.dpid:016x}"', "protocols": f"[{', '.join(plan.protocols)}]"}
        row |= _IGNORED_COLUMNS | self.bridge_columns.get(plan.name, {})
        row |= {column: str(column in plan.spanning_tree).lower() for column in TREE_COLUMNS}
        row["mirrors"] = f"[{', '.join(self.bridge_mirrors.get(plan.name, []))}]"
        return {**row, "controller": f"[{', '.join(f'{plan.name}.{at}' for at in range(len(plan.controllers)))}]"}

    def _port_row(self, name: str) -> dict[str, Any]:
        plan, number = self._port(name)
        row = {
            "_uuid": port_identifier(name),
            "name": name,
            "ofport": number & 0xFFFF,
            "qos": self.port_qos.get(name, "[]"),
        }
        row |= dict(zip(POLICING_COLUMNS, plan.policing.get(name, (0, 0)), strict=True))
        port = plan.every_port()[number]
        row["type"] = "internal" if isinstance(port, OwnPort) else '""'
        row |= {"type": port.kind, "options": port.options} if isinstance(port, VirtualPort) else {}
        if not isinstance(port, VirtualPort):
            state = "down" if self.fabric.is_down(port) else "up"
            row |= {"admin_state": state, "link_state": state}
        if address := getattr(port, "mac", None):
            row["mac_in_use"] = f'"{address}"'
        held = plan.vlans.get(name, {})
        row |= {"tag": held.get("tag", "[]"), "trunks": f"[{', '.join(members(held.get('trunks', '')))}]"}
        return {**row, "vlan_mode": held.get("vlan_mode", "[]"), "statistics": self._statistics(plan, number)}

    def _statistics(self, plan: SwitchPlan, number: int) -> dict[str, int]:
        """The column `statistics` of an interface: what has gone through the port."""
        counts = self.fabric.counters(plan.every_port()[number])
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
            row = self._listed(TABLES[table], [record])[0]
        else:
            raise Refused(f"table {words[0]} is not there")
        for column, value in list(row.items()):
            # A key of a column that is a map: statistics:rx_bytes.
            if isinstance(value, dict):
                pairs = cast("dict[Any, Any]", value).items()
                row |= {f"{column}:{key}": atom_text(one) for key, one in pairs}
        missing = [column for column in columns if column.lower() not in row]
        for column in missing:
            row[column.lower()] = self._absent(table_named(words[0]), record, column)
        return "".join(f"{cell_text(row[column.lower()])}\n" for column in columns)


def _globals(arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the commands' words, and the options for all of them with their values."""
    found: dict[str, str] = {}
    words, of_first = list(arguments), list[str]()
    while words and words[0].startswith("-") and words[0] != "--":
        word = words.pop(0)
        name, given, value = word.partition("=")
        name = _SHORT_OPTIONS.get(name, name)
        if word.startswith(_OF_COMMANDS):
            of_first.append(word)
        elif name in _OPTIONS_WITH_VALUES:
            if not given and not words:
                raise Refused(f"option '{word}' requires an argument")
            found[name] = value if given else words.pop(0)
        elif name in _OPTIONS_WITHOUT or name.startswith(("-v", "--verbose")):
            found[name] = value
        else:
            raise Refused(f"unrecognized option '{word}'")
    return [*of_first, *words], found


def _form(settings: Mapping[str, str]) -> Form:
    bare = "--bare" in settings
    return Form(
        settings.get("--format", "list"),
        settings.get("--data", "bare" if bare else "string"),
        not bare and "--no-headings" not in settings,
    )


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
