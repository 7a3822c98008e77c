"""The way from a network namespace to the network outside, by ordinary sockets of the caller and without any right.

One end of an interface of the namespace is read and written outside of it. There the connections of hosts end, and go
on as sockets of the caller (`twinnet._core.Outward`).
"""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

from twinnet._core import Outward
from twinnet.outward.interface import GATEWAY, NAMES, PREFIX

__all__ = ["carry", "resolver"]

_RESOLVERS = Path("/etc/resolv.conf")


def carry(packets: int) -> Outward:
    """Carry outward what comes by the socket `packets`, of which this keeps a copy, until ``close()`` or the end of
    this process. :func:`twinnet.outward.interface.make` makes such a socket. Raises `OSError`."""
    return Outward(packets, GATEWAY, PREFIX, NAMES, resolver(_RESOLVERS))


def resolver(path: Path) -> str | None:
    """Return address and port of the first name server of IPv4 in the file `path`; ``None``: there is none."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return None
    for words in map(str.split, lines):
        if len(words) > 1 and words[0] == "nameserver":
            with suppress(OSError):
                return f"{socket.inet_ntop(socket.AF_INET, socket.inet_pton(socket.AF_INET, words[1]))}:53"
    return None
