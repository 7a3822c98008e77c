"""The condition of a machine and of one of its interfaces, read before and after a run: what can spoil a measurement.

Everything here is read from /proc, /sys and the kernel's ethtool calls; what a kernel or a driver does not tell is
``None``.
"""

from __future__ import annotations

import array
import fcntl
import ipaddress
import os
import re
import socket
import struct
from pathlib import Path
from typing import Any

__all__ = ["interface_facts", "machine_counters"]

_SYSFS = Path("/sys/class/net")
_SIOCETHTOOL = 0x8946
_OFFLOADS = {
    "rx_checksum": 0x14,
    "tx_checksum": 0x16,
    "scatter_gather": 0x18,
    "tso": 0x1E,
    "gso": 0x23,
    "gro": 0x2B,
}
"""Calls that tell one number, of linux/ethtool.h."""
_GET_FLAGS, _FLAG_LRO = 0x25, 1 << 15
_GET_COALESCE, _COALESCE_FIELDS = 0x0E, 22
_COALESCING = {"rx_usecs": 0, "rx_frames": 1, "tx_usecs": 4, "tx_frames": 5, "adaptive_rx": 10, "adaptive_tx": 11}
"""Places in struct ethtool_coalesce after the command."""
_COUNTERS = ("rx_packets", "tx_packets", "rx_errors", "tx_errors", "rx_dropped", "tx_dropped")
_OVERRUNS = ("rx_missed_errors", "rx_fifo_errors", "tx_fifo_errors")
_TICKS = os.sysconf("SC_CLK_TCK")


def interface_facts(name: str) -> dict[str, Any] | None:
    """Return what is known of the interface `name`; ``None`` when this machine has none of that name.

    Returns
    -------
    `up`, `carrier`, `mtu` in bytes, `speed_mbps`, `duplex`, `driver`, `addresses` with prefix length, `offloads`,
    `coalescing`.
    """
    folder = _SYSFS / name
    if not folder.is_dir():
        return None
    flags = int(_text(folder / "flags") or "0", 16)
    speed = _number(folder / "speed")
    driver = folder / "device" / "driver"
    return {
        "up": bool(flags & 1),
        "carrier": _number(folder / "carrier") == 1,
        "mtu": _number(folder / "mtu"),
        "speed_mbps": speed if speed is not None and speed > 0 else None,
        "duplex": _text(folder / "duplex"),
        "driver": driver.resolve().name if driver.exists() else None,
        "addresses": _addresses(name),
        "offloads": _offloads(name),
        "coalescing": _coalescing(name),
    }


def machine_counters(interface: str) -> dict[str, Any]:
    """Return counters that only grow: `steal_s` and `busy_s` over all processors, `cores`, and of `interface` the
    packets, errors, drops and `overruns` (frames that came or went faster than the machine took them); and `sources`,
    which of the counters of a record of fidelity this machine offers."""
    ticks = [int(word) for word in (_text(Path("/proc/stat")) or "cpu").partition("\n")[0].split()[1:9]]
    ticks += [0] * (8 - len(ticks))
    statistics = _SYSFS / interface / "statistics"
    return {
        "steal_s": ticks[7] / _TICKS,
        "busy_s": (sum(ticks[:3]) + sum(ticks[5:7])) / _TICKS,
        "cores": len(os.sched_getaffinity(0)),
        "overruns": sum(_number(statistics / one) or 0 for one in _OVERRUNS),
        "sources": {"thread_waits": _tells_waits(), "steal": ticks[7] > 0 or not _is_guest()},
        **{one: _number(statistics / one) or 0 for one in _COUNTERS},
    }


def _tells_waits() -> bool:
    """Whether the kernel counts how long threads wait: it has counted how often this one ran."""
    fields = (_text(Path("/proc/thread-self/schedstat")) or "").split()
    return len(fields) > 2 and fields[2] != "0"


def _is_guest() -> bool:
    """Whether a hypervisor says that it is there: one that has never reported stolen time is held not to."""
    flags = re.search(r"^flags\s*:(.*)$", _text(Path("/proc/cpuinfo")) or "", re.MULTILINE)
    return flags is not None and "hypervisor" in flags.group(1).split()


def _text(path: Path) -> str | None:
    """The first 4 KiB of a file; ``None`` where it is not there or does not tell now, such as the speed of an
    interface that is down."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(4096).strip()
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]+", text) else None


def _ethtool(name: str, request: bytes) -> bytes | None:
    """The answer to an ethtool call; ``None`` when the driver has none."""
    space = array.array("B", request)
    place, _ = space.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            fcntl.ioctl(asked, _SIOCETHTOOL, struct.pack("16sP16x", name.encode(), place))
        except OSError:
            return None
    return space.tobytes()


def _value(name: str, command: int) -> int | None:
    answer = _ethtool(name, struct.pack("=II", command, 0))
    return None if answer is None else int(struct.unpack("=II", answer)[1])


def _offloads(name: str) -> dict[str, bool | None]:
    values = {one: _value(name, command) for one, command in _OFFLOADS.items()}
    flags = _value(name, _GET_FLAGS)
    found = {one: None if value is None else bool(value) for one, value in values.items()}
    return found | {"lro": None if flags is None else bool(flags & _FLAG_LRO)}


def _coalescing(name: str) -> dict[str, int] | None:
    answer = _ethtool(name, struct.pack("=I", _GET_COALESCE) + bytes(4 * _COALESCE_FIELDS))
    if answer is None:
        return None
    fields = struct.unpack(f"={1 + _COALESCE_FIELDS}I", answer)[1:]
    return {one: int(fields[place]) for one, place in _COALESCING.items()}


def _addresses(name: str) -> list[str]:
    """The addresses of `name` with their prefix length, by netlink as `ip address` asks."""
    found: list[str] = []
    for family, message in _address_messages():
        index, prefix = struct.unpack_from("=I", message, 20)[0], message[17]
        place = 24
        attributes: dict[int, bytes] = {}
        while place + 4 <= len(message):
            length, kind = struct.unpack_from("=HH", message, place)
            if length < 4 or place + length > len(message):
                break
            attributes[kind] = message[place + 4 : place + length]
            place += (length + 3) & ~3
        # IFA_LOCAL is the own address where IFA_ADDRESS is that of the far end.
        packed = attributes.get(2, attributes.get(1))
        if packed is not None and _index(name) == index and family in (socket.AF_INET, socket.AF_INET6):
            found.append(f"{ipaddress.ip_address(packed)}/{prefix}")
    return found


def _index(name: str) -> int | None:
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return None


def _address_messages() -> list[tuple[int, bytes]]:
    """The kernel's messages about the addresses of all interfaces (RTM_GETADDR, rtnetlink(7)), with their family."""
    get_address, dump_request, new_address, done = 22, 0x301, 20, 3
    messages: list[tuple[int, bytes]] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as asked:
        asked.bind((0, 0))
        asked.settimeout(5)
        asked.send(struct.pack("=IHHIIBBBBI", 24, get_address, dump_request, 1, 0, 0, 0, 0, 0, 0))
        while True:
            data, place = asked.recv(1 << 16), 0
            while place + 16 <= len(data):
                length, kind = struct.unpack_from("=IH", data, place)
                if kind == done or length < 16:
                    return messages
                if kind == new_address:
                    messages.append((data[place + 16], data[place : place + length]))
                place += (length + 3) & ~3
