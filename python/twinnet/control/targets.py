"""Addresses of controllers, and addresses at which switches listen, in the notation of ``ovs-vsctl``."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from pathlib import Path

from twinnet.errors import BadValue

__all__ = [
    "OPENFLOW_PORT",
    "PROTOCOLS",
    "ListenTarget",
    "Target",
    "answers",
    "checked_protocols",
    "parse_listen",
    "parse_target",
]

_CONNECT_S = 3.0
_TARGET = re.compile(r"(?P<over>tcp|ssl):(?P<address>\[[0-9A-Fa-f:.]+\]|[^:\s\[\]]+)(?::(?P<port>\d{1,5}))?\Z")
_LISTEN = re.compile(r"p(?P<over>tcp|ssl):(?P<port>\d{1,5})?(?::(?P<address>\[[0-9A-Fa-f:.]+\]|[^:\s\[\]]+))?\Z")

OPENFLOW_PORT = 6653
"""The port of OpenFlow (IANA)."""
PROTOCOLS = ("OpenFlow10", "OpenFlow13")
"""The versions that a switch speaks unless it is set otherwise, by the names that ``ovs-vsctl`` has for them."""


@dataclass(frozen=True)
class Target:
    """A controller's address and port, and whether it is spoken to over TLS."""

    address: str
    port: int
    tls: bool = False


@dataclass(frozen=True)
class ListenTarget:
    """The address at which a switch listens: an address and port, with or without TLS, or the path of a Unix socket."""

    address: str = ""
    port: int = 0
    path: Path | None = None
    tls: bool = False


def _port(text: str | None, whole: str, usual: int = OPENFLOW_PORT) -> int:
    port = usual if text is None else int(text)
    if not 1 <= port <= 65_535:
        raise BadValue(f"the port in {whole!r} is {port}; allowed are 1 to 65535")
    return port


def parse_target(text: str) -> Target:
    """Read ``tcp:ADDRESS[:PORT]`` or ``ssl:ADDRESS[:PORT]``; write an IPv6 address in brackets; the default port is
    6653.

    Raises
    ------
    BadValue
        When it is something else.

    Examples
    --------
    >>> parse_target("tcp:127.0.0.1:6633")
    Target(address='127.0.0.1', port=6633, tls=False)
    """
    found = _TARGET.match(text)
    if found is None:
        raise BadValue(f"{text!r} names no controller", 'write for example "tcp:127.0.0.1:6653" or "ssl:..."')
    return Target(found["address"].strip("[]"), _port(found["port"], text), found["over"] == "ssl")


def answers(target: Target) -> bool:
    """Return whether somebody listens at `target`."""
    try:
        with socket.create_connection((target.address, target.port), _CONNECT_S):
            return True
    except OSError:
        return False


def parse_listen(text: str, usual_port: int = OPENFLOW_PORT) -> ListenTarget:
    """Read ``ptcp:[PORT][:ADDRESS]`` or ``pssl:[PORT][:ADDRESS]`` (default address: 127.0.0.1), or ``punix:PATH``.

    Parameters
    ----------
    text
        The place.
    usual_port
        The port where none is named.

    Raises
    ------
    BadValue
        When it is something else.

    Examples
    --------
    >>> parse_listen("ptcp:6654")
    ListenTarget(address='127.0.0.1', port=6654, path=None, tls=False)
    """
    if text.startswith("punix:") and len(text) > len("punix:"):
        return ListenTarget(path=Path(text.removeprefix("punix:")))
    found = _LISTEN.match(text)
    if found is None:
        raise BadValue(f"{text!r} is no place to listen", 'write "ptcp:6654", "pssl:6654" or "punix:/tmp/s1.mgmt"')
    address = (found["address"] or "127.0.0.1").strip("[]")
    return ListenTarget(address, _port(found["port"], text, usual_port), tls=found["over"] == "ssl")


def checked_protocols(protocols: object, of: str) -> tuple[str, ...]:
    """Return `protocols`, or raise `BadValue` when they are not versions that a switch speaks."""
    given: tuple[object, ...] = tuple(protocols) if isinstance(protocols, (list, tuple)) else (protocols,)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    names = [name for name in given if isinstance(name, str) and name in PROTOCOLS]
    if not given or len(names) != len(given):
        raise BadValue(f"the protocols of {of} are {protocols!r}; allowed are {' and '.join(PROTOCOLS)}")
    return tuple(names)
