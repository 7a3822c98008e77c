"""The one door from a description to its picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from twinnet.drawing import Picture
    from twinnet.network.network import Network

__all__ = ["Drawable"]


class Drawable:
    """Methods that show a network to people. The drawing modules are imported only when you call one."""

    def __repr__(self) -> str:
        from twinnet.drawing.summary import summary_of

        return f"<Network of {summary_of(cast('Network', self))}>"

    def draw(self, path: str | Path | None = None) -> Picture:
        """Return the picture of the network, and write it to `path` when one is given. At the ends of links stand the
        port numbers of switches and the addresses of routers, where they have room. Controllers stand above.

        Parameters
        ----------
        path
            A file that ends in .svg, .pdf, .png, .dot (Graphviz) or .mmd (Mermaid).

        Examples
        --------
        >>> import twinnet as tn
        >>> tn.templates.single(4, rate="1 Gbit").draw().caption
        '4 hosts, 1 switch and 4 links. Links: 1 Gbit/s.'
        """
        from twinnet.drawing import picture_of

        picture = picture_of(cast("Network", self))
        if path is not None:
            picture.save(path)
        return picture

    def _repr_html_(self) -> str:
        from twinnet.drawing.summary import page_part

        return page_part(cast("Network", self))
