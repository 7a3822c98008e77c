"""Writes docs/reference/built-in-policies.md: ``python docs/built_in_policies_page.py``.

A test compares the page with what this gives, so that it is always true.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from twinnet import policies
from twinnet.network import templates
from twinnet.policies import Demand, Enforcement, Load, Policy, compile_policy
from twinnet.policies.traffic_class import TrafficClass

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).parent / "reference/built-in-policies.md"
HEAD = """# Built-in QoS policies

<!-- written by docs/built_in_policies_page.py -->

For each policy: its promise, the publication that proposed it, when it fails, its settings, and what it comes to in an
example. [QoS policies](policies.md) explains the words, and compares the policies in one table.

The example is `tree:2,3`: a core switch above three leaf switches with three hosts each. The servers h1 to h3 have the
first leaf, and the clients h4 to h9 the others. Each client asks for HTTP, video and echoes. The core's ports enforce
the policy at 10 Mbit/s. Every policy takes the settings `installation` and `ip_versions` beside its own
([rules on demand](policies.md#rules-on-demand), [IPv6](policies.md#what-a-class-gets)).
"""
WAYS = (("http", "tcp", 8080), ("video", "udp", 5004), ("ping", "icmp", None))


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(_section(name, kind) for name, kind in policies.built_in_policies().items())


def _section(name: str, kind: type[Policy]) -> str:
    told = (("Promise", kind.promise), ("Proposed by", kind.origin), ("Fails", kind.fails))
    lines = [f"\n## {name}\n", f"{kind.title}.\n"]
    lines += [f"**{word}.** {_sentence(text)}\n" for word, text in told]
    settings = list(_settings(kind))
    if settings:
        lines += ["| setting | default | means |\n|---|---|---|", *settings, ""]
    lines += [*_example(name), ""]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _settings(kind: type[Policy]) -> Iterator[str]:
    for one in inspect.signature(kind).parameters.values():
        means = next((found for base in kind.__mro__ if (found := _means(base, one.name))), "")
        default = "" if one.default is None else repr(one.default).replace("'", '"')
        yield f"| `{one.name}` | {f'`{default}`' if default else ''} | {means.replace('``', '`')} |"


def _means(kind: type, name: str) -> str:
    """The description of a parameter in the docstring of a class."""
    text = inspect.cleandoc(kind.__doc__ or "").partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    for names, body in re.findall(r"^(\w[\w, ]*)\n((?:    .+\n?)+)", text, re.MULTILINE):
        if name in names.split(", ") and "As for" not in body:
            return " ".join(body.split())
    return ""


def _example(name: str) -> Iterator[str]:
    net = templates.tree(2, 3, rate="100 Mbit")
    pairs = policies.spread_evenly([f"h{n}" for n in range(4, 10)], ["h1", "h2", "h3"])
    demands = [Demand(client, server, *way) for client, server in pairs for way in WAYS]
    compiled = compile_policy(net, policies.find_policy(name), Enforcement("core", "10 Mbit"), Load(tuple(demands)))
    yield "| queue | class | minimum | maximum | further |\n|---|---|---|---|---|"
    for number, one in compiled.classes.items():
        yield f"| {number} | {one.name} | {_amount(one.minimum)} | {_amount(one.maximum)} | {_further(one)} |"
    yield ""
    core = compiled.switches["s1"]
    discipline = _discipline(next(iter(core.queues.values())).to_spec())
    count = len(core.rules)
    yield f"Discipline of a port: {discipline}. Rules: {count} in the core switch, {compiled.rule_count} in all."


def _discipline(spec: Mapping[str, Any]) -> str:
    behind = spec.get("queue")
    return f"`{spec['kind']}`" + (f" before {_discipline(behind)}" if behind is not None else "")


def _amount(amount: str | float | None) -> str:
    return "" if amount is None else amount if isinstance(amount, str) else f"{amount * 100:.3g} %"


def _further(one: TrafficClass) -> str:
    words = [f"behind it `{one.queue.to_spec()['kind']}`"] if one.queue is not None else []
    words += [f"meter {_amount(one.meter)}"] if one.meter is not None else []
    words += [f"served {'first' if one.priority == 0 else f'at level {one.priority}'}"] if one.priority else []
    return ", ".join(words)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
