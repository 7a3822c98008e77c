"""Cleaning up: only this machine is touched, which ends with its script anyway."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from twinnet.mininet.fabric import FABRIC
from twinnet.mininet.log import info
from twinnet.mininet.running import decode

__all__ = ["Cleanup", "addCleanupCallback", "cleanup", "killprocs", "sh"]

_ZOMBIES = (
    "controller ofprotocol ofdatapath ping nox_core lt-nox_core ovs-openflowd ovs-controller ovs-testcontroller "
    "udpbwtest mnexec ivs ryu-manager"
)


def sh(cmd: str) -> str:
    """Return what `cmd` writes, by a shell."""
    done = subprocess.run(["/bin/sh", "-c", cmd], stdout=subprocess.PIPE, check=False)
    return decode(done.stdout)


def killprocs(pattern: str) -> None:
    """Kill the processes of this machine whose command line has `pattern`, but not this one."""
    own = {os.getpid(), os.getppid(), 1}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) not in own:
            with contextlib.suppress(OSError):
                if pattern.encode() in (folder / "cmdline").read_bytes().replace(b"\0", b" "):
                    os.kill(int(folder.name), signal.SIGKILL)


class Cleanup:
    """Removes what scripts have left in this machine."""

    callbacks: ClassVar[list[Callable[[], object]]] = []

    @classmethod
    def cleanup(cls) -> None:
        """End controllers, switches and nodes, and delete interfaces."""
        info("*** Removing excess controllers/ofprotocols/ofdatapaths/pings/noxes\n")
        sh(f"killall -9 {_ZOMBIES} 2>/dev/null")
        info("*** Removing OVS datapaths\n")
        FABRIC.end()
        info("*** Removing all links of the pattern foo-ethX\n")
        for name in [path.name for path in Path("/sys/class/net").iterdir() if "-eth" in path.name]:
            sh(f"ip link del {name} 2>/dev/null")
        info("*** Killing stale mininet node processes\n")
        killprocs("mininet:")
        for callback in cls.callbacks:
            callback()
        info("*** Cleanup complete.\n")

    @classmethod
    def addCleanupCallback(cls, callback: Callable[[], object]) -> None:
        """Have `callback` called by :meth:`cleanup`."""
        if callback not in cls.callbacks:
            cls.callbacks.append(callback)


cleanup: Callable[[], None] = Cleanup.cleanup
addCleanupCallback: Callable[[Callable[[], object]], None] = Cleanup.addCleanupCallback
