"""The interface of a network namespace that leads outside. As a program in that namespace it makes the interface, and
hands the socket over by its standard input.

Imports nothing of ours: a host starts it.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys

__all__ = ["GATEWAY", "INTERFACE", "NAMES", "NETWORK", "PREFIX", "make"]

INTERFACE = "way0"
NETWORK = "198.18.53.0/24"
"""None that is used for hosts (RFC 2544 keeps it for benchmarks)."""
OWN, GATEWAY, NAMES = "198.18.53.1", "198.18.53.2", "198.18.53.3"
"""The address of the interface, the next hop, and the name server."""
PREFIX = 24
_OTHER_END = "way1"
_MTU = 65535
"""What goes in is cut where it leaves for a host, and not before."""
_LINES = f"""\
link add {INTERFACE} mtu {_MTU} address 02:00:00:00:53:01 type veth peer name {_OTHER_END} mtu {_MTU}
link set {_OTHER_END} up
link set {INTERFACE} arp off up
address add {OWN}/{PREFIX} dev {INTERFACE}
route replace default via {GATEWAY} dev {INTERFACE}
"""
_IP = 0x0800
_SOL_PACKET, _PACKET_FANOUT, _DEFRAG = 263, 18, struct.pack("=HH", 0, 0x8000)
"""Linux's names in ``if_packet.h``. A group of sockets, here of one, may have the kernel put fragments together."""


def make() -> socket.socket:
    """Make the interface in this network namespace, as its default route, and return the socket for its packets.

    Raises
    ------
    OSError
        The interface cannot be made: its name is taken, or ``ip`` is not installed.
    """
    done = subprocess.run(["ip", "-batch", "-"], input=_LINES, capture_output=True, text=True)
    if done.returncode:
        raise OSError(done.stderr.strip() or "ip cannot make an interface")
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_IP))
    packets.bind((_OTHER_END, _IP))
    packets.setsockopt(_SOL_PACKET, _PACKET_FANOUT, _DEFRAG)
    return packets


def _main() -> int:
    try:
        made = make()
    except OSError as wrong:
        print(wrong, file=sys.stderr)
        return 1
    with made, socket.socket(fileno=0) as asked:
        socket.send_fds(asked, [b"y"], [made.fileno()])
    return 0


if __name__ == "__main__":
    sys.exit(_main())
