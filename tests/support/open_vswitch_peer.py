"""Open vSwitch in user space on one machine of an underlay, with a tunnel of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from underlay_pair import CannotMake, UnderlayPair

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")


class OpenVSwitchPeer:
    """A bridge whose only ports are its own interface and a tunnel; ended by ``with``.

    Parameters
    ----------
    pair, side
        The underlay, and on which of its machines.
    folder
        For its database and sockets.
    """

    def __init__(self, pair: UnderlayPair, side: int, folder: Path) -> None:
        for tool in ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl"):
            if shutil.which(tool, path="/usr/bin:/usr/sbin:/sbin") is None:
                raise CannotMake(f"{tool} is not installed")
        self._pair, self._side = pair, side
        self._environment = {"OVS_RUNDIR": str(folder), "OVS_LOGDIR": str(folder), "OVS_DBDIR": str(folder)}
        self._socket = f"unix:{folder}/db.sock"
        self._processes: list[subprocess.Popen[str]] = []
        self._run("ovsdb-tool", "create", str(folder / "conf.db"), str(SCHEMA))
        self._start("ovsdb-server", str(folder / "conf.db"), f"--remote=punix:{folder}/db.sock")
        # It waits until the database answers.
        self._vsctl("--no-wait", "--retry", "init")
        self._start("ovs-vswitchd", self._socket)

    def tunnel(self, kind: str, local: str, remote: str, identifier: int, address: str) -> None:
        """Have a tunnel to `remote`, and br0 with `address` behind it; the wire's address moves to br-phy."""
        netdev = "datapath_type=netdev"
        self._vsctl(
            "--timeout=20",
            "add-br",
            "br-phy",
            "--",
            "set",
            "bridge",
            "br-phy",
            netdev,
            "--",
            "add-port",
            "br-phy",
            "wire",
        )
        far = [f"options:remote_ip={remote}", f"options:local_ip={local}", f"options:key={identifier}"]
        settings = ["set", "interface", "tunnel0", f"type={kind}", *far]
        add = ["add-br", "br0", "--", "set", "bridge", "br0", netdev, "--", "add-port", "br0", "tunnel0"]
        self._vsctl("--timeout=20", *add, "--", *settings)
        for line in (
            "ip addr flush dev wire",
            f"ip addr add {local}/24 dev br-phy",
            "ip link set br-phy up",
            f"ip addr add {address} dev br0",
            "ip link set br0 mtu 1400 up",
        ):
            self._run(*line.split())

    def _vsctl(self, *words: str) -> None:
        self._run("ovs-vsctl", f"--db={self._socket}", *words)

    def _run(self, *words: str) -> None:
        done = self._pair.run(self._side, *words, **self._environment)
        if done.returncode != 0:
            self.end()
            raise CannotMake(f"{' '.join(words)}: {done.stderr.strip()}")

    def _start(self, *words: str) -> None:
        self._processes.append(self._pair.start(self._side, *words, "-vconsole:off", **self._environment))

    def __enter__(self) -> OpenVSwitchPeer:
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()

    def end(self) -> None:
        """End both programs."""
        for process in reversed(self._processes):
            process.kill()
            process.communicate()
        self._processes.clear()
