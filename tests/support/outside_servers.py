"""A network of its own, with servers at 192.0.2.1, in which a command runs: what is outside for the hosts of labs.

As a program it runs the command of its arguments there, prints what that said, and then the programs that carry
connections outward and are still there. Port 8001 takes bytes to their end, and answers with their hash and the bytes.
Port 8002 takes datagrams, and answers with 125 times what is in a small one, and with the hash and the bytes of a large
one. Nobody listens at port 8003.
"""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

__all__ = ["ASKS", "CARRIED", "outside_of", "path_without"]

ADDRESS = "192.0.2.1"
ASKS = f"""
import hashlib, os, socket, sys
told = os.urandom(2_000_000)
with socket.create_connection(("{ADDRESS}", 8001), 60) as line:
    line.sendall(told)
    line.shutdown(socket.SHUT_WR)
    heard = b"".join(iter(lambda: line.recv(65536), b""))
print("tcp", heard == hashlib.sha256(told).digest() + told)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
    datagrams.settimeout(60)
    datagrams.sendto(b"question", ("{ADDRESS}", 8002))
    print("udp", datagrams.recv(65536) == b"question" * 125)
    # In fragments, on the way to who asks and on the way there; again and again.
    told = [os.urandom(size) for size in (40, 1500, 60, 9000)]
    heard = []
    for one in told:
        datagrams.sendto(one, ("{ADDRESS}", 8002))
        heard.append(datagrams.recv(65536))
    print("large udp", heard == [told[0] * 125, hashlib.sha256(told[1]).digest() + told[1], told[2] * 125,
                                 hashlib.sha256(told[3]).digest() + told[3]])
try:
    socket.create_connection(("{ADDRESS}", 8003), 60)
except ConnectionRefusedError:
    print("refused True")
"""
"""A program that asks all of them."""
CARRIED = ("tcp True", "udp True", "large udp True", "refused True")
"""The lines that it prints where all is carried."""
_PATIENCE_S = 15


def path_without(folder: Path, names: Iterable[str]) -> str:
    """Return a search path for all programs but `names`; `folder` is made for it."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            if program.name not in names and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return str(folder)


def outside_of(folder: Path, *command: str, path: str | None = None) -> str:
    """Run `command` in `folder` with the servers outside, and return what it printed."""
    alone = ["unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", sys.executable]
    environment = {**os.environ, **({"PATH": path} if path else {})}
    done = subprocess.run(
        [*alone, __file__, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=110
    )
    return done.stdout + done.stderr


def _answer_connections(listener: socket.socket) -> None:
    while True:
        line, _ = listener.accept()
        with line, line.makefile("rb") as stream:
            heard = stream.read()
            line.sendall(hashlib.sha256(heard).digest() + heard)


def _answer_datagrams(taker: socket.socket) -> None:
    while True:
        heard, asker = taker.recvfrom(65536)
        taker.sendto(heard * 125 if len(heard) < 100 else hashlib.sha256(heard).digest() + heard, asker)


def _carriers() -> list[str]:
    return subprocess.run(["pgrep", "-l", "slirp4netns"], capture_output=True, text=True).stdout.splitlines()


def _main(command: list[str]) -> int:
    lines = f"link set lo up\naddress add {ADDRESS}/32 dev lo\n"
    subprocess.run(["ip", "-batch", "-"], input=lines, text=True, check=True)
    Path("/proc/sys/net/ipv4/ping_group_range").write_text("0 0")
    taker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taker.bind((ADDRESS, 8002))
    listener = socket.create_server((ADDRESS, 8001))
    for answer, at in ((_answer_datagrams, taker), (_answer_connections, listener)):
        threading.Thread(target=answer, args=(at,), daemon=True).start()
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    print(done.stdout + done.stderr)
    until = time.monotonic() + _PATIENCE_S
    while _carriers() and time.monotonic() < until:
        time.sleep(0.1)
    print("left:", _carriers())
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
