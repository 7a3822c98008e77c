"""Interfaces and links with Mininet's attributes; the rates, delays and losses are those of twinnet's lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

from twinnet.errors import BadValue
from twinnet.mininet.fabric import FABRIC
from twinnet.mininet.log import debug, error, info
from twinnet.mininet.shaping import Shaping, netem_time_ps
from twinnet.mininet.tc_commands import delay_commands, rate_commands
from twinnet.mininet.util import makeIntfPair

if TYPE_CHECKING:
    from twinnet.mininet.base_node import Node

__all__ = [
    "Intf",
    "Link",
    "OVSIntf",
    "OVSLink",
    "TCIntf",
    "TCLink",
    "TCULink",
    "debug",
    "error",
    "info",
    "makeIntfPair",
]


class Intf:
    """An interface of a node, which configures itself by commands in the node.

    Parameters
    ----------
    name
        Its name, such as ``h1-eth0``.
    node
        The node that has it.
    port
        Its port number; ``None``: the next one that is free.
    link
        The link that ends there.
    mac
        Its hardware address.
    params
        What :meth:`config` sets.

    Attributes
    ----------
    shaping
        How its line sends now, where it is the end of one.
    gone
        Whether the kernel has deleted it already.
    """

    shaping: Shaping = Shaping()
    gone: bool = False
    _ipMatchRegex: ClassVar[re.Pattern[str]] = re.compile(r"\d+\.\d+\.\d+\.\d+")
    _macMatchRegex: ClassVar[re.Pattern[str]] = re.compile(r"..:..:..:..:..:..")

    def __init__(
        self,
        name: str,
        node: Node | None = None,
        port: int | None = None,
        link: Link | None = None,
        mac: str | None = None,
        **params: Any,
    ) -> None:
        self.node: Node = node  # pyright: ignore[reportAttributeAccessIssue]
        self.name: str = name
        self.link: Link | None = link
        self.mac = mac
        self.ip: str | None = "127.0.0.1" if name == "lo" else None
        self.prefixLen: int | str | None = 8 if name == "lo" else None
        if node is not None:
            move = params.pop("moveIntfFn", None)
            node.addIntf(self, port=port, **({"moveIntfFn": move} if move else {}))
        self.params: dict[str, Any] = params
        self.config(**params)

    def cmd(self, *args: Any, **kwargs: Any) -> str:
        """Run a command in the node that has this interface, and return what it writes."""
        return self.node.cmd(*args, **kwargs) or ""

    def ifconfig(self, *args: Any) -> str:
        """Run ``ifconfig`` of this interface with `args`."""
        said = "" if self.node.set_interface(self.name, args) else self.cmd("ifconfig", self.name, *args)
        if args in (("up",), ("down",)):
            FABRIC.taken(self, args == ("up",))
        return said

    def setIP(self, ipstr: str, prefixLen: int | str | None = None) -> str:
        """Set the IPv4 address: ``10.0.0.1/8``, or an address and a prefix length."""
        if "/" in ipstr:
            self.ip, self.prefixLen = ipstr.split("/")
            said = self.ifconfig(ipstr, "up")
        elif prefixLen is None:
            raise Exception(f"No prefix length set for IP address {ipstr}")
        else:
            self.ip, self.prefixLen = ipstr, prefixLen
            said = self.ifconfig(f"{ipstr}/{prefixLen}")
        FABRIC.advice.of_address(self.name, f"{self.ip}/{self.prefixLen}", said)
        return said

    def setMAC(self, macstr: str) -> str:
        """Set the hardware address."""
        self.mac = macstr
        down, said, up = self.ifconfig("down"), self.ifconfig("hw", "ether", macstr), self.ifconfig("up")
        FABRIC.advice.of_refusal(
            f"{self.name} does not get the hardware address {macstr}", said, "write mac='00:00:00:00:00:07'"
        )
        return down + said + up

    def updateIP(self) -> str | None:
        """Read the IPv4 address that the interface has now."""
        said, _, _ = self.node.pexec(f"ifconfig {self.name}")
        self.ip = next(iter(self._ipMatchRegex.findall(said)), None)
        return self.ip

    def updateMAC(self) -> str | None:
        """Read the hardware address that the interface has now."""
        self.mac = next(iter(self._macMatchRegex.findall(self.ifconfig())), None)
        return self.mac

    def updateAddr(self) -> tuple[str | None, str | None]:
        """Read both addresses that the interface has now."""
        said = self.ifconfig()
        self.ip = next(iter(self._ipMatchRegex.findall(said)), None)
        self.mac = next(iter(self._macMatchRegex.findall(said)), None)
        return self.ip, self.mac

    def IP(self) -> str | None:
        """Return the IPv4 address that was set."""
        return self.ip

    def MAC(self) -> str | None:
        """Return the hardware address that was set."""
        return self.mac

    def isUp(self, setUp: bool = False) -> bool:
        """Return whether the interface is up; with `setUp` it is taken up before."""
        if not setUp:
            return "UP" in self.ifconfig()
        said = self.ifconfig("up")
        if said:
            error(f"Error setting {self.name} up: {said} ")
        return not said

    def rename(self, newname: str) -> str:
        """Give the interface another name."""
        if self.name in self.node.nameToIntf:
            self.node.nameToIntf[newname] = self.node.nameToIntf.pop(self.name)
        self.ifconfig("down")
        said = self.cmd("ip link set", self.name, "name", newname)
        self.name = newname
        self.ifconfig("up")
        FABRIC.topology_changed()
        return said

    def setParam(self, results: dict[str, Any], method: str, **param: Any) -> Any:
        """Call `method` with the value of the one `param`, unless that is ``None``; keep the result in `results`."""
        return set_parameter(self, results, method, param)

    def config(
        self, mac: str | None = None, ip: str | None = None, ifconfig: Any = None, up: bool = True, **_params: Any
    ) -> dict[str, Any] | None:
        """Configure hardware address, IPv4 address and state; `ifconfig` gives further words to ``ifconfig``."""
        results: dict[str, Any] = {}
        self.setParam(results, "setMAC", mac=mac)
        self.setParam(results, "setIP", ip=ip)
        self.setParam(results, "isUp", up=up)
        self.setParam(results, "ifconfig", ifconfig=ifconfig)
        return results

    def linked(self) -> None:
        """Called when the link that ends here is there."""

    def delete(self) -> None:
        """Delete the interface, and with it the other end of its pair."""
        if not self.gone:
            self.cmd("ip link del " + self.name)
        self.node.delIntf(self)
        self.link = None
        FABRIC.topology_changed()

    def status(self) -> str:
        """Return ``OK``, or ``MISSING`` where the node has no such interface."""
        said, _, _ = self.node.pexec("ip link show")
        return "OK" if self.name in said else "MISSING"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def __str__(self) -> str:
        return self.name


def set_parameter(of: Any, results: dict[str, Any], method: str, param: dict[str, Any]) -> Any:
    """Call `method` of `of` with the value of the one `param`, unless that is ``None``: a list as arguments, a dict as
    named ones. Keep the result in `results`."""
    ((name, value),) = param.items()
    call = getattr(of, method, None)
    if call is None or value is None:
        return None
    if isinstance(value, list):
        results[name] = call(*value)
    elif isinstance(value, dict):
        results[name] = call(**value)
    else:
        results[name] = call(value)
    return results[name]


def _mbps(given: float | str | None) -> float | None:
    """Return the rate that was given as a number of Mbit/s; raises `BadValue` for what is none."""
    try:
        return None if given is None else float(given) if isinstance(given, str) else given
    except ValueError:
        raise BadValue(f"bw={given!r} is no number of Mbit/s", "write bw=11 for 11 Mbit/s") from None


def _loss(given: float | str | None) -> float | None:
    """Return the loss that was given as a number of per cent; raises `BadValue` for what is none."""
    try:
        return None if given is None else float(given) if isinstance(given, str) else given
    except ValueError:
        raise BadValue(f"loss={given!r} is no number of per cent", "write loss=1 for one per cent") from None


class TCIntf(Intf):
    """An interface whose line has a rate, a delay, losses and a queue."""

    bwParamMax: float = 1000
    """The highest rate in Mbit/s that Mininet takes."""
    _commands: Sequence[str] = ()

    def tc(self, cmd: str, tc: str = "tc") -> str:
        """Run a command of ``tc``: `cmd` has ``%s`` for the program and for the interface."""
        return self.cmd(cmd % (tc, self))

    def bwCmds(
        self,
        bw: float | None = None,
        speedup: float = 0,
        use_hfsc: bool = False,
        use_tbf: bool = False,
        latency_ms: float | None = None,
        enable_ecn: bool = False,
        enable_red: bool = False,
    ) -> tuple[list[str], str]:
        """Return the commands of ``tc`` for a rate, and where further ones go: for classes that change them."""
        at_switch = bw is not None and speedup > 0 and self.node.name[:1] == "s"
        return rate_commands(speedup if at_switch else bw, use_hfsc, use_tbf, latency_ms, enable_ecn, enable_red)

    @staticmethod
    def delayCmds(
        parent: str,
        delay: str | float | None = None,
        jitter: str | float | None = None,
        loss: float | None = None,
        max_queue_size: float | None = None,
    ) -> tuple[list[str], str]:
        """Return the command of ``tc`` for delay and losses, and where further ones go: for classes that change it."""
        return delay_commands(parent, delay, jitter, loss, max_queue_size)

    @staticmethod
    def check(own: Mapping[str, Any]) -> None:
        """Tell of settings that are none, or refuse them, before there is an interface that they would be left at."""
        for name in ("delay", "jitter"):
            FABRIC.advice.of_time(name, own.get(name))
        FABRIC.advice.of_loss(_loss(own.get("loss")))

    def _by_commands(self, bw: float | None, delays: dict[str, Any], **settings: Any) -> None:
        """Configure the line as commands of ``tc`` say, once there is one."""
        commands, parent = self.bwCmds(bw=bw, **settings)
        self._commands = [*commands, *self.delayCmds(parent=parent, **delays)[0]]
        if FABRIC.line_end(self.name) is not None:
            self.linked()

    def linked(self) -> None:
        """Do what could not be done before the link was there."""
        commands, self._commands = self._commands, ()
        if commands and self.shaping != Shaping():
            commands = ["%s qdisc del dev %s root", *commands]
        for said in filter(None, map(self.tc, commands)):
            error(f"*** Error: {said}")

    def config(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        bw: float | None = None,
        delay: str | float | None = None,
        jitter: str | float | None = None,
        loss: float | None = None,
        gro: bool = False,
        txo: bool = True,
        rxo: bool = True,
        speedup: float = 0,
        use_hfsc: bool = False,
        use_tbf: bool = False,
        latency_ms: float | None = None,
        enable_ecn: bool = False,
        enable_red: bool = False,
        max_queue_size: float | None = None,
        **params: Any,
    ) -> dict[str, Any] | None:
        """Configure how the interface sends; what is not given is as without shaping.

        Parameters
        ----------
        bw
            The rate in Mbit/s.
        delay, jitter
            Times with their units: ``5ms``.
        loss
            In per cent.
        speedup
            The rate of switches' ends instead.
        use_hfsc, use_tbf, latency_ms
            The way in which Mininet would limit the rate; a line of twinnet has its rate by itself. ``use_tbf`` sets
            the queue to what `latency_ms` allows for.
        enable_ecn, enable_red
            RED in the place of the queue, marking or dropping.
        max_queue_size
            Frames that wait at most.
        gro, txo, rxo
            Offloads, which twinnet's lines count as the frames that they stand for; set by ``ethtool``.
        """
        params.pop("disable_gro", None)
        result = Intf.config(self, **params) or {}
        if not txo or not rxo:
            switches = ["gro", gro, "tx", txo, "rx", rxo]
            words = [word if isinstance(word, str) else "on" if word else "off" for word in switches]
            self.cmd("ethtool -K", self, *words)
        if jitter and not delay:
            FABRIC.advice.tell("jitter", f"jitter={jitter!r} without delay, which Mininet leaves out", "give delay too")
        if bw is None and not delay and not loss and max_queue_size is None:
            return None
        if bw is not None and speedup > 0 and self.node.name[:1] == "s":
            bw = speedup
        bw = _mbps(bw)
        if bw and not 0 <= bw <= self.bwParamMax:
            error("Bandwidth limit", bw, f"is outside supported range 0..{self.bwParamMax:g}", "- ignoring\n")
            bw = None
        loss = _loss(loss)
        refused = False
        for name, given in (("delay", delay), ("jitter", jitter)):
            FABRIC.advice.of_time(name, given)
            refused = refused or (bool(given) and netem_time_ps(given) is None)
        FABRIC.advice.of_loss(loss)
        if refused:
            # As Mininet, whose commands of tc fail one by one.
            error('*** Error: Illegal "latency"\n')
            delay = jitter = loss = max_queue_size = None
        if type(self).bwCmds is not TCIntf.bwCmds or type(self).delayCmds is not TCIntf.delayCmds:
            ways = {"use_hfsc": use_hfsc, "use_tbf": use_tbf, "latency_ms": latency_ms}
            ways |= {"enable_ecn": enable_ecn, "enable_red": enable_red, "speedup": speedup}
            delays = {"delay": delay, "jitter": jitter, "loss": loss, "max_queue_size": max_queue_size}
            self._by_commands(bw, delays, **ways)
            return result
        asked = (bw, delay, jitter, loss, max_queue_size, use_tbf, latency_ms, enable_ecn, enable_red)
        self.shaping: Shaping = Shaping.of(*asked)
        info(f"({self.shaping.words()}) ")
        result["tcoutputs"], result["parent"] = [], " parent 5:1 "
        FABRIC.shaping_changed(self)
        return result


_SETTINGS = {
    *signature(Intf.config).parameters,
    *signature(TCIntf.config).parameters,
    *("disable_gro", "moveIntfFn", "port", "use_htb"),
}
"""What links of Mininet's own classes take; ``use_htb`` is what they do anyway."""


class Link:
    """A link between two nodes, which makes an interface in each.

    Parameters
    ----------
    node1, node2
        Its ends.
    port1, port2
        Port numbers; ``None``: the next ones that are free.
    intfName1, intfName2, addr1, addr2
        Names and hardware addresses of the interfaces.
    intf, cls1, cls2
        The class of both interfaces, or of each.
    params1, params2, params
        What each interface gets, and what both get.
    fast
        Whether interfaces are made where they are to be, and not moved there.
    """

    def __init__(
        self,
        node1: Node,
        node2: Node,
        port1: int | None = None,
        port2: int | None = None,
        intfName1: str | None = None,
        intfName2: str | None = None,
        addr1: str | None = None,
        addr2: str | None = None,
        intf: Any = Intf,
        cls1: Any = None,
        cls2: Any = None,
        params1: dict[str, Any] | None = None,
        params2: dict[str, Any] | None = None,
        fast: bool = True,
        **params: Any,
    ) -> None:
        self.fast = fast
        each: list[dict[str, Any]] = []
        for node, port, given in ((node1, port1, params1), (node2, port2, params2)):
            own = dict(given or {})
            if port is not None:
                own["port"] = port
            own.setdefault("port", node.newPort() + (1 if each and node1 is node2 else 0))
            each.append({**own, **params})
        name1 = intfName1 or self.intfName(node1, each[0]["port"])
        name2 = intfName2 or self.intfName(node2, each[1]["port"])
        self._tell_ignored(cls1 or intf, params)
        self._classes = (cls1 or intf, cls2 or intf)
        for kind, own in zip(self._classes, each, strict=True):
            if isinstance(kind, type) and issubclass(kind, TCIntf) and kind.config is TCIntf.config:
                kind.check(own)
        if fast:
            for own in each:
                own.setdefault("moveIntfFn", self._ignore)
            self._make_pair(name1, name2, addr1, addr2, node1, node2)
        else:
            self.makeIntfPair(name1, name2, addr1, addr2)
        self.intf1: Intf = self._classes[0](name=name1, node=node1, link=self, mac=addr1, **each[0])
        self.intf2: Intf = self._classes[1](name=name2, node=node2, link=self, mac=addr2, **each[1])
        FABRIC.link_added(self)
        for end in self.ends():
            end.linked()

    def _tell_ignored(self, kind: Any, params: dict[str, Any]) -> None:
        if not isinstance(kind, type) or not issubclass(kind, Intf):
            return
        if kind.config is Intf.config:
            FABRIC.advice.of_plain_link(params)
        # What a class of a script makes of others is its own.
        if kind.config in (Intf.config, TCIntf.config) and kind.__init__ is Intf.__init__:
            FABRIC.advice.of_unknown(params, _SETTINGS)

    def _make_pair(
        self, name1: str, name2: str, addr1: str | None, addr2: str | None, node1: Node, node2: Node
    ) -> None:
        """Make the interfaces: one pair, or two with a line of the fabric between them where hosts are joined by
        interfaces that can be shaped."""
        shaped = any(isinstance(kind, type) and issubclass(kind, TCIntf) for kind in self._classes)
        # A class of a script may make it an ordinary method.
        own_way = getattr(type(self).makeIntfPair, "__func__", None) is not Link.makeIntfPair.__func__
        if shaped and not own_way and not (node1.is_switch or node2.is_switch):
            FABRIC.make_wire(self, (name1, addr1, node1), (name2, addr2, node2))
        else:
            self.makeIntfPair(name1, name2, addr1, addr2, node1, node2, deleteIntfs=False)

    @staticmethod
    def _ignore(*args: Any, **kwargs: Any) -> None:
        """Take the place of what moves an interface that is in its place already."""

    def is_made(self) -> bool:
        """Return whether both interfaces are there."""
        return all(getattr(self, name, None) is not None for name in ("intf1", "intf2"))

    def ends(self) -> tuple[Intf, Intf]:
        """Return both interfaces."""
        return self.intf1, self.intf2

    def intfName(self, node: Node, n: int) -> str:
        """Return the name of the interface at port `n` of `node`."""
        return f"{node.name}-eth{n}"

    @classmethod
    def makeIntfPair(
        cls,
        intfname1: str,
        intfname2: str,
        addr1: str | None = None,
        addr2: str | None = None,
        node1: Node | None = None,
        node2: Node | None = None,
        deleteIntfs: bool = True,
    ) -> Any:
        """Make the pair of interfaces; as :func:`twinnet.mininet.util.makeIntfPair`."""
        return makeIntfPair(intfname1, intfname2, addr1, addr2, node1, node2, deleteIntfs=deleteIntfs)

    def delete(self) -> None:
        """Delete the link and its interfaces."""
        for one in self.ends():
            one.delete()
        FABRIC.link_deleted(self)

    def stop(self) -> None:
        """Delete the link at the end of its network."""
        self.delete()

    def status(self) -> str:
        """Return whether both interfaces are there: ``(OK OK)``."""
        return f"({self.intf1.status()} {self.intf2.status()})"

    def __str__(self) -> str:
        return f"{self.intf1}<->{self.intf2}"


class OVSIntf(Intf):
    """An end of a patch between switches; it is always up."""

    def ifconfig(self, *args: Any) -> str:
        """Take ``up`` only."""
        if args != ("up",):
            raise Exception("OVSIntf cannot do ifconfig " + " ".join(str(one) for one in args))
        return super().ifconfig(*args)


class OVSLink(Link):
    """A link that is a patch where both ends are switches; our switches are joined as by any link."""

    def __init__(self, node1: Node, node2: Node, **kwargs: Any) -> None:
        self.isPatchLink: bool = node1.is_switch and node2.is_switch
        if self.isPatchLink:
            kwargs.update(cls1=OVSIntf, cls2=OVSIntf)
        super().__init__(node1, node2, **kwargs)


class TCLink(Link):
    """A link whose lines have rates, delays, losses and queues."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("cls1", TCIntf)
        kwargs.setdefault("cls2", TCIntf)
        super().__init__(*args, **kwargs)


class TCULink(TCLink):
    """As :class:`TCLink`; checksums are left to the programs, as the user-space switch of OpenFlow needs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.update(txo=False, rxo=False)
        super().__init__(*args, **kwargs)
