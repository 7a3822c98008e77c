"""The page as text: its HTML with data in it, and its modules as one script.

A browser asks for each module of its own, and the server takes milliseconds for each answer. So the modules, which are
plain ES modules in the folder ``page``, are put into one script when a page is served or written.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

__all__ = ["page_with", "put", "read_page_file", "script_of"]

_PAGE = Path(__file__).parent / "page"
_SCRIPT = '<script type="module" src="page.js"></script>'
_IMPORT = re.compile(r'^import (\{.*\}) from "\./(.+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def script_of(name: str) -> str:
    """Return the module ``name.js`` with all that it imports, directly or not, as one script without imports. Each
    module that is imported is a function of its own, so that two may use the same names inside."""
    *imported, own = _in_order(name)
    return "\n".join([*map(_wrapped, imported), _plain(own)])


def page_with(name: str, content: str, script: str = _SCRIPT) -> str:
    """Return the page with the JSON `content` in the element called `name`, before its `script`."""
    # Names of a network are text of whoever described it: no markup begins in them.
    content = content.replace("<", "\\u003c")
    data = f'<script id="{name}" type="application/json">{content}</script>'
    return put(read_page_file("page.html"), (_SCRIPT, f"{data}\n{script}"))


def put(page: str, *places: tuple[str, str]) -> str:
    """Return `page` with the second text of each of `places` where it has the first."""
    for wanted, text in places:
        head, found, tail = page.partition(wanted)
        assert found, wanted
        page = head + text + tail
    return page


@cache
def read_page_file(name: str) -> str:
    """Return the text of a file of the folder ``page``."""
    return (_PAGE / name).read_text(encoding="utf-8")


def _in_order(name: str, before: tuple[str, ...] = ()) -> list[str]:
    """The module `name` and those that it imports, each behind those that it imports, without those of `before`."""
    found: list[str] = []
    for _, imported in _IMPORT.findall(read_page_file(f"{name}.js")):
        found += _in_order(imported, (*before, *found)) if imported not in (*before, *found) else []
    return [*found, name]


def _plain(name: str) -> str:
    return _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = module_\2;", read_page_file(f"{name}.js")))


def _wrapped(name: str) -> str:
    names = ", ".join(name for _, name in _EXPORT.findall(read_page_file(f"{name}.js")))
    return f"const module_{name} = (() => {{\n{_plain(name)}return {{ {names} }};\n}})();"
