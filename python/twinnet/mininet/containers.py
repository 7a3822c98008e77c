"""Hosts whose files are those of a container's image, with the parameters of Containernet."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from typing import TYPE_CHECKING, Any, cast

from twinnet.errors import BadValue
from twinnet.interpreter import PYTHON
from twinnet.mininet import outside
from twinnet.mininet.fabric import FABRIC
from twinnet.mininet.interface_settings import set_interface
from twinnet.mininet.kernel import in_network_of
from twinnet.mininet.limited_host import CPULimitedHost
from twinnet.mininet.log import debug, info
from twinnet.mininet.util import numCores

if TYPE_CHECKING:
    from twinnet.lab_process.images import Image

__all__ = ["Docker"]

_OF_INTERFACES = ("ip", "ifconfig", "route", "arp", "ethtool", "tc", "sysctl")
"""Programs by which nodes set their interfaces: the machine's, where the image has none."""
_LEFT_OUT = (
    "memswap_limit",
    "cpu_shares",
    "ports",
    "port_bindings",
    "publish_all_ports",
    "network_mode",
    "dns",
    "devices",
    "runtime",
    "storage_opt",
    "build_params",
)
"""Settings of containers that there are not here; those that are given are named."""
_WITHOUT_EFFECT = ("cap_add", "privileged", "ipc_mode", "pid_mode", "tty", "detach", "hostname", "labels")
_PERIOD_US = 100_000
_SHIFTS = {"b": 0, "k": 10, "m": 20, "g": 30}
_SHELLS = ("bash", "sh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh")


class Docker(CPULimitedHost):
    """A host on the root file system of an image. What it writes is kept in memory, and goes with it.

    Parameters
    ----------
    name
        Its name.
    dimage
        The image: a folder, an archive as ``docker save`` writes it, an OCI layout, or a name that ``docker images``
        shows.
    dcmd
        A program that runs in it from the start.
    volumes
        ``SOURCE:TARGET`` or ``SOURCE:TARGET:ro``: files and folders of the machine.
    environment
        Variables of its programs, beside those of the image.
    cpu_quota, cpu_period
        Microseconds of processor time in each period.
    cpuset_cpus
        The processors that it may run on, such as ``0,1``.
    mem_limit
        The memory that it may have at most: bytes, or text such as ``64m``.
    params
        Those of a host. Other settings of containers are named and left out.
    """

    def __init__(
        self,
        name: str,
        dimage: str | None = None,
        dcmd: str | None = None,
        volumes: Sequence[str] | None = None,
        environment: Mapping[str, str] | Sequence[str] | None = None,
        cpu_quota: int | None = None,
        cpu_period: int | None = None,
        cpuset_cpus: str | None = None,
        mem_limit: str | int | None = None,
        **params: Any,
    ) -> None:
        if dimage is None:
            raise BadValue(f"{name} has no image", "write for example dimage='image.tar'")
        given = [one for one in _LEFT_OUT if params.pop(one, None) not in (None, -1, [], {}, False)]
        if given:
            said = f"{', '.join(given)} of {name} is left out: containers here are namespaces of the script's machine"
            FABRIC.advice.tell(f"container {given}", said, "leave it out")
        for one in _WITHOUT_EFFECT:
            params.pop(one, None)
        self.dimage: str = dimage
        self.dcmd: str | None = dcmd
        # Most scripts have no container, and archives take time to import.
        from twinnet.lab_process.images import find_image

        self.image: Image = find_image(dimage)
        pairs = environment.items() if isinstance(environment, Mapping) else map(_pair, environment or ())
        given = {str(key): str(value) for key, value in pairs}
        self.environment: dict[str, str] = {**self.image.variables(), **given}
        self.volumes: list[dict[str, Any]] = [_volume(one) for one in volumes or ()]
        self._tell: int | None = None
        super().__init__(name, **params)
        self.updateCpuLimit(cpu_quota, cpu_period, cores=cpuset_cpus)
        self.updateMemoryLimit(mem_limit)
        if dcmd and shlex.split(dcmd)[:1] and shlex.split(dcmd)[0] not in _SHELLS:
            self._in_background(dcmd)

    def shell_command(self) -> list[str]:
        """Return the program that enters the image and becomes a shell there."""
        image = {
            "name": self.dimage,
            "root": str(self.image.root),
            "folder": self.image.folder,
            "environment": self.environment,
            "volumes": self.volumes,
        }
        spec = {"name": self.name, "image": image, "scratch": self._scratch, "tell": self._tell}
        return [*PYTHON, "-m", "twinnet.mininet.image_shell", json.dumps(spec)]

    def startShell(self, mnopts: str | None = None) -> None:
        """Start the shell; raises `BadValue` when the image cannot be entered."""
        reading, self._tell = os.pipe()
        self._scratch: str = tempfile.mkdtemp(prefix="twinnet-container-")
        try:
            super().startShell(mnopts)
        finally:
            os.close(self._tell)
            self._tell = None
        with os.fdopen(reading, "rb") as file:
            said = file.read().decode()
        # It is mounted in the container, for which it stays.
        shutil.rmtree(self._scratch, ignore_errors=True)
        if said or (self.shell is not None and self.shell.poll() is not None):
            self._starting.discard(self)
            raise BadValue(f"{self.name}: the image {self.dimage} cannot be entered: {said}", "it needs bash or sh")
        self.await_start()

    def _popen(self, cmd: list[str], **params: Any) -> Popen[bytes]:
        if self._tell is not None:
            params["pass_fds"] = (self._tell,)
        else:
            params.setdefault("env", self.environment)
        return super()._popen(cmd, **params)

    def _outside(self, words: Sequence[Any]) -> str | None:
        """Run a command of the machine in the network of the container, where the image lacks it; ``None``: it does
        not."""
        line = " ".join(str(word) for word in words)
        first = line.split(maxsplit=1)[0] if line.strip() else ""
        if first not in _OF_INTERFACES or self.image.has(first) or self.pid is None:
            return None
        self.before_command()
        debug(f"*** {self.name} : {line} (of the machine)\n")
        asked = ["nsenter", "-t", str(self.pid), "-n", "sh", "-c", line]
        with Popen(asked, stdout=PIPE, stderr=STDOUT, text=True) as process:
            return process.communicate()[0]

    def cmd(self, *args: Any, **kwargs: Any) -> str | None:
        """Run a command and return what it writes; as for every node."""
        words: Sequence[Any] = cast("Sequence[Any]", args[0] if len(args) == 1 and isinstance(args[0], list) else args)
        said = self._outside(words) if self.shell is not None else None
        if said is None:
            return super().cmd(*args, **kwargs)
        if kwargs.get("verbose", False):
            info(said)
        return said

    def pexec(self, *args: Any, **kwargs: Any) -> tuple[str, str, int]:
        """Run a process of its own, and return both outputs and its status."""
        words: Sequence[Any] = cast("Sequence[Any]", args[0] if len(args) == 1 and isinstance(args[0], list) else args)
        said = self._outside(words)
        return (said, "", 0) if said is not None else super().pexec(*args, **kwargs)

    def set_interface(self, name: str, args: Sequence[Any]) -> bool:
        """Do ``ifconfig NAME ARGS...`` without that program where this is possible; return whether it is done."""
        words = " ".join(str(one) for one in args).split()
        try:
            with in_network_of(self.pid if self.inNamespace else None):
                return set_interface(name, words)
        except OSError:
            return False

    def start(self) -> None:
        """Run the program that a container of the image runs, in the background."""
        if self.image.command:
            self._in_background(shlex.join(self.image.command))

    def _in_background(self, command: str) -> None:
        self.cmd(f"{command} > /dev/null 2>&1 &")

    def updateCpuLimit(
        self,
        cpu_quota: int | None = None,
        cpu_period: int | None = None,
        cpu_shares: int | None = None,
        cores: str | None = None,
    ) -> None:
        """Change the limits of processor time, in microseconds, and the processors; ``None`` or -1: as before."""
        del cpu_shares
        if cpu_period is not None and cpu_period > 0:
            self.period_us = cpu_period
        if cpu_quota is not None and cpu_quota > 0:
            self.setCPUFrac(cpu_quota / (self.period_us or _PERIOD_US) / numCores())
        if cores:
            self.setCPUs(cores)

    def updateMemoryLimit(self, mem_limit: str | int | None = None, memswap_limit: str | int | None = None) -> None:
        """Change the memory that it may have at most; ``None`` or -1: as before."""
        del memswap_limit
        if mem_limit is None or mem_limit == -1 or self.pid is None:
            return
        if outside.limit_memory(self.name, self.pid, _bytes_of(mem_limit)):
            self.limited = True
            return
        said = f"mem_limit={mem_limit} of {self.name} is left out: this user may not make control groups for memory"
        FABRIC.advice.tell("memory", said, "run twinnet as root")


def _bytes_of(limit: str | int) -> int:
    text = str(limit).strip().lower()
    number = text.rstrip("bkmg")
    unit = text[len(number) :][:1] or "b"
    if not number.isdigit():
        raise BadValue(f"the limit of memory {limit!r} is no size", "write bytes, or for example 64m")
    return int(number) << _SHIFTS[unit]


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _volume(text: str) -> dict[str, Any]:
    # Most scripts need nothing of the description of networks.
    from twinnet.network.host_image import read_volume

    volume = read_volume(text)
    path = Path(volume["source"]).expanduser()
    if not path.exists():
        path.mkdir(parents=True)
    return {**volume, "source": str(path.resolve())}
