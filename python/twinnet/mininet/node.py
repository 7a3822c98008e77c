"""What Mininet's scripts import from ``mininet.node``."""

from __future__ import annotations

from twinnet.mininet.base_node import Host, Node
from twinnet.mininet.containers import Docker
from twinnet.mininet.controllers import (
    NOX,
    Controller,
    DefaultController,
    DefaultControllers,
    NullController,
    OVSController,
    RemoteController,
    Ryu,
    findController,
)
from twinnet.mininet.limited_host import CPULimitedHost
from twinnet.mininet.link import Intf, Link, OVSIntf, TCIntf
from twinnet.mininet.log import debug, error, info, warn
from twinnet.mininet.moduledeps import TUN, moduleDeps, pathCheck
from twinnet.mininet.switches import IVSSwitch, OVSBridge, OVSKernelSwitch, OVSSwitch, Switch, UserSwitch
from twinnet.mininet.util import (
    decode,
    encode,
    errFail,
    errRun,
    isShellBuiltin,
    mountCgroups,
    moveIntf,
    numCores,
    quietRun,
    retry,
    which,
)

__all__ = [
    "NOX",
    "TUN",
    "CPULimitedHost",
    "Controller",
    "DefaultController",
    "DefaultControllers",
    "Docker",
    "Host",
    "IVSSwitch",
    "Intf",
    "Link",
    "Node",
    "NullController",
    "OVSBridge",
    "OVSController",
    "OVSIntf",
    "OVSKernelSwitch",
    "OVSSwitch",
    "RemoteController",
    "Ryu",
    "Switch",
    "TCIntf",
    "UserSwitch",
    "debug",
    "decode",
    "encode",
    "errFail",
    "errRun",
    "error",
    "findController",
    "info",
    "isShellBuiltin",
    "moduleDeps",
    "mountCgroups",
    "moveIntf",
    "numCores",
    "pathCheck",
    "quietRun",
    "retry",
    "warn",
    "which",
]
