"""Meters in our own ``ovs-ofctl``, which are of OpenFlow 1.3 (sections 7.3.4.4 and 7.3.5.12 to 7.3.5.14)."""

from __future__ import annotations

import re
import struct

from twinnet.mininet.ofctl_call import Call, Command, duration, items, number
from twinnet.mininet.tool_connection import SwitchRefused
from twinnet.ovsdb.qos_rows import Refused

__all__ = ["METER_COMMANDS"]

_METER_MOD = 29
_ADD, _MODIFY, _DELETE = 0, 1, 2
_STATISTICS, _CONFIGURATION, _FEATURES = 9, 10, 11
_FLAGS = {"kbps": 1, "pktps": 2, "burst": 4, "stats": 8}
_BANDS = {"drop": 1, "dscp_remark": 2}
_NAMED = {"controller": 0xFFFF_FFFD, "slowpath": 0xFFFF_FFFE, "all": 0xFFFF_FFFF}
_MOST = 0xFFFF_0000
_CONFIGURED = struct.Struct("!HHI")
_COUNTED = struct.Struct("!IH6xIQQII")
_BAND = struct.Struct("!HHIIB3x")
"""A band; the byte at its end is the step by which the drop precedence is raised."""


def _meter_number(text: str) -> int:
    value = _NAMED.get(text.lower())
    value = number(text, "meter", _MOST) if value is None else value
    if value == 0:
        raise Refused("meters are numbered from 1")
    return value


def _meter(text: str) -> bytes:
    """A meter on the wire, without what is to be done with it."""
    head, *rest = re.split(r"(?:^|[,\s])\s*bands?=", text.strip(), maxsplit=1)
    flags, meter = 0, 0
    for name, _, value in (item.partition("=") for item in items(head)):
        if name == "meter":
            meter = _meter_number(value)
        elif name in _FLAGS and not value:
            flags |= _FLAGS[name]
        else:
            raise Refused(f"unknown keyword {name}: write meter=N, one of kbps and pktps, burst, stats, and bands=...")
    if not meter:
        raise Refused("must specify 'meter' (write meter=N)")
    if not flags & (_FLAGS["kbps"] | _FLAGS["pktps"]):
        raise Refused("a meter needs a unit: write kbps or pktps")
    if not rest:
        raise Refused("must specify bands (such as bands=type=drop,rate=1000)")
    return struct.pack("!HI", flags, meter) + b"".join(_band(one, flags) for one in _bands(rest[0]))


def _bands(text: str) -> list[dict[str, str]]:
    """The bands of a meter: each begins with its type."""
    bands: list[dict[str, str]] = []
    for name, _, value in (item.partition("=") for item in items(text)):
        if name == "type":
            bands.append({})
        elif not bands:
            raise Refused(f"a band begins with type=, and {name} was given")
        elif name not in ("rate", "burst_size", "prec_level"):
            raise Refused(f"a band has no {name}: write type, rate, burst_size, and prec_level for dscp_remark")
        bands[-1][name] = value
    if not bands:
        raise Refused("must specify bands (such as bands=type=drop,rate=1000)")
    return bands


def _band(given: dict[str, str], flags: int) -> bytes:
    kind = _BANDS.get(given["type"])
    if kind is None:
        raise Refused(f"field type unknown value {given['type']} ({', '.join(_BANDS)})")
    if "rate" not in given:
        raise Refused("band must have 'rate'")
    if ("burst_size" in given) != bool(flags & _FLAGS["burst"]):
        raise Refused("a band has a burst_size where the meter has the word burst, and only there")
    if "prec_level" in given and given["type"] != "dscp_remark":
        raise Refused("a prec_level is for bands of type dscp_remark")
    sizes = (number(given.get(name, "0"), name) for name in ("rate", "burst_size"))
    return _BAND.pack(kind, _BAND.size, *sizes, number(given.get("prec_level", "0"), "prec_level", 255))


def _change(call: Call, command: int) -> str:
    call.need_13("meters", option=True)
    meters = [_meter(text) for text in call.words]
    with call.connection() as connection:
        for meter in meters:
            connection.say(_METER_MOD, struct.pack("!H", command) + meter)
        connection.finish()
    return ""


def _wanted(call: Call) -> tuple[int, str]:
    """The meter that the words select, and how it is told."""
    meter, text = _NAMED["all"], "all"
    for name, _, value in (item.partition("=") for item in items(",".join(call.words))):
        if name != "meter":
            raise Refused(f"{name} selects no meters: write meter=N, or nothing for all")
        meter, text = _meter_number(value), value
    return meter, text


def _delete(call: Call) -> str:
    call.need_13("meters", option=True)
    meter, _ = _wanted(call)
    with call.connection() as connection:
        connection.say(_METER_MOD, struct.pack("!HHI", _DELETE, 0, meter))
        connection.finish()
    return ""


def _asked(call: Call, kind: int) -> bytes:
    """The answer to a question for meters."""
    meter, _ = _wanted(call)
    with call.connection() as connection:
        return connection.statistics(kind, struct.pack("!I4x", meter))


def _dump(call: Call) -> str:
    call.need_13("meters", option=True)
    try:
        told = _asked(call, _CONFIGURATION)
    except SwitchRefused as refused:
        return call.error(refused.code, "METER_CONFIG", f"meter={_wanted(call)[1]}")
    meters: list[str] = []
    while told:
        length, flags, meter = _CONFIGURED.unpack_from(told)
        words = "".join(f" {name}" for name, bit in _FLAGS.items() if flags & bit)
        said = f"meter={_name(meter)}{words} bands=\n"
        for kind, _, rate, burst, level in _BAND.iter_unpack(told[_CONFIGURED.size : length]):
            said += f"type={next(name for name, number in _BANDS.items() if number == kind)} rate={rate}"
            said += f" burst_size={burst}" if flags & _FLAGS["burst"] else ""
            said += f" prec_level={level}" if kind == _BANDS["dscp_remark"] else ""
            said += "\n"
        meters, told = [*meters, said], told[length:]
    return f"{call.head('METER_CONFIG')}\n" + "\n".join(meters)


def _count(call: Call) -> str:
    call.need_13("meters", option=True)
    try:
        told = _asked(call, _STATISTICS)
    except SwitchRefused as refused:
        return call.error(refused.code, "METER", f"meter={_wanted(call)[1]}")
    meters: list[str] = []
    while told:
        meter, length, flows, frames, size, seconds, nanoseconds = _COUNTED.unpack_from(told)
        said = f"meter:{_name(meter)} flow_count:{flows} packet_in_count:{frames} byte_in_count:{size} "
        said += f"duration:{duration(seconds, nanoseconds)} bands:\n"
        for place, (over, bytes_over) in enumerate(struct.iter_unpack("!QQ", told[_COUNTED.size : length])):
            said += f"{place}: packet_count:{over} byte_count:{bytes_over}\n"
        meters, told = [*meters, said], told[length:]
    return f"{call.head('METER')}\n" + "\n".join(meters)


def _name(meter: int) -> str:
    return next((name for name, number in _NAMED.items() if number == meter), str(meter))


def _features(call: Call) -> str:
    call.need_13("meters", option=True)
    with call.connection() as connection:
        most, bands, capabilities, most_bands, most_colours = struct.unpack_from(
            "!IIIBB", connection.statistics(_FEATURES)
        )
    return (
        f"{call.head('METER_FEATURES')}\nmax_meter:{most} max_bands:{most_bands} max_color:{most_colours}\n"
        f"band_types:{''.join(f' {name}' for name, kind in _BANDS.items() if bands >> kind & 1)}\n"
        f"capabilities:{''.join(f' {name}' for name, bit in _FLAGS.items() if capabilities & bit)}\n"
    )


METER_COMMANDS = {
    "add-meter": Command(lambda call: _change(call, _ADD), 2, 2),
    "mod-meter": Command(lambda call: _change(call, _MODIFY), 2, 2),
    "del-meter": Command(_delete, 2),
    "del-meters": Command(_delete, 2),
    "dump-meter": Command(_dump, 2),
    "dump-meters": Command(_dump, 2),
    "meter-stats": Command(_count, 2),
    "meter-features": Command(_features, 1),
}
