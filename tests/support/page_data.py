"""The data in a page of twinnet's."""

from __future__ import annotations

import json
import re
from typing import Any


def page_data(text: str, name: str) -> dict[str, Any]:
    """What the page `text` has in its one element `name`."""
    (found,) = re.findall(rf'<script id="{name}" type="application/json">(.*?)</script>', text)
    return json.loads(found)
