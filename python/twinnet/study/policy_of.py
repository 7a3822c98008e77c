"""The QoS policy of a run: what the study file says of it, and what it comes to in the run's network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field

from twinnet.given_files import read_given
from twinnet.network import Network
from twinnet.own_modules import found_module
from twinnet.policies import CompiledPolicy, Demand, Enforcement, Load, compile_policy, find_policy, known_policies
from twinnet.study.consent import CodeNotRun, check_may_run
from twinnet.study.field_types import STRICT, RateBps
from twinnet.study.own_source import OWN_NAME, OwnSource
from twinnet.units import BitsPerSecond, Rate

if TYPE_CHECKING:
    from twinnet.study.specification import StudySpecification, Traffic

__all__ = ["PolicySettings", "compiled_policy", "load_of", "own_policy", "policy_unless_own"]

_OF_TWINNET = "twinnet.policies."
_MOST_BYTES = 64_000_000


class PolicySettings(BaseModel):
    """The policy of a study, and where it is enforced.

    Attributes
    ----------
    use
        A policy's name, such as `basic-cbq` (`twinnet policy list`), or your own, as `module:function`.
    at
        `core`, `leaf`, `all`, or switches (`s1`) and ports (`s1-eth2`).
    rate
        What each scheduler may send; default: the line rate.
    direction
        `egress` (queues), or `ingress` (only meters).
    settings
        The policy's own settings, by keyword.
    """

    model_config = STRICT

    use: Annotated[str, Field(min_length=1, max_length=200)]
    at: str | Annotated[list[str], Field(min_length=1, max_length=10_000)] = "core"
    rate_bps: RateBps | None = Field(default=None, alias="rate")
    direction: Literal["egress", "ingress"] = "egress"
    settings: dict[str, Any] = {}


def load_of(specification: StudySpecification) -> Load:
    """Return the load that the traffic of the study makes, in the form for policies."""
    return Load(tuple(one for entry in specification.traffic for one in _demands(entry)))


def _demands(entry: Traffic) -> Iterator[Demand]:
    kind = entry.kind
    application = kind.application or entry.name
    port = None if kind.transport == "icmp" else entry.port or kind.__dataclass_fields__["port"].default
    rates: Sequence[Rate] = entry.sends.get("rates", ())
    rate: Rate | None = max(rates) if rates else entry.sends.get("rate")
    for source in entry.sources:
        # A client asks; what streams by itself is sent to its client.
        client, server = (source, entry.to) if kind.asked_for else (entry.to, source)
        yield Demand(client, server, application, kind.transport, port, rate)


def compiled_policy(specification: StudySpecification, network: Network) -> CompiledPolicy | None:
    """Return the compiled policy of the study for `network`, ``None`` without a policy; raises `BadPolicy`, and
    `CodeNotRun` for one that does not come with twinnet while nobody has asked for its code to be run."""
    settings = specification.policy
    if settings is None:
        return None
    if (own := own_policy(settings.use)) is not None:
        check_may_run(own)
    rate = BitsPerSecond(settings.rate_bps) if settings.rate_bps is not None else None
    at = settings.at if isinstance(settings.at, str) else tuple(settings.at)
    enforcement = Enforcement(at, rate, settings.direction)
    return compile_policy(network, find_policy(settings.use, settings.settings), enforcement, load_of(specification))


def policy_unless_own(specification: StudySpecification, network: Network) -> CompiledPolicy | None:
    """Return what :func:`compiled_policy` does, and ``None`` for code that nobody has asked to be run: for those who
    read, plan and draw."""
    try:
        return compiled_policy(specification, network)
    except CodeNotRun:
        return None


def own_policy(use: str) -> OwnSource | None:
    """Return the source of the policy `use`, without running it; ``None`` for what comes with twinnet, and for what is
    no policy's name."""
    place = known_policies().get(use, use)
    if place.startswith(_OF_TWINNET) or not OWN_NAME.fullmatch(place):
        return None
    module = place.partition(":")[0]
    found = found_module(module, also_here=True)
    file = found.origin if found is not None and found.origin is not None else module
    try:
        source = read_given(file, _MOST_BYTES).decode("latin-1")
    except OSError:
        # Only importing it would tell more.
        source = place
    return OwnSource(place, file, source)
