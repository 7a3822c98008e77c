"""What clients of OVSDB may write to a running lab: columns that take effect, that do nothing, and that are refused.

A lab's switches, ports and controllers are those of its network. A transaction that asks for others is refused by
name, for whoever wrote it would take it for done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from twinnet.ovsdb.database import Row, Tables, TransactionRefused
from twinnet.ovsdb.row_texts import first, text_of
from twinnet.ovsdb.schema import open_vswitch
from twinnet.ovsdb.values import Value

__all__ = ["changed_controllers", "check_changes"]

_FREE = {
    "Open_vSwitch": {"external_ids", "next_cfg"},
    "Bridge": {"external_ids"},
    "Port": {"external_ids", "qos"},
    "Interface": {"external_ids"},
    "Controller": {"external_ids", "target"},
    "Mirror": {"external_ids"},
}
"""Columns that take effect, or that are notes of whoever writes them."""
_KEPT = {
    "Open_vSwitch": {"other_config"},
    "Bridge": {"other_config"},
    "Port": {"other_config"},
    "Interface": {"other_config"},
    "Controller": {
        "connection_mode",
        "controller_burst_limit",
        "controller_queue_size",
        "controller_rate_limit",
        "enable_async_messages",
        "inactivity_probe",
        "max_backoff",
        "other_config",
        "type",
    },
}
"""Columns that are kept, and told to have no effect."""
_TOLD = {
    "Controller": {"is_connected", "role", "status"},
    "Interface": {"ofport", "admin_state", "link_state", "link_speed", "mtu", "statistics"},
}
"""Columns that the lab writes itself: what a client writes there is gone at the next look."""
_REMEDIES = {
    ("Open_vSwitch", "manager_options"): "clients are served where the lab was told to when it started (--ovsdb)",
    ("Bridge", "controller"): "a switch listens for tools where its description says (listen)",
    ("Bridge", "fail_mode"): "write fail_mode of the switch in the network's description",
    ("Bridge", "protocols"): "write protocols of the switch in the network's description",
    ("Bridge", "mirrors"): "write mirrors of the switch in the network's description",
    ("Bridge", "stp_enable"): "write spanning_tree of the switch in the network's description",
    ("Port", "tag"): "write vlans of the switch in the network's description",
    ("Port", "trunks"): "write vlans of the switch in the network's description",
    ("Port", "vlan_mode"): "write vlans of the switch in the network's description",
    ("Interface", "ingress_policing_rate"): "give the other end of the link a queue with a rate",
    ("Interface", "ingress_policing_burst"): "give the other end of the link a queue with a rate",
    ("Interface", "mtu_request"): "write the MTU of the link in the network's description",
}
_USUAL_REMEDY = "say it in the network's description, before the lab starts"
_OWNERS = {
    "Port": ("Bridge", "ports", "name"),
    "Interface": ("Port", "interfaces", "name"),
    "Controller": ("Bridge", "controller", "target"),
    "Mirror": ("Bridge", "mirrors", "name"),
}
"""Tables whose rows are part of others: of which table, by which column, and the column that they are called by."""
_REFERENCES = {("Open_vSwitch", "bridges"), *((table, column) for table, column, _ in _OWNERS.values())}
"""Columns whose rows are compared by what they are called."""


def check_changes(old: Tables, new: Tables) -> list[str]:
    """Return what is to be said of changes that are kept without effect.

    Parameters
    ----------
    old, new
        The rows, and the rows that a client asks for.

    Raises
    ------
    TransactionRefused
        One of the changes is not possible while a lab runs; the text names it.
    """
    notes: list[str] = []
    for table in _FREE:
        before, after = _by_name(old, table), _by_name(new, table)
        # What is there in the place of something else is told, and not what went for it.
        for name in (*(after.keys() - before.keys()), *(before.keys() - after.keys())):
            if table != "Controller" or name.rpartition(" ")[2].startswith("p"):
                raise _refused(table, name, name in after)
        for name, row in after.items():
            held = before.get(name) or _new_row(table)
            if row is not held:
                notes += _changes_of(table, name, held, row)
    for table in new.keys() - _FREE.keys() - {"QoS", "Queue"}:
        if new[table].keys() != old[table].keys():
            raise TransactionRefused("not supported", f"a lab has no rows of table {table}")
    return notes


def changed_controllers(old: Tables, new: Tables) -> dict[str, list[str]]:
    """Return the switches that are to have other controllers, each with these."""
    before, after = _targets(old), _targets(new)
    return {switch: targets for switch, targets in after.items() if sorted(targets) != sorted(before[switch])}


def _targets(tables: Tables) -> dict[str, list[str]]:
    """The controllers that each switch dials."""
    rows = tables["Controller"]
    named = {
        str(first(bridge["name"])): [str(first(rows[str(one)]["target"])) for one in bridge["controller"]]
        for bridge in tables["Bridge"].values()
    }
    return {switch: [one for one in targets if not one.startswith("p")] for switch, targets in named.items()}


def _new_row(table: str) -> Row:
    return {column: kind.default() for column, kind in open_vswitch().tables[table].columns.items()}


def _by_name(tables: Tables, table: str) -> dict[str, Row]:
    """The rows of `table` by their names, or the names of what they are part of and their own."""
    rows = tables[table]
    if table not in _OWNERS:
        # A client that finds the row of the table Open_vSwitch gone makes another.
        return {str(first(row["name"])) if "name" in row else "": row for row in rows.values()}
    owners, column, key = _OWNERS[table]
    return {
        f"{first(owner['name'])} {first(rows[str(one)][key])}": rows[str(one)]
        for owner in tables[owners].values()
        for one in owner[column]
    }


def _refused(table: str, name: str, added: bool) -> TransactionRefused:
    """Return the refusal of a row that is added or removed."""
    owner, _, own = name.rpartition(" ")
    what = f"{table.lower()} {own}{f' of {owner}' if owner else ''}" if name else "the row of table Open_vSwitch"
    column = _OWNERS[table][:2] if table in _OWNERS else ("Open_vSwitch", "bridges")
    remedy = _REMEDIES.get(column, _USUAL_REMEDY)
    return TransactionRefused(
        "not supported", f"{what} cannot be {'added' if added else 'removed'} while the lab runs; {remedy}"
    )


def _changes_of(table: str, name: str, before: Row, after: Row) -> Iterator[str]:
    """Yield what is to be said of the changes of a row; raises `TransactionRefused`."""
    for column, value in after.items():
        if column in _FREE[table] or column in _TOLD.get(table, ()) or (table, column) in _REFERENCES:
            continue
        if value == before[column] or _means_the_same(column, before, value):
            continue
        if column not in _KEPT.get(table, ()):
            raise _cannot_change(table, name, column)
        if table == "Bridge":
            _check_datapath_id(name, after)
        yield from (
            f"{table} {name or '.'}: {one} has no effect in a lab" for one in _given(column, before[column], value)
        )


def _means_the_same(column: str, before: Row, value: Value) -> bool:
    """Whether a switch that is told `value` in another form is as it was `before`."""
    if column == "fail_mode":
        return (value or ("standalone",)) == before[column]
    if column == "connection_mode":
        return value == ("out-of-band",)
    return column == "ofport_request" and value == before["ofport"]


def _cannot_change(table: str, name: str, column: str) -> TransactionRefused:
    remedy = _REMEDIES.get((table, column), _USUAL_REMEDY)
    own = name.rpartition(" ")[2] if table in ("Port", "Interface") else name
    whose = f"{table} {own}: {column}" if name else f"{table}: {column}"
    return TransactionRefused("not supported", f"{whose} cannot change while the lab runs; {remedy}")


def _check_datapath_id(name: str, row: Row) -> None:
    settings = cast("Mapping[str, str]", row["other_config"])
    actual = str(first(row["datapath_id"]))
    if settings.get("datapath-id", actual).removeprefix("0x").zfill(len(actual)).lower() != actual:
        raise _cannot_change("Bridge", name, "other_config:datapath-id")


def _given(column: str, before: Value, after: Value) -> Iterable[str]:
    """What was written in a column, in the words of ``ovs-vsctl``; nothing where it became empty."""
    if isinstance(after, Mapping):
        held = before.items() if isinstance(before, Mapping) else ()
        changed = [pair for pair in after.items() if pair not in held and pair[0] != "datapath-id"]
        return [f"{column}:{key}={one}" for key, one in changed]
    return [f"{column}={text_of(after)}"] if after else []
