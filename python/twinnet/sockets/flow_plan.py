"""The flows that ``twinnet send`` is to send: one from options, or many from a file."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from twinnet.errors import BadFile, BadValue, UsageError, did_you_mean
from twinnet.ranges import moment_ps
from twinnet.settings import settings_of
from twinnet.sockets.addresses import address_of
from twinnet.sockets.machine import HERE
from twinnet.traffic.app import App
from twinnet.traffic.kinds import SOURCES
from twinnet.yaml_source import SourceError, load_yaml

__all__ = ["PlannedFlow", "planned_flow", "read_flows"]

_MOST_FLOWS = 4096
_FILES = ("trace", "frame_sizes")


_USUAL_PAYLOAD_OF_IPV6 = "1452 B"
_SIZES = {"payload", "size", "trace", "preset", "voice"}


@dataclass(frozen=True)
class PlannedFlow:
    """One flow: its source, and when it starts.

    Parameters
    ----------
    protocol
        ``udp``, ``tcp``, ``rtp`` or ``icmp``.
    app
        The source.
    start_ps
        Delay of its start after the beginning.
    """

    protocol: str
    app: App
    start_ps: int = 0


def planned_flow(settings: Mapping[str, Any], number: int, family: int = 0) -> PlannedFlow:
    """Return flow `number` as `settings` say: ``protocol``, ``to``, ``start`` and the settings of the protocol's source
    in :data:`twinnet.traffic.kinds.SOURCES`.

    Raises
    ------
    BadValue
        A setting is not known, contradicts another or is out of range.
    """
    rest = dict(settings)
    protocol, start = str(rest.pop("protocol", "udp")), rest.pop("start", None)
    if protocol not in SOURCES:
        raise BadValue(f"the protocol {protocol!r} is not known; allowed are {', '.join(SOURCES)}")
    if "to" not in rest:
        raise BadValue("a flow needs a receiver", "give to: an address or the name of a machine")
    to = address_of("receiver", str(rest.pop("to")), family)
    source = SOURCES[protocol]
    allowed = settings_of(source)
    for name in rest:
        if name not in allowed:
            raise BadValue(f"{protocol} has no setting {name!r}: {did_you_mean(name, [*allowed, 'protocol', 'start'])}")
    if protocol == "udp" and not rest.get("unpaced", False):
        # The machine is there for this: every datagram at its own moment, unless something else is asked for.
        rest.setdefault("exact", True)
    if protocol == "udp" and ":" in to and not rest.keys() & _SIZES:
        # As much as a packet of an Ethernet path carries: IPv6's header has 20 bytes more.
        rest["payload"] = _USUAL_PAYLOAD_OF_IPV6
    rest.setdefault("flow", number)
    app = source(HERE, to, **rest)
    return PlannedFlow(protocol, app, 0 if start is None else moment_ps(start, "start"))


def read_flows(path: Path, family: int = 0) -> list[PlannedFlow]:
    """Return the flows of a YAML file: a list, or a mapping with the list under ``flows`` and settings of all of them
    under ``defaults``. A ``trace`` and ``frame_sizes`` may be the path of a file, from the folder of this one.

    Raises
    ------
    BadFile
        It cannot be read; the message names the file and the flow.
    """
    try:
        content: Any = load_yaml(path).data
    except SourceError as error:
        raise BadFile(f"{path} cannot be read: {error}") from None
    whole: dict[str, Any] = cast("dict[str, Any]", content) if isinstance(content, Mapping) else {"flows": content}
    unknown = set(whole) - {"flows", "defaults"}
    given: Any = whole.get("flows")
    defaults: Any = whole.get("defaults", {})
    if unknown or not isinstance(given, list) or not given or not isinstance(defaults, Mapping):
        raise BadFile(f"{path} holds no flows: it needs a list under 'flows', and may have 'defaults' beside it")
    flows = cast("list[Any]", given)
    if len(flows) > _MOST_FLOWS:
        raise BadFile(f"{path} has {len(flows)} flows; allowed are {_MOST_FLOWS}")
    found: list[PlannedFlow] = []
    for number, one in enumerate(flows, 1):
        if not isinstance(one, Mapping):
            raise BadFile(
                f"{path}, flow {number}: {one!r} is no flow; write for example {{to: 10.0.0.2, rate: 1 Mbit}}"
            )
        settings = {**cast("Mapping[str, Any]", defaults), **cast("Mapping[str, Any]", one)}
        for name in _FILES:
            if isinstance(settings.get(name), str):
                settings[name] = path.parent / settings[name]
        try:
            found.append(planned_flow({str(key): value for key, value in settings.items()}, number, family))
        except UsageError as error:
            raise BadFile(f"{path}, flow {number}: {error}") from None
    return found
