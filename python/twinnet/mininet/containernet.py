"""A network with containers, with the names of Containernet."""

from __future__ import annotations

from typing import Any

from twinnet.mininet.containers import Docker
from twinnet.mininet.net import Mininet

__all__ = ["Containernet"]


class Containernet(Mininet):
    """A network whose hosts may be containers."""

    def addDocker(self, name: str, cls: Any = Docker, **params: Any) -> Any:
        """Add a container: `dimage` is its image, `params` are those of `Docker`. Return it."""
        return self.addHost(name, cls=cls, **params)

    def removeDocker(self, name: Any, **_params: Any) -> bool:
        """End a container and its links."""
        self.delHost(self[name] if isinstance(name, str) else name)
        return True

    def removeLink(self, link: Any = None, node1: Any = None, node2: Any = None) -> None:
        """Delete a link, or the first between two nodes."""
        if link is not None:
            self.delLink(link)
            return
        ends = [self[one] if isinstance(one, str) else one for one in (node1, node2)]
        self.delLinkBetween(*ends)
