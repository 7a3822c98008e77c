"""The two ends of a TCP flow as programs, for the grid's cells of Linux on the virtual clock.

``tcp_ends.py sink PORT BEGINS FIRST LAST`` accepts one connection and prints how many bytes came from FIRST to LAST;
``tcp_ends.py source ADDRESS PORT BEGINS START CONTROL`` sends from START on, until its lab ends. Times are seconds of
the lab's clock, which shows 0 at the time of day BEGINS. They write and read as the built-in apps do on the wall clock:
without delay, as much as the socket takes, into nothing.

They run in the hosts of a lab by their path, so this imports nothing of the package.
"""

from __future__ import annotations

import signal
import socket
import sys
import time

_BLOCK_BYTES = 1 << 17


def sink(port: int, begins_s: float, first_s: float, last_s: float) -> None:
    """Print how many bytes a connection brings from `first_s` to `last_s`. Timers take the counts: whoever asked the
    clock for each read would take the time that a reading costs there."""
    received = 0
    counts: list[int] = []

    def take(number: int, frame: object) -> None:
        counts.append(received)
        if len(counts) == 2:
            print(counts[1] - counts[0], flush=True)
            sys.exit(0)

    listener = socket.create_server(("", port))
    signal.signal(signal.SIGALRM, take)
    signal.setitimer(signal.ITIMER_REAL, first_s - (time.time() - begins_s), last_s - first_s)
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    room = bytearray(_BLOCK_BYTES)
    while True:
        # tcp(7): what is received so is discarded, not copied.
        received += connection.recv_into(room, _BLOCK_BYTES, socket.MSG_TRUNC)


def source(address: str, port: int, begins_s: float, start_s: float, control: str) -> None:
    """Send as much as the connection takes, from `start_s` on."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    time.sleep(start_s - (time.time() - begins_s))
    sender.connect((address, port))
    block = bytes(_BLOCK_BYTES)
    while True:
        sender.sendall(block)


if __name__ == "__main__":
    asked, *words = sys.argv[1:]
    if asked == "sink":
        sink(int(words[0]), *map(float, words[1:4]))
    else:
        source(words[0], int(words[1]), float(words[2]), float(words[3]), words[4])
