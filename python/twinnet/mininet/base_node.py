"""A node: a network namespace with interfaces, and a shell in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from twinnet.mininet.fabric import FABRIC
from twinnet.mininet.interface_settings import set_interface
from twinnet.mininet.kernel import in_network_of
from twinnet.mininet.link import Intf, Link, set_parameter
from twinnet.mininet.log import debug, info, warn
from twinnet.mininet.shell import Shell
from twinnet.mininet.util import moveIntf

__all__ = ["Host", "Node"]


class Node(Shell):
    """A node is a shell in a network namespace, with interfaces.

    Parameters
    ----------
    name
        Its name.
    inNamespace
        Whether it has a network namespace of its own; otherwise it is in the machine's.
    params
        What :meth:`config` sets. ``privateDirs``: folders that are its own, or pairs of such a folder and the one
        that takes its place.
    """

    portBase: int = 0
    isSetup: bool = False
    is_switch: bool = False
    """Whether its interfaces are ports of a switch of the fabric."""

    def __init__(self, name: str, inNamespace: bool = True, **params: Any) -> None:
        self.checkSetup()
        self.params: dict[str, Any] = params
        self.intfs: dict[int, Intf] = {}
        self.ports: dict[Intf, int] = {}
        self.nameToIntf: dict[str, Intf] = {}
        super().__init__(
            params.get("name", name),
            params.get("inNamespace", inNamespace),
            params.get("privateDirs", []),
            params.get("waitExited", True),
        )

    @classmethod
    def checkSetup(cls) -> None:
        """Call :meth:`setup` of the class once."""
        if not cls.__dict__.get("isSetup", False):
            cls.setup()
            cls.isSetup = True

    @classmethod
    def setup(cls) -> None:
        """Look whether what the class needs is there."""

    def stop(self, deleteIntfs: bool = False) -> None:
        """End the node; with `deleteIntfs` its interfaces too."""
        if deleteIntfs:
            self.deleteIntfs()
        self.terminate()

    def newPort(self) -> int:
        """Return the number of the next port."""
        return max(self.ports.values()) + 1 if self.ports else self.portBase

    def addIntf(self, intf: Intf, port: int | None = None, moveIntfFn: Callable[..., Any] = moveIntf) -> None:
        """Add an interface, at port number `port`; `moveIntfFn` moves it into the namespace."""
        number = self.newPort() if port is None else port
        self.intfs[number] = intf
        self.ports[intf] = number
        self.nameToIntf[intf.name] = intf
        debug(f"\nadded intf {intf} ({number}) to node {self.name}\n")
        if self.inNamespace:
            debug(f"moving {intf} into the namespace of {self.name}\n")
            moveIntfFn(intf.name, self)

    def delIntf(self, intf: Intf) -> None:
        """Forget an interface; :meth:`Intf.delete` also deletes it."""
        number = self.ports.pop(intf, None)
        if number is not None:
            if self.intfs.get(number) is intf:
                del self.intfs[number]
            self.nameToIntf.pop(intf.name, None)

    def defaultIntf(self) -> Intf | None:
        """Return the interface with the lowest port number."""
        if self.intfs:
            return self.intfs[min(self.intfs)]
        warn("*** defaultIntf: warning:", self.name, "has no interfaces\n")
        return None

    def intf(self, intf: Intf | str | None = None) -> Any:
        """Return the interface of that name; the default one for ``None``; an interface as it is."""
        if not intf:
            return self.defaultIntf()
        return self.nameToIntf[intf] if isinstance(intf, str) else intf

    def connectionsTo(self, node: Node) -> list[tuple[Intf, Intf]]:
        """Return the pairs of interfaces, ours first, of all links to `node`."""
        found: list[tuple[Intf, Intf]] = []
        for intf in self.intfList():
            if intf.link:
                first, second = intf.link.ends()
                if (first.node, second.node) == (self, node):
                    found.append((intf, second))
                elif (first.node, second.node) == (node, self):
                    found.append((intf, first))
        return found

    def deleteIntfs(self, checkName: bool = True) -> None:
        """Delete all interfaces; with `checkName` only those that carry our name, for others may be hardware."""
        for intf in list(self.intfs.values()):
            if self.name in intf.name or not checkName:
                intf.delete()
                info(".")

    def setARP(self, ip: str, mac: str) -> str | None:
        """Enter a neighbour's hardware address."""
        said = self.cmd("arp", "-s", ip, mac)
        FABRIC.advice.of_refusal(f"{self.name} has no entry of {mac} for {ip}", said or "", "see man arp")
        return said

    def setHostRoute(self, ip: str, intf: object) -> str | None:
        """Add a route to the host `ip` by the interface `intf`."""
        said = self.cmd("ip route add", ip, "dev", intf)
        FABRIC.advice.of_refusal(f"{self.name} has no route to {ip} by {intf}", said or "", "see man ip-route")
        return said

    def setDefaultRoute(self, intf: Intf | str | None = None) -> None:
        """Set the default route: an interface, or words of ``ip route`` such as ``via 10.0.0.1``."""
        words = intf if isinstance(intf, str) and " " in intf else f"dev {intf}"
        said = self.cmd("ip route del default 2>/dev/null; ip route add default", words)
        remedy = "write defaultRoute='via 10.0.0.254', or the name of an interface"
        FABRIC.advice.of_refusal(f"{self.name} has no default route by {words!r}", said or "", remedy)

    def setMAC(self, mac: str, intf: Intf | str | None = None) -> Any:
        """Set the hardware address of an interface."""
        return self.intf(intf).setMAC(mac)

    def setIP(self, ip: str, prefixLen: int | str = 8, intf: Intf | str | None = None, **kwargs: Any) -> Any:
        """Set the IPv4 address of an interface."""
        return self.intf(intf).setIP(ip, prefixLen, **kwargs)

    def IP(self, intf: Intf | str | None = None) -> Any:
        """Return the IPv4 address of an interface."""
        return self.intf(intf).IP()

    def MAC(self, intf: Intf | str | None = None) -> Any:
        """Return the hardware address of an interface."""
        return self.intf(intf).MAC()

    def intfIsUp(self, intf: Intf | str | None = None) -> bool:
        """Return whether an interface is up."""
        return self.intf(intf).isUp()

    def setParam(self, results: dict[str, Any], method: str, **param: Any) -> Any:
        """Call `method` with the value of the one `param`, unless that is ``None``; keep the result in `results`."""
        return set_parameter(self, results, method, param)

    def config(
        self,
        mac: str | None = None,
        ip: str | None = None,
        defaultRoute: Any = None,
        lo: str = "up",
        **_params: Any,
    ) -> dict[str, Any]:
        """Configure the default interface's addresses, the default route, and whether ``lo`` is up."""
        results: dict[str, Any] = {}
        self.setParam(results, "setMAC", mac=mac)
        self.setParam(results, "setIP", ip=ip)
        self.setParam(results, "setDefaultRoute", defaultRoute=defaultRoute)
        if not self.set_interface("lo", (lo,)):
            self.cmd("ifconfig lo " + lo)
        return results

    def configDefault(self, **moreParams: Any) -> None:
        """Configure with what the node was made with, and `moreParams`."""
        self.params.update(moreParams)
        self.config(**self.params)

    def linkTo(self, node: Node, link: Any = Link) -> Any:
        """Join to `node` by a link."""
        return link(self, node)

    def intfList(self) -> list[Intf]:
        """Return the interfaces in the order of their port numbers."""
        return [self.intfs[number] for number in sorted(self.intfs)]

    def intfNames(self) -> list[str]:
        """Return the names of the interfaces in the order of their port numbers."""
        return [str(intf) for intf in self.intfList()]

    def set_interface(self, name: str, args: Sequence[Any]) -> bool:
        """Do ``ifconfig NAME ARGS...`` without that program where this is possible; return whether it is done."""
        if type(self).cmd is not Shell.cmd or self.shell is None:
            return False
        words = " ".join(str(one) for one in args).split()
        debug(f"*** {self.name} : {('ifconfig', name, *words)}\n")
        with suppress(OSError), in_network_of(self.pid if self.inNamespace else None):
            return set_interface(name, words)
        return False

    def before_command(self) -> None:
        """Have changes of the topology take effect before a command may depend on them."""
        FABRIC.settle()

    def __repr__(self) -> str:
        intfs = ",".join(f"{intf.name}:{intf.IP()}" for intf in self.intfList())
        return f"<{type(self).__name__} {self.name}: {intfs} pid={self.pid}> "

    def __str__(self) -> str:
        return self.name


class Host(Node):
    """A node that runs programs."""
