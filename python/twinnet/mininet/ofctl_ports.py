"""Ports in our own ``ovs-ofctl``: what they are, what has gone through them, and how they are configured."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from twinnet.mininet.ofctl_call import Call, Command
from twinnet.mininet.port_configuration import CONFIGURATION_BITS, Change, configuration_text
from twinnet.ovsdb.qos_rows import Refused

__all__ = ["PORT_COMMANDS"]

_FOLDER_OF_INTERFACES = Path("/sys/class/net")
_DENIED = {
    "stp": "NO_STP",
    "receive": "NO_RECV",
    "receive-stp": "NO_RECV_STP",
    "forward": "NO_FWD",
    "flood": "NO_FLOOD",
    "packet-in": "NO_PACKET_IN",
}
_PORT_CHANGES = {"up": Change(0, 1), "down": Change(1, 1)}
for _word, _name in _DENIED.items():
    _bit = CONFIGURATION_BITS[_name]
    _PORT_CHANGES.update({_word: Change(0, _bit), f"no-{_word}": Change(_bit, _bit), f"no{_word}": Change(_bit, _bit)})
"""The words of ``ovs-ofctl mod-port`` (``ovs-ofctl(8)``), which also takes ``noflood``."""


def _show(call: Call) -> str:
    version = "" if call.version == 1 else " (OF1.3)"
    head = f"OFPT_FEATURES_REPLY{version} (xid=0x2): dpid:{call.plan.dpid:016x}\n"
    return head + _port_descriptions(call, sorted(call.plan.ports))


def _describe_ports(call: Call) -> str:
    return f"{call.head('PORT_DESC')}\n" + _port_descriptions(call, _wanted(call))


def _wanted(call: Call) -> list[int]:
    names = {number: port.name for number, port in sorted(call.plan.ports.items())}
    return [number for number in names if call.words in ([], [str(number)], [names[number]])]


def _port_descriptions(call: Call, numbers: list[int]) -> str:
    configurations = call.fabric.port_configurations(call.plan.name)
    return "".join(_port_description(call, number, configurations.get(number, 0)) for number in numbers)


def _port_description(call: Call, number: int, config: int) -> str:
    name, address, state = call.plan.ports[number].name, "00:00:00:00:00:00", "0"
    # A switch in a namespace of its own has its interfaces there.
    with suppress(OSError):
        address = (_FOLDER_OF_INTERFACES / name / "address").read_text().strip()
        state = "0" if (_FOLDER_OF_INTERFACES / name / "carrier").read_text().strip() == "1" else "LINK_DOWN"
    said = configuration_text(config)
    return f" {number}({name}): addr:{address}\n     config:     {said}\n     state:      {state}\n"


def _modify_port(call: Call) -> str:
    port, word = call.words
    number = next((one for one, intf in call.plan.ports.items() if port in (str(one), intf.name)), None)
    if number is None:
        raise Refused(f"{call.plan.name}: couldn't find port `{port}'")
    if word.lower() not in _PORT_CHANGES:
        raise Refused(f"unknown mod-port command '{word}'; there are {', '.join(_PORT_CHANGES)}")
    if call.version:
        call.fabric.configure_port(call.plan.name, number, _PORT_CHANGES[word.lower()])
    return ""


def _dump_ports(call: Call) -> str:
    wanted = _wanted(call)
    said = f"{call.head('PORT')} {len(wanted)} ports\n"
    for number in wanted:
        counts = call.fabric.port_counts(call.plan, number)
        said += (
            f"  port {call.port(number):>2}: rx pkts={counts['received_frames']}, bytes={counts['received_bytes']}, "
            f"drop=0, errs=0, frame=0, over=0, crc=0\n"
            f"           tx pkts={counts['frames']}, bytes={counts['link_bytes']}, "
            f"drop={sum(count for name, count in counts.items() if name.startswith('dropped_'))}, errs=0, coll=0\n"
        )
    return said


PORT_COMMANDS = {
    "show": Command(_show, 1),
    "dump-ports": Command(_dump_ports, 2),
    "dump-ports-desc": Command(_describe_ports, 2),
    "mod-port": Command(_modify_port, 3, 3),
}
