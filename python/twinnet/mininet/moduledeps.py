"""Modules of the kernel and programs that scripts ask for."""

from __future__ import annotations

import os
import shutil
import sys

from twinnet.mininet.log import debug, error
from twinnet.mininet.running import quietRun

__all__ = ["OF_KMOD", "OVS_KMOD", "TUN", "lsmod", "modprobe", "moduleDeps", "pathCheck", "rmmod"]

OF_KMOD = "ofdatapath"
OVS_KMOD = "openvswitch_mod"
TUN = "tun"


def lsmod() -> str:
    """Return the modules of the kernel."""
    return quietRun("lsmod") if shutil.which("lsmod") else ""


def rmmod(mod: str) -> str:
    """Do nothing: the kernel's modules are not this machine's to change."""
    debug(f"rmmod {mod} is left out\n")
    return ""


def modprobe(mod: str) -> str:
    """Do nothing: switches and links need no module."""
    debug(f"modprobe {mod} is left out\n")
    return ""


def moduleDeps(subtract: str | list[str] | None = None, add: str | list[str] | None = None) -> None:
    """Do nothing: switches and links need no module."""


def pathCheck(*args: str, **kwargs: str) -> None:
    """End the script unless each program of `args` is installed; ``moduleName`` says what has it."""
    for program in args:
        if shutil.which(program) is None:
            error(
                f"Cannot find required executable {program}.\nPlease make sure that "
                f"{kwargs.get('moduleName', 'it')} is installed and available in your $PATH:\n({os.environ['PATH']})\n"
            )
            sys.exit(1)
