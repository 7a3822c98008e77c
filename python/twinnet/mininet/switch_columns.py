"""Columns of Open vSwitch's tables (``ovs-vswitchd.conf.db(5)``), and what they say in the form of the lab protocol."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from twinnet.network.vlans import MODES

__all__ = [
    "MIRROR_COLUMNS",
    "POLICING_COLUMNS",
    "TABLES",
    "TREE_COLUMNS",
    "VLAN_COLUMNS",
    "Refused",
    "atom_text",
    "cell_text",
    "check_port_columns",
    "checked_row",
    "columns_of",
    "members",
    "mirror_of",
    "number_of",
    "policer",
    "port_identifier",
    "queue_of",
    "row_identifier",
    "vlans_of",
    "with_names",
]

TABLES = {"qos": "QoS", "queue": "Queue", "mirror": "Mirror"}
"""The tables whose rows are made by ``create``."""

TREE_COLUMNS = ("stp_enable", "rstp_enable")
"""Columns of a bridge that have it keep to a spanning tree: to ours, whichever of them it is."""
VLAN_COLUMNS = ("tag", "trunks", "vlan_mode")
POLICING_COLUMNS = ("ingress_policing_rate", "ingress_policing_burst")
"""Columns of an interface: kbit/s that may come in, and kbit at once."""
MIRROR_COLUMNS = (
    "name",
    "select_all",
    "select_src_port",
    "select_dst_port",
    "select_vlan",
    "output_port",
    "output_vlan",
)
_WORD = re.compile(r"(?!(?:true|false)$)[A-Za-z_][\w.-]*|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HIGHEST_VLAN = 4094
_SHALLOWEST_BURST_BYTES = 1518
_USUAL_RATE_BPS = 10**9
_LEAST_RATE_BPS = 12_000
_LAST_PRIORITY = 7


class Refused(Exception):
    """A command that cannot be done; its text is what ``ovs-vsctl`` says."""


def members(value: str) -> list[str]:
    """Return the members of a set as ``ovs-vsctl`` writes them: ``10``, ``10,20`` or ``[10, 20]``."""
    return [one for one in re.split(r"[,\s\[\]\"]+", value) if one]


def row_identifier(table: str, name: str) -> str:
    """Return the identifier of the row of `table` that is made for `name`."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{table} {name}"))


def port_identifier(name: str) -> str:
    """Return the identifier of the row of the port `name`."""
    return row_identifier("Port", name)


def _vlans(value: str, column: str) -> list[int]:
    found = [int(one) if one.isdecimal() else -1 for one in members(value)]
    if any(not 0 <= vlan <= _HIGHEST_VLAN for vlan in found):
        raise Refused(f"{column}={value}: VLANs are 0 to {_HIGHEST_VLAN}")
    return found


def vlans_of(columns: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the VLANs of a port with these columns; ``None`` where it is a trunk of all. Raises :class:`Refused`."""
    tags, trunks = _vlans(columns.get("tag", ""), "tag"), _vlans(columns.get("trunks", ""), "trunks")
    [mode] = members(columns.get("vlan_mode", "")) or ["access" if tags else "trunk"]
    if mode not in MODES:
        raise Refused(f"vlan_mode={mode}: our switches have {', '.join(MODES)}")
    # As Open vSwitch has it, an access port ignores `trunks`; without a tag it is in VLAN 0, as bare frames are.
    tag = tags[0] if tags else 0
    if mode == "access":
        return {"mode": mode, "tag": tag} if tag else {"mode": "trunk", "trunks": [0]}
    if mode == "trunk" or not tag:
        native = [] if mode == "trunk" else [0]
        return {"mode": "trunk", "trunks": [*native, *trunks]} if trunks else None
    return {"mode": mode, "tag": tag} | ({"trunks": trunks} if trunks else {})


def mirror_of(row: Mapping[str, str], ports: Mapping[str, int]) -> dict[str, Any] | None:
    """Return the mirror of a row of the table Mirror, ``None`` while it has no place for its copies; `ports` are the
    numbers of the bridge's ports by their names and by the identifiers of their rows. Raises :class:`Refused`."""

    def numbers(column: str) -> list[int]:
        named: Iterable[str] = members(row.get(column, ""))
        missing = [one for one in named if one not in ports]
        if missing:
            raise Refused(f"{column}: no port {missing[0]} is on that bridge")
        return [ports[one] for one in named]

    outputs, vlans = numbers("output_port"), _vlans(row.get("output_vlan", ""), "output_vlan")
    if not outputs and not vlans:
        return None
    return {
        "to": {"port": outputs[0]} if outputs else {"vlan": vlans[0]},
        "all": row.get("select_all") == "true",
        "from": numbers("select_src_port"),
        "towards": numbers("select_dst_port"),
        "vlans": _vlans(row.get("select_vlan", ""), "select_vlan"),
    }


def queue_of(row: Mapping[str, str], queue_row: Callable[[str], Mapping[str, str]]) -> dict[str, Any]:
    """Return the queue of a port whose row of QoS is `row`; `queue_row` gives rows of the table Queue. Raises
    :class:`Refused`."""
    kind = row.get("type", "linux-htb")
    if kind == "egress-policer":
        return _policer(row)
    if kind not in ("linux-htb", "linux-hfsc"):
        raise Refused(f"a QoS of type {kind} is not there; our switches have linux-htb, linux-hfsc and egress-policer")
    ceiling = _number(row, "max-rate") or _USUAL_RATE_BPS
    queues: dict[str, Any] = {}
    for column, value in row.items():
        if column.startswith("queues:"):
            queue = queue_row(value)
            most = _number(queue, "max-rate") or ceiling
            least = min(_number(queue, "min-rate") or _LEAST_RATE_BPS, most, ceiling)
            promised: dict[str, Any] = {"min_rate_bps": least, "max_rate_bps": min(most, ceiling)}
            if (bits := _number(queue, "burst")) is not None:
                promised["burst_bytes"] = max(bits // 8, _SHALLOWEST_BURST_BYTES)
            if kind == "linux-htb" and (priority := _number(queue, "priority")) is not None:
                promised["priority"] = min(priority, _LAST_PRIORITY)
            queues[column.split(":")[1]] = promised
    queues.setdefault("0", {"min_rate_bps": min(_LEAST_RATE_BPS, ceiling), "max_rate_bps": ceiling})
    return {"kind": "htb", "rate_bps": ceiling, "queues": queues}


def _policer(row: Mapping[str, str]) -> dict[str, Any]:
    """The queue of an ``egress-policer``: `cir` bytes in a second, and a burst of `cbs` bytes; the rest is dropped."""
    rate, burst = (_number(row, name) for name in ("cir", "cbs"))
    if not rate or burst is None:
        raise Refused(f"an egress-policer needs a number in other_config:{'cbs' if rate else 'cir'}")
    return policer(8 * rate, burst)


def _number(row: Mapping[str, str], key: str) -> int | None:
    """The number in `other_config` of a row; ``None`` where it is not there or no number, as in Open vSwitch."""
    return number_of(row.get(f"other_config:{key}", ""))


def number_of(text: str) -> int | None:
    """Return the number that Open vSwitch reads from a text; ``None``: it reads none."""
    return int(text) if re.fullmatch(r"[0-9]{1,20}", text) and int(text) < 1 << 63 else None


def policer(rate_bps: int, burst_bytes: int) -> dict[str, Any]:
    """Return the queue, in the form of the lab protocol, that keeps nothing back: it passes or drops."""
    queue = {"kind": "fifo", "limit_frames": 1}
    burst = max(burst_bytes, _SHALLOWEST_BURST_BYTES)
    return {"kind": "tbf", "rate_bps": rate_bps, "burst_bytes": burst, "queue": queue}


def columns_of(settings: list[str]) -> dict[str, str]:
    """Return the columns and values of `settings`; those of maps by ``column:key``. ``-`` in a column is ``_``."""
    found: dict[str, str] = {}
    for setting in settings:
        column, _, value = setting.partition("=")
        name, colon, key = column.partition(":")
        # Open vSwitch takes names of columns that are cut short; scripts write this one so.
        column = {"option": "options"}.get(name, name.replace("-", "_")) + colon + key
        if value.startswith("{") or ("=" in value and column in ("queues", "other_config")):
            for pair in value.strip("{}").split(","):
                key, _, content = pair.partition("=")
                found[f"{column}:{key.strip()}"] = content.strip()
        else:
            found[column] = value.strip('"')
    return found


def checked_row(table: str, columns: dict[str, str]) -> dict[str, str]:
    """Return the columns of a row that is made or changed; raises :class:`Refused` for those that ours do not have."""
    if table != "mirror":
        return columns
    unknown = next((column for column in columns if column not in MIRROR_COLUMNS), None)
    if unknown is not None:
        raise Refused(f"Mirror: our switches have no {unknown}")
    return columns


def check_port_columns(table: str, columns: Mapping[str, str]) -> None:
    """Raise :class:`Refused` for columns of a port or interface that make a difference which ours do not have."""
    for column, value in columns.items():
        if column in ("ofport_request", "type") and value in ("", "system", "internal"):
            continue
        if column != "ofport_request":
            raise Refused(f"{table}: our switches have no {column}={value}")


def with_names(word: str, names: Mapping[str, str]) -> str:
    """Return `word` with the names of rows (``@q``) replaced by their identifiers."""
    if word.startswith("--id=@"):
        return "--id=" + names["@" + word.removeprefix("--id=@")]
    return re.sub(r"@[\w-]+", lambda found: names.get(found[0], found[0]), word)


def cell_text(value: object) -> str:
    """Return the value of a column as ``ovs-vsctl`` prints it."""
    if not isinstance(value, dict):
        return str(value)
    pairs = cast("dict[object, object]", value).items()
    return "{" + ", ".join(f"{atom_text(key)}={atom_text(one)}" for key, one in pairs) + "}"


def atom_text(atom: object) -> str:
    """Return an atom of a map as ``ovs-vsctl`` prints it: a text in quotation marks unless it is a word."""
    text = str(atom)
    return text if not isinstance(atom, str) or _WORD.fullmatch(text) else json.dumps(text)
