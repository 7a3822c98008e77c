"""Machines of a cluster for tests: namespaces on one wire, each with its own host name and temporary folder."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from campaign import Told, environment, twinnet_command
from private_network import HOLD, Place

__all__ = ["ClusterMachines", "permits_machines"]

_IN_MACHINE = "hostname {name} && mount -t tmpfs none {own} && ip link set lo up && echo ready && exec sleep 1000"


class _Machine(Place):
    """A user, network, mount and UTS namespace."""

    def command(self, *arguments: str) -> list[str]:
        """The command that runs `arguments` there."""
        return ["nsenter", "--preserve-credentials", "-U", "-n", "-m", "-u", "-t", str(self.pid), *arguments]


class ClusterMachines:
    """Machines ``m1``, ``m2``, ... on one wire, 10.9.0.1 and so on; ended by ``with``.

    Each has a folder of its own where all others have another: `own`, the same path everywhere, which is its folder for
    temporary files and where its commands run. It holds a copy of `keys`. Nothing that one machine writes can be read
    by another.

    Parameters
    ----------
    folder
        Where `own` is mounted.
    keys
        What `twinnet cluster new` made.
    count
        How many.
    """

    def __init__(self, folder: Path, keys: Path, count: int) -> None:
        self.own = folder / "own"
        self.own.mkdir()
        self.wire = Place(["unshare", "-Urn", *HOLD])
        self.machines: list[_Machine] = []
        self.started: list[Told] = []
        self.wire.run("ip", "link", "add", "wire", "type", "bridge")
        self.wire.run("ip", "link", "set", "wire", "up")
        for number in range(1, count + 1):
            script = _IN_MACHINE.format(name=f"m{number}", own=self.own)
            machine = _Machine([*self._enter_user(), "unshare", "-Urnmu", "sh", "-c", script])
            self.machines.append(machine)
            pair = ["ip", "link", "add", f"e{number}", "type", "veth", "peer", "name", "eth0", "netns"]
            self.wire.run(*pair, str(machine.pid))
            self.wire.run("ip", "link", "set", f"e{number}", "master", "wire", "up")
            machine.run("ip", "address", "add", f"10.9.0.{number}/24", "dev", "eth0")
            machine.run("ip", "link", "set", "eth0", "up")
            shutil.copytree(keys, self.seen_from_here(number) / "keys")

    def _enter_user(self) -> list[str]:
        return ["nsenter", "--preserve-credentials", "-U", "-t", str(self.wire.pid)]

    def seen_from_here(self, number: int) -> Path:
        """The own folder of machine `number`, as a path that leads there from outside."""
        return Path(f"/proc/{self.machines[number - 1].pid}/root{self.own}")

    def start(self, number: int, *arguments: str) -> Told:
        """Start a command of twinnet on machine `number`."""
        inside = ["env", "-C", str(self.own), f"TMPDIR={self.own}", f"HOME={self.own}"]
        command = self.machines[number - 1].command(*inside, *twinnet_command(*arguments, "--keys", "keys"))
        self.started.append(Told(command, self.own))
        return self.started[-1]

    def cut(self, number: int) -> Callable[[], Any]:
        """Cut the cable of machine `number`; returns what mends it."""
        self.wire.run("ip", "link", "set", f"e{number}", "nomaster")
        return lambda: self.wire.run("ip", "link", "set", f"e{number}", "master", "wire")

    def __enter__(self) -> ClusterMachines:
        return self

    def __exit__(self, *_: object) -> None:
        for one in reversed(self.started):
            one.end()
        for place in (*reversed(self.machines), self.wire):
            place.end()


def permits_machines() -> bool:
    """Return whether this machine permits the namespaces that a machine has."""
    script = ["unshare", "-Urnmu", "sh", "-c", "hostname m1 && mount -t tmpfs none /mnt"]
    return subprocess.run(script, env=environment(), capture_output=True, check=False).returncode == 0
