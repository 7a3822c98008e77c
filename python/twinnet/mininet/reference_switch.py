"""``ofdatapath`` and ``ofprotocol``, the programs of OpenFlow's reference switch, for scripts that start them by
themselves.

``ofdatapath -i s1-eth1,s1-eth2 ptcp:`` forwards between interfaces of its namespace, as a switch of the fabric, while
an ``ofprotocol`` is connected to it. ``ofprotocol tcp:127.0.0.1 tcp:10.0.0.1`` passes OpenFlow on between the two, and
begins again with the next controller when one is lost.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twinnet.errors import LabError
from twinnet.mininet.fabric import FABRIC
from twinnet.mininet.fabric_plan import BarePort, SwitchPlan
from twinnet.mininet.kernel import name_process

if TYPE_CHECKING:
    from twinnet.mininet.link import Intf

__all__ = ["main"]

_PORT = 6633
_WITH_VALUES = ("-i", "-d", "-L", "-D", "-P", "--interfaces", "--datapath-id")
_PIECE_BYTES = 65536
_PAUSE_S = 0.1


def _words(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return options with their values, and the other words."""
    options: dict[str, str] = {}
    others: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            others.append(word)
        elif equals:
            options[name] = value
        else:
            options[word] = rest.pop(0) if word in _WITH_VALUES and rest else ""
    return options, others


def _listener(place: str) -> socket.socket:
    kind, _, where = place.partition(":")
    if kind == "punix" and where:
        Path(where).unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(where)
        listener.listen()
        return listener
    if kind != "ptcp" or (where and not where.isdigit()):
        raise ValueError(f"{place!r} is no place to listen: write ptcp:PORT or punix:PATH")
    return socket.create_server(("", int(where or _PORT)))


def _connected(place: str) -> socket.socket:
    kind, _, where = place.partition(":")
    if kind == "unix" and where:
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(where)
        return sock
    host, _, port = where.partition(":")
    if kind != "tcp" or not host or (port and not port.isdigit()):
        raise ValueError(f"{place!r} is no place to connect to: write tcp:HOST:PORT or unix:PATH")
    return socket.create_connection((host, int(port or _PORT)), 1.0)


def _datapath(arguments: Sequence[str]) -> int:
    options, places = _words(arguments)
    interfaces = [one for one in (options.get("-i") or options.get("--interfaces", "")).split(",") if one]
    if len(places) != 1:
        raise ValueError("name one place to listen, such as ptcp:6633")
    listener = _listener(places[0])
    dpid = int(options.get("-d") or options.get("--datapath-id") or "1", 16)
    name = f"dp{os.getpid()}"
    ports: dict[int, Intf | BarePort] = {n: BarePort(interface) for n, interface in enumerate(interfaces, 1)}
    FABRIC.start_switch(SwitchPlan(name, dpid, ports))
    FABRIC.settle()
    while True:
        with listener.accept()[0] as sock:
            process = FABRIC.process
            if process is None:
                raise ValueError("the datapath has ended")
            asked = process.lab.controller_attach_later(descriptors=[sock.fileno()], switch=name, target=places[0])
        try:
            asked.result()
        except LabError as ended:
            print(f"ofdatapath: {ended}", file=sys.stderr, flush=True)


def _protocol(arguments: Sequence[str]) -> int:
    _, places = _words(arguments)
    if len(places) < 2:
        raise ValueError("name the datapath and a controller, such as tcp:127.0.0.1 tcp:10.0.0.1")
    turn = 0
    while True:
        datapath, controller = places[0], places[1 + turn % (len(places) - 1)]
        turn += 1
        try:
            with _connected(datapath) as one, _connected(controller) as other:
                print(f"{controller}: connected", file=sys.stderr, flush=True)
                _pass_on(one, other)
        except OSError as refused:
            print(f"{controller}: {refused.strerror or refused}", file=sys.stderr, flush=True)
        time.sleep(_PAUSE_S)


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    """Pass bytes on in both directions until one end closes."""
    with selectors.DefaultSelector() as selector:
        for source, sink in ((one, other), (other, one)):
            source.settimeout(None)
            selector.register(source, selectors.EVENT_READ, (source, sink))
        while True:
            for key, _ in selector.select():
                source, sink = key.data
                piece = source.recv(_PIECE_BYTES)
                if not piece:
                    return
                sink.sendall(piece)


def main(arguments: Sequence[str]) -> int:
    """Be the program that ``arguments[0]`` names."""
    program, *rest = arguments
    name_process(program)
    try:
        return _datapath(rest) if program == "ofdatapath" else _protocol(rest)
    except (ValueError, OSError, LabError) as refused:
        print(f"{program}: {refused}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
