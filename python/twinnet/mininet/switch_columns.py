"""Columns of Open vSwitch's tables (``ovs-vswitchd.conf.db(5)``), and what they say in the form of the lab protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from twinnet.network.vlans import MODES
from twinnet.ovsdb.qos_rows import Refused
from twinnet.ovsdb.row_texts import members, row_identifier

__all__ = [
    "INTERNAL",
    "KEPT_COLUMNS",
    "MIRROR_COLUMNS",
    "POLICING_COLUMNS",
    "SAMPLING_TABLES",
    "TABLES",
    "TREE_COLUMNS",
    "VLAN_COLUMNS",
    "atom_text",
    "cell_text",
    "check_port_columns",
    "checked_row",
    "columns_of",
    "mirror_of",
    "port_identifier",
    "vlans_of",
    "with_names",
]

TABLES = {
    "qos": "QoS",
    "queue": "Queue",
    "mirror": "Mirror",
    "sflow": "sFlow",
    "netflow": "NetFlow",
    "ipfix": "IPFIX",
}
"""The tables whose rows are made by ``create``."""
SAMPLING_TABLES = ("sflow", "netflow", "ipfix")
"""Those of them whose rows say how a bridge samples: they are kept, and nothing is sampled."""
KEPT_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "Open_vSwitch": ("external_ids", "other_config"),
    "Bridge": ("datapath_type", "mcast_snooping_enable", "external_ids", "other_config", *SAMPLING_TABLES),
    "Port": ("external_ids", "other_config"),
    "Interface": ("external_ids", "other_config"),
}
"""Columns that make no difference here, and are kept and shown."""

TREE_COLUMNS = ("stp_enable", "rstp_enable")
"""Columns of a bridge that have it keep to a spanning tree: to ours, whichever of them it is."""
INTERNAL = "internal"
"""The type of an interface that a switch makes itself."""
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
_QUOTED = ' "'
_MAPS = ("queues", "other_config", "external_ids", "options")


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


def columns_of(settings: list[str]) -> dict[str, str]:
    """Return the columns and values of `settings`; those of maps by ``column:key``. ``-`` in a column is ``_``."""
    found: dict[str, str] = {}
    for setting in settings:
        column, _, value = setting.partition("=")
        name, colon, key = column.partition(":")
        column = name.replace("-", "_") + colon + key
        if value.startswith("{") or ("=" in value and column in _MAPS):
            for pair in value.strip("{}").split(","):
                key, given, content = pair.partition("=")
                if given:
                    found[f"{column}:{key.strip(_QUOTED)}"] = content.strip(_QUOTED)
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
        if column == "type" and value in ("", "system", INTERNAL):
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
