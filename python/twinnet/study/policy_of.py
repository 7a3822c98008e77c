"""The QoS policy of a run: what the study file says of it, and what it comes to in the run's network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field

from twinnet.network import Network
from twinnet.policies import CompiledPolicy, Demand, Enforcement, Load, compile_policy, find_policy
from twinnet.study.field_types import STRICT, RateBps
from twinnet.units import BitsPerSecond, Rate

if TYPE_CHECKING:
    from twinnet.study.specification import StudySpecification, Traffic

__all__ = ["PolicySettings", "compiled_policy", "load_of"]


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
    """Return the compiled policy of the study for `network`, ``None`` without a policy; raises `BadPolicy`."""
    settings = specification.policy
    if settings is None:
        return None
    rate = BitsPerSecond(settings.rate_bps) if settings.rate_bps is not None else None
    at = settings.at if isinstance(settings.at, str) else tuple(settings.at)
    enforcement = Enforcement(at, rate, settings.direction)
    return compile_policy(network, find_policy(settings.use, settings.settings), enforcement, load_of(specification))
