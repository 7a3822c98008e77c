"""VLANs and mirrors of a switch's ports, as settings of calls and keys of network files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, cast

from twinnet.errors import BadValue, did_you_mean
from twinnet.settings import Setting, Whole, Word

__all__ = ["MODES", "MirrorOptions", "MirrorPlace", "Mirrors", "VlanOptions", "VlansOfPorts"]

MODES = ("access", "trunk", "native-tagged", "native-untagged")
"""The ways in which a port treats tags; ``ovs-vsctl`` calls them ``vlan_mode``."""

_VLAN = Whole(BadValue, 0, 4094)
_PORT = Whole(BadValue, 1, 0xFF00)


class VlanOptions(TypedDict, total=False):
    """The VLANs of a port."""

    mode: Literal["access", "trunk", "native-tagged", "native-untagged"]
    """``access``: frames without tags, in one VLAN (the default with a `tag`). ``trunk``: frames with tags (the default
    otherwise). ``native-tagged`` and ``native-untagged``: a trunk on which frames without a tag are in the VLAN `tag`;
    the word says how frames of that VLAN leave."""
    tag: int
    """The VLAN of frames without a tag, 1 to 4094."""
    trunks: Sequence[int]
    """The VLANs of a trunk; none: all. 0 stands for frames without a tag."""


class MirrorPlace(TypedDict, total=False):
    """The place that a mirror's copies go to: one of these."""

    port: int
    """A port, by its number. Nothing else leaves by it or is taken from it."""
    vlan: int
    """All ports of a VLAN."""


class _NEEDED(TypedDict):
    to: MirrorPlace


# `from` is a word of Python: only this form of a TypedDict can have it.
_CHOSEN = TypedDict(
    "_CHOSEN", {"all": bool, "from": Sequence[int], "towards": Sequence[int], "vlans": Sequence[int]}, total=False
)


class MirrorOptions(_NEEDED, _CHOSEN):
    """A mirror: `to` says where its copies go, `all` selects what comes and goes at any port, `from` the ports of
    which it selects what comes in, `towards` the ports of which it selects what leaves, and `vlans` the VLANs of
    which it selects frames (none: all)."""


_MIRROR_KEYS = ("to", "all", "from", "towards", "vlans")


def _mapping(value: object, what: str, keys: Sequence[str]) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise BadValue(f"{what} is {value!r}; allowed is a mapping with {', '.join(keys)}")
    given = cast("Mapping[object, object]", value)
    for key in given:
        if key not in keys:
            raise BadValue(f"{what} has the unknown key {key!r}", did_you_mean(str(key), keys))
    return cast("Mapping[str, object]", given)


def _numbers(value: object, what: str, setting: Whole) -> list[int]:
    if not isinstance(value, (list, tuple)):
        raise BadValue(f"{what} is {value!r}; allowed is a list of numbers", "write for example [10, 20]")
    return [setting.read(one, what) for one in cast("Sequence[object]", value)]


@dataclass(frozen=True)
class VlansOfPorts(Setting):
    """VLANs by the numbers of ports."""

    def read(self, value: object, what: str) -> dict[int, dict[str, Any]]:
        """Return the VLANs in the form of the protocol."""
        if not isinstance(value, Mapping):
            raise self.error(f"{what} is {value!r}; allowed is a mapping of port numbers", "write {1: {tag: 10}}")
        found: dict[int, dict[str, Any]] = {}
        for number, vlans in cast("Mapping[object, object]", value).items():
            # The keys of a file are text.
            number = int(number) if isinstance(number, str) and number.isdecimal() else number
            port = f"port {_PORT.read(number, f'a port of {what}')} of {what}"
            given = _mapping(vlans, port, tuple(VlanOptions.__annotations__))
            tag = _VLAN.read(given.get("tag", 0), f"the tag of {port}")
            usual = "access" if tag else "trunk"
            mode = Word(self.error, words=MODES).read(given.get("mode", usual), f"the mode of {port}")
            trunks = _numbers(given.get("trunks", ()), f"trunks of {port}", _VLAN)
            if mode == "access" and trunks:
                raise self.error(
                    f"{port} has trunks and is an access port", "leave tag away, or write mode: native-tagged"
                )
            if mode != "trunk" and not tag:
                raise self.error(f"{port} is {mode} and has no tag", "write for example tag: 10")
            found[cast("int", number)] = {"mode": mode, "tag": tag, "trunks": trunks}
        return found

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: mappings by numbers."""
        vlan = _VLAN.json_schema()
        properties = {
            "mode": _described({"enum": list(MODES)}, "How the port treats tags; access with a tag, otherwise trunk."),
            "tag": _described(vlan, "The VLAN of frames without a tag, 1 to 4094."),
            "trunks": _described(_several(vlan), "The VLANs of a trunk; none: all. 0 stands for frames without a tag."),
        }
        one = {"type": "object", "properties": properties, "additionalProperties": False}
        return {"type": "object", "patternProperties": {"^[0-9]+$": one}, "additionalProperties": False}


@dataclass(frozen=True)
class Mirrors(Setting):
    """The mirrors of a switch."""

    def read(self, value: object, what: str) -> tuple[dict[str, Any], ...]:
        """Return the mirrors in the form of the protocol."""
        if not isinstance(value, (list, tuple)):
            raise self.error(f"{what} is {value!r}; allowed is a list", "write [{to: {port: 3}, all: true}]")
        return tuple(self._mirror(one, f"{what}[{at}]") for at, one in enumerate(cast("Sequence[object]", value)))

    def _mirror(self, value: object, what: str) -> dict[str, Any]:
        given = _mapping(value, what, _MIRROR_KEYS)
        to = _mapping(given.get("to"), f"to of {what}", ("port", "vlan"))
        if len(to) != 1:
            raise self.error(f"to of {what} names {len(to)} places; allowed is one", "write for example {port: 3}")
        [(kind, number)] = to.items()
        everything = given.get("all", False)
        if not isinstance(everything, bool):
            raise self.error(f"all of {what} is {everything!r}; allowed are true and false")
        found = {
            "to": {kind: (_PORT if kind == "port" else _VLAN).read(number, f"to of {what}")},
            "all": everything,
            "from": _numbers(given.get("from", ()), f"from of {what}", _PORT),
            "towards": _numbers(given.get("towards", ()), f"towards of {what}", _PORT),
            "vlans": _numbers(given.get("vlans", ()), f"vlans of {what}", _VLAN),
        }
        if not (everything or found["from"] or found["towards"]):
            raise self.error(f"{what} selects nothing", "write all: true, or from and towards with port numbers")
        return found

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: a list of mappings."""
        port, vlan = _PORT.json_schema(), _VLAN.json_schema()
        to = {
            "type": "object",
            "properties": {
                "port": _described(port, "The number of a port. Nothing else leaves by it or is taken from it."),
                "vlan": _described(vlan, "The copies go to all ports of this VLAN."),
            },
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        }
        properties = {
            "to": _described(to, "The place that the copies go to: a port or a VLAN."),
            "all": _described({"type": "boolean"}, "Select what comes and goes at any port."),
            "from": _described(_several(port), "The numbers of ports of which it selects what comes in."),
            "towards": _described(_several(port), "The numbers of ports of which it selects what leaves."),
            "vlans": _described(_several(vlan), "The VLANs of which it selects frames; none: all."),
        }
        mirror = {"type": "object", "properties": properties, "required": ["to"], "additionalProperties": False}
        return _several(mirror)


def _several(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _described(schema: dict[str, Any], text: str) -> dict[str, Any]:
    return schema | {"description": text}
