"""A place of their own for peers: network, mount and process namespaces that vanish with the process that holds them.

Peers name their interfaces and sockets as they like; here they disturb neither the machine nor each other.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

__all__ = ["Arena"]

_PATIENCE_S = 10.0
"""How long a program may take until it is ready."""


class Arena:
    """Namespaces in which peers run, as root; ``with`` opens and ends them."""

    def __init__(self) -> None:
        self._environment = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin", "LC_ALL": "C"}

    def __enter__(self) -> Arena:
        namespaces = ["--net", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"]
        # A fresh /run keeps named namespaces, pid files and sockets of peers off the machine's.
        ready = "mount -t tmpfs none /run && mkdir -p /run/netns /run/openvswitch && ip link set lo up && echo ready"
        self._keeper = subprocess.Popen(
            ["unshare", *namespaces, "sh", "-c", f"{ready} && exec cat >/dev/null"],
            # It ends when this pipe does: with us, however we end.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
        )
        if self._keeper.stdout is None or self._keeper.stdout.readline().strip() != "ready":
            self._keeper.kill()
            raise OSError("namespaces for the peers could not be made; run as root")
        self._init = int(Path(f"/proc/{self._keeper.pid}/task/{self._keeper.pid}/children").read_text().split()[0])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._keeper.kill()
        self._keeper.wait()

    def inside(self, argv: Sequence[str], host: str | None = None) -> list[str]:
        """Return the command that runs `argv` in the arena, or in its host `host`."""
        into = ["ip", "netns", "exec", host] if host is not None else []
        return ["nsenter", f"--target={self._init}", "--net", "--mount", "--pid", "--ipc", *into, *argv]

    def popen(self, argv: Sequence[str], host: str | None = None) -> subprocess.Popen[bytes]:
        """Start a program, its outputs on pipes."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.inside(argv, host), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=self._environment
        )

    def run(self, argv: Sequence[str], host: str | None = None, timeout_s: float = 60.0) -> str:
        """Run a program to its end and return its stdout; raises `OSError` with what it said when it fails."""
        done = subprocess.run(
            self.inside(argv, host),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env=self._environment,
        )
        if done.returncode != 0:
            raise OSError(f"{' '.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def await_port(self, protocol: str, port: int, host: str) -> None:
        """Return when a program in `host` listens on a `protocol` (``udp`` or ``tcp``) port; raises `TimeoutError`."""
        patience_s = time.monotonic() + _PATIENCE_S
        while not self._sockets(protocol, port, host):
            if time.monotonic() > patience_s:
                raise TimeoutError(f"nothing listens on {protocol} port {port} of {host} after {_PATIENCE_S:.0f} s")
            time.sleep(0.02)

    def await_read(self, protocol: str, port: int, host: str) -> None:
        """Return when all that has arrived at a port was read; raises `TimeoutError`."""
        patience_s = time.monotonic() + _PATIENCE_S
        while any(int(fields[4].partition(":")[2], 16) for fields in self._sockets(protocol, port, host)):
            if time.monotonic() > patience_s:
                raise TimeoutError(f"what arrived on {protocol} port {port} of {host} is not read")
            time.sleep(0.02)

    def _sockets(self, protocol: str, port: int, host: str) -> list[list[str]]:
        """The kernel's lines about sockets that receive on a port: TCP's that listen, UDP's that are not connected."""
        told = self.run(["cat", f"/proc/net/{protocol}", f"/proc/net/{protocol}6"], host)
        lines = [line.split() for line in told.splitlines()]
        state = {"tcp": "0A", "udp": "07"}[protocol]
        return [one for one in lines if one[1].endswith(f":{port:04X}") and one[3] == state]

    def program(self, process: subprocess.Popen[bytes]) -> int | None:
        """Return the number, by our counting, of the program that `popen` started; ``None`` when it has ended."""
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            return int(children[0]) if children else None
        return None

    def seen_from_outside(self, path: str) -> Path:
        """Return how we reach a file of the arena."""
        return Path(f"/proc/{self._init}/root{path}")

    def processes(self, name: str) -> list[int]:
        """Return the processes of the arena that are called `name`, by their number outside of it."""
        space = Path(f"/proc/{self._init}/ns/pid").readlink()
        found: list[int] = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (path / "comm").read_text().strip() == name and (path / "ns" / "pid").readlink() == space:
                    found.append(int(path.name))
        return found

    def start_open_vswitch(self) -> None:
        """Start an Open vSwitch of the arena's own; its switches forward in user space."""
        database = "/run/openvswitch/conf.db"
        self.run(["ovsdb-tool", "create", database, "/usr/share/openvswitch/vswitch.ovsschema"])
        quiet = ["--no-chdir", "--detach", "-vconsole:off", "-vsyslog:off", "-vfile:off"]
        self.run(["ovsdb-server", database, "--remote=punix:/var/run/openvswitch/db.sock", "--pidfile", *quiet])
        self.run(["ovs-vsctl", "--no-wait", "init"])
        self.run(["ovs-vswitchd", "--pidfile", *quiet])

    def host_pair(self) -> None:
        """Make the hosts ``h1`` (10.99.0.1) and ``h2`` (10.99.0.2), joined by one veth pair."""
        self._hosts()
        self.run(["ip", "-n", "h1", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", "h2"])
        self._addresses()

    def host_pair_on_switch(self) -> None:
        """Make the same hosts, each joined by a veth pair to one Open vSwitch in user space."""
        self._hosts()
        self.run(
            ["ovs-vsctl", "add-br", "s1", "--", "set", "bridge", "s1", "datapath_type=netdev", "fail_mode=standalone"]
        )
        for host in ("h1", "h2"):
            self.run(["ip", "link", "add", f"{host}-s1", "type", "veth", "peer", "name", "eth0", "netns", host])
            self.run(["ip", "link", "set", f"{host}-s1", "up"])
            self.run(["ovs-vsctl", "add-port", "s1", f"{host}-s1"])
        self._addresses()
        for host in ("h1", "h2"):
            # The datapath in user space hands on frames whose checksum the card was to fill in, unfilled.
            self.run(["ethtool", "-K", "eth0", "tx", "off"], host)

    def _hosts(self) -> None:
        for host in ("h1", "h2"):
            self.run(["ip", "netns", "add", host])
            self.run(["ip", "-n", host, "link", "set", "lo", "up"])

    def _addresses(self) -> None:
        for number, host in enumerate(("h1", "h2"), start=1):
            self.run(["ip", "-n", host, "address", "add", f"10.99.0.{number}/24", "dev", "eth0"])
            self.run(["ip", "-n", host, "link", "set", "eth0", "up"])
