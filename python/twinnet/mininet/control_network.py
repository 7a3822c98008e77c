"""A network of its own between switches in namespaces and their controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twinnet.mininet.addresses import ipParse, ipStr
from twinnet.mininet.log import error, info

__all__ = ["ControlNetwork"]


class ControlNetwork:
    """The part of a network that joins its switches to its first controller."""

    controllers: list[Any]
    switches: list[Any]
    link: Any
    ping: Callable[..., float]

    def configureControlNetwork(self) -> None:
        """Join the first controller to each switch."""
        self.configureRoutedControlNetwork()

    def configureRoutedControlNetwork(self, ip: str = "192.168.123.1", prefixLen: int = 16) -> None:
        """Join the first controller, with the address `ip`, to each switch by a link."""
        controller = self.controllers[0]
        info(controller.name + " <->")
        number = ipParse(ip)
        for switch in self.switches:
            info(" " + switch.name)
            link = self.link(switch, controller, port1=0)
            switch.controlIntf = link.intf1
            number += 1
            while number & 0xFF in (0, 255):
                number += 1
            address = ipStr(number)
            link.intf2.setIP(ip, prefixLen)
            link.intf1.setIP(address, prefixLen)
            controller.setHostRoute(address, link.intf2)
            switch.setHostRoute(ip, link.intf1)
        info("\n*** Testing control network\n")
        for switch in self.switches:
            if self.ping(hosts=[switch, controller]) != 0:
                error("*** Error: control network test failed\n")
                raise SystemExit(1)
        info("\n")
