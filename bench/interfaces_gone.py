"""Tells when the kernel has removed the interfaces of namespaces that ended: ``unshare -n python interfaces_gone.py``.

A program that has stopped a network has returned, and no more: the kernel removes namespaces and their interfaces in
the background, one batch after another in the order in which they ended. So a namespace that ends after those of the
network is a sentinel: when its interface is gone, theirs are. Prints ``ready``; after a line of input ends the
sentinel, and prints the seconds until its interface was gone. It needs nothing but Python, so that
Mininet's own runs it.
"""

import socket
import subprocess
import sys
import time

INTERFACE = "sentinel"
PATIENCE_S = 300.0
POLL_S = 0.001


def main():
    """Hold the sentinel until it is to end."""
    command = ["unshare", "-n", "sh", "-c", "echo; exec cat"]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        holder.stdout.readline()
        pair = ["ip", "link", "add", INTERFACE, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid)]
        subprocess.run(pair, check=True)
        print("ready", flush=True)
        sys.stdin.readline()
    finally:
        holder.kill()
        begin = time.perf_counter()
        holder.communicate()
    while INTERFACE in (name for _, name in socket.if_nameindex()):
        if time.perf_counter() > begin + PATIENCE_S:
            sys.exit(f"the sentinel's interface is there after {PATIENCE_S:g} s")
        time.sleep(POLL_S)
    print(time.perf_counter() - begin)


class Sentinel:
    """The program in a process of its own, from before the network ends until `wait` returns."""

    def __init__(self):
        self._process = subprocess.Popen(
            ["unshare", "-n", sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if self._process.stdout.readline() != "ready\n":
            raise OSError("the sentinel has no interface: see what it printed")

    def wait(self):
        """Return when the interfaces of all namespaces that have ended are gone; raises `OSError` if they stay."""
        told, _ = self._process.communicate("\n")
        if self._process.returncode != 0:
            raise OSError(f"the interfaces stay: the sentinel ended with {self._process.returncode}, {told!r}")


if __name__ == "__main__":
    main()
