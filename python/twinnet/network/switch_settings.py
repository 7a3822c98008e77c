"""The settings of a switch: keyword arguments of calls and keys of network and study files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict, cast

from twinnet.control.targets import PROTOCOLS, checked_protocols, parse_listen, parse_target
from twinnet.control.tls import TlsFiles, checked_tls
from twinnet.errors import BadValue, DuplicateName
from twinnet.network import datapaths
from twinnet.network.vlans import MirrorOptions, Mirrors, VlanOptions, VlansOfPorts
from twinnet.ranges import is_whole
from twinnet.settings import Delay, Flag, Setting, Word, settings_of

__all__ = ["SWITCH_DEFAULTS", "DatapathNumber", "DatapathNumbers", "SwitchOptions", "switch_fields"]

_HIGHEST_DPID = (1 << 64) - 1


@dataclass(frozen=True)
class _Dpid(Setting):
    """A datapath number, or text that is one in hexadecimal."""

    def read(self, value: object, what: str) -> int:
        """Return the number."""
        try:
            number = int(value, 16) if isinstance(value, str) else value
        except ValueError:
            raise self.error(
                f"the {what} {value!r} is not hexadecimal", 'write for example "00000000000000a1"'
            ) from None
        if not is_whole(number, 1, _HIGHEST_DPID):
            raise self.error(f"the {what} is {value!r}; allowed are whole numbers from 1 to 2^64 - 1")
        return number

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: an integer, or text."""
        return {"anyOf": [{"type": "integer", "minimum": 1, "maximum": _HIGHEST_DPID}, {"type": "string"}]}


@dataclass(frozen=True)
class _OfSwitch(Setting):
    """A list that a switch has; messages about files call its owner so."""

    @property
    def noun(self) -> str:  # type: ignore[override]
        """The owner of the list."""
        return "the switch"


@dataclass(frozen=True)
class _Targets(_OfSwitch):
    """A list of controllers."""

    def read(self, value: object, what: str) -> tuple[str, ...]:
        """Return the controllers."""
        given = cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else (None,)
        targets = tuple(target for target in given if isinstance(target, str))
        if len(targets) != len(given):
            raise self.error(f"the controllers of {what} are not a list", 'write for example ["tcp:127.0.0.1:6653"]')
        for target in targets:
            parse_target(target)
        return targets

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: a list of text."""
        return {"type": "array", "items": {"type": "string"}}


@dataclass(frozen=True)
class _Versions(_OfSwitch):
    """A list of versions of OpenFlow."""

    def read(self, value: object, what: str) -> tuple[str, ...]:
        """Return the versions."""
        return checked_protocols(value, what)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: a list of words."""
        return {"type": "array", "items": {"type": "string", "enum": list(PROTOCOLS)}, "minItems": 1}


DatapathNumber = Annotated[int | str, _Dpid()]
"""A datapath number from 1 to 2^64 - 1; text is hexadecimal."""


class SwitchOptions(TypedDict, total=False):
    """The settings of a switch, besides its name and its datapath number."""

    kind: Annotated[Literal["own", "ovs"], datapaths.KIND]
    """``own``: a part of the fabric. ``ovs``: Open vSwitch, which the lab starts for itself; on the wall clock
    only."""
    datapath: Annotated[Literal["system", "netdev"], datapaths.DATAPATH] | None
    """With ``ovs``: ``netdev`` (in user space, the default) or ``system`` (the kernel's module)."""
    fail_mode: Annotated[Literal["standalone", "secure"], Word(words=("standalone", "secure"))]
    """``standalone``: without flows it learns and forwards. ``secure``: only flows."""
    flows: Sequence[str]
    """Flows that it starts with, in ``ovs-ofctl`` syntax."""
    delay: Delay
    """Processing delay of each frame; at most 1 h."""
    controllers: Annotated[Sequence[str], _Targets()]
    """Controllers to connect to, such as ``["tcp:127.0.0.1:6653"]``, or ``["ssl:..."]`` with ``tls``."""
    control_delay: Delay | None
    """What the way between the switch and its controllers takes, each way. Default: what
    :meth:`twinnet.Network.controller` says for the network's controller, nothing for ``controllers``."""
    listen: str | None
    """Where to listen for tools such as ``ovs-ofctl``: ``ptcp:PORT`` (of 127.0.0.1), ``ptcp:PORT:ADDRESS``, ``pssl:``
    likewise with ``tls``, or ``punix:PATH``; on the wall clock only."""
    tls: TlsFiles | None
    """Its private key, certificate and CA certificate for ``ssl:`` and ``pssl:``."""
    protocols: Annotated[Sequence[str], _Versions()]
    """Versions to speak: ``OpenFlow10``, ``OpenFlow13``."""
    vlans: Annotated[Mapping[int, VlanOptions], VlansOfPorts()]
    """VLANs of ports, by their numbers: ``{1: {"tag": 10}, 3: {"trunks": [10, 20]}}``. They count where the switch
    learns and forwards by itself, and for the action ``normal``; ports without them are trunks of all."""
    mirrors: Annotated[Sequence[MirrorOptions], Mirrors()]
    """Mirrors: ``[{"to": {"port": 3}, "all": True}]`` copies all that comes and goes to port 3. ``from`` and
    ``towards`` select ports, ``vlans`` VLANs."""
    spanning_tree: Annotated[bool, Flag()]
    """Flood and learn along the fabric's spanning tree, as stand-alone switches do, with a controller or
    ``fail_mode="secure"``, too."""


SWITCH_DEFAULTS: SwitchOptions = {
    "kind": "own",
    "fail_mode": "standalone",
    "flows": [],
    "delay": "0 s",
    "controllers": [],
    "protocols": list(PROTOCOLS),
    "vlans": {},
    "mirrors": [],
    "spanning_tree": False,
}
"""The settings of a switch that is given none; those that are not here are ``None``."""


class DatapathNumbers:
    """The datapath numbers of the switches of a network: each has its own."""

    def __init__(self) -> None:
        self._owners: dict[int, str] = {}

    def take(self, switch: str, dpid: object) -> int:
        """Return the number of the new `switch`: `dpid`, or where that is ``None`` the number at the end of its name,
        or the lowest that is free.

        Raises
        ------
        BadValue, DuplicateName
            It is no datapath number, or another switch's.
        """
        number = self._free(switch) if dpid is None else _Dpid().read(dpid, "dpid")
        if number in self._owners:
            raise DuplicateName(
                f"{self._owners[number]} has the dpid {number} already", "give each switch its own dpid"
            )
        self._owners[number] = switch
        return number

    def _free(self, switch: str) -> int:
        digits = re.search(r"[0-9]{1,9}\Z", switch)
        wanted = int(digits.group()) if digits else 0
        if wanted and wanted not in self._owners:
            return wanted
        return next(number for number in range(1, len(self._owners) + 2) if number not in self._owners)


def switch_fields(name: str, settings: SwitchOptions) -> dict[str, Any]:
    """Return the fields of the switch `name` that `settings` say, checked; raises `BadValue`."""
    given: SwitchOptions = {**SWITCH_DEFAULTS, **settings}
    known = settings_of(SwitchOptions)

    def read(setting: str, what: str) -> Any:
        return known[setting].read(given.get(setting), what)

    controllers, listen = read("controllers", name), given.get("listen")
    if listen is not None:
        parse_listen(listen)
    fail_mode, delay_ps = read("fail_mode", f"the fail mode of {name}"), read("delay", "delay")
    vlans, mirrors = read("vlans", f"vlans of {name}"), read("mirrors", f"mirrors of {name}")
    spanning_tree = read("spanning_tree", f"spanning_tree of {name}")
    moved_by = datapaths.checked_datapath(name, read("kind", f"the kind of {name}"), given.get("datapath"), delay_ps)
    if moved_by != "own" and (vlans or mirrors):
        raise BadValue(
            f"{name} is Open vSwitch: it cannot have vlans and mirrors here",
            "give them to it by ovs-vsctl, or kind own",
        )
    if moved_by != "own" and spanning_tree:
        raise BadValue(
            f"{name} is Open vSwitch, which has its own spanning trees",
            f"set stp_enable or rstp_enable of {name} by ovs-vsctl, or give it kind own",
        )
    return {
        "fail_mode": fail_mode,
        "flows": datapaths.checked_flows(name, moved_by, given.get("flows", ())),
        "delay_ps": delay_ps,
        "controllers": controllers,
        "control_delay_ps": None if given.get("control_delay") is None else read("control_delay", "control delay"),
        "listen": listen,
        "tls": checked_tls(name, (*controllers, listen or ""), given.get("tls")),
        "protocols": read("protocols", name),
        "datapath": moved_by,
        "vlans": vlans,
        "mirrors": mirrors,
        "spanning_tree": spanning_tree,
    }
