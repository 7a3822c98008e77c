"""``ovs-vsctl`` in a script's machine: its commands, done on the switches of the fabric.

The program in the machine sends its arguments by a socket to the script's process, which does them here. What our
switches do not have is refused with its name.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twinnet.errors import TwinnetError
from twinnet.mininet.fabric import FABRIC, Fabric
from twinnet.mininet.fabric_plan import SwitchPlan
from twinnet.mininet.line_control import LineControl, LineRefused, NoLine
from twinnet.mininet.tool_doors import RUN_VARIABLE

__all__ = ["Refused", "SwitchDatabase", "serve"]

_REQUEST_BYTES = 1 << 20
_serving: set[int] = set()
_OF_COMMANDS = ("--id=", "--may-exist", "--if-exists", "--all", "--columns")
_OPTIONS_WITH_VALUES = ("-t", "--timeout", "--db")
_SHALLOWEST_BURST_BYTES = 1518
_LAST_PRIORITY = 7
_IGNORED_COLUMNS = ("datapath_type", "datapath-type", "stp_enable", "rstp_enable", "mcast_snooping_enable")


class Refused(Exception):
    """A command that cannot be done; its text is what ``ovs-vsctl`` tells."""


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
    managers
        What ``set-manager`` was given.
    notes
        What is to be told beside the answer to the command line that is being done.
    """

    fabric: Fabric
    rows: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    port_qos: dict[str, str] = field(default_factory=dict[str, str])
    managers: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

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
                names["@" + command[0].removeprefix("--id=@")] = str(uuid.uuid4())
        said = ""
        for command in sorted(commands, key=lambda command: not command[0].startswith("--id=")):
            said += self._one([_named(word, names) for word in command])
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
        _check_settings("Port", words[2:])
        intf = self.fabric.interface(name)
        owned = next((number for number, one in getattr(intf.node, "intfs", {}).items() if one is intf), None)
        free = next(number for number in range(1, 1 << 16) if number not in plan.ports)
        plan.ports[owned if owned and owned not in plan.ports else free] = intf
        self.fabric.topology_changed()

    def _do_del_port(self, words: list[str], options: list[str]) -> None:
        name = words[-1]
        try:
            plan, number = self._port(name)
        except Refused:
            if "--if-exists" in options:
                return
            raise
        del plan.ports[number]
        self.fabric.topology_changed()

    def _do_set_controller(self, words: list[str], _options: list[str]) -> None:
        self._bridge(words[0]).controllers = [one for one in words[1:] if not one.startswith("p")]
        self.fabric.topology_changed()

    def _do_get_controller(self, words: list[str], _options: list[str]) -> str:
        return "".join(f"{target}\n" for target in self._bridge(words[0]).controllers)

    def _do_del_controller(self, words: list[str], _options: list[str]) -> None:
        self._do_set_controller(words[:1], [])

    def _do_set_manager(self, words: list[str], _options: list[str]) -> None:
        self.managers = list(words)
        self.notes.append("no OVSDB server answers at a manager here; ovs-vsctl works without one")

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
            _check_settings("Interface", settings)
            wanted = int(_columns(settings).get("ofport_request", number))
            if wanted not in plan.ports:
                plan.ports[wanted] = plan.ports.pop(number)
                self.fabric.topology_changed()
        elif table == "controller":
            pass
        elif table in ("qos", "queue"):
            self._rows(record).update(_columns(settings))
            self._apply_all()
        else:
            raise Refused(f"table {words[0]} is not there; our switches have Bridge, Port, Interface, QoS and Queue")

    def _rows(self, identifier: str) -> dict[str, Any]:
        if identifier not in self.rows:
            raise Refused(f'no row "{identifier}" in table QoS')
        return self.rows[identifier]

    def _set_bridge(self, plan: SwitchPlan, settings: list[str]) -> None:
        for column, value in _columns(settings).items():
            if column == "protocols":
                plan.protocols = [one for one in re.split(r"[,\s\[\]]+", value) if one]
            elif column in ("fail_mode", "fail-mode"):
                plan.fail_mode = value
            elif column.replace("_", "-") == "other-config:datapath-id":
                plan.dpid = int(value, 16)
            elif column.split(":")[0] not in ("other_config", "other-config", *_IGNORED_COLUMNS):
                raise Refused(f"Bridge has no column {column} that our switches know")
        self.fabric.topology_changed()

    def _set_port(self, port: str, settings: list[str]) -> None:
        self._port(port)
        columns = _columns(settings)
        for column in columns:
            if column != "qos":
                raise Refused(f"Port {port}: our switches have no {column}")
        if "qos" in columns:
            self._rows(columns["qos"])
            self.port_qos[port] = columns["qos"]
            self._apply(port)

    def _create(self, words: list[str], identifier: str) -> str:
        if words[0].lower() not in ("qos", "queue"):
            raise Refused(f"a row of table {words[0]} cannot be made here; QoS and Queue can")
        self.rows[identifier] = {"table": words[0].lower(), **_columns(words[1:])}
        return identifier + "\n"

    def _apply_all(self) -> None:
        for port in self.port_qos:
            self._apply(port)

    def _apply(self, port: str) -> None:
        """Give the port the queues of its row of QoS, as Open vSwitch's linux-htb."""
        row = self._rows(self.port_qos[port])
        kind = row.get("type", "linux-htb")
        if kind == "egress-policer":
            self.fabric.set_queue(port, _policer(row))
            return
        if kind not in ("linux-htb", "linux-hfsc"):
            raise Refused(
                f"a QoS of type {kind} is not there; our switches have linux-htb, linux-hfsc and egress-policer"
            )
        ceiling = int(row.get("other_config:max-rate", 10**9))
        queues: dict[str, Any] = {}
        for column, value in row.items():
            if column.startswith("queues:"):
                queue = self._rows(value)
                most = int(queue.get("other_config:max-rate", ceiling))
                least = min(int(queue.get("other_config:min-rate", 12_000)), most, ceiling)
                promised: dict[str, Any] = {"min_rate_bps": least, "max_rate_bps": min(most, ceiling)}
                if "other_config:burst" in queue:
                    bits = int(queue["other_config:burst"])
                    promised["burst_bytes"] = max(bits // 8, _SHALLOWEST_BURST_BYTES)
                if kind == "linux-htb" and "other_config:priority" in queue:
                    promised["priority"] = min(int(queue["other_config:priority"]), _LAST_PRIORITY)
                queues[column.split(":")[1]] = promised
        queues.setdefault("0", {"min_rate_bps": min(12_000, ceiling), "max_rate_bps": ceiling})
        self.fabric.set_queue(port, {"kind": "htb", "rate_bps": ceiling, "queues": queues})

    def _do_remove(self, words: list[str], options: list[str]) -> None:
        self._do_clear(words[:3], options)

    def _do_clear(self, words: list[str], _options: list[str]) -> None:
        if words[0].lower() == "port" and "qos" in words[2:]:
            self._port(words[1])
            if self.port_qos.pop(words[1], None) is not None:
                self.fabric.set_queue(words[1], None)
        else:
            raise Refused(f"{' '.join(words)} cannot be cleared here; clear port NAME qos can")

    def _do_destroy(self, words: list[str], options: list[str]) -> None:
        if "--all" in options:
            self.rows = {key: row for key, row in self.rows.items() if row["table"] != words[0].lower()}
            return
        for identifier in words[1:]:
            if self.rows.pop(identifier, None) is None and "--if-exists" not in options:
                raise Refused(f'no row "{identifier}" in table {words[0]}')

    def _do_list(self, words: list[str], _options: list[str]) -> str:
        table = words[0].lower()
        if table in ("qos", "queue"):
            rows = {key: row for key, row in self.rows.items() if row["table"] == table}
            return "\n".join(_record({"_uuid": key, **row}) for key, row in rows.items())
        if table in ("port", "interface", "iface"):
            names = words[1:] or [intf.name for plan in self.fabric.switches() for intf in plan.ports.values()]
            return "\n".join(_record(self._port_row(name)) for name in names)
        if table in ("bridge", "br"):
            plans = [plan for plan in self.fabric.switches() if len(words) < 2 or plan.name == words[1]]
            return "\n".join(_record(self._bridge_row(plan)) for plan in plans)
        raise Refused(f"table {words[0]} cannot be listed here")

    def _bridge_row(self, plan: SwitchPlan) -> dict[str, Any]:
        row = {"_uuid": uuid.uuid5(uuid.NAMESPACE_OID, plan.name), "name": plan.name, "fail_mode": plan.fail_mode}
        row |= {"datapath_id": f'"{plan.dpid:016x}"', "protocols": f"[{', '.join(plan.protocols)}]"}
        return {**row, "controller": f"[{', '.join(f'{plan.name}.{at}' for at in range(len(plan.controllers)))}]"}

    def _port_row(self, name: str) -> dict[str, Any]:
        _, number = self._port(name)
        row = {"_uuid": uuid.uuid5(uuid.NAMESPACE_OID, name), "name": name, "ofport": number}
        return {**row, "qos": self.port_qos.get(name, "[]")}

    def _do_get(self, words: list[str], _options: list[str]) -> str:
        table, record, columns = words[0].lower(), words[1], words[2:]
        if table == "controller":
            connected = self.fabric.is_connected(record.split(".")[0])
            row: dict[str, Any] = {"is_connected": str(connected).lower()}
        elif table in ("bridge", "br"):
            row = self._bridge_row(self._bridge(record))
        elif table in ("interface", "iface", "port"):
            row = self._port_row(record)
        else:
            row = self._rows(record)
        missing = [column for column in columns if column.lower() not in row]
        if missing:
            raise Refused(f"{words[0]} has no column {missing[0]} here")
        return "".join(f"{row[column.lower()]}\n" for column in columns)


def _policer(row: dict[str, Any]) -> dict[str, Any]:
    """The queue of an ``egress-policer``: `cir` bytes in a second, and a burst of `cbs` bytes; the rest is dropped."""
    missing = [name for name in ("cir", "cbs") if f"other_config:{name}" not in row]
    if missing:
        raise Refused(f"an egress-policer needs other_config:{missing[0]}")
    rate, burst = (int(row[f"other_config:{name}"]) for name in ("cir", "cbs"))
    queue = {"kind": "fifo", "limit_frames": 1}
    return {"kind": "tbf", "rate_bps": 8 * rate, "burst_bytes": max(burst, _SHALLOWEST_BURST_BYTES), "queue": queue}


def _named(word: str, names: dict[str, str]) -> str:
    if word.startswith("--id=@"):
        return "--id=" + names["@" + word.removeprefix("--id=@")]
    return re.sub(r"@\w+", lambda found: names.get(found[0], found[0]), word)


def _columns(settings: list[str]) -> dict[str, str]:
    """Return columns and values; those of maps by ``column:key``. Both spellings of columns are one."""
    found: dict[str, str] = {}
    for setting in settings:
        column, _, value = setting.partition("=")
        column = column.replace("other-config", "other_config")
        if value.startswith("{") or ("=" in value and column in ("queues", "other_config")):
            for pair in value.strip("{}").split(","):
                key, _, content = pair.partition("=")
                found[f"{column}:{key.strip()}"] = content.strip()
        else:
            found[column] = value.strip('"')
    return found


def _check_settings(table: str, settings: list[str]) -> None:
    for column, value in _columns(settings).items():
        if column in ("ofport_request", "type") and value in ("", "system", "internal"):
            continue
        if column != "ofport_request":
            raise Refused(f"{table}: our switches have no {column}={value}")


def _record(row: dict[str, Any]) -> str:
    return "".join(f"{column:<20}: {value}\n" for column, value in row.items() if column != "table")


def _database_reply(database: SwitchDatabase, asked: list[str]) -> dict[str, Any]:
    try:
        database.notes = []
        out = database.run(asked)
        reply = {"out": out, "err": "".join(f"ovs-vsctl: {note}\n" for note in database.notes), "status": 0}
    except (Refused, TwinnetError, IndexError, ValueError) as refused:
        told = "the command lacks words" if isinstance(refused, IndexError) else str(refused)
        reply = {"out": "", "err": f"ovs-vsctl: {told}\n", "status": 2 if asked[:1] == ["br-exists"] else 1}
    FABRIC.settle()
    return reply


def _line_reply(lines: LineControl, asked: list[str]) -> dict[str, Any]:
    """What ``tc`` is to print; the status -1 has the kernel's ``tc`` do it."""
    try:
        return {"out": lines.run(asked), "err": "", "status": 0}
    except NoLine:
        return {"out": "", "err": "", "status": -1}
    except (LineRefused, TwinnetError, IndexError, ValueError) as refused:
        return {"out": "", "err": f"{refused}\n", "status": 2}


def serve() -> None:
    """Answer ``ovs-vsctl`` and ``tc`` in a script's machine from a thread of this process; once. The switches and lines
    of a process are known as long as it lives."""
    folder = os.environ.get(RUN_VARIABLE)
    if folder is None or os.getpid() in _serving:
        return
    _serving.add(os.getpid())
    database, lines = SwitchDatabase(FABRIC), LineControl(FABRIC)
    path = Path(folder) / f"{os.getpid()}.vsctl"
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(64)

    def answer() -> None:
        while True:
            sock, _ = listener.accept()
            with sock, sock.makefile("rwb") as stream:
                program, *asked = json.loads(stream.readline(_REQUEST_BYTES))
                reply = _line_reply(lines, asked) if program == "tc" else _database_reply(database, asked)
                stream.write(json.dumps(reply).encode())

    threading.Thread(target=answer, name="twinnet-vsctl", daemon=True).start()
