"""``ovs-vsctl`` in a script's machine: its commands, done on the switches of the fabric.

What our switches do not have is refused with its name.
"""

from __future__ import annotations

import contextlib
import copy
import re
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from twinnet.mininet.bare_ports import (
    LOCAL_PORT,
    BarePort,
    OwnPort,
    VirtualPort,
    virtual_columns,
)
from twinnet.mininet.column_checks import boolean, check_columns
from twinnet.mininet.fabric import is_there
from twinnet.mininet.fabric_plan import PROTOCOLS, SwitchPlan
from twinnet.mininet.listed_rows import Form, listed
from twinnet.mininet.row_conditions import met
from twinnet.mininet.switch_columns import (
    INTERNAL,
    KEPT_COLUMNS,
    POLICING_COLUMNS,
    SAMPLING_TABLES,
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
from twinnet.mininet.switch_rows import SwitchRows
from twinnet.mininet.vsctl_words import Line, with_full_names
from twinnet.ovsdb.qos_rows import Refused, ineffective, queue_of
from twinnet.ovsdb.row_texts import members, row_identifier
from twinnet.ovsdb.schema import VERSION

if TYPE_CHECKING:
    from twinnet.mininet.link import Intf

__all__ = ["Refused", "SwitchDatabase"]

_KEPT = ("rows", "port_qos", "bridge_mirrors", "kept", "targets", "managers")
"""The attributes that a command line leaves as they were where one of its commands is refused."""
_INTERNAL = f"                type: {INTERNAL}"
_OF_RECORDS = ("list", "get", "set", "add", "remove", "clear", "destroy", "wait-until")


class _Undone(Exception):
    """A command line is done for its output alone (``--dry-run``)."""


@dataclass
class SwitchDatabase(SwitchRows):
    """What ``ovs-vsctl`` reads and writes.

    Parameters
    ----------
    managers
        What ``set-manager`` was given.
    notes
        What is to be said beside the answer to the command line that is being done.
    """

    managers: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    _coming: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict[str, tuple[str, dict[str, str]]])
    """The types and options of ports without an interface of the machine that the command line tells of, by their
    names."""
    _form: Form = field(default_factory=Form)

    def run(self, arguments: list[str]) -> str:
        """Do a whole command line, and return what it prints; raises :class:`Refused`."""
        line = Line.read(arguments)
        if "--version" in line.settings:
            return f"ovs-vsctl (twinnet) {VERSION}\n"
        if not line.settings.get("--timeout", "0").isdecimal():
            raise Refused(f"value {line.settings['--timeout']} on -t or --timeout is invalid")
        line.check()
        self._form = _form(line.settings)
        commands = [with_full_names(command) for command in line.commands]
        names = self._names_of_rows(commands)
        self._coming = _virtual_ports(commands)
        said = [""] * len(commands)
        with self._transaction("--dry-run" in line.settings):
            # Rows are made before those that name them.
            for place in sorted(range(len(commands)), key=lambda place: "create" not in commands[place][:2]):
                said[place] = self._one([with_names(word, names) for word in commands[place]])
        if "--oneline" in line.settings:
            said = [one.removesuffix("\n").replace("\n", "\\n") + "\n" for one in said]
        return "".join(said)

    def _names_of_rows(self, commands: list[list[str]]) -> dict[str, str]:
        """The identifiers of rows that `commands` give names to, such as ``--id=@q``."""
        names: dict[str, str] = {}
        for command in commands:
            name = next((one.removeprefix("--id=") for one in command if one.startswith("--id=@")), None)
            if name is None:
                continue
            options = [one for one in command if one.startswith("--")]
            kind, table, record, *_ = [*command[len(options) :], ""]
            if kind != "get":
                names[name] = str(uuid.uuid4())
            elif table in ("Port", "Interface"):
                # It may be added by the same line.
                names[name] = port_identifier(record)
            else:
                names[name] = self._records(table)[self._record(table, record)][0]
        return names

    @contextlib.contextmanager
    def _transaction(self, dry: bool) -> Generator[None]:
        """Have the commands of a line all be done or, where one is refused or they are `dry`, none."""
        held = {name: copy.deepcopy(getattr(self, name)) for name in _KEPT}
        try:
            with self.fabric.transaction():
                yield
                self._drop_unused()
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
        name, *words = command[len(options) :]
        call: Callable[[list[str], list[str]], str | None] | None = getattr(self, "_do_" + name.replace("-", "_"), None)
        if call is None:
            raise Refused(f"our switches have no command '{name}'")
        if name in _OF_RECORDS:
            table, *records = words
            named = records if name in ("list", "destroy") else records[:1]
            try:
                found = [self._record(table, one) for one in named]
            except Refused:
                if "--if-exists" in options:
                    return ""
                raise
            words = [table, *found, *records[len(named) :]]
        return call(words, options) or ""

    def _keep(self, table: str, record: str, columns: dict[str, str]) -> dict[str, str]:
        """Keep those of `columns` that make no difference in a row, and return the others."""
        known = KEPT_COLUMNS.get(table, ())
        kept = {name: value for name, value in columns.items() if name.partition(":")[0] in known}
        for column in SAMPLING_TABLES:
            if column in kept:
                found = [self._record(TABLES[column], one) for one in members(kept[column])]
                kept[column] = found[0] if found else ""
        self.kept.setdefault((table, record), {}).update(kept)
        self._tell_samples()
        return {name: value for name, value in columns.items() if name not in kept}

    def _drop(self, table: str, record: str, column: str, keys: Sequence[str] | None = None) -> bool:
        """Empty a column that makes no difference, or take `keys` of it out; return whether it is such a one."""
        if column not in KEPT_COLUMNS.get(table, ()):
            return False
        held = self.kept.setdefault((table, record), {})
        gone = [column, *(name for name in held if name.startswith(f"{column}:"))]
        if keys is not None and column in SAMPLING_TABLES:
            gone = [column] if held.get(column) in keys else []
        elif keys is not None:
            pairs = [one.partition("=") for one in keys]
            gone = [
                f"{column}:{key}"
                for key, given, value in pairs
                if not given or held.get(f"{column}:{key}") == value.strip('"')
            ]
        for name in gone:
            held.pop(name, None)
        return True

    def _drop_unused(self) -> None:
        """Have rows go that only a reference keeps."""
        for key in [one for one, row in self.kept.items() if not row or one[1] not in self._records(one[0])]:
            del self.kept[key]
        used = {row.get(column) for row in self.kept.values() for column in SAMPLING_TABLES}
        gone = [key for key, row in self.rows.items() if row["table"] in SAMPLING_TABLES and key not in used]
        for key in gone:
            del self.rows[key]

    def _do_init(self, _words: list[str], _options: list[str]) -> None:
        pass

    def _do_show(self, _words: list[str], _options: list[str]) -> str:
        lines = [row_identifier("Open_vSwitch", "")]
        for plan in self.fabric.switches():
            lines.append(f"    Bridge {plan.name}")
            for target in plan.controllers:
                lines.append(f'        Controller "{target}"')
                if self.fabric.is_connected(plan.name):
                    lines.append("            is_connected: true")
            lines.append(f"        fail_mode: {plan.fail_mode}")
            if kind := self.kept.get(("Bridge", plan.name), {}).get("datapath_type"):
                lines.append(f"        datapath_type: {kind}")
            for number in sorted(plan.ports):
                lines += self._shown_port(plan, plan.ports[number])
            lines += [f"        Port {plan.name}", f"            Interface {plan.name}", _INTERNAL]
        return "\n".join(lines) + '\n    ovs_version: "2.17.0"\n'

    def _shown_port(self, plan: SwitchPlan, port: Intf | BarePort) -> list[str]:
        lines, vlans = [f"        Port {port.name}"], plan.vlans.get(port.name, {})
        if tag := vlans.get("tag"):
            lines.append(f"            tag: {tag}")
        if trunks := members(vlans.get("trunks", "")):
            lines.append(f"            trunks: [{', '.join(trunks)}]")
        lines.append(f"            Interface {port.name}")
        if isinstance(port, OwnPort):
            lines.append(_INTERNAL)
        if isinstance(port, VirtualPort):
            lines += [
                f"                type: {port.kind}",
                f"                options: {cell_text(dict(sorted(port.options.items())))}",
            ]
        return lines

    def _do_list_br(self, _words: list[str], _options: list[str]) -> str:
        return "".join(f"{plan.name}\n" for plan in self.fabric.switches())

    def _do_br_exists(self, words: list[str], _options: list[str]) -> None:
        self._bridge(words[0])

    def _do_list_ports(self, words: list[str], _options: list[str]) -> str:
        return "".join(f"{intf.name}\n" for intf in self._bridge(words[0]).ports.values())

    _do_list_ifaces = _do_list_ports

    def _do_br_to_vlan(self, words: list[str], _options: list[str]) -> str:
        return "0\n" if self._bridge(words[0]) else ""

    def _do_br_to_parent(self, words: list[str], _options: list[str]) -> str:
        return f"{self._bridge(words[0]).name}\n"

    def _do_br_set_external_id(self, words: list[str], _options: list[str]) -> None:
        bridge, key, *value = words
        self._bridge(bridge)
        if value:
            self._keep("Bridge", bridge, {f"external_ids:{key}": value[0]})
        else:
            self._drop("Bridge", bridge, "external_ids", [key])

    def _do_br_get_external_id(self, words: list[str], _options: list[str]) -> str:
        held: dict[str, str] = self._kept_cells("Bridge", self._bridge(words[0]).name)["external_ids"]
        if len(words) > 1:
            return f"{held[words[1]]}\n" if words[1] in held else ""
        return "".join(f"{key}={value}\n" for key, value in sorted(held.items()))

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
        for port in self._bridge(words[0]).every_port().values():
            self._forget_port(port.name)
        self.kept.pop(("Bridge", words[0]), None)
        self.fabric.stop_switch(words[0])

    def _forget_port(self, name: str) -> None:
        for table in ("Port", "Interface"):
            self.kept.pop((table, name), None)

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
        intf = self._port_to_be(name, plan)
        owned = next((number for number, one in getattr(intf.node, "intfs", {}).items() if one is intf), None)
        free = next(number for number in range(1, 1 << 16) if number not in plan.ports)
        plan.ports[owned if owned and owned not in plan.ports else free] = intf
        if type(intf) is BarePort and not is_there(intf, plan):
            said = f"Error detected while setting up '{name}': could not open network device {name} (No such device)"
            self.notes.append(said)
        if vlans:
            plan.vlans[name] = vlans
        self.fabric.topology_changed()

    def _port_to_be(self, name: str, plan: SwitchPlan) -> Intf | BarePort:
        """The interface `name`, or the port of another type that the command line tells of."""
        if name not in self._coming:
            return self.fabric.interface(name)
        if self._coming[name][0] == INTERNAL:
            return self.fabric.internal_port(name, plan)
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
        self._forget_port(name)
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
        table, record, settings = words[0], words[1], words[2:]
        columns = self._keep(table, record, self._check(table, settings))
        if table == "Bridge":
            self._set_bridge(self._bridge(record, "Bridge"), columns)
        elif table == "Port":
            self._set_port(record, columns)
        elif table == "Interface":
            self._set_interface(record, columns)
        elif table == "Controller":
            pass
        elif table.lower() in TABLES:
            self._rows(record, table.lower()).update(checked_row(table.lower(), columns))
            self.apply()
        elif columns:
            raise Refused(f"{table}: our switches have no {next(iter(columns))}")

    def _set_interface(self, record: str, columns: dict[str, str]) -> None:
        plan, number = self._port(record, "Interface")
        port = plan.every_port()[number]
        virtual = virtual_columns(columns) if isinstance(port, VirtualPort) else None
        if virtual is not None:
            self._change_virtual(port, *virtual)
        if columns.get("type") == INTERNAL and type(port) is BarePort:
            plan.ports[number] = self.fabric.internal_port(record, plan)
            self.fabric.topology_changed()
        policing = {one: columns.pop(one) for one in POLICING_COLUMNS if one in columns}
        check_port_columns("Interface", columns)
        if policing:
            plan.police(number, policing)
            self.fabric.topology_changed()
        wanted = int(columns.get("ofport_request", number))
        if wanted not in plan.ports and number in plan.ports:
            plan.ports[wanted] = plan.ports.pop(number)
            self.fabric.topology_changed()

    def _check(self, table: str, settings: list[str]) -> dict[str, str]:
        """Return the columns of `settings`; raises :class:`Refused` for what Open vSwitch's tables do not take."""
        columns = columns_of(settings)
        check_columns(table, settings, columns)
        self.notes += ineffective(columns)
        return columns

    def _change_virtual(self, port: Intf | BarePort, kind: str, options: dict[str, str]) -> None:
        """Have a port without an interface be of another type, or have other options."""
        if isinstance(port, VirtualPort):
            port.change(kind or port.kind, options)
            self.fabric.topology_changed()

    def _identifier(self, record: str, table: str) -> str:
        return self._record(TABLES[table], record)

    def _rows(self, record: str, table: str = "qos") -> dict[str, Any]:
        return self.rows[self._identifier(record, table)]

    def _set_bridge(self, plan: SwitchPlan, columns: Mapping[str, str]) -> None:
        if dpid := self.kept.get(("Bridge", plan.name), {}).get("other_config:datapath-id"):
            plan.dpid = int(dpid, 16)
        for column, value in columns.items():
            if column == "protocols":
                plan.protocols = [one for one in re.split(r"[,\s\[\]]+", value) if one]
                if plan.protocols and not set(plan.protocols) & set(PROTOCOLS):
                    spoken = " and ".join(PROTOCOLS)
                    self.notes.append(f"{plan.name} cannot speak {', '.join(plan.protocols)}, and speaks {spoken}")
            elif column == "fail_mode":
                plan.fail_mode = value
            elif column == "controller":
                plan.set_targets([self.targets[one] for one in members(value) if one in self.targets])
            elif column == "mirrors":
                self._set_mirrors(plan, members(value))
            elif column in TREE_COLUMNS:
                others = [one for one in plan.spanning_tree if one != column]
                plan.spanning_tree = [*others, column] if boolean(value) else others
            else:
                raise Refused(f"Bridge has no column {column} that our switches know")
        self.fabric.topology_changed()

    def _set_port(self, port: str, columns: dict[str, str]) -> None:
        self._port(port, "Port")
        for column in columns:
            if column not in ("qos", *VLAN_COLUMNS):
                raise Refused(f"Port {port}: our switches have no {column}")
        if "qos" in columns:
            self.port_qos[port] = self._record("QoS", columns["qos"])
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

    def _do_create(self, words: list[str], options: list[str]) -> str:
        table, settings = words[0], words[1:]
        identifier = next((one.removeprefix("--id=") for one in options if one.startswith("--id=")), None)
        row_table, columns = table.lower(), self._check(table, settings)
        if table != "Controller" and row_table not in TABLES:
            known = ", ".join(("Controller", *TABLES.values()))
            raise Refused(f"a row of table {table} cannot be made here; {known} can")
        if identifier is None:
            identifier = str(uuid.uuid4())
            if row_table in SAMPLING_TABLES:
                self.notes.append(f'applying "create" command to table {table} without --id option will have no effect')
        if table == "Controller":
            if "target" not in columns:
                raise Refused("a Controller needs target=")
            self.targets[identifier] = columns["target"]
        else:
            self.rows[identifier] = {"table": row_table, **checked_row(row_table, columns)}
        return identifier + "\n"

    def _tell_samples(self) -> None:
        for (_, record), row in self.kept.items():
            for column in (one for one in SAMPLING_TABLES if row.get(one)):
                said = f"{TABLES[column]} of {record} is kept and shown, and no samples are sent"
                self.fabric.advice.tell(column, said, "capture at ports by tcpdump, or ask for their counters")

    def apply(self) -> None:
        """Give ports and bridges what their rows say; raises :class:`Refused` for what our switches do not have."""
        self._tell_samples()
        for port in self.port_qos:
            self._apply_qos(port)
        if self.bridge_mirrors:
            self._apply_mirrors()

    def _apply_qos(self, port: str) -> None:
        self.fabric.set_queue(port, queue_of(self._rows(self.port_qos[port]), lambda one: self._rows(one, "queue")))

    def _do_add(self, words: list[str], _options: list[str]) -> None:
        table, record, column, values = words[0], words[1], words[2], words[3:]
        if (table, column) == ("Port", "trunks"):
            plan, _ = self._port(record)
            held = members(plan.vlans.get(record, {}).get(column, ""))
            self._change_vlans(record, {column: ",".join([*held, *values])})
        elif (table, column) == ("Bridge", "mirrors"):
            plan = self._bridge(record)
            self._set_mirrors(plan, [*self.bridge_mirrors.get(plan.name, []), *values])
        elif column in KEPT_COLUMNS.get(table, ()):
            self._keep(table, record, columns_of([f"{column}={value}" for value in values]))
        else:
            raise Refused(f"{' '.join(words)} cannot be added here; trunks of a port and mirrors of a bridge can")

    def _do_remove(self, words: list[str], options: list[str]) -> None:
        table, record, column, values = words[0], words[1], words[2], words[3:]
        if (table, column) == ("Port", "trunks"):
            plan, _ = self._port(record)
            held = members(plan.vlans.get(record, {}).get(column, ""))
            self._change_vlans(record, {column: ",".join(one for one in held if one not in values)})
        elif (table, column) == ("Bridge", "mirrors"):
            plan = self._bridge(record)
            gone = [self._identifier(one, "mirror") for one in values]
            self._set_mirrors(plan, [one for one in self.bridge_mirrors.get(plan.name, []) if one not in gone])
        elif not self._drop(table, record, column, values):
            self._do_clear(words[:3], options)

    def _do_clear(self, words: list[str], _options: list[str]) -> None:
        table, record, columns = words[0], words[1], words[2:]
        columns = [one for one in columns if not self._drop(table, record, one)]
        if table == "Bridge" and "mirrors" in columns:
            self._set_mirrors(self._bridge(record), [])
            columns.remove("mirrors")
        if columns and (table != "Port" or not set(columns) <= {"qos", *VLAN_COLUMNS}):
            raise Refused(
                f"{' '.join(words)} cannot be cleared here; qos, tag, trunks and vlan_mode of a port and mirrors of a "
                "bridge can"
            )
        if "qos" in columns and self.port_qos.pop(record, None) is not None:
            self.fabric.set_queue(record, None)
        if table == "Port":
            self._change_vlans(record, dict.fromkeys((one for one in columns if one != "qos"), ""))

    def _do_destroy(self, words: list[str], options: list[str]) -> None:
        table, gone = words[0].lower(), set(words[1:])
        if table not in TABLES:
            raise Refused(
                f"rows of table {words[0]} cannot be destroyed here; those of {', '.join(TABLES.values())} can"
            )
        if table in SAMPLING_TABLES:
            # They go with the last reference to them, and not before.
            return
        if "--all" in options:
            gone = {key for key, row in self.rows.items() if row["table"] == table}
        for key in gone & self.rows.keys():
            del self.rows[key]
        if table == "mirror":
            for rows in self.bridge_mirrors.values():
                rows[:] = [one for one in rows if one not in gone]
            self._apply_mirrors()

    def _do_list(self, words: list[str], options: list[str]) -> str:
        return self._text(words[0], self._listed(words[0], words[1:]), options)

    def _do_find(self, words: list[str], options: list[str]) -> str:
        table, *conditions = words
        rows = [row for row in self._listed(table, []) if all(met(table, row, one) for one in conditions)]
        return self._text(table, rows, options)

    def _text(self, table: str, rows: list[dict[str, Any]], options: list[str]) -> str:
        columns = [one.removeprefix("--columns=") for one in options if one.startswith("--columns=")]
        return listed(table, rows, [one for word in columns for one in word.split(",")], self._form)

    def _do_get(self, words: list[str], options: list[str]) -> str:
        table, record, columns = words[0], words[1], words[2:]
        row = self._row(table, record)
        return "".join(f"{self._value(table, record, row, column, '--if-exists' in options)}\n" for column in columns)

    def _value(self, table: str, record: str, row: Mapping[str, Any], column: str, perhaps: bool) -> str:
        """A cell of a row, or what a map in it has for a key; nothing where it `perhaps` has none."""
        name, colon, key = column.partition(":")
        cell = row[name]
        if not colon:
            return cell_text(cell)
        if not isinstance(cell, dict):
            raise Refused(f"cannot specify key to get for non-map column {name}")
        texts = {str(one): atom_text(value) for one, value in cast("dict[Any, Any]", cell).items()}
        if key.strip('"') in texts:
            return texts[key.strip('"')]
        if perhaps:
            return ""
        raise Refused(f'no key "{key}" in {table} record "{record}" column {name}')

    def _do_wait_until(self, words: list[str], _options: list[str]) -> None:
        """Return at once where the row is as it is waited for; our switches take nothing later."""
        table, record, *conditions = words
        row = self._row(table, record)
        for condition in conditions:
            if not met(table, row, condition):
                raise Refused(f"{condition} is not so, and would not be later")


def _form(settings: Mapping[str, str]) -> Form:
    bare = "--bare" in settings
    return Form(
        settings.get("--format", "list"),
        settings.get("--data", "bare" if bare else "string"),
        not bare and "--no-headings" not in settings,
    )


def _virtual_ports(commands: list[list[str]]) -> dict[str, tuple[str, dict[str, str]]]:
    """The types and options that `commands` give to ports without an interface of the machine, by the ports' names."""
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for command in commands:
        words = [word for word in command if not word.startswith("--")]
        if len(words) > 3 and words[:2] == ["set", "Interface"]:
            columns = columns_of(words[3:])
            kind, options = (INTERNAL, {}) if columns.get("type") == INTERNAL else virtual_columns(columns) or ("", {})
            if kind:
                found[words[2]] = (kind, options)
    return found
