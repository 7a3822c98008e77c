"""Whether a program of a host listens at a port, as Linux's own tables in the host say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinnet.errors import BadValue, TimeLimit
from twinnet.units import Picoseconds, duration_ps

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["is_listening", "wait_listening"]

_POLL_PS = 20 * 10**9
_LAST_PORT = 65535
_STATES = {"tcp": "0A", "udp": "07"}
"""The states of sockets that listen in ``/proc/net/tcp`` and ``/proc/net/udp`` (``TCP_LISTEN``, ``TCP_CLOSE``)."""


def is_listening(lab: Lab, host: str, port: int, protocol: str = "tcp") -> bool:
    """Return whether a program of `host` takes connections (datagrams) at `port`."""
    rows = lab[host].run(["cat", f"/proc/net/{protocol}", f"/proc/net/{protocol}6"]).stdout.splitlines()
    columns = (row.split() for row in rows)
    return any(len(one) > 3 and one[3] == _STATES[protocol] and one[1].endswith(f":{port:04X}") for one in columns)


def wait_listening(lab: Lab, host: str, port: int, protocol: str = "tcp", timeout: str = "10 s") -> None:
    """Wait until a program of `host` listens at `port`: see :meth:`twinnet.lab.parts.LabHost.wait_listening`."""
    if protocol not in _STATES:
        raise BadValue(f"the protocol is {protocol!r}; allowed are tcp and udp")
    if not 1 <= port <= _LAST_PORT:
        raise BadValue(f"the port is {port}; allowed are 1 to {_LAST_PORT}")
    due_ps = lab.now_ps() + duration_ps(timeout, "timeout")
    while not is_listening(lab, host, port, protocol):
        if lab.now_ps() >= due_ps:
            what = "takes connections" if protocol == "tcp" else "takes datagrams"
            raise TimeLimit(
                f"no program of {host} {what} at port {port} ({protocol}) after {timeout}",
                "look whether it runs, or allow more time",
            )
        lab.run_until(Picoseconds(lab.now_ps() + _POLL_PS))
