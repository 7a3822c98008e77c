"""Machines for tests: network namespaces on one wire, each reached by a real `sshd` of its own.

Every machine is a network, mount and UTS namespace with its own host name and its own /sys. Its sshd is a process with
keys of its own, and listens at the machine's end of a second wire: SSH does not pass the network of the study.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from private_network import Place

__all__ = ["SshMachines", "missing_for_machines"]

_SSHD = "/usr/sbin/sshd"
_KEYS = ("host", "user", "stranger")
_IN_MACHINE = (
    "hostname {name}; mount -t sysfs none /sys; mount -t tmpfs none /run; mkdir /run/sshd; echo ready; exec sleep 1000"
)
_CONFIG = """ListenAddress {address}:22
HostKey {folder}/{host_key}
AuthorizedKeysFile {folder}/authorized
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
SetEnv PATH={path}
LogLevel ERROR
"""


def missing_for_machines() -> str | None:
    """Return why no machines can be made here; ``None`` when they can."""
    if not Path(_SSHD).exists() or shutil.which("ssh") is None:
        return "the OpenSSH server and client are not installed"
    if os.geteuid() != 0:
        return "only root can start an sshd in a namespace of its own"
    if any(shutil.which(tool) is None for tool in ("unshare", "nsenter", "ip")):
        return "one of unshare, nsenter and ip is not installed"
    if subprocess.run(["unshare", "-nmu", "true"], capture_output=True, check=False).returncode != 0:
        return "unshare failed: this machine permits no network namespaces"
    if subprocess.run(["unshare", "-T", "true"], capture_output=True, check=False).returncode != 0:
        return "time namespaces are refused"
    return None


class SshMachines:
    """`count` machines on one wire, 10.8.0.1 and so on at their interface ``lan``, and a namespace beside them that
    reaches each by SSH as ``m1`` and so on; ended by ``with``.

    Parameters
    ----------
    folder
        For keys and configuration.
    count
        How many.
    apart
        The machines whose monotonic clock is `seconds` ahead of the others', by number.
    mtu
        Of the wire and of the machines' interfaces there.
    """

    def __init__(self, folder: Path, count: int = 2, apart: Mapping[int, int] | None = None, mtu: int = 1500) -> None:
        self.folder = folder
        self.names: list[str] = [f"m{number}" for number in range(1, count + 1)]
        self._places: list[Place] = []
        self.sshds: list[subprocess.Popen[bytes]] = []
        for key in _KEYS:
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True, timeout=30
            )
        shutil.copy(folder / "user.pub", folder / "authorized")
        self.here = self._place("here", ["unshare", "-nmu"])
        self.here.run("ip", "link", "set", "lo", "up")
        for bridge in ("lan", "door"):
            self.here.run("ip", "link", "add", bridge, "type", "bridge")
            self.here.run("ip", "link", "set", bridge, "mtu", str(mtu if bridge == "lan" else 1500), "up")
        self.here.run("ip", "address", "add", "10.7.0.254/24", "dev", "door")
        self.machines: list[Place] = []
        for number, name in enumerate(self.names, 1):
            seconds = (apart or {}).get(number, 0)
            clock = ["-T", "--monotonic", str(seconds), "--boottime", str(seconds), "--fork"] if seconds else []
            place = self._place(name, ["unshare", "-nmu", *clock])
            self.machines.append(place)
            for bridge, subnet in (("lan", "10.8.0"), ("door", "10.7.0")):
                near = f"{bridge}{number}"
                pair = ["ip", "link", "add", near, "type", "veth", "peer", "name", bridge, "netns", str(place.pid)]
                self.here.run(*pair)
                size = str(mtu if bridge == "lan" else 1500)
                self.here.run("ip", "link", "set", near, "master", bridge, "mtu", size, "up")
                place.run("ip", "address", "add", f"{subnet}.{number}/24", "dev", bridge)
                place.run("ip", "link", "set", bridge, "mtu", size, "up")
            self.start_sshd(number)
        self._write_client_config()

    def _place(self, name: str, prefix: Sequence[str]) -> Place:
        script = _IN_MACHINE.format(name=name, folder=self.folder)
        place = _RootPlace([*prefix, "sh", "-c", script])
        self._places.append(place)
        return place

    def start_sshd(self, number: int, host_key: str = "host") -> None:
        """Start the sshd of machine `number`, with the host key `host_key`, and wait until it listens."""
        place, config = self.machines[number - 1], self.folder / f"sshd{number}-{host_key}"
        config.write_text(
            _CONFIG.format(
                address=f"10.7.0.{number}",
                folder=self.folder,
                host_key=host_key,
                path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}",
            )
        )
        sshd = subprocess.Popen(place.command(_SSHD, "-D", "-e", "-f", str(config)), stderr=subprocess.PIPE)
        self.sshds.append(sshd)
        wait = (
            "import socket, sys, time\nend = time.monotonic() + 20\nwhile True:\n try:\n  socket.create_connection("
            "(sys.argv[1], 22), 1); break\n except OSError:\n  assert time.monotonic() < end; time.sleep(0.02)"
        )
        self.here.run(sys.executable, "-c", wait, f"10.7.0.{number}")

    def end_sshd(self, number: int) -> None:
        """End the sshd of machine `number` that was started last; connections that stand are not its own."""
        sshd = self.sshds[number - 1]
        sshd.kill()
        sshd.wait()

    def _write_client_config(self) -> None:
        key = (self.folder / "host.pub").read_text().rsplit(" ", 1)[0]
        known = "".join(f"10.7.0.{number} {key}\n" for number in range(1, len(self.names) + 1))
        (self.folder / "known").write_text(known)
        hosts = "".join(f"Host {name}\n  HostName 10.7.0.{number}\n" for number, name in enumerate(self.names, 1))
        common = (
            f"Host *\n  User root\n  IdentityFile {self.folder}/user\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.folder}/known\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n"
        )
        (self.folder / "config").write_text(hosts + common)

    def agents(self) -> list[int]:
        """The agents that run on the machines."""
        inside = {Path(f"/proc/{place.pid}/ns/net").readlink() for place in self.machines}
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if b"agent" in words and (entry / "ns/net").readlink() in inside:
                    found.append(int(entry.name))
            except OSError:
                # It ended while we looked.
                continue
        return found

    def wait_until_no_agent_runs(self) -> None:
        """Fail unless all agents have ended within 20 s."""
        deadline_s = time.monotonic() + 20
        while running := self.agents():
            assert time.monotonic() < deadline_s, running
            time.sleep(0.02)

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which twinnet reaches the machines."""
        return os.environ | {"TWINNET_SSH": f"ssh -F {self.folder / 'config'}"}

    def python(self, program: str, *arguments: str, timeout_s: float = 120) -> Any:
        """Run `program` beside the machines, and return what it printed as JSON."""
        done = self.run(sys.executable, "-c", program, *arguments, timeout_s=timeout_s)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def run(self, *command: str, timeout_s: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `command` beside the machines."""
        return subprocess.run(
            self.here.command(*command),
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def __enter__(self) -> SshMachines:
        return self

    def __exit__(self, *_: object) -> None:
        for sshd in self.sshds:
            sshd.kill()
            sshd.communicate()
        for place in reversed(self._places):
            place.end()


class _RootPlace(Place):
    """A place that root made: without a user namespace."""

    def __init__(self, command: Sequence[str]) -> None:
        super().__init__(command)
        forked = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children").read_text().split()
        self._inside = int(forked[0]) if forked else self._holder.pid

    def command(self, *arguments: str) -> list[str]:
        """The command that runs `arguments` there."""
        return ["nsenter", "-n", "-m", "-u", "-T", "-t", str(self._inside), *arguments]

    @property
    def pid(self) -> int:
        """A process that stands there."""
        return self._inside

    def end(self) -> None:
        """Let go of it."""
        if self._inside != self._holder.pid:
            os.kill(self._inside, 9)
        super().end()
