"""Switches with Mininet's classes and options; all of them are switches of the fabric."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinnet.mininet.base_node import Node
from twinnet.mininet.fabric import FABRIC
from twinnet.mininet.fabric_plan import PROTOCOLS, BarePort, SwitchPlan
from twinnet.mininet.link import Intf
from twinnet.mininet.log import debug, error
from twinnet.mininet.program_logs import end_log, new_log
from twinnet.mininet.running import errRun
from twinnet.mininet.tool_server import serve

if TYPE_CHECKING:
    from twinnet.mininet.controllers import Controller

__all__ = ["IVSSwitch", "OVSBridge", "OVSKernelSwitch", "OVSSwitch", "Switch", "UserSwitch"]

_PASSIVE = ("ptcp:", "pssl:", "punix:")


class Switch(Node):
    """A switch; its interfaces are its ports.

    Parameters
    ----------
    name
        Its name.
    dpid
        Its datapath identifier in hexadecimal; ``None``: the first number in its name.
    opts
        Kept for classes that use it.
    listenPort
        The TCP port at which it listens for tools.
    """

    portBase: int = 1
    dpidLen: int = 16
    is_switch: bool = True
    failMode: str = "secure"
    protocols: str | Sequence[str] | None = None

    def __init__(
        self, name: str, dpid: str | None = None, opts: str = "", listenPort: int | None = None, **params: Any
    ) -> None:
        params.setdefault("inNamespace", False)
        self.controlIntf: Intf | None = None
        super().__init__(name, **params)
        self.dpid: str = self.defaultDpid(dpid)
        self.opts = opts
        self.listenPort = listenPort
        if not self.inNamespace:
            self.controlIntf = Intf("lo", self, port=0)

    @classmethod
    def setup(cls) -> None:
        """Have ``ovs-vsctl`` answered."""
        serve()

    def defaultDpid(self, dpid: str | None = None) -> str:
        """Return the datapath identifier as hexadecimal digits."""
        if dpid:
            dpid = dpid.replace(":", "")
            assert len(dpid) <= self.dpidLen and int(dpid, 16) >= 0
        else:
            numbers = re.findall(r"\d+", self.name)
            if not numbers:
                self.terminate()
                raise Exception(
                    "Unable to derive default datapath ID - please either specify a dpid or use a canonical "
                    "switch name such as s23."
                )
            dpid = f"{int(numbers[0]):x}"
        return dpid.rjust(self.dpidLen, "0")

    def defaultIntf(self) -> Intf | None:
        """Return the interface for control."""
        return self.controlIntf or super().defaultIntf()

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:
        """Start a command; as for every node."""
        if self.execed:
            error(f"*** Error: {self.name} has execed and cannot accept commands")
            return
        super().sendCmd(*args, **kwargs)

    def connected(self) -> bool:
        """Return whether the switch has a controller, or needs none."""
        debug("Assuming", repr(self), "is connected to a controller\n")
        return True

    def stop(self, deleteIntfs: bool = True) -> None:
        """End forwarding; with `deleteIntfs` delete the interfaces."""
        FABRIC.stop_switch(self.name)
        if deleteIntfs:
            self.deleteIntfs()

    def data_ports(self) -> dict[int, Intf | BarePort]:
        """Return the interfaces that are ports, by number: not ``lo``, and none with an address of its own."""
        return {number: intf for number, intf in self.intfs.items() if number and not intf.IP()}

    def forward(
        self,
        controllers: Sequence[Controller],
        fail_mode: str,
        protocols: str | Sequence[str] | None = None,
        in_turn: bool = False,
        log: Path | None = None,
        spanning_tree: Sequence[str] = (),
    ) -> None:
        """Have the fabric forward between our ports, with the settings of `SwitchPlan`."""
        FABRIC.start_switch(
            SwitchPlan(
                name=self.name,
                dpid=int(self.dpid, 16) or 1,
                ports=self.data_ports(),
                process=self.pid if self.inNamespace else None,
                fail_mode=fail_mode,
                controllers=[f"{one.protocol}:{one.IP()}:{one.port}" for one in controllers],
                protocols=_versions(self.name, protocols),
                listen=f"ptcp:{self.listenPort}" if self.listenPort else None,
                in_turn=in_turn,
                log=log,
                spanning_tree=list(spanning_tree),
                with_own=isinstance(self, OVSSwitch),
            )
        )

    def attach(self, intf: Intf | str) -> None:
        """Make an interface a port of the running switch."""
        plan = FABRIC.switch(self.name)
        found: Intf = self.intf(intf)
        if plan is not None:
            plan.ports[self.ports.get(found, self.newPort())] = found
            FABRIC.topology_changed()
        self.cmd("ifconfig", intf, "up")

    def detach(self, intf: Intf | str) -> None:
        """Make an interface no port any more."""
        plan = FABRIC.switch(self.name)
        if plan is not None:
            plan.ports = {number: one for number, one in plan.ports.items() if str(one) != str(intf)}
            FABRIC.topology_changed()

    def dpctl(self, *args: Any) -> str | None:
        """Run ``ovs-ofctl`` for this switch: the command, and what follows the switch's name."""
        return self.cmd("ovs-ofctl", args[0], self, *args[1:])


class OVSSwitch(Switch):
    """A switch of the fabric with the options of Open vSwitch.

    Parameters
    ----------
    name
        Its name.
    failMode
        ``secure``: without a controller only what flows say; ``standalone``: it learns by itself.
    datapath, inband, reconnectms, batch
        Taken and kept; they make no difference here.
    protocols
        The versions of OpenFlow: ``OpenFlow13``.
    stp
        Whether a standalone switch floods and learns along a spanning tree while it has a controller, too; without one
        our standalone switches always do.
    params
        Those of :class:`Switch`.
    """

    OVSVersion: str = "2.17"
    argmax: int = 128000

    def __init__(
        self,
        name: str,
        failMode: str = "secure",
        datapath: str = "kernel",
        inband: bool = False,
        protocols: str | Sequence[str] | None = None,
        reconnectms: int | None = 1000,
        stp: bool = False,
        batch: bool = False,
        **params: Any,
    ) -> None:
        super().__init__(name, **params)
        self.failMode = failMode
        self.datapath = datapath
        self.inband = inband
        self.protocols = protocols
        self.reconnectms = reconnectms
        self.stp = stp
        self.batch = batch
        self.commands: list[str] = []
        self._uuids: list[str] = []

    @classmethod
    def isOldOVS(cls) -> bool:
        """Return whether this is an Open vSwitch before 1.10."""
        return False

    def start(self, controllers: Sequence[Controller]) -> None:
        """Start forwarding, with `controllers`."""
        int(self.dpid, 16)
        if self.inNamespace:
            raise Exception("OVS kernel switch does not work in a namespace")
        tree = ["stp_enable"] if self.stp and self.failMode == "standalone" else []
        self.forward(controllers, self.failMode, self.protocols, spanning_tree=tree)

    def bridgeOpts(self) -> str:
        """Return our settings as columns of ``ovs-vsctl set bridge``, for classes that start by that program."""
        said = f" other_config:datapath-id={self.dpid} fail_mode={self.failMode}"
        return said + (f" protocols={self.protocols}" if self.protocols else "")

    def intfOpts(self, intf: Intf) -> str:
        """Return the command of ``ovs-vsctl`` that gives a port its number."""
        return f" -- set Interface {intf} ofport_request={self.ports[intf]}"

    def controllerUUIDs(self, update: bool = False) -> list[str]:
        """Return the names of our rows in the table Controller; `update` makes no difference: they are read now."""
        plan = FABRIC.switch(self.name)
        self._uuids = [f"{self.name}.{place}" for place in range(len(plan.controllers))] if plan else []
        return self._uuids

    def connected(self) -> bool:
        """Return whether a controller has joined; a switch that stands alone needs none."""
        return FABRIC.is_connected(self.name) or self.failMode == "standalone"

    def vsctl(self, *args: Any, **kwargs: Any) -> str | None:
        """Run ``ovs-vsctl``."""
        return self.cmd("ovs-vsctl", *args, **kwargs)

    @staticmethod
    def TCReapply(intf: Intf) -> None:
        """Do nothing: the shaping of a line stays."""

    @classmethod
    def batchStartup(cls, switches: Iterable[OVSSwitch], run: Any = errRun) -> Iterable[OVSSwitch]:
        """Return `switches`, which have started."""
        return switches

    @classmethod
    def batchShutdown(cls, switches: Sequence[OVSSwitch], run: Any = errRun) -> Sequence[OVSSwitch]:
        """End `switches` together, and return them."""
        _end_together(switches)
        return switches


OVSKernelSwitch = OVSSwitch


class OVSBridge(OVSSwitch):
    """A switch that stands alone: it learns, and needs no controller."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.update(failMode="standalone")
        super().__init__(*args, **kwargs)

    def start(self, controllers: Sequence[Controller]) -> None:
        """Start forwarding; `controllers` are not used."""
        super().start([])

    def connected(self) -> bool:
        """Return true: it forwards at once."""
        return True


class UserSwitch(Switch):
    """OpenFlow's reference switch in Mininet; here a switch of the fabric. It may be in a namespace of its own. It has
    one controller at a time, and ``/tmp/NAME-ofp.log`` names it."""

    dpidLen: int = 12

    def __init__(self, name: str, dpopts: str = "--no-slicing", **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self.dpopts = dpopts

    def start(self, controllers: Sequence[Controller]) -> None:
        """Start forwarding, with the first of `controllers` that answers."""
        log = new_log(f"{self.name}-ofp.log")
        self.forward(controllers, "secure", "OpenFlow10,OpenFlow13", in_turn=True, log=log)

    def stop(self, deleteIntfs: bool = True) -> None:
        """End forwarding, and the log; with `deleteIntfs` delete the interfaces."""
        super().stop(deleteIntfs)
        end_log(f"{self.name}-ofp.log")

    def connected(self) -> bool:
        """Return whether a controller has joined."""
        return FABRIC.is_connected(self.name)

    @staticmethod
    def TCReapply(intf: Intf) -> None:
        """Do nothing: the shaping of a line stays."""


class IVSSwitch(Switch):
    """The Indigo Virtual Switch in Mininet; here a switch of the fabric."""

    def __init__(self, name: str, verbose: bool = False, **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self.verbose = verbose

    def start(self, controllers: Sequence[Controller]) -> None:
        """Start forwarding, with `controllers`."""
        self.forward(controllers, "secure")

    @classmethod
    def batchShutdown(cls, switches: Sequence[IVSSwitch]) -> Sequence[IVSSwitch]:
        """End `switches` together, and return them."""
        _end_together(switches)
        return switches


def _versions(name: str, protocols: str | Sequence[str] | None) -> list[str]:
    """The versions of `protocols`, words in a text or a list of them; tells where a switch speaks none of them."""
    given = re.findall(r"[\w.]+", protocols if isinstance(protocols, str) else " ".join(protocols or ()))
    if given and not set(given) & set(PROTOCOLS):
        said = f"{name}: protocols={protocols!r}, and no switch here speaks these: it speaks {' and '.join(PROTOCOLS)}"
        FABRIC.advice.tell(f"protocols {given}", said, "write protocols='OpenFlow13', and an application of that")
    return given


def _end_together(switches: Sequence[Switch]) -> None:
    for switch in switches:
        FABRIC.stop_switch(switch.name)
        switch.hang_up()
    for switch in switches:
        switch.terminate()
