"""What a server answers to the scripts of its page."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from twinnet.shown_text import shown_json

__all__ = ["ShownJSON"]


class ShownJSON(Response):
    """A value as JSON, whose texts are shown: control characters and marks of direction are written out."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return `content` as it is sent."""
        return shown_json(content).encode()
