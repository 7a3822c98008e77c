"""Ports in our own ``ovs-ofctl``: what they are, what has gone through them, and how they are configured."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from twinnet.mininet.ofctl_call import FRAGMENTS, Call, Command, duration, told_port
from twinnet.mininet.port_configuration import CONFIGURATION_BITS, Change, configuration_text
from twinnet.mininet.tool_connection import OPENFLOW_10, OPENFLOW_13
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
_FEATURES_REQUEST, _CONFIG_REQUEST = 5, 7
_PORT_STATISTICS, _PORT_DESCRIPTIONS = 4, 13
_ALL_OF_10, _ANY_OF_13 = 0xFFFF, 0xFFFF_FFFF
_RATES = {
    "10MB-HD": 10, "10MB-FD": 10, "100MB-HD": 100, "100MB-FD": 100, "1GB-HD": 1000, "1GB-FD": 1000,
    "10GB-FD": 10_000, "40GB-FD": 40_000, "100GB-FD": 100_000, "1TB-FD": 1_000_000, "OTHER": 0,
}  # fmt: skip
"""Features of ports by their bits, and Mbit/s (OpenFlow 1.3, section 7.2.1); 1.0 has the first seven."""


@dataclass(frozen=True)
class _Wire:
    """What a version has of switches and ports, and where (OpenFlow 1.0.0, sections 5.2.1, 5.3.1 and 5.3.5; 1.3,
    sections 7.2.1, 7.3.1 and 7.3.5.6)."""

    capabilities: dict[str, int]
    states: dict[str, int]
    port: struct.Struct
    counters: struct.Struct
    everything: bytes


_WIRES = {
    OPENFLOW_10: _Wire(
        {"FLOW_STATS": 0, "TABLE_STATS": 1, "PORT_STATS": 2, "STP": 3, "IP_REASM": 5, "QUEUE_STATS": 6,
         "ARP_MATCH_IP": 7},
        {"LINK_DOWN": 0},
        struct.Struct("!H6s16s6I"),
        struct.Struct("!H6x12Q"),
        struct.pack("!H6x", _ALL_OF_10),
    ),
    OPENFLOW_13: _Wire(
        {"FLOW_STATS": 0, "TABLE_STATS": 1, "PORT_STATS": 2, "GROUP_STATS": 3, "IP_REASM": 5, "QUEUE_STATS": 6,
         "PORT_BLOCKED": 8},
        {"LINK_DOWN": 0, "BLOCKED": 1, "LIVE": 2},
        struct.Struct("!I4x6s2x16s8I"),
        struct.Struct("!I4x12Q2I"),
        struct.pack("!I4x", _ANY_OF_13),
    ),
}  # fmt: skip
_ACTIONS_OF_10 = {
    "output": 0, "enqueue": 11, "set_vlan_vid": 1, "set_vlan_pcp": 2, "strip_vlan": 3, "mod_dl_src": 4,
    "mod_dl_dst": 5, "mod_nw_src": 6, "mod_nw_dst": 7, "mod_nw_tos": 8, "mod_tp_src": 9, "mod_tp_dst": 10,
}  # fmt: skip


def _names(bits: int, known: dict[str, int]) -> str:
    return " ".join(name for name, bit in known.items() if bits >> bit & 1)


def _show(call: Call) -> str:
    is_10 = call.version == OPENFLOW_10
    with call.said_connection() as connection:
        features = connection.ask(_FEATURES_REQUEST)
        dpid, buffers, tables, capabilities, actions = struct.unpack_from("!QIB3xII", features)
        ports = features[24:] if is_10 else connection.statistics(_PORT_DESCRIPTIONS)
        fragments, length = struct.unpack("!HH", connection.ask(_CONFIG_REQUEST))
    said = f"{call.title('OFPT_FEATURES_REPLY')} dpid:{dpid:016x}\nn_tables:{tables}, n_buffers:{buffers}\n"
    said += f"capabilities: {_names(capabilities, _WIRES[call.version].capabilities)}\n"
    said += f"actions: {_names(actions, _ACTIONS_OF_10)}\n" if is_10 else f"{call.head('PORT_DESC', 3)}\n"
    said += "".join(_descriptions(call, ports))
    end = f"frags={FRAGMENTS[fragments & 3]} miss_send_len={length}"
    return f"{said}{call.title('OFPT_GET_CONFIG_REPLY', 4 if is_10 else 5)} {end}\n"


def _describe_ports(call: Call) -> str:
    with call.said_connection() as connection:
        ports = connection.statistics(_PORT_DESCRIPTIONS)
    if call.words and call.words[0].upper() != "ANY":
        # The port is looked at, and before version 1.5 all are told.
        call.asked_port(call.words[0])
    return f"{call.head('PORT_DESC')}\n" + "".join(_descriptions(call, ports))


def _descriptions(call: Call, told: bytes) -> Iterator[str]:
    wire = _WIRES[call.version]
    for number, address, name, config, state, *rest in wire.port.iter_unpack(told):
        shown = name.partition(b"\0")[0].decode(errors="replace")
        features = rest[:4]
        now, most = (kbps // 1000 for kbps in rest[4:]) if rest[4:] else (_fastest(features[0]), _fastest(features[2]))
        yield f" {told_port(number)}({shown}): addr:{_address(shown, address)}\n"
        yield f"     config:     {configuration_text(config)}\n"
        yield f"     state:      {_names(state, wire.states) or '0'}\n"
        for title, bits in zip(("current", "advertised", "supported", "peer"), features, strict=True):
            words = _names(bits, {rate: bit for bit, rate in enumerate(_RATES)})
            yield f"     {title + ':':<11} {words}\n" if bits else ""
        yield f"     speed: {now} Mbps now, {most} Mbps max\n"


def _fastest(features: int) -> int:
    return max((rate for bit, rate in enumerate(_RATES.values()) if features >> bit & 1), default=0)


def _address(interface: str, told: bytes) -> str:
    """The address of a port: that of its interface, as ``ip link`` shows it too."""
    # A switch in a namespace of its own has its interfaces there.
    with suppress(OSError):
        return (_FOLDER_OF_INTERFACES / interface / "address").read_text().strip()
    return told.hex(":")


def _modify_port(call: Call) -> str:
    port, word = call.words
    number = next((one for one in call.plan.every_port() if port in (str(one), told_port(one))), None)
    if number is None:
        raise Refused(f"{call.plan.name}: couldn't find port `{port}'")
    if word.lower() not in _PORT_CHANGES:
        raise Refused(f"unknown mod-port command '{word}'; there are {', '.join(_PORT_CHANGES)}")
    if call.version:
        call.fabric.configure_port(call.plan.name, number, _PORT_CHANGES[word.lower()])
    return ""


def _dump_ports(call: Call) -> str:
    wire = _WIRES[call.version]
    wanted = call.words[0] if call.words and call.words[0].upper() not in ("ANY", "ALL", "NONE") else None
    number = None if wanted is None else call.asked_port(wanted)
    with call.said_connection() as connection:
        rows = list(wire.counters.iter_unpack(connection.statistics(_PORT_STATISTICS, wire.everything)))
    rows = [row for row in rows if number is None or told_port(row[0]) == told_port(number)]
    return f"{call.head('PORT')} {len(rows)} ports\n" + "".join(_counted(call, *row) for row in rows)


def _counted(call: Call, number: int, *counts: int) -> str:
    frames_in, frames_out, bytes_in, bytes_out, drops_in, drops_out, errors_in, errors_out = counts[:8]
    frame, over, crc, collisions, *lived = counts[8:]
    told = told_port(number)
    name = f" {call.port(number)}" if call.with_names and told != "LOCAL" else f"{told:>2}"
    return (
        f"  port {name}: rx pkts={frames_in}, bytes={bytes_in}, drop={drops_in}, errs={errors_in}, "
        f"frame={frame}, over={over}, crc={crc}\n"
        f"           tx pkts={frames_out}, bytes={bytes_out}, drop={drops_out}, errs={errors_out}, coll={collisions}\n"
    ) + (f"           duration={duration(*lived)}\n" if lived else "")


PORT_COMMANDS = {
    "show": Command(_show, 1),
    "dump-ports": Command(_dump_ports, 2),
    "dump-ports-desc": Command(_describe_ports, 2),
    "mod-port": Command(_modify_port, 3, 3),
}
