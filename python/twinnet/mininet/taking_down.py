"""The end of a network: what many nodes and links do at once instead of one after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from twinnet.mininet.link import Link
from twinnet.mininet.log import debug
from twinnet.mininet.rtnetlink import delete_together
from twinnet.mininet.shell import Shell

__all__ = ["delete_interfaces", "hang_up"]


def delete_interfaces(links: Sequence[Link], own: Sequence[str]) -> None:
    """Have the kernel delete at once the links that end at nodes without a namespace, and the interfaces `own` of this
    namespace: the other ends go too."""
    ours = [link for link in links if _ends_as_usual(link)]
    ends = [(end, link) for link in ours for end in link.ends() if not end.node.inNamespace]
    for end in (end for link in ours for end in link.ends()):
        debug(f"*** deleting {end} of {end.node}\n")
    with contextlib.suppress(OSError):
        delete_together([*own, *(end.name for end, _ in ends)])
        for _, link in ends:
            link.intf1.gone = link.intf2.gone = True


def _ends_as_usual(link: Link) -> bool:
    kind = type(link)
    return kind.delete is Link.delete and kind.stop is Link.stop


def hang_up(nodes: Iterable[Shell]) -> None:
    """Have the shells of nodes end beside each other, before each is waited for."""
    for node in nodes:
        node.hang_up()
