"""Where tools of OpenFlow reach the switches: ``ovs-ofctl show s1`` by a socket of that name, and TCP ports.

One thread accepts for all switches; the fabric serves each connection.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from twinnet.control.targets import parse_listen
from twinnet.errors import LabError, TwinnetError
from twinnet.lab_process.requests import LabRequests
from twinnet.mininet.log import warn

__all__ = ["RUN_VARIABLE", "ToolDoors", "bound"]

RUN_VARIABLE = "OVS_RUNDIR"
"""The folder in which Open vSwitch's tools look for the sockets of switches."""
_BACKLOG = 16


def bound(path: Path) -> socket.socket:
    """Return a socket that is bound to `path`, whatever was there before."""
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    return sock


class ToolDoors:
    """The listening sockets of the switches among `nodes` (of the lab protocol), until :meth:`end`."""

    def __init__(self, lab: LabRequests, nodes: Sequence[Mapping[str, Any]]) -> None:
        self._lab = lab
        self._selector = selectors.DefaultSelector()
        self._paths: list[Path] = []
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        folder = os.environ.get(RUN_VARIABLE)
        for node in nodes:
            if node["kind"] != "switch":
                continue
            if folder is not None:
                self._add(node["name"], f"punix:{folder}/{node['name']}.mgmt")
            if node.get("listen"):
                self._add(node["name"], node["listen"])
        self._thread = threading.Thread(target=self._accept, name="twinnet-tools", daemon=True)
        self._thread.start()

    def _add(self, switch: str, text: str) -> None:
        target = parse_listen(text)
        try:
            if target.path is not None:
                listener = bound(target.path)
                listener.listen(_BACKLOG)
                self._paths.append(target.path)
            else:
                listener = socket.create_server((target.address, target.port), backlog=_BACKLOG)
        except OSError as refused:
            warn(f"twinnet: {switch} cannot listen at {text}: {refused.strerror}\n")
            return
        self._selector.register(listener, selectors.EVENT_READ, (switch, text))

    def _accept(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    return
                switch, text = key.data
                listener: Any = key.fileobj
                with suppress(OSError, TwinnetError, LabError), listener.accept()[0] as sock:
                    given = [sock.fileno()]
                    self._lab.controller_attach_later(switch=switch, target=text, peer="tool", descriptors=given)

    def end(self) -> None:
        """Listen no more."""
        self._wake.close()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            listener: Any = key.fileobj
            listener.close()
        self._selector.close()
        for path in self._paths:
            path.unlink(missing_ok=True)
