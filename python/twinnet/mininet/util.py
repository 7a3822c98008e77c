"""What Mininet's scripts import from ``mininet.util``."""

from __future__ import annotations

import codecs
import importlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from resource import RLIMIT_NOFILE, RLIMIT_NPROC, getrlimit, setrlimit
from typing import TYPE_CHECKING, Any

from twinnet.mininet import rtnetlink
from twinnet.mininet.addresses import (
    checkFloat,
    checkInt,
    colonHex,
    fmtBps,
    ipAdd,
    ipNum,
    ipParse,
    ipStr,
    irange,
    macColonHex,
    makeNumeric,
    natural,
    naturalSeq,
    netParse,
    unitScale,
)
from twinnet.mininet.log import debug, error, info, output, warn
from twinnet.mininet.running import (
    CmdResult,
    checkRun,
    decode,
    encode,
    errFail,
    errRun,
    getincrementaldecoder,
    isShellBuiltin,
    oldQuietRun,
    pmonitor,
    quietRun,
    retry,
    run,
    which,
)

if TYPE_CHECKING:
    from twinnet.mininet.base_node import Node
    from twinnet.mininet.net import Mininet

__all__ = [
    "BaseString",
    "CmdResult",
    "Encoding",
    "Python3",
    "StrictVersion",
    "TextPexpect",
    "buildTopo",
    "checkFloat",
    "checkInt",
    "checkRun",
    "codecs",
    "custom",
    "customClass",
    "customConstructor",
    "debug",
    "decode",
    "dumpNetConnections",
    "dumpNodeConnections",
    "dumpPorts",
    "encode",
    "ensureRoot",
    "errFail",
    "errRun",
    "error",
    "fixLimits",
    "fmtBps",
    "getincrementaldecoder",
    "info",
    "ipAdd",
    "ipNum",
    "ipParse",
    "ipStr",
    "irange",
    "isShellBuiltin",
    "macColonHex",
    "makeIntfPair",
    "makeNumeric",
    "mountCgroups",
    "moveIntf",
    "moveIntfNoRetry",
    "natural",
    "naturalSeq",
    "netParse",
    "numCores",
    "oldQuietRun",
    "output",
    "pexpect",
    "pmonitor",
    "quietRun",
    "retry",
    "rlimitTestAndSet",
    "run",
    "specialClass",
    "splitArgs",
    "sysctlTestAndSet",
    "unitScale",
    "waitListening",
    "warn",
    "which",
]

if TYPE_CHECKING:
    pexpect: Any


def __getattr__(name: str) -> Any:
    """Return ``pexpect``, whose processes speak text, where it is installed."""
    if name != "pexpect":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return TextPexpect()
    except ImportError as missing:
        raise AttributeError(f"{missing}: install it with: pip install pexpect") from None


Python3 = True
BaseString = str
Encoding = "utf-8"
_PROCESSES, _OPEN_FILES = 8192, 16384


class TextPexpect:
    """The module ``pexpect``, with ``spawn`` in UTF-8."""

    def __init__(self) -> None:
        self._module: Any = importlib.import_module("pexpect")

    def spawn(self, *args: Any, **kwargs: Any) -> Any:
        """Start a program on a terminal; as ``pexpect.spawn``."""
        return self._module.spawn(*args, **{"encoding": "utf-8", **kwargs})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


_colonHex = colonHex
_VERSION = re.compile(r"(\d+(?:\.\d+)*)(?:(a|b|rc)(\d+))?")


def StrictVersion(version: str) -> tuple[tuple[int, ...], str, int]:
    """Return a key that orders versions: ``1.9 < 1.10a1 < 1.10b1 < 1.10rc1 < 1.10 == 1.10.0``.

    Raises
    ------
    ValueError
        The text is no such version.
    """
    found = _VERSION.fullmatch(version.strip())
    if found is None:
        raise ValueError(f"invalid version number {version!r}: write it as 1.10, 1.10.2 or 1.10rc1")
    numbers = [int(part) for part in found[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    # A release comes after what was tried before it, and "a" < "b" < "rc" < "release" as texts.
    return tuple(numbers), found[2] or "release", int(found[3] or 0)


def makeIntfPair(
    intf1: str,
    intf2: str,
    addr1: str | None = None,
    addr2: str | None = None,
    node1: Node | None = None,
    node2: Node | None = None,
    deleteIntfs: bool = True,
    runCmd: Callable[[str], Any] | None = None,
) -> None:
    """Make a pair of virtual Ethernet interfaces, one in each of `node1` and `node2`.

    Parameters
    ----------
    intf1, intf2
        Their names.
    addr1, addr2
        Their hardware addresses; otherwise the kernel chooses.
    node1, node2
        Where they are to be; ``None``: in the root namespace.
    deleteIntfs
        Whether interfaces of these names are deleted first.
    runCmd
        Runs the command that deletes them.

    Raises
    ------
    Exception
        When the kernel refuses.
    """
    if deleteIntfs:
        for node, name in ((node1, intf1), (node2, intf2)):
            (runCmd or (node.cmd if node else quietRun))("ip link del " + name)
    debug(f"*** pair of interfaces: {intf1} ({node1 or 'root'}) and {intf2} ({node2 or 'root'})\n")
    processes = [node.pid if node is not None and node.inNamespace else None for node in (node1, node2)]
    try:
        rtnetlink.create_pair(intf1, intf2, addr1, addr2, processes[0], processes[1])
    except OSError as refused:
        raise Exception(f"Error creating interface pair ({intf1},{intf2}): {refused.strerror} ") from None


def moveIntfNoRetry(intf: object, dstNode: Node, printError: bool = False) -> bool:
    """Move the interface `intf` into the namespace of `dstNode`; return whether that was possible."""
    said = quietRun(f"ip link set {intf} netns {dstNode.pid}")
    if said and printError:
        error(f"*** Error: moveIntf: {intf} not successfully moved to {dstNode.name}:\n", said)
    return not said


def moveIntf(intf: object, dstNode: Node, printError: bool = True, retries: int = 3, delaySecs: float = 0.001) -> None:
    """Move the interface `intf` into the namespace of `dstNode`; the script ends when that is not possible."""
    retry(retries, delaySecs, moveIntfNoRetry, intf, dstNode, printError=printError)


def dumpNodeConnections(nodes: Iterable[Node]) -> None:
    """Print the interfaces of `nodes`, each with the one at the other end of its link."""
    for node in nodes:
        output(node.name)
        for intf in node.intfList():
            output(f" {intf}:")
            other = next((one for one in intf.link.ends() if one is not intf), intf) if intf.link else " "
            output(other)
        output("\n")


def dumpNetConnections(net: Mininet) -> None:
    """Print the interfaces of all nodes of `net`."""
    dumpNodeConnections([*net.controllers, *net.switches, *net.hosts])


def dumpPorts(switches: Iterable[Node]) -> None:
    """Print the port numbers of the interfaces of `switches`."""
    for switch in switches:
        output(f"{switch.name} ")
        for intf in switch.intfList():
            output(f"{intf}:{switch.ports[intf]} ")
        output("\n")


def sysctlTestAndSet(name: str, limit: int | str) -> None:
    """Set the kernel parameter `name`; a number only raises it. Raises `OSError`."""
    path = name if "/" in name else "/proc/sys/" + name.replace(".", "/")
    with open(path) as parameter:  # noqa: PTH123
        before = parameter.readline()
    if isinstance(limit, str) or int(before) < limit:
        with open(path, "w") as parameter:  # noqa: PTH123
            parameter.write(str(limit))


def rlimitTestAndSet(name: int, limit: int) -> None:
    """Raise the limit `name` of this process to `limit`."""
    soft, hard = getrlimit(name)
    if 0 <= soft < limit:
        setrlimit(name, (limit, hard if hard < 0 or hard > limit else limit))


def fixLimits() -> None:
    """Raise the limits of processes and open files, as far as it is permitted; a large network needs more."""
    for name, limit in ((RLIMIT_NPROC, _PROCESSES), (RLIMIT_NOFILE, _OPEN_FILES)):
        hard = getrlimit(name)[1]
        rlimitTestAndSet(name, limit if hard < 0 else min(limit, hard))


def mountCgroups(cgcontrol: str = "cpu cpuacct cpuset") -> str:
    """Return the kind of control groups of this machine."""
    return "cgroup2" if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "cgroup"  # noqa: PTH110


def numCores() -> int:
    """Return the number of processors."""
    return os.cpu_count() or 1


def custom(cls: Callable[..., Any], **params: Any) -> Callable[..., Any]:
    """Return what calls `cls` with `params`, which have precedence."""

    def customized(*args: Any, **kwargs: Any) -> Any:
        return cls(*args, **{**kwargs, **params})

    customized.__name__ = f"custom({cls},{params})"
    return customized


def splitArgs(argstr: str) -> tuple[str, list[int | float | str], dict[str, int | float | str]]:
    """Return name, arguments and named arguments of ``name,1,key=2``; numbers are read as such."""
    name, *rest = argstr.split(",")
    args = [makeNumeric(one) for one in rest if "=" not in one]
    pairs = [one.split("=", 1) for one in rest if "=" in one]
    return name, args, {key: makeNumeric(value) for key, value in pairs}


def customClass(classes: Mapping[str, Any], argStr: str) -> Any:
    """Return the class that `argStr` names in `classes`, with the arguments that follow its name preset."""
    name, args, kwargs = splitArgs(argStr)
    if classes.get(name) is None:
        raise Exception(f"error: {name} is unknown - please specify one of {classes.keys()}")
    if not args and not kwargs:
        return classes[name]
    return specialClass(classes[name], append=args, defaults=kwargs)


def customConstructor(constructors: Mapping[str, Any], argStr: str) -> Callable[..., Any]:
    """Return a constructor of the class that `argStr` names, as :func:`customClass`."""
    made = customClass(constructors, argStr)

    def constructor(*args: Any, **params: Any) -> Any:
        return made(*args, **params)

    return constructor


def specialClass(
    cls: Any,
    prepend: Iterable[Any] | None = None,
    append: Iterable[Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    override: Mapping[str, Any] | None = None,
) -> Any:
    """Return a class like `cls` with preset arguments.

    Parameters
    ----------
    prepend, append
        Come before and after the arguments.
    defaults, override
        Named arguments that are given way to, and those that have precedence.
    """
    before, after = list(prepend or ()), list(append or ())
    usual, always = dict(defaults or {}), dict(override or {})
    if not isinstance(cls, type):
        return lambda *args, **params: cls(*before, *args, *after, **{**usual, **params, **always})  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType]

    def __init__(self: Any, *args: Any, **params: Any) -> None:
        cls.__init__(self, *before, *args, *after, **{**usual, **params, **always})

    return type(f"{cls.__name__}{usual}", (cls,), {"__init__": __init__})


def buildTopo(topos: Mapping[str, Callable[..., Any]], topoStr: str) -> Any:
    """Return the topology that `topoStr` names in `topos`, made with the arguments that follow its name."""
    name, args, kwargs = splitArgs(topoStr)
    if name not in topos:
        raise Exception(f"Invalid topo name {name}")
    return topos[name](*args, **kwargs)


def ensureRoot() -> None:
    """End the script unless it runs as root; in its own machine it does."""
    if os.getuid() != 0:
        error("*** Mininet must run as root.\n")
        sys.exit(1)


def waitListening(
    client: Node | None = None, server: object = "127.0.0.1", port: int = 80, timeout: float | None = None
) -> bool:
    """Wait until `server` takes TCP connections at `port`; return whether it does.

    Parameters
    ----------
    client
        The node that tries; ``None``: the root namespace.
    server
        An address, or a node.
    timeout
        Seconds after which it is given up.
    """
    runCmd: Callable[[str], str | None] = client.cmd if client else partial(quietRun, shell=True)
    address = server if isinstance(server, str) else getattr(server, "IP", str)()
    waited = 0.0
    while True:
        said = runCmd(f"bash -c 'exec 3<>/dev/tcp/{address}/{port}' && echo Connected") or ""
        if "Connected" in said:
            return True
        if "No route" in said or "unreachable" in said:
            error(f"no route to {server}:\n{runCmd('ip route')}")
            return False
        if timeout and waited >= timeout:
            error(f"could not connect to {server} on port {port}\n")
            return False
        debug("waiting for", server, "to listen on port", port, "\n")
        info(".")
        time.sleep(0.5)
        waited += 0.5
