"""The sockets of tunnels to other speakers: a lab's owner makes them in its own network namespace and passes them
on."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinnet.errors import NotAvailable
from twinnet.lab_process.requests import LabRequests

__all__ = ["Underlays"]

_GRE = 47
_IP_MTU = 14
_SO_NO_CHECK = 11
_IP_MTU_DISCOVER = 10
_NEVER_CUT, _CUT = 2, 0
_BUFFER_BYTES = 4 << 20
_DISCARD_PORT = 9


@dataclass
class Underlays:
    """The sockets of a network's tunnels while its lab is being started.

    Parameters
    ----------
    sockets
        By the name of the underlay: several VXLAN tunnels share the socket of their address and port.
    attachments
        For each tunnel the fields of a ``tunnel.attach`` request.
    """

    sockets: dict[str, socket.socket] = field(default_factory=dict[str, socket.socket])
    attachments: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @classmethod
    def of(
        cls,
        nodes: Sequence[Mapping[str, Any]],
        links: Sequence[Mapping[str, Any]],
        tell: Callable[[NotAvailable], None] | None = None,
    ) -> Underlays:
        """Make the sockets of the tunnels among `nodes`, whose links are among `links` (of the lab protocol).
        `tell` is told of sockets that cannot be had, in the place of the exception; their tunnels carry nothing.

        Raises
        ------
        NotAvailable
            When a socket cannot be had, or the underlay has no room for what the link carries; nothing stays open
            then.
        """
        made = cls()
        mtus = {end["node"]: link["mtu"] for link in links for end in (link["a"], link["b"])}
        try:
            for node in nodes:
                if node["kind"] != "tunnel" or not node["ports"]:
                    continue
                try:
                    made._open(node, mtus[node["name"]])
                except NotAvailable as refused:
                    if tell is None:
                        raise
                    tell(refused)
        except BaseException:
            made.close()
            raise
        return made

    def attach_to(self, lab: LabRequests) -> None:
        """Pass the sockets to `lab`, which has its network."""
        try:
            for fields in self.attachments:
                lab.tunnel_attach(**fields, descriptors=[self.sockets[fields["underlay"]].fileno()])
        finally:
            self.close()

    def close(self) -> None:
        """Close our descriptors; those that were passed on live in the lab."""
        for one in self.sockets.values():
            one.close()
        self.sockets.clear()
        self.attachments.clear()

    def _open(self, node: Mapping[str, Any], link_mtu: int) -> None:
        name, tunnel, remote = node["name"], node["tunnel"], node["remote"]
        local, path_mtu = _way(name, remote, node["local"])
        overhead = 50 if tunnel["kind"] == "vxlan" else 38 + 4 * (tunnel["key"] is not None) + 4 * tunnel["checksum"]
        if not tunnel["fragment"]:
            path_mtu = min(path_mtu, tunnel["mtu"])
            if link_mtu > path_mtu - overhead:
                raise NotAvailable(
                    f"{name}: packets of {link_mtu} bytes need {link_mtu + overhead} on the way to {remote}, which has "
                    f"an mtu of {path_mtu}, and may not be cut",
                    f"give its link mtu={path_mtu - overhead}, or the tunnel fragment=True",
                )
        underlay = f"vxlan {local}:{node['port']}" if tunnel["kind"] == "vxlan" else f"gre {name}"
        cut = tunnel["fragment"]
        if underlay not in self.sockets:
            maker = _vxlan_socket if tunnel["kind"] == "vxlan" else _gre_socket
            self.sockets[underlay] = maker(name, local, node["port"])
            self.sockets[underlay].setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _CUT if cut else _NEVER_CUT)
        elif self.sockets[underlay].getsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER) != (_CUT if cut else _NEVER_CUT):
            raise NotAvailable(
                f"{name} shares {local}:{node['port']} with another tunnel, and one of them may be cut and one not",
                "give both the same fragment, or one another port",
            )
        self.attachments.append({"node": name, "underlay": underlay, "mtu": path_mtu})


def _way(name: str, remote: str, local: str | None) -> tuple[str, int]:
    """Return the address to speak from and the path MTU to `remote`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            if local is not None:
                probe.bind((local, 0))
            probe.connect((remote, _DISCARD_PORT))
            return probe.getsockname()[0], probe.getsockopt(socket.IPPROTO_IP, _IP_MTU)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                remedy = "name an address of this machine, or leave local out"
                raise NotAvailable(f"{name} cannot speak from {local}: {error.strerror}", remedy) from None
            remedy = "give this machine an address and a route to there"
            raise NotAvailable(f"{name} has no way to {remote}: {error.strerror or error}", remedy) from None


def _vxlan_socket(name: str, local: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # "UDP Checksum: It SHOULD be transmitted as zero" (RFC 7348 5).
    made.setsockopt(socket.SOL_SOCKET, _SO_NO_CHECK, 1)
    try:
        made.bind((local, port))
    except OSError as error:
        made.close()
        remedy = "choose another port, or end what uses it (a vxlan interface of the kernel takes it too)"
        raise NotAvailable(
            f"{name} cannot have UDP port {port} of {local}: {error.strerror or error}", remedy
        ) from None
    return _with_room(made)


def _gre_socket(name: str, local: str, _port: int) -> socket.socket:
    try:
        made = socket.socket(socket.AF_INET, socket.SOCK_RAW, _GRE)
    except PermissionError:
        raise NotAvailable(
            f"{name} speaks GRE, which needs a raw socket and so the capability CAP_NET_RAW in this network namespace",
            "run as root, or in a namespace of your own (unshare -rn), or use vxlan, which needs neither",
        ) from None
    made.bind((local, 0))
    return _with_room(made)


def _with_room(made: socket.socket) -> socket.socket:
    for option, forced in ((socket.SO_RCVBUF, 33), (socket.SO_SNDBUF, 32)):
        made.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
        # Beyond the machine's limit where we may: SO_RCVBUFFORCE and SO_SNDBUFFORCE.
        with contextlib.suppress(PermissionError):
            made.setsockopt(socket.SOL_SOCKET, forced, _BUFFER_BYTES)
    return made
