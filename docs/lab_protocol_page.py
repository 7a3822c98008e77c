"""Writes the table of requests in docs/reference/lab-protocol.md: ``python docs/lab_protocol_page.py``.

A test compares the page with what this gives, so that it is always true.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twinnet import _core

__all__ = ["page"]

PAGE = Path(__file__).parent / "reference/lab-protocol.md"
BEGIN = "<!-- requests: written by docs/lab_protocol_page.py from crates/lab/src/protocol/request.rs -->\n"
END = "<!-- end of requests -->\n"


def page(written: str) -> str:
    """Return the page `written` with its table of requests as it is to be."""
    before, rest = written.split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + table() + END + after


def table() -> str:
    """Return the table of requests."""
    version, requests, _ = _core.lab_protocol()
    rows = [_row(one) for one in json.loads(requests)]
    head = f"Version {version} of the protocol:\n\n| do | what it does | fields | ok |\n|---|---|---|---|\n"
    return head + "".join(rows)


def _row(request: dict[str, Any]) -> str:
    fields = "<br>".join(f"`{one['name']}`: {one['type']}. {one['is']}" for one in request["fields"])
    cells = (f"`{request['do']}`", request["is"], fields, request["reply"])
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
