"""Controllers with Mininet's classes and options."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twinnet.mininet import outside
from twinnet.mininet.base_node import Node
from twinnet.mininet.fabric import FABRIC
from twinnet.mininet.log import info, warn
from twinnet.mininet.moduledeps import pathCheck
from twinnet.mininet.program_logs import end_log, new_log
from twinnet.mininet.programs import FOLDER
from twinnet.mininet.running import which
from twinnet.mininet.virtual_time import on_virtual_clock

__all__ = [
    "NOX",
    "Controller",
    "DefaultController",
    "DefaultControllers",
    "NullController",
    "OVSController",
    "RemoteController",
    "Ryu",
    "findController",
]

_PATIENCE_S = 15.0
_PAUSE_S = 0.005
_END_JOBS = (
    'jobs=$(jobs -p); [ -z "$jobs" ] || { kill $jobs; for turn in {1..250}; do kill -0 $jobs || break; sleep 0.02; '
    "done; kill -9 $jobs; } 2>/dev/null"
)
"""A line of the shell that ends its jobs: five seconds are for them to do so by themselves."""


class Controller(Node):
    """A controller that the network starts: a program at a TCP port. The usual one comes with twinnet; it makes each
    switch a learning switch.

    Parameters
    ----------
    name
        Its name.
    command, cargs, cdir
        The program, its arguments with ``%d`` for the port, and its folder.
    ip, port, protocol
        Where switches find it.
    verbose
        Whether the program gets ``-v``.
    """

    def __init__(
        self,
        name: str,
        inNamespace: bool = False,
        command: str = "controller",
        cargs: str = "ptcp:%d",
        cdir: str | None = None,
        ip: str = "127.0.0.1",
        port: int | None = 6653,
        protocol: str = "tcp",
        verbose: bool = False,
        **params: Any,
    ) -> None:
        self.command = command
        self.cargs: str = "-v " + cargs if verbose else cargs
        self.cdir = cdir
        if ":" in ip:
            ip, _, number = ip.partition(":")
            port = int(number)
        self.ip = ip
        self.port: int = port or 0
        self.protocol = protocol
        self._log: Path | None = None
        super().__init__(name, inNamespace=inNamespace, ip=ip, **params)
        self.checkListening()

    def checkListening(self) -> None:
        """Raise an exception when another program listens at our port."""
        if answers_inside(self.ip, self.port):
            raise Exception(
                f"Please shut down the controller which is running on port {self.port}:\n"
                + (self.cmd(f"ss -ltnp sport = :{self.port}") or "")
            )

    def start(self) -> None:
        """Start the program, unless it runs; it writes to a log of the run's own, which ``/tmp/NAME.log`` leads to
        where that name is free."""
        if self._log is not None and (self.cmd("jobs -rp") or "").strip():
            return
        pathCheck(self.command.split()[0])
        if self.cdir is not None:
            self.cmd("cd " + self.cdir)
        self._log = new_log(f"{self.name}.log")
        self.cmd(f"{self.command} {self.cargs % self.port} 1>{self._log} 2>&1 &")
        self.execed = False
        program = which(self.command.split()[0])
        if program is not None and Path(program).parent == FOLDER and not self.inNamespace:
            # Mininet's own is there within milliseconds, and scripts send their first frames at once.
            await_answer(self.name, self.ip, self.port)

    def stop(self, *args: Any, **kwargs: Any) -> None:
        """End what runs in our shell: at once where that does not end by itself within seconds."""
        self.cmd(_END_JOBS)
        end_log(f"{self.name}.log")
        super().stop(*args, **kwargs)

    def IP(self, intf: Any = None) -> Any:
        """Return the address at which switches find it."""
        return super().IP(intf) if self.intfs else self.ip

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.IP()}:{self.port} pid={self.pid}> "

    @classmethod
    def isAvailable(cls) -> str | None:
        """Return the path of the program, if it is there."""
        return which("controller")


def answers_inside(ip: str, port: int) -> bool:
    """Return whether a program of the script's machine takes connections at `port` of `ip`."""
    try:
        with socket.create_connection((ip, port), _PATIENCE_S):
            return True
    except OSError:
        return False


def answers(ip: str, port: int) -> bool:
    """Return whether a program takes connections at `port` of `ip`, in the script's machine or beside it."""
    try:
        with outside.connect(ip, port):
            return True
    except OSError:
        return False


def await_answer(name: str, ip: str, port: int) -> None:
    """Wait until the controller `name` takes connections at `port` of `ip`; not for ever."""
    end_s = time.monotonic() + _PATIENCE_S
    while not answers_inside(ip, port):
        if time.monotonic() >= end_s:
            warn(f"Warning: controller {name} does not answer at {ip}:{port} after {_PATIENCE_S:g} seconds\n")
            return
        time.sleep(_PAUSE_S)


class OVSController(Controller):
    """Open vSwitch's learning controller, or ours in its place."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        kwargs.setdefault("command", self.isAvailable() or "controller")
        super().__init__(name, **kwargs)

    @classmethod
    def isAvailable(cls) -> str | None:
        """Return the path of the program, if it is there."""
        return which("ovs-controller") or which("test-controller") or which("ovs-testcontroller") or which("controller")


class NOX(Controller):
    """NOX, with its modules as `noxArgs`."""

    def __init__(self, name: str, *noxArgs: Any, **kwargs: Any) -> None:
        if not noxArgs:
            warn("warning: no NOX modules specified; running packetdump only\n")
            noxArgs = ("packetdump",)
        if "NOX_CORE_DIR" not in os.environ:
            sys.exit("exiting; please set missing NOX_CORE_DIR env var")
        folder = os.environ["NOX_CORE_DIR"]
        words = " ".join(str(one) for one in noxArgs)
        arguments = "--libdir=/usr/local/lib -v -i ptcp:%s " + words
        super().__init__(name, command=folder + "/nox_core", cargs=arguments, cdir=folder, **kwargs)


class Ryu(Controller):
    """Ryu, with its applications as `ryuArgs`."""

    def __init__(
        self,
        name: str,
        ryuArgs: str | Sequence[str] = "ryu.app.simple_switch",
        command: str = "ryu run",
        **kwargs: Any,
    ) -> None:
        words = ryuArgs if isinstance(ryuArgs, str) else " ".join(ryuArgs)
        cargs = kwargs.pop("cargs", words + " --ofp-tcp-listen-port %s")
        super().__init__(name, command=command, cargs=cargs, **kwargs)


class RemoteController(Controller):
    """A controller that runs already, or will: at `ip` and `port`, or at 6653 or 6633, whichever answers."""

    def __init__(self, name: str, ip: str = "127.0.0.1", port: int | None = None, **kwargs: Any) -> None:
        super().__init__(name, ip=ip, port=port, **kwargs)

    def start(self) -> None:
        """Do nothing: it is not ours to start."""

    def stop(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: it is not ours to end."""

    def checkListening(self) -> None:
        """Tell when it does not answer."""
        if self.port:
            if not self.isListening(self.ip, self.port):
                _tell_where_controllers_are()
            return
        for port in (6653, 6633):
            if self.isListening(self.ip, port):
                self.port = port
                info(f"Connecting to remote controller at {self.ip}:{port}\n")
                return
        _tell_where_controllers_are()
        self.port = 6653
        warn(f"Setting remote controller to {self.ip}:{self.port}\n")

    def isListening(self, ip: str, port: int) -> bool:
        """Return whether it answers there; tell when it does not."""
        if answers(ip, port):
            return True
        warn(f"Unable to contact the remote controller at {ip}:{port}\n")
        return False


def _tell_where_controllers_are() -> None:
    """Tell why a controller that does run is not found."""
    if on_virtual_clock():
        said = "on the virtual clock no controller beside the script's machine is reached"
        FABRIC.advice.tell("remote", said, "start it with --controller-run COMMAND, or in the script")


DefaultControllers: tuple[type[Controller], ...] = (Controller, OVSController)


def findController(controllers: Sequence[type[Controller]] = DefaultControllers) -> type[Controller] | None:
    """Return the first of `controllers` whose program is there."""
    return next((one for one in controllers if one.isAvailable()), None)


def DefaultController(
    name: str, controllers: Sequence[type[Controller]] = DefaultControllers, **kwargs: Any
) -> Controller:
    """Return a controller of the first class of `controllers` whose program is there."""
    found = findController(controllers)
    if found is None:
        raise Exception("Could not find a default OpenFlow controller")
    return found(name, **kwargs)


def NullController(*_args: Any, **_kwargs: Any) -> None:
    """Return no controller."""
