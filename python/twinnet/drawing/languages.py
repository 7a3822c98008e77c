"""A picture in the languages of other tools: Graphviz and Mermaid."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinnet.drawing.picture import Picture

__all__ = ["dot_of", "mermaid_of"]

_DOT_SHAPES = {"host": "box", "switch": "box3d", "router": "ellipse", "interface": "cds", "tunnel": "cds"}
_DOT_ENDS = ("taillabel", "headlabel")
_MERMAID_SHAPES = {
    "host": ("[", "]"),
    "switch": ("[[", "]]"),
    "router": ("([", "])"),
    "interface": (">", "]"),
    "tunnel": (">", "]"),
}


def dot_of(picture: Picture) -> str:
    """Return `picture` in the language of Graphviz, for `dot`, `neato` and others."""
    lines = ["graph network {", f"  label={_quoted(picture.caption)};", "  node [fontname=sans, fontsize=11];"]
    for node in picture.nodes:
        label = node.name + (f"\n{node.note}" if node.note else "")
        lines.append(f"  {_quoted(node.name)} [shape={_DOT_SHAPES[node.kind]}, label={_quoted(label)}];")
    for link in picture.links:
        settings = [f"label={_quoted(link.label)}"] if link.label else []
        settings += [f"{end}={_quoted(text)}" for end, text in zip(_DOT_ENDS, link.ends, strict=True) if text]
        settings += [] if link.up else ["style=dashed"]
        tail = f" [{', '.join(settings)}]" if settings else ""
        lines.append(f"  {_quoted(link.a)} -- {_quoted(link.b)}{tail};")
    for number, controller in enumerate(picture.controllers):
        label = _quoted(f"{controller.name}\n{controller.note}")
        # No node's name has a blank.
        name = _quoted(f"controller {number}")
        lines.append(f"  {name} [shape=note, label={label}];")
        lines += [f"  {name} -- {_quoted(switch)} [style=dotted];" for switch in controller.switches]
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    # JSON escapes quotes, backslashes and line ends as Graphviz does.
    return json.dumps(text, ensure_ascii=False)


def mermaid_of(picture: Picture) -> str:
    """Return `picture` in the language of Mermaid, which Markdown pages show."""
    lines = ["graph TD"]
    for node in picture.nodes:
        before, after = _MERMAID_SHAPES[node.kind]
        lines.append(f'  {_word(node.name)}{before}"{_text(node.name)}"{after}')
    for link in picture.links:
        line = "---" if link.up else "-.-"
        label = f'|"{_text(link.label)}"|' if link.label else ""
        lines.append(f"  {_word(link.a)} {line}{label} {_word(link.b)}")
    for number, controller in enumerate(picture.controllers):
        lines.append(f'  controller_{number}{{{{"{_text(f"{controller.name}, {controller.note}")}"}}}}')
        lines += [f"  controller_{number} -.- {_word(switch)}" for switch in controller.switches]
    return "\n".join([*lines, ""])


def _word(name: str) -> str:
    """`name` as an identifier, another one for each name: `end` and others have a meaning of their own."""
    return "n_" + re.sub(r"\W", lambda found: f"_{ord(found[0]):x}_", name)


def _text(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
