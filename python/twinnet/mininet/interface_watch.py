"""MTUs and states of interfaces as the kernel has them, whoever changes them: a shell, a program, or the script itself
(rtnetlink(7), RTMGRP_LINK)."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from twinnet.mininet.kernel import in_network_of

__all__ = ["InterfaceState", "InterfaceWatch"]

_RTMGRP_LINK = 1
_RTM_NEWLINK, _RTM_DELLINK, _RTM_GETLINK = 16, 17, 18
_REQUEST, _DUMP = 0x1, 0x300
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU = 1, 3, 4
_IFF_UP = 1
_MESSAGE_HEADER_BYTES, _LINK_HEADER_BYTES, _ATTRIBUTE_HEADER_BYTES = 16, 16, 4
_LONGEST_MESSAGE = 65_536


@dataclass(frozen=True)
class InterfaceState:
    """How an interface stands.

    Parameters
    ----------
    mtu
        Its MTU in bytes.
    up
        Whether it was taken up, with a carrier or without.
    mac
        Its hardware address.
    """

    mtu: int
    up: bool
    mac: str


class InterfaceWatch:
    """The interfaces of some network namespaces.

    The kernel puts its message into our socket before the call that changes an interface returns: :meth:`read` knows
    of all that any command has done that has ended.

    Parameters
    ----------
    told
        Called by a thread of the watch when there is something to read; it calls :meth:`read`.
    """

    def __init__(self, told: Callable[[], None]) -> None:
        self._told = told
        self._sockets: dict[int | None, socket.socket] = {}
        self._names: dict[tuple[int | None, int], str] = {}
        self._states: dict[tuple[int | None, str], InterfaceState] = {}
        self._selector = selectors.DefaultSelector()
        self._differs = False
        self._thread: threading.Thread | None = None

    def follow(self, processes: Iterable[int | None]) -> None:
        """Follow the network namespaces of `processes` beside those that are followed; ``None``: that of the calling
        thread. A process that is gone is passed over."""
        for process in processes:
            if process in self._sockets:
                continue
            try:
                with in_network_of(process):
                    kernel = socket.socket(
                        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
                    )
            except OSError:
                continue
            kernel.bind((0, _RTMGRP_LINK))
            kernel.setblocking(False)
            self._sockets[process] = kernel
            _ask(kernel)
            self._take(process, kernel)
            self._selector.register(kernel, selectors.EVENT_READ)
        if self._thread is None and self._sockets:
            self._thread = threading.Thread(target=self._wait, daemon=True)
            self._thread.start()

    def read(self) -> bool:
        """Take in what the kernel has told until now; return whether an interface differs."""
        self._differs = False
        for process, kernel in self._sockets.items():
            self._take(process, kernel)
        return self._differs

    def state(self, process: int | None, name: str) -> InterfaceState | None:
        """Return how the interface `name` in the namespace of `process` stands; ``None`` where none is known."""
        return self._states.get((process, name))

    def _wait(self) -> None:
        while True:
            self._selector.select()
            self._told()

    def _take(self, process: int | None, kernel: socket.socket) -> None:
        while True:
            try:
                told = kernel.recv(_LONGEST_MESSAGE)
            except BlockingIOError:
                return
            except OSError as refused:
                if refused.errno != errno.ENOBUFS:
                    return
                # More was told than the socket could keep: how all stand now is asked for.
                _ask(kernel)
                continue
            for kind, index, flags, attributes in _messages(told):
                self._take_one(process, kind, index, bool(flags & _IFF_UP), attributes)

    def _take_one(self, process: int | None, kind: int, index: int, up: bool, attributes: dict[int, bytes]) -> None:
        before = self._names.get((process, index), "")
        if kind == _RTM_DELLINK:
            self._names.pop((process, index), None)
            self._states.pop((process, before), None)
            return
        if kind != _RTM_NEWLINK or _IFLA_IFNAME not in attributes or _IFLA_MTU not in attributes:
            return
        name = os.fsdecode(attributes[_IFLA_IFNAME].rstrip(b"\0"))
        if before and before != name:
            self._states.pop((process, before), None)
        (mtu,) = struct.unpack("=I", attributes[_IFLA_MTU])
        state = InterfaceState(mtu, up, attributes.get(_IFLA_ADDRESS, b"").hex(":"))
        self._differs |= self._states.get((process, name)) != state
        self._names[process, index] = name
        self._states[process, name] = state


def _ask(kernel: socket.socket) -> None:
    """Ask how all interfaces stand; the answers come as changes do."""
    length = _MESSAGE_HEADER_BYTES + _LINK_HEADER_BYTES
    header = struct.pack("=IHHII", length, _RTM_GETLINK, _REQUEST | _DUMP, 1, 0)
    kernel.send(header + struct.pack("=BxHiII", socket.AF_UNSPEC, 0, 0, 0, 0))


def _messages(told: bytes) -> Iterator[tuple[int, int, int, dict[int, bytes]]]:
    """Yield kind, index, flags and attributes of the messages about interfaces."""
    at = 0
    while at + _MESSAGE_HEADER_BYTES <= len(told):
        length, kind = struct.unpack_from("=IH", told, at)
        if length < _MESSAGE_HEADER_BYTES:
            return
        if kind in (_RTM_NEWLINK, _RTM_DELLINK) and length >= _MESSAGE_HEADER_BYTES + _LINK_HEADER_BYTES:
            family, index, flags = struct.unpack_from("=BxxxiI", told, at + _MESSAGE_HEADER_BYTES)
            body = told[at + _MESSAGE_HEADER_BYTES + _LINK_HEADER_BYTES : at + length]
            # A bridge tells of its ports in a family of its own: one that leaves it is not gone.
            if family == socket.AF_UNSPEC:
                yield kind, index, flags, dict(_attributes(body))
        at += (length + 3) & ~3


def _attributes(body: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE_HEADER_BYTES <= len(body):
        length, kind = struct.unpack_from("=HH", body, at)
        if length < _ATTRIBUTE_HEADER_BYTES:
            return
        yield kind, body[at + _ATTRIBUTE_HEADER_BYTES : at + length]
        at += (length + 3) & ~3
