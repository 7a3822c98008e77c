"""Further nodes: a bridge, and a gateway that translates addresses."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twinnet.mininet import outside
from twinnet.mininet.base_node import Node
from twinnet.mininet.fabric import FABRIC
from twinnet.mininet.log import info, warn
from twinnet.mininet.moduledeps import pathCheck
from twinnet.mininet.running import quietRun
from twinnet.mininet.switches import Switch

if TYPE_CHECKING:
    from twinnet.mininet.controllers import Controller
    from twinnet.mininet.link import Intf

__all__ = ["NAT", "LinuxBridge", "Node", "Switch", "info", "pathCheck", "quietRun", "warn"]


class LinuxBridge(Switch):
    """Linux's bridge in Mininet; here a learning switch of the fabric, which breaks loops by itself.

    Parameters
    ----------
    name
        Its name.
    stp, prio
        Taken and kept: whether loops are broken, and the bridge's priority.
    kwargs
        Those of :class:`Switch`.
    """

    nextPrio: int = 100

    def __init__(self, name: str, stp: bool = False, prio: int | None = None, **kwargs: Any) -> None:
        self.stp = stp
        self.prio: int = prio or LinuxBridge.nextPrio
        LinuxBridge.nextPrio += 0 if prio else 1
        super().__init__(name, **kwargs)

    def connected(self) -> bool:
        """Return true: it forwards at once."""
        return True

    def start(self, _controllers: Sequence[Controller]) -> None:
        """Start forwarding."""
        self.forward([], "standalone")

    def dpctl(self, *args: Any) -> str | None:
        """Run ``brctl``."""
        return self.cmd("brctl", *args)


class NAT(Node):
    """A gateway that translates the addresses of the network to its own.

    Parameters
    ----------
    name
        Its name.
    subnet
        The network whose addresses are translated.
    localIntf
        The interface to that network; ``None``: the first.
    flush
        Whether rules that are there are deleted first.
    params
        Those of a node.
    """

    def __init__(
        self, name: str, subnet: str = "10.0/8", localIntf: Intf | None = None, flush: bool = False, **params: Any
    ) -> None:
        super().__init__(name, **params)
        self.subnet = subnet
        self.localIntf = localIntf
        self.flush = flush
        self.forwardState: str = (self.cmd("sysctl -n net.ipv4.ip_forward") or "").strip()

    def setManualConfig(self, intf: Intf | None) -> None:
        """Do nothing: no network manager looks after this machine."""

    def _rules(self, add: bool) -> list[str]:
        first, then = ("-I", "-A") if add else ("-D", "-D")
        inside = self.localIntf
        return [
            f"iptables {first} FORWARD -i {inside} -d {self.subnet} -j DROP",
            f"iptables {then} FORWARD -i {inside} -s {self.subnet} -j ACCEPT",
            f"iptables {then} FORWARD -o {inside} -d {self.subnet} -j ACCEPT",
            f"iptables -t nat {then} POSTROUTING -s {self.subnet} '!' -d {self.subnet} -j MASQUERADE",
        ]

    def config(self, **params: Any) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Configure addresses, rules and forwarding."""
        if not self.localIntf:
            self.localIntf = self.defaultIntf()
        self.setManualConfig(self.localIntf)
        translates = shutil.which("iptables") is not None
        if not self.inNamespace and not outside.open_way(os.getpid(), any_source=not translates):
            said = f"{self.name} reaches nothing beyond the machine of the script, which has no way out"
            FABRIC.advice.tell("nat", said, "have what hosts are to reach run in that machine")
        if self.inNamespace and not translates:
            said = f"{self.name} translates no addresses: iptables is not installed"
            FABRIC.advice.tell("iptables", said, "install it; on Debian: apt install iptables")
        results = super().config(**params)
        if self.flush:
            self.cmd("sysctl net.ipv4.ip_forward=0")
            for words in ("-F", "-t nat -F", "-P INPUT ACCEPT", "-P OUTPUT ACCEPT", "-P FORWARD DROP"):
                self.cmd("iptables " + words)
        for rule in self._rules(add=True):
            self.cmd(rule)
        self.cmd("sysctl net.ipv4.ip_forward=1")
        return results

    def terminate(self) -> None:
        """Take the rules away, and end the node."""
        if self.shell:
            for rule in self._rules(add=False):
                self.cmd(rule)
            self.cmd(f"sysctl net.ipv4.ip_forward={self.forwardState}")
        super().terminate()
