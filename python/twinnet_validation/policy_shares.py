"""QoS policies: what the queues that a policy comes to give to its classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinnet.network import templates
from twinnet.policies import Demand as Asked
from twinnet.policies import Enforcement, Load, compile_policy, find_policy

from twinnet_validation.law import Law, Row, within
from twinnet_validation.scheduler_shares import Demand, measured_shares

__all__ = ["LAW"]

_SCHEDULER_MBIT = 100
_LINE_MBIT = 1000
_SHARE = 0.01
"""The allowed deviation of a policy's classes from their rates, as a share."""


@dataclass(frozen=True)
class _Setting:
    """A policy, what its classes want in Mbit/s, and what they should get."""

    text: str
    policy: str
    wants: Mapping[str, float]
    gets: Mapping[str, float]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])


_SETTINGS = (
    _Setting(
        "`basic-cbq`, all backlogged: a third each",
        "basic-cbq",
        {"http": 90, "video": 90, "rest": 90},
        {"http": 33, "video": 33, "rest": 33},
    ),
    _Setting(
        "`basic-cbq`, only HTTP: what others leave stays idle",
        "basic-cbq",
        {"http": 90},
        {"http": 33},
    ),
    _Setting(
        "`basic-cbq` that borrows, the rest silent: equal quanta of what is spare",
        "basic-cbq",
        {"http": 90, "video": 90},
        {"http": 50, "video": 50},
        {"borrow": True},
    ),
    _Setting(
        "`basic-cbq` that borrows, video wants 20 and the rest 10",
        "basic-cbq",
        {"http": 90, "video": 20, "rest": 10},
        {"http": 70, "video": 20, "rest": 10},
        {"borrow": True},
    ),
    _Setting(
        "`basic-cbq` as class-based queueing, top-level, all backlogged",
        "basic-cbq",
        {"http": 90, "video": 90, "rest": 90},
        {"http": 33, "video": 33, "rest": 33},
        {"discipline": "cbq", "link_sharing": "top_level"},
    ),
    _Setting(
        "`strict-priority`: video before HTTP before the rest",
        "strict-priority",
        {"video": 30, "http": 50, "rest": 90},
        {"video": 30, "http": 50, "rest": 20},
    ),
)


def _measure(quick: bool) -> Sequence[Row]:
    seconds = 2.5 if quick else 5.5
    rows: list[Row] = []
    for one in _SETTINGS:
        queue, numbers = _queue_of(one.policy, one.settings)
        demands = {numbers[name]: Demand(float(mbit)) for name, mbit in one.wants.items()}
        seen = measured_shares(queue, demands, _LINE_MBIT, seconds)
        for name, found in zip(one.wants, seen, strict=True):
            rows.append(within(one.text, name, "Mbit/s", one.gets[name], found, _SHARE, "what a policy promises"))
    return rows


def _queue_of(policy: str, settings: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, int]]:
    """The queue configuration of the core's first port under `policy`, and the queue numbers of its classes."""
    network = templates.client_tree(clients=2, layers=1, servers=1, rate=f"{_LINE_MBIT} Mbit")
    load = Load([Asked("h1", "v1", "http", "tcp", 8080), Asked("h2", "v1", "video", "tcp", 8081)])
    at = Enforcement("core", rate=f"{_SCHEDULER_MBIT} Mbit")
    compiled = compile_policy(network, find_policy(policy, settings), at, load)
    numbers = {one.name: number for number, one in compiled.classes.items()}
    first = next(iter(compiled.switches["core"].queues.values()))
    return first.to_spec(), numbers


LAW = Law(
    "policies",
    "QoS policies: configured shares",
    "A class that always has frames waiting gets the rate that the policy states, of a scheduler of 100 Mbit/s before "
    "a line of 1 Gbit/s; what is spare goes to nobody where the policy's maximum equals its minimum, and is shared by "
    "the discipline's rule where classes may borrow.",
    "Regencia and Yu, ICICT 2021, for the queues of a third; the laws of HTB, CBQ and strict priority above",
    _measure,
)
