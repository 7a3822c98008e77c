"""Address of a scheduler: ``tls://HOST:PORT``, or without TLS on loopback only, and only when that is asked for."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from twinnet.errors import BadAddress

__all__ = ["Address", "parse_address"]

_WRITTEN = re.compile(r"(?P<scheme>[a-z]+)://(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]{1,253}):(?P<port>[0-9]{1,5})")
_EXAMPLE = "write for example tls://lab1:8786"


@dataclass(frozen=True)
class Address:
    """A scheduler's address.

    Attributes
    ----------
    encrypted
        Whether TLS is spoken there.
    host
        A name or an address; IPv6 without brackets.
    port
        1 to 65535; 0 for a scheduler that takes any free one.
    """

    encrypted: bool
    host: str
    port: int

    def __str__(self) -> str:
        """As it is written on the command line."""
        return f"{self.protocol}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def protocol(self) -> str:
        """`tls` or `tcp`."""
        return "tls" if self.encrypted else "tcp"

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def parse_address(text: str, without_tls: bool = False, listening: bool = False) -> Address:
    """Read ``tls://HOST:PORT``.

    Parameters
    ----------
    text
        The address.
    without_tls
        Permits ``tcp://`` with an address of loopback.
    listening
        Permits port 0, which stands for any free port.

    Raises
    ------
    BadAddress
        It cannot be read, has no TLS where that is not permitted, or TLS where `without_tls` says there is none.
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None or found["scheme"] not in ("tls", "tcp"):
        raise BadAddress(f"{text[:80]!r} is no address of a scheduler", _EXAMPLE)
    address = Address(found["scheme"] == "tls", found["host"].strip("[]"), int(found["port"]))
    if not (0 if listening else 1) <= address.port <= 65535:
        raise BadAddress(f"{text!r} has the port {address.port}; ports are 1 to 65535", _EXAMPLE)
    if address.encrypted:
        if without_tls:
            raise BadAddress(f"{text} is given with --without-tls", "leave out one of them")
        return address
    if not address.is_loopback:
        raise BadAddress(
            f"{text} is without TLS and not on loopback: anybody on the network could run programs there",
            f"write tls://{address.host}:{address.port}, with the certificates of `twinnet cluster new`",
        )
    if not without_tls:
        raise BadAddress(
            f"{text} is without TLS: every user of this machine could run programs as you",
            f"write tls://{address.host}:{address.port}, or add --without-tls if nobody else uses this machine",
        )
    return address
