"""Rows of Open vSwitch's tables, as the switches of the fabric have them (``ovs-vswitchd.conf.db(5)``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinnet.mininet.bare_ports import LOCAL_PORT, VIRTUAL_KINDS, OwnPort, VirtualPort
from twinnet.mininet.fabric import Fabric
from twinnet.mininet.fabric_plan import SwitchPlan
from twinnet.mininet.listed_rows import every_column, full_row
from twinnet.mininet.switch_columns import KEPT_COLUMNS, POLICING_COLUMNS, TABLES, TREE_COLUMNS, port_identifier
from twinnet.ovsdb.qos_rows import Refused
from twinnet.ovsdb.row_texts import members, row_identifier
from twinnet.ovsdb.schema import VERSION

__all__ = ["SwitchRows"]

_ROOT = "."
"""The only row of the table Open_vSwitch."""
_FIRST_OF_TREE = 0x8000
"""Numbers of ports in a spanning tree begin so (IEEE 802.1D-2004, 9.2.7)."""
_LEAST_OF_IDENTIFIER = 4
"""An identifier may be cut short to so many digits."""


@dataclass
class SwitchRows:
    """What ``ovs-vsctl`` reads.

    Parameters
    ----------
    fabric
        The fabric whose switches are meant.
    rows
        Rows that were made, by identifier.
    port_qos
        The row of the table QoS of each port.
    bridge_mirrors
        The rows of the table Mirror of each bridge.
    kept
        What rows were given in columns that make no difference, by table and record.
    targets
        The targets of the rows of the table Controller that were made, by identifier.
    """

    fabric: Fabric
    rows: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    port_qos: dict[str, str] = field(default_factory=dict[str, str])
    bridge_mirrors: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    kept: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict[tuple[str, str], dict[str, str]])
    targets: dict[str, str] = field(default_factory=dict[str, str])

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

    def _record(self, table: str, word: str) -> str:
        """The key of the row of `table` that `word` means: by a name, by its identifier, which may be cut short, or as
        the only one."""
        rows = self._records(table)
        if word in rows:
            return word
        means: list[Callable[[str, set[str]], bool]] = [
            lambda identifier, names: word in (identifier, *names),
            lambda identifier, _: len(word) >= _LEAST_OF_IDENTIFIER and identifier.startswith(word.lower()),
            lambda _identifier, _names: word == _ROOT,
        ]
        for meant in means:
            found = [key for key, row in rows.items() if meant(*row)]
            if len(found) == 1:
                return found[0]
        raise Refused(f'no row "{word}" in table {table}')

    def _records(self, table: str) -> dict[str, tuple[str, set[str]]]:
        """The keys of the rows of `table`, and of each its identifier and the names that it may have."""
        plans = self.fabric.switches()
        if table == "Open_vSwitch":
            return {_ROOT: (row_identifier(table, ""), set())}
        if table == "Bridge":
            return {plan.name: (row_identifier(table, plan.name), {plan.name}) for plan in plans}
        if table in ("Port", "Interface"):
            names = [intf.name for plan in plans for intf in plan.every_port().values()]
            return {name: (port_identifier(name), {name}) for name in names}
        if table == "Controller":
            rows = {f"{plan.name}.{at}": plan for plan in plans for at in range(len(plan.controllers))}
            made = {one: (one, set[str]()) for one in self.targets}
            return {key: (key, {plan.name}) for key, plan in rows.items()} | made
        column = table.lower()
        held = {port: row for port, row in self.port_qos.items() if column == "qos"}
        held |= {record: row[column] for (_, record), row in self.kept.items() if column in row}
        return {
            key: (key, {row.get("name", key), *(name for name, one in held.items() if one == key)})
            for key, row in self.rows.items()
            if row["table"] == column
        }

    def _listed(self, table: str, records: list[str]) -> list[dict[str, Any]]:
        """The rows of `table`, or those that `records` name."""
        named = records or list(self._records(table))
        if table == "Controller" and not records:
            # A row that was made is told as the one of its bridge.
            named = [one for one in named if one not in self.targets]
        return [self._row(table, one) for one in named]

    def _row(self, table: str, record: str) -> dict[str, Any]:
        """The row of `table` with the key `record`, with all of its columns."""
        if table.lower() in TABLES:
            return {"_uuid": record, **full_row(table, self.rows[record])}
        rows: dict[str, Callable[[str], dict[str, Any]]] = {
            "Open_vSwitch": self._root_row,
            "Bridge": lambda name: self._bridge_row(self._bridge(name)),
            "Port": self._port_row,
            # The tree is told at the port.
            "Interface": lambda name: {**self._port_row(name), "status": {}},
            "Controller": lambda one: {"_uuid": one, **self._controller_row(one)},
        }
        if table not in rows:
            raise Refused(f"table {table} cannot be listed here")
        return every_column(table, rows[table](record) | self._kept_cells(table, record))

    def _kept_cells(self, table: str, record: str) -> dict[str, Any]:
        """What is kept of a row."""
        cells = full_row(table, self.kept.get((table, record), {}))
        return {column: cells[column] for column in KEPT_COLUMNS.get(table, ())}

    def _root_row(self, _record: str) -> dict[str, Any]:
        bridges = [row_identifier("Bridge", plan.name) for plan in self.fabric.switches()]
        kinds = sorted(("internal", "system", *VIRTUAL_KINDS))
        return {
            "_uuid": row_identifier("Open_vSwitch", ""),
            "bridges": f"[{', '.join(bridges)}]",
            "datapath_types": "[netdev, system]",
            "iface_types": f"[{', '.join(kinds)}]",
            "ovs_version": f'"{VERSION}"',
        }

    def _bridge_row(self, plan: SwitchPlan) -> dict[str, Any]:
        row = {"_uuid": row_identifier("Bridge", plan.name), "name": plan.name, "fail_mode": plan.fail_mode}
        row |= {"datapath_id": f'"{plan.dpid:016x}"', "protocols": f"[{', '.join(plan.protocols)}]"}
        ports = [port_identifier(intf.name) for intf in plan.every_port().values()]
        row |= {"ports": f"[{', '.join(ports)}]"}
        row |= {column: str(column in plan.spanning_tree).lower() for column in TREE_COLUMNS}
        row["mirrors"] = f"[{', '.join(self.bridge_mirrors.get(plan.name, []))}]"
        return {**row, "controller": f"[{', '.join(f'{plan.name}.{at}' for at in range(len(plan.controllers)))}]"}

    def _port_row(self, name: str) -> dict[str, Any]:
        plan, number = self._port(name)
        row = {
            "_uuid": port_identifier(name),
            "interfaces": port_identifier(name),
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
        if plan.spanning_tree:
            row |= _tree_columns(plan.spanning_tree, self.fabric.tree_role(port), number)
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


def _tree_columns(settings: Sequence[str], role: str, number: int) -> dict[str, dict[str, str]]:
    """The columns of a port that tell what the spanning tree makes of it: it is there at once, and learns nothing
    before."""
    columns: dict[str, dict[str, str]] = {}
    carries, place = role in ("root", "designated"), _FIRST_OF_TREE + number
    if number != LOCAL_PORT and "stp_enable" in settings:
        state = "forwarding" if carries else "disabled" if role == "disabled" else "blocking"
        columns["status"] = {"stp_port_id": str(place), "stp_role": role, "stp_sec_in_state": "0", "stp_state": state}
    if number != LOCAL_PORT and "rstp_enable" in settings:
        state = "Forwarding" if carries else "Discarding"
        told = {"rstp_port_id": f"{place:04x}", "rstp_port_role": role.title(), "rstp_port_state": state}
        columns["rstp_status"] = told
    return columns
