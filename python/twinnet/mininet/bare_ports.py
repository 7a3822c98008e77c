"""Ports of switches that no node of a script has: interfaces of the machine, patch ports and tunnels.

The types and options of the last two are those of Open vSwitch (``ovs-vswitchd.conf.db(5)``, table Interface).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from twinnet.errors import BadValue
from twinnet.ovsdb.qos_rows import Refused

if TYPE_CHECKING:
    from twinnet.mininet.base_node import Node
    from twinnet.mininet.link import Link
    from twinnet.network.tunnels import Tunnel

__all__ = ["LOCAL_PORT", "VIRTUAL_KINDS", "BarePort", "OwnPort", "VirtualPort", "virtual_columns"]

LOCAL_PORT = 0xFFFF_FFFE
"""The number of a switch's own port (``OFPP_LOCAL``)."""

VIRTUAL_KINDS: Mapping[str, tuple[str, ...]] = {
    "patch": ("peer",),
    "vxlan": ("remote_ip", "local_ip", "key", "dst_port"),
    "gre": ("remote_ip", "local_ip", "key"),
}
"""The types of ports without an interface, with their options; the first has to be given."""


@dataclass(eq=False)
class BarePort:
    """An interface of the machine that is a port of a switch and that no node of a script has.

    Parameters
    ----------
    name
        Its name.
    """

    name: str
    link: Link | None = None
    node: Node | None = None


@dataclass(eq=False)
class OwnPort(BarePort):
    """The port of a switch that leads to the machine itself, by an interface that the fabric makes: the switch's own,
    which has the switch's name, or one of type internal, as in Open vSwitch.

    Parameters
    ----------
    inner
        The name of the other end of the pair, which the fabric holds.
    process
        A process in whose network namespace that end is.
    outer
        A process in whose network namespace the interface itself is; ``None``: in the script's machine.
    joined
        Whether the interface was taken up; until then it is a port without a link.
    """

    inner: str = ""
    process: int = 0
    outer: int | None = None
    joined: bool = False


@dataclass(eq=False)
class VirtualPort(BarePort):
    """A port without an interface: it leads to the patch port of another switch, or through a tunnel.

    Parameters
    ----------
    kind
        Its type.
    options
        Its options.
    """

    kind: str = ""
    options: dict[str, str] = field(default_factory=dict[str, str])

    def change(self, kind: str, options: Mapping[str, str]) -> None:
        """Have another type or other options, beside those that stay; raises :class:`Refused`."""
        options = {**(self.options if kind == self.kind else {}), **options}
        for name in options:
            if name not in VIRTUAL_KINDS[kind]:
                raise Refused(f"Interface: our switches have no options:{name} of type {kind}")
        needed = VIRTUAL_KINDS[kind][0]
        if needed not in options:
            raise Refused(f"Interface {self.name}: type {kind} needs options:{needed}")
        self.kind, self.options = kind, options
        if kind != "patch":
            self.tunnel()

    def tunnel(self) -> Tunnel:
        """Return the tunnel that it leads through; raises :class:`Refused`."""
        # Most scripts have none.
        from twinnet.network.tunnels import gre, vxlan

        told = self.options
        key, port = self._whole("key"), self._whole("dst_port")
        remote, local = told["remote_ip"], told.get("local_ip")
        try:
            if self.kind == "gre":
                return gre(key, remote=remote, local=local)
            return vxlan(key or 0, remote=remote, local=local, port=4789 if port is None else port)
        except BadValue as wrong:
            raise Refused(f"Interface {self.name}: {wrong}") from None

    def _whole(self, option: str) -> int | None:
        given = self.options.get(option)
        if given is not None and not given.isdecimal():
            raise Refused(f"Interface {self.name}: options:{option} is {given}; it can be a whole number")
        return None if given is None else int(given)

    def end_of_tunnel(self, node: str) -> dict[str, Any]:
        """Return the node of the lab protocol, called `node`, at which the link of this port ends."""
        tunnel = self.tunnel()
        # It goes by the MTU of the way there.
        return {
            "kind": "tunnel",
            "name": node,
            "tunnel": tunnel.to_spec() | {"mtu": 65_535},
            "remote": tunnel.remote,
            "local": tunnel.local,
            "port": tunnel.port,
            "ports": [{"name": node, "queue": None}],
        }


def virtual_columns(columns: dict[str, str]) -> tuple[str, dict[str, str]] | None:
    """Take the type and the options of a port without an interface out of `columns`, and return them; ``None``: they
    tell of none."""
    options = {name: value for name, value in columns.items() if name.startswith("options:")}
    kind = columns.get("type", "")
    if kind not in VIRTUAL_KINDS and (kind or not options):
        return None
    for name in options:
        del columns[name]
    columns.pop("type", None)
    return kind, {name.partition(":")[2]: value for name, value in options.items()}
