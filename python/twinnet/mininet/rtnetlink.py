"""Virtual Ethernet pairs by netlink: one message instead of a program for each."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
from collections.abc import Sequence

__all__ = ["create_pair", "delete_together", "take_up"]

_RTM_NEWLINK, _RTM_DELLINK, _RTM_SETLINK = 16, 17, 19
_REQUEST, _ACKNOWLEDGE, _CREATE, _EXCLUSIVE = 0x1, 0x4, 0x400, 0x200
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_LINKINFO, _IFLA_NET_NS_PID, _IFLA_GROUP = 1, 3, 4, 18, 19, 27
_GONE_GROUP = 0x7E11
_IFLA_INFO_KIND, _IFLA_INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_LINK_HEADER = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, 0, 0, 0)
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_UP_LINK_HEADER = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, 0, _IFF_UP, _IFF_UP)
_NAME_BYTES = 15


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", len(value) + 4, kind) + value + bytes(-len(value) % 4)


def _end(name: str, address: str | None, process: int | None, mtu: int | None = None) -> bytes:
    said = _attribute(_IFLA_IFNAME, name.encode() + b"\0")
    if address is not None:
        said += _attribute(_IFLA_ADDRESS, bytes.fromhex(address.replace(":", "").replace("-", "")))
    if process is not None:
        said += _attribute(_IFLA_NET_NS_PID, struct.pack("=I", process))
    if mtu is not None:
        said += _attribute(_IFLA_MTU, struct.pack("=I", mtu))
    return said


def create_pair(
    name1: str,
    name2: str,
    address1: str | None = None,
    address2: str | None = None,
    process1: int | None = None,
    process2: int | None = None,
    *,
    mtu1: int | None = None,
    up1: bool = False,
) -> None:
    """Make a pair of virtual Ethernet interfaces.

    Parameters
    ----------
    name1, name2
        Their names.
    address1, address2
        Their hardware addresses; the kernel chooses one where it is ``None``.
    process1, process2
        A process in whose network namespace each is to be; ``None``: in that of the calling thread.
    mtu1
        The MTU of the first; ``None``: 1500.
    up1
        Whether the first is taken up.

    Raises
    ------
    OSError
        With the kernel's reason, and the name that it is about.
    """
    for name in (name1, name2):
        if len(name.encode()) > _NAME_BYTES:
            raise OSError(errno.EINVAL, f"the interface name {name!r} is longer than {_NAME_BYTES} bytes")
    peer = _attribute(_VETH_INFO_PEER, _LINK_HEADER + _end(name2, address2, process2))
    kind = _attribute(_IFLA_INFO_KIND, b"veth\0") + _attribute(_IFLA_INFO_DATA, peer)
    header = _UP_LINK_HEADER if up1 else _LINK_HEADER
    body = header + _end(name1, address1, process1, mtu1) + _attribute(_IFLA_LINKINFO, kind)
    flags = _REQUEST | _ACKNOWLEDGE | _CREATE | _EXCLUSIVE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as kernel:
        kernel.send(struct.pack("=IHHII", len(body) + 16, _RTM_NEWLINK, flags, 1, 0) + body)
        answer = kernel.recv(65536)
    (refusal,) = struct.unpack_from("=i", answer, 16)
    if refusal:
        why = os.strerror(-refusal)
        if refusal == -errno.EEXIST:
            why = "one of these names is taken"
        raise OSError(-refusal, why)


def delete_together(names: Sequence[str]) -> None:
    """Delete interfaces of the calling thread's network namespace at once: the kernel waits for all of them together,
    and not for each. Those that are not there are passed over; raises `OSError` when the kernel refuses it."""
    group = _attribute(_IFLA_GROUP, struct.pack("=I", _GONE_GROUP))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as kernel:
        marked = 0
        for name in names:
            try:
                index = socket.if_nametoindex(name)
            except OSError:
                continue
            _ask(kernel, _RTM_SETLINK, struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, 0, 0) + group)
            marked += 1
        if marked:
            _ask(kernel, _RTM_DELLINK, _LINK_HEADER + group)


def _ask(kernel: socket.socket, kind: int, body: bytes) -> None:
    kernel.send(struct.pack("=IHHII", len(body) + 16, kind, _REQUEST | _ACKNOWLEDGE, 1, 0) + body)
    (refusal,) = struct.unpack_from("=i", kernel.recv(65536), 16)
    if refusal:
        raise OSError(-refusal, os.strerror(-refusal))


def take_up(interface: str) -> None:
    """Take an interface of the calling thread's network namespace up; raises `OSError`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", interface.encode(), 0)
        name, flags = struct.unpack_from("16sH", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", name, flags | _IFF_UP))
