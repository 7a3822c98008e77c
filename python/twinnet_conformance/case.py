"""What a case is, and the list of all."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from twinnet_conformance.bench import Bench

__all__ = ["Case", "Failure", "all_cases", "case"]

from twinnet_conformance.bench import Failure

Body = Callable[[Bench], None]

_MODULES = (
    "matching",
    "pipeline",
    "flow_mods",
    "flow_errors",
    "flow_removal",
    "instructions",
    "rewriting",
    "set_fields",
    "tags",
    "ttl",
    "outputs",
    "groups",
    "group_errors",
    "meters",
    "counters",
    "ports",
    "packet_ins",
    "packet_outs",
    "fragments",
    "queues",
    "multipart",
    "table_features",
    "channel",
    "roles",
    "asynchronous",
    "malformed",
    "version10_flows",
    "version10_actions",
    "version10_messages",
)
"""Modules of the suite, in the order of the report."""


@dataclass(frozen=True)
class Case:
    """One thing that a switch does or does not."""

    version: str
    section: str
    """Section of the specification: of 1.3.5 or 1.0.2."""
    feature: str
    """The row of the table that it counts for."""
    name: str
    body: Body

    @property
    def identifier(self) -> str:
        """Return its name in reports: version, section and what is tried."""
        return f"{self.version} {self.section} {self.name}"


_CASES: list[Case] = []


def case(section: str, feature: str, name: str, version: str = "1.3") -> Callable[[Body], Body]:
    """Register a case. The body acts on a `Bench` and raises `Failure` when the switch is wrong."""

    def register(body: Body) -> Body:
        _CASES.append(Case(version, section, feature, name, body))
        return body

    return register


def all_cases() -> list[Case]:
    """Return every case, in the order of the report."""
    for module in _MODULES:
        importlib.import_module(f"twinnet_conformance.suite.{module}")
    return list(_CASES)
