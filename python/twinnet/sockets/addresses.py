"""Addresses of other machines by their names."""

from __future__ import annotations

import ipaddress
import socket

from twinnet.errors import BadValue

__all__ = ["address_of"]


def address_of(what: str, name: str, family: int) -> str:
    """Return the address of the machine `name` in `family` of sockets; `what` it is to us, such as a receiver, is for
    the message.

    Raises
    ------
    BadValue
        The name is not known.
    """
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(name, None, family, socket.SOCK_DGRAM)
    except UnicodeError:
        raise BadValue(f"the {what} {name!r} is not known: it is no name of a host", "give its address") from None
    except OSError as error:
        raise BadValue(f"the {what} {name!r} is not known: {error.strerror}", "give its address") from None
    return str(found[0][4][0])
