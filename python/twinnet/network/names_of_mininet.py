"""Attributes that those look for who know Mininet, answered with what is written here."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from twinnet.errors import did_you_mean

__all__ = ["AnswersToMininet"]

_PINGALL = "twinnet lab NETWORK -c pingall, or start tn.apps.ping for each pair"
_INSTEAD = {
    "Network": {
        "addHost": 'net.host("h1")',
        "addSwitch": 'net.switch("s1")',
        "addLink": 'net.link("h1", "s1", rate="10 Mbit")',
        "addController": 'net.controller("tcp:127.0.0.1:6653")',
        "start": "with net.emulate() as lab:",
        "run": "with net.emulate() as lab:",
        "stop": "with net.emulate() as lab:, and the lab ends with the block",
        "pingAll": _PINGALL,
        "get": 'net.hosts["h1"]',
    },
    "Lab": {
        "pingAll": _PINGALL,
        "ping_all": _PINGALL,
        "get": 'lab["h1"]',
        "run": 'lab["h1"].run("ping -c1 h2")',
        "iperf": 'lab.start(tn.apps.tcp_bulk("h1", "h2", duration="5 s"))',
    },
    "LabHost": {
        "cmd": 'run("ping -c1 h2").stdout',
        "sendCmd": 'popen("iperf3 -s")',
        "MAC": "lab.describe(), which has the addresses of all interfaces",
    },
}
"""What to write, by the class and the attribute that is looked for."""


class AnswersToMininet:
    """A class that says what to write when somebody asks for an attribute that it does not have.

    Examples
    --------
    >>> from twinnet.network.network import Network
    >>> Network().addHost("h1")
    Traceback (most recent call last):
    ...
    AttributeError: 'Network' object has no attribute 'addHost': write net.host("h1")
    """

    # For a type checker an attribute that is not there stays an error.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            kind = type(self).__name__
            message = f"{kind!r} object has no attribute {name!r}"
            if name.startswith("_"):
                raise AttributeError(message, name=name, obj=self)
            instead = _INSTEAD.get(kind, {}).get(name)
            public = [one for one in dir(type(self)) if not one.startswith("_")]
            hint = f"write {instead}" if instead is not None else did_you_mean(name.lower(), public)
            # Without `obj`, Python adds no second guess to the line.
            raise AttributeError(f"{message}: {hint}", name=name)
