"""The network: nodes and links, started and stopped together."""

from __future__ import annotations

import inspect
import os
import random
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from subprocess import Popen
from typing import Any, cast

from twinnet.mininet.base_node import Node
from twinnet.mininet.cli import CLI
from twinnet.mininet.control_network import ControlNetwork
from twinnet.mininet.fabric import FABRIC
from twinnet.mininet.link import Intf, Link
from twinnet.mininet.log import debug, error, info, output, warn
from twinnet.mininet.measuring import Measuring
from twinnet.mininet.node import Controller, DefaultController, Host, OVSKernelSwitch
from twinnet.mininet.nodelib import NAT
from twinnet.mininet.outcome import OUTCOME
from twinnet.mininet.shell import await_shells
from twinnet.mininet.taking_down import delete_interfaces, hang_up
from twinnet.mininet.term import cleanUpScreens, makeTerms
from twinnet.mininet.tool_server import serve
from twinnet.mininet.topo import Topo
from twinnet.mininet.util import (
    ensureRoot,
    fixLimits,
    fmtBps,
    ipAdd,
    ipParse,
    ipStr,
    macColonHex,
    netParse,
    numCores,
    quietRun,
    waitListening,
)
from twinnet.mininet.virtual_time import wait_for_a_round_moment

__all__ = [
    "CLI",
    "NAT",
    "VERSION",
    "Controller",
    "DefaultController",
    "Host",
    "Intf",
    "Link",
    "Mininet",
    "MininetWithControlNet",
    "Node",
    "OVSKernelSwitch",
    "debug",
    "ensureRoot",
    "error",
    "fixLimits",
    "fmtBps",
    "info",
    "ipAdd",
    "ipParse",
    "ipStr",
    "macColonHex",
    "netParse",
    "numCores",
    "output",
    "quietRun",
    "waitListening",
    "warn",
]

_CONTROLLER_PATIENCE_S = 60.0
"""Switches have so long to connect where nobody says how long."""
_QUIET_S = 5.0

VERSION = "2.3.1b4"
"""The version of Mininet whose names these are."""


class Mininet(Measuring):
    """A network of hosts, switches, controllers and links.

    Parameters
    ----------
    topo
        The topology that it is built from; ``None``: nodes and links are added by calls.
    switch, host, controller, link, intf
        The usual classes of its parts. `controller` may also be a controller, or a list.
    build
        Whether it is built at once.
    xterms
        Whether each node gets a terminal.
    cleanup
        Taken and kept.
    ipBase
        The network that hosts get addresses of.
    inNamespace
        Whether switches and controllers have namespaces of their own.
    autoSetMacs, autoStaticArp
        Whether hardware addresses are like the addresses, and known to all hosts.
    autoPinCpus
        Whether hosts get a processor each.
    listenPort
        The first port at which switches listen for tools.
    waitConnected
        Whether :meth:`start` waits until switches have their controller; a number: so many seconds at most.
    """

    inited: bool = False

    def __init__(
        self,
        topo: Topo | None = None,
        switch: Any = OVSKernelSwitch,
        host: Any = Host,
        controller: Any = DefaultController,
        link: Any = Link,
        intf: Any = Intf,
        build: bool = True,
        xterms: bool = False,
        cleanup: bool = False,
        ipBase: str = "10.0.0.0/8",
        inNamespace: bool = False,
        autoSetMacs: bool = False,
        autoStaticArp: bool = False,
        autoPinCpus: bool = False,
        listenPort: int | None = None,
        waitConnected: bool | float = False,
    ) -> None:
        self.topo = topo
        self.switch: Any = switch
        self.host: Any = host
        self.controller: Any = controller
        self.link: Any = link
        self.intf: Any = intf
        self.ipBase = ipBase
        self.ipBaseNum: int
        self.prefixLen: int
        self.ipBaseNum, self.prefixLen = netParse(ipBase)
        self.nextIP: int = (0xFFFFFFFF >> self.prefixLen) & self.ipBaseNum or 1
        self.inNamespace = inNamespace
        self.xterms = xterms
        self.cleanup = cleanup
        self.autoSetMacs = autoSetMacs
        self.autoStaticArp = autoStaticArp
        self.autoPinCpus = autoPinCpus
        self.numCores: int = numCores()
        self.nextCore: int = 0
        self.listenPort = listenPort
        self.waitConn = waitConnected
        self.hosts: list[Node] = []
        self.switches: list[Any] = []
        self.controllers: list[Any] = []
        self.links: list[Any] = []
        self.nameToNode: dict[str, Any] = {}
        self.terms: list[Popen[Any]] = []
        Mininet.init()
        self.built: bool = False
        OUTCOME.begins(self)
        if topo and build:
            self.build()

    @classmethod
    def init(cls) -> None:
        """Raise limits, and have ``ovs-vsctl`` answered; once."""
        if not cls.inited:
            ensureRoot()
            fixLimits()
            serve()
            cls.inited = True

    def waitConnected(self, timeout: bool | float | None = None, delay: float = 0.5) -> bool:
        """Wait until each switch has its controller; return whether all have.

        Parameters
        ----------
        timeout
            How long, in seconds; ``None`` or true: for a minute. It is told after five seconds who is missing.
        delay
            Seconds between looks, at most.
        """
        info("*** Waiting for switches to connect\n")
        if isinstance(timeout, bool):
            timeout = None if timeout else 0
        timeout = _CONTROLLER_PATIENCE_S if timeout is None else timeout
        told = timeout <= _QUIET_S
        begin, remaining, pause = time.monotonic(), list(self.switches), 0.01
        while True:
            for switch in tuple(remaining):
                if switch.connected():
                    info(f"{switch} ")
                    remaining.remove(switch)
            if not remaining:
                info("\n")
                return True
            waited = time.monotonic() - begin
            if waited >= timeout or not any(_has_targets(switch) for switch in remaining):
                break
            if not told and waited >= _QUIET_S:
                told = True
                where = ", ".join(f"{one.name} at {one.IP()}:{one.port}" for one in self.controllers) or "none"
                names = ", ".join(switch.name for switch in remaining)
                warn(f"Waiting up to {timeout:g} seconds for {names} to connect; controllers: {where}\n")
            time.sleep(pause)
            pause = min(2 * pause, delay)
        if waited >= timeout:
            warn(f"Timed out after {int(waited)} seconds\n")
        for switch in remaining:
            warn(f"Warning: {switch.name} is not connected to a controller\n")
        return False

    def addHost(self, name: str, cls: Any = None, **params: Any) -> Any:
        """Add a host of the class `cls` (default: the network's), and return it."""
        defaults: dict[str, Any] = {"ip": f"{ipAdd(self.nextIP, self.prefixLen, self.ipBaseNum)}/{self.prefixLen}"}
        if self.autoSetMacs:
            defaults["mac"] = macColonHex(self.nextIP)
        if self.autoPinCpus:
            defaults["cores"] = self.nextCore
            self.nextCore = (self.nextCore + 1) % self.numCores
        self.nextIP += 1
        host = (cls or self.host)(name, **{**defaults, **params})
        _tell_misspelt(host, params)
        self.hosts.append(host)
        self.nameToNode[name] = host
        return host

    def delNode(self, node: Any, nodes: list[Any] | None = None) -> None:
        """Delete a node."""
        if nodes is None:
            nodes = next(group for group in (self.hosts, self.switches, self.controllers) if node in group)
        node.stop(deleteIntfs=True)
        node.terminate()
        nodes.remove(node)
        del self.nameToNode[node.name]

    def delHost(self, host: Any) -> None:
        """Delete a host."""
        self.delNode(host, nodes=self.hosts)

    def addSwitch(self, name: str, cls: Any = None, **params: Any) -> Any:
        """Add a switch of the class `cls` (default: the network's), and return it."""
        defaults = {"listenPort": self.listenPort, "inNamespace": self.inNamespace}
        switch = (cls or self.switch)(name, **{**defaults, **params})
        _tell_misspelt(switch, params)
        if not self.inNamespace and self.listenPort:
            self.listenPort += 1
        self.switches.append(switch)
        self.nameToNode[name] = switch
        return switch

    def delSwitch(self, switch: Any) -> None:
        """Delete a switch."""
        self.delNode(switch, nodes=self.switches)

    def addController(self, name: Any = "c0", controller: Any = None, **params: Any) -> Any:
        """Add a controller: one, or a name and the class `controller` (default: the network's); return it."""
        if isinstance(name, Controller):
            made, name = name, name.name
        else:
            made = (controller or self.controller)(name, **params)
        if made:
            self.controllers.append(made)
            self.nameToNode[name] = made
        return made

    def delController(self, controller: Any) -> None:
        """Delete a controller; switches go on looking for it."""
        self.delNode(controller)

    def addNAT(self, name: str = "nat0", connect: Any = True, inNamespace: bool = False, **params: Any) -> Any:
        """Add a gateway to the machine's own network, at the switch `connect` (default: the first), as the default
        route of all hosts; return it."""
        nat = self.addHost(name, cls=NAT, inNamespace=inNamespace, subnet=self.ipBase, **params)
        if connect:
            self.addLink(nat, connect if isinstance(connect, Node) else self.switches[0])
            address = nat.params["ip"].split("/")[0]
            for host in self.hosts:
                if host.inNamespace:
                    host.setDefaultRoute(f"via {address}")
        return nat

    def getNodeByName(self, *args: str) -> Any:
        """Return the node of that name; a list for several names."""
        return self.nameToNode[args[0]] if len(args) == 1 else [self.nameToNode[name] for name in args]

    def get(self, *args: str) -> Any:
        """Return the node of that name; a list for several names."""
        return self.getNodeByName(*args)

    def __getitem__(self, key: str) -> Any:
        return self.nameToNode[key]

    def __delitem__(self, key: str) -> None:
        self.delNode(self.nameToNode[key])

    def __iter__(self) -> Iterator[str]:
        return (node.name for node in chain(self.hosts, self.switches, self.controllers))

    def __len__(self) -> int:
        return len(self.hosts) + len(self.switches) + len(self.controllers)

    def __contains__(self, item: object) -> bool:
        return item in self.nameToNode

    def keys(self) -> list[str]:
        """Return the names of all nodes."""
        return list(self)

    def values(self) -> list[Any]:
        """Return all nodes."""
        return [self[name] for name in self]

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return the names of all nodes, each with its node."""
        return zip(self.keys(), self.values(), strict=True)

    @staticmethod
    def randMac() -> str:
        """Return a random hardware address, which is no group's and locally administered."""
        return macColonHex(random.randint(1, 2**48 - 1) & 0xFEFFFFFFFFFF | 0x020000000000)

    def addLink(
        self, node1: Any, node2: Any, port1: int | None = None, port2: int | None = None, cls: Any = None, **params: Any
    ) -> Any:
        """Add a link of the class `cls` (default: the network's) between two nodes or names, and return it."""
        ends = [self[one] if isinstance(one, str) else one for one in (node1, node2)]
        options = dict(params)
        for name, value in (("port1", port1), ("port2", port2), ("intf", self.intf)):
            if value is not None:
                options.setdefault(name, value)
        options.setdefault("addr1", self.randMac())
        options.setdefault("addr2", self.randMac())
        link = (cls or self.link)(*ends, **options)
        self.links.append(link)
        return link

    def delLink(self, link: Any) -> None:
        """Delete a link."""
        link.delete()
        self.links.remove(link)

    def linksBetween(self, node1: Any, node2: Any) -> list[Any]:
        """Return the links between two nodes."""
        wanted = ((node1, node2), (node2, node1))
        return [link for link in self.links if (link.intf1.node, link.intf2.node) in wanted]

    def delLinkBetween(self, node1: Any, node2: Any, index: int = 0, allLinks: bool = False) -> list[Any]:
        """Delete the link `index` between two nodes, or all with `allLinks`; return what was deleted."""
        links = self.linksBetween(node1, node2)
        for link in links if allLinks else (links := [links[index]]):
            self.delLink(link)
        return links

    def configHosts(self) -> None:
        """Configure the hosts' addresses and routes."""
        for host in self.hosts:
            info(host.name + " ")
            if host.defaultIntf():
                host.configDefault()
            else:
                host.configDefault(ip=None, mac=None)
        info("\n")

    def buildFromTopo(self, topo: Topo | None = None) -> None:
        """Add the nodes and links of `topo`."""
        assert topo is not None
        info("*** Creating network\n")
        if not self.controllers and self.controller:
            info("*** Adding controller\n")
            given: Any = self.controller
            classes = cast("list[Any]", given if isinstance(given, list) else [given])
            for number, cls in enumerate(classes):
                if isinstance(cls, Controller):
                    self.addController(cls)
                else:
                    self.addController(f"c{number}", cls)
        info("*** Adding hosts:\n")
        for name in topo.hosts():
            self.addHost(name, **topo.nodeInfo(name))
            info(name + " ")
        info("\n*** Adding switches:\n")
        for name in topo.switches():
            params = topo.nodeInfo(name)
            if hasattr(params.get("cls", self.switch), "batchStartup"):
                params.setdefault("batch", True)
            self.addSwitch(name, **params)
            info(name + " ")
        info("\n*** Adding links:\n")
        for first, second, params in topo.links(sort=True, withInfo=True):
            self.addLink(**params)
            info(f"({first}, {second}) ")
        info("\n")

    def configureControlNetwork(self) -> None:
        """Raise: a subclass makes the network that joins switches and controllers in namespaces."""
        raise Exception("configureControlNetwork: should be overriden in subclass", self)

    def build(self) -> None:
        """Add the nodes and links of the topology, and configure the hosts."""
        if self.topo:
            self.buildFromTopo(self.topo)
        if self.inNamespace:
            self.configureControlNetwork()
        info("*** Configuring hosts\n")
        self.configHosts()
        if self.xterms:
            self.startTerms()
        if self.autoStaticArp:
            self.staticArp()
        await_shells(self.values())
        wait_for_a_round_moment()
        self.built = True

    def startTerms(self) -> None:
        """Open a terminal for each node."""
        if "DISPLAY" not in os.environ:
            error("Error starting terms: Cannot connect to display\n")
            return
        info(f"*** Running terms on {os.environ['DISPLAY']}\n")
        groups: Sequence[tuple[list[Any], str]] = (
            (self.controllers, "controller"), (self.switches, "switch"), (self.hosts, "host")
        )  # fmt: skip
        for nodes, title in groups:
            self.terms += makeTerms(nodes, title)

    def stopXterms(self) -> None:
        """Close the terminals."""
        for term in self.terms:
            os.kill(term.pid, signal.SIGKILL)
        cleanUpScreens()

    def staticArp(self) -> None:
        """Tell each host the hardware addresses of all others."""
        for src in self.hosts:
            for dst in self.hosts:
                if src is not dst:
                    src.setARP(ip=dst.IP(), mac=dst.MAC())

    def start(self) -> None:
        """Start the controllers and the switches."""
        if not self.built:
            self.build()
        await_shells(self.values())
        info("*** Starting controller\n")
        for controller in self.controllers:
            info(controller.name + " ")
            controller.start()
        info("\n")
        info(f"*** Starting {len(self.switches)} switches\n")
        for switch in self.switches:
            info(switch.name + " ")
            switch.start(self.controllers)
        for cls, switches in self._switches_by_class():
            if hasattr(cls, "batchStartup"):
                info("...")
                cls.batchStartup(switches)
        info("\n")
        FABRIC.settle()
        if self.waitConn:
            self.waitConnected(self.waitConn)
        wait_for_a_round_moment()

    def _switches_by_class(self) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        found: dict[Any, list[Any]] = {}
        for switch in self.switches:
            found.setdefault(cast("Any", type(switch)), []).append(switch)
        for cls, group in found.items():
            yield cls, tuple(group)

    def stop(self) -> None:
        """Stop controllers, links, switches and hosts."""
        OUTCOME.ends(self)
        info(f"*** Stopping {len(self.controllers)} controllers\n")
        for controller in self.controllers:
            info(controller.name + " ")
            controller.stop()
        info("\n")
        for host in self.hosts:
            getattr(host, "unlimit", lambda: None)()
        if self.terms:
            info(f"*** Stopping {len(self.terms)} terms\n")
            self.stopXterms()
        own = FABRIC.leave([switch.name for switch in self.switches], self.links)
        info(f"*** Stopping {len(self.links)} links\n")
        delete_interfaces(self.links, own)
        for link in self.links:
            info(".")
            link.stop()
        info("\n")
        info(f"*** Stopping {len(self.switches)} switches\n")
        stopped: list[Any] = []
        for cls, switches in self._switches_by_class():
            if hasattr(cls, "batchShutdown"):
                stopped += cls.batchShutdown(switches)
        for switch in self.switches:
            info(switch.name + " ")
            if switch not in stopped:
                switch.stop()
            switch.terminate()
        info("\n")
        info(f"*** Stopping {len(self.hosts)} hosts\n")
        hang_up(self.hosts)
        for host in self.hosts:
            info(host.name + " ")
            host.terminate()
        info("\n*** Done\n")

    def run(self, test: Any, *args: Any, **kwargs: Any) -> Any:
        """Start, call `test`, stop, and return what `test` returned."""
        self.start()
        info("*** Running test\n")
        result = test(*args, **kwargs)
        self.stop()
        return result

    def configLinkStatus(self, src: str, dst: str, status: str) -> None:
        """Take the links between two nodes ``up`` or ``down``."""
        for end, name in (("src", src), ("dst", dst)):
            if name not in self.nameToNode:
                error(f"{end} not in network: {name}\n")
                return
        connections = self[src].connectionsTo(self[dst])
        if not connections:
            error(f"src and dst not connected: {src} {dst}\n")
        for pair in connections:
            for end, intf in zip(("src", "dst"), pair, strict=True):
                said = intf.ifconfig(status)
                if said:
                    error(f"link {end} status change failed: {said}\n")

    def interact(self) -> Any:
        """Start, open the prompt, and stop when it is left."""
        self.start()
        result = CLI(self)
        self.stop()
        return result


class MininetWithControlNet(ControlNetwork, Mininet):
    """A network whose switches and controller are in namespaces and joined by links of their own."""


def __getattr__(name: str) -> Any:
    """Return the class of networks with containers, which is made from the one here."""
    if name != "Containernet":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from twinnet.mininet.containernet import Containernet

    return Containernet


def _has_targets(switch: Any) -> bool:
    """Whether a controller may come to join; ``True`` for switches that are none of the fabric's."""
    plan = FABRIC.switch(switch.name)
    return plan is None or bool(plan.controllers)


def _tell_misspelt(node: Any, params: Mapping[str, Any]) -> None:
    known = _settings_of(cast("type[object]", type(node)))
    if unknown := params.keys() - known:
        FABRIC.advice.of_node(node.name, sorted(unknown), known)


@cache
def _settings_of(kind: type[object]) -> frozenset[str]:
    """The settings that a class of nodes and those below it read by their names."""
    makers = [getattr(one, name) for one in kind.__mro__ for name in ("__init__", "config") if name in vars(one)]
    named = (parameter for maker in makers for parameter in inspect.signature(maker).parameters.values())
    read = {parameter.name for parameter in named if parameter.kind is not parameter.VAR_KEYWORD}
    return frozenset(read - {"self", "args", "kwargs"} | {"privateDirs", "waitExited", "name", "cls"})
