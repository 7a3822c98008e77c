"""Further topologies."""

from __future__ import annotations

from typing import Any

from twinnet.mininet.net import Mininet
from twinnet.mininet.topo import Topo

__all__ = ["Mininet", "Topo", "TorusTopo", "TreeNet", "TreeTopo"]

_LEAST_TORUS = 3


class TreeTopo(Topo):
    """A tree of switches of `depth` levels, each with `fanout` children; hosts are its leaves."""

    def build(self, depth: int = 1, fanout: int = 2) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Add the tree."""
        self.hostNum: int = 1
        self.switchNum: int = 1
        self.addTree(depth, fanout)

    def addTree(self, depth: int, fanout: int) -> str:
        """Add a tree of `depth` levels, and return its root."""
        if depth <= 0:
            self.hostNum += 1
            return self.addHost(f"h{self.hostNum - 1}")
        root = self.addSwitch(f"s{self.switchNum}")
        self.switchNum += 1
        for _ in range(fanout):
            self.addLink(root, self.addTree(depth - 1, fanout))
        return root


def TreeNet(depth: int = 1, fanout: int = 2, **kwargs: Any) -> Mininet:
    """Return a network of a tree."""
    return Mininet(TreeTopo(depth, fanout), **kwargs)


class TorusTopo(Topo):
    """A torus of `x` times `y` switches with `n` hosts each. It has loops."""

    def build(self, x: int, y: int, n: int = 1) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Add the switches and their hosts."""
        if min(x, y) < _LEAST_TORUS:
            raise Exception("Please use 3x3 or greater for compatibility with 2.1")
        switches: dict[tuple[int, int], str] = {}
        for row in range(x):
            for column in range(y):
                place = f"{row + 1}x{column + 1}"
                switch = self.addSwitch("s" + place, dpid=f"{(row + 1) * 256 + column + 1:x}")
                switches[row, column] = switch
                for host in range(n):
                    self.addLink(self.addHost(f"h{place}" if n == 1 else f"h{place}x{host + 1}"), switch)
        for (row, column), switch in switches.items():
            self.addLink(switch, switches[row, (column + 1) % y])
            self.addLink(switch, switches[(row + 1) % x, column])
