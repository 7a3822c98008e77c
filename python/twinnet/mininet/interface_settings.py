"""Addresses and states of interfaces, set by the kernel's calls instead of a program for each (netdevice(7))."""

from __future__ import annotations

import fcntl
import ipaddress
import re
import socket
import struct
from collections.abc import Sequence

__all__ = ["set_interface"]

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_SIOCSIFADDR, _SIOCSIFNETMASK, _SIOCSIFHWADDR = 0x8916, 0x891C, 0x8924
_ARPHRD_ETHER = 1
_NAME_BYTES = 15
_ADDRESS = re.compile(r"(\d+\.\d+\.\d+\.\d+)/(\d+)")
_HARDWARE = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")


def set_interface(name: str, words: Sequence[str]) -> bool:
    """Do what ``ifconfig NAME WORDS...`` does, in the network namespace of this thread, and return True; False when
    only the program can do it.

    Parameters
    ----------
    name
        The interface.
    words
        ``up``, ``down``, ``hw ether ADDRESS``, or an IPv4 address with its prefix length and perhaps ``up``.

    Raises
    ------
    OSError
        The kernel refuses it.
    """
    if len(name.encode()) > _NAME_BYTES:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        if list(words) in (["up"], ["down"]):
            _take(asked, name, words[0] == "up")
        elif list(words[:2]) == ["hw", "ether"] and len(words) == 3 and _HARDWARE.fullmatch(words[2]):
            address = bytes.fromhex(words[2].replace(":", ""))
            fcntl.ioctl(asked, _SIOCSIFHWADDR, struct.pack("16sH14s", name.encode(), _ARPHRD_ETHER, address))
        elif (found := _ADDRESS.fullmatch(words[0]) if words else None) and list(words[1:]) in ([], ["up"]):
            return _set_address(asked, name, found[1], int(found[2]))
        else:
            return False
    return True


def _take(asked: socket.socket, name: str, up: bool) -> None:
    answered = fcntl.ioctl(asked, _SIOCGIFFLAGS, struct.pack("16sH14x", name.encode(), 0))
    flags: int = struct.unpack_from("16sH", answered)[1]
    flags = flags | _IFF_UP if up else flags & ~_IFF_UP
    fcntl.ioctl(asked, _SIOCSIFFLAGS, struct.pack("16sH14x", name.encode(), flags))


def _set_address(asked: socket.socket, name: str, address: str, bits: int) -> bool:
    try:
        found = ipaddress.IPv4Interface(f"{address}/{bits}")
    except ValueError:
        return False
    for call, value in ((_SIOCSIFADDR, found.ip), (_SIOCSIFNETMASK, found.netmask)):
        fcntl.ioctl(asked, call, struct.pack("16sHxx4s8x", name.encode(), socket.AF_INET, value.packed))
    # As the program does: an interface with an address is up.
    _take(asked, name, True)
    return True
