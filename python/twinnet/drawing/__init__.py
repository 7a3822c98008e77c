"""Pictures of networks: where each node stands, and the picture as SVG, by matplotlib, as DOT and as Mermaid."""

from __future__ import annotations

from twinnet.drawing.picture import FORMATS, Picture, picture_of

__all__ = ["FORMATS", "Picture", "picture_of"]
