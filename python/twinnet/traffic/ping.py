"""ICMP echo: requests at an interval or by a distribution, and their round trips."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, cast

from twinnet.errors import BadValue
from twinnet.ranges import LONGEST_WAY_PS
from twinnet.settings import duration, size
from twinnet.traffic.parts import SourceSettings
from twinnet.traffic.traffic_settings import (
    CountingInterval,
    CountOf,
    Dscp,
    FlowNumber,
    Gaps,
    Sizes,
)
from twinnet.units import Bytes, Duration, Picoseconds, Size

__all__ = ["Ping"]

_MOST_OUTSTANDING = 30_000


EchoInterval = Annotated[Duration, duration(10**6, LONGEST_WAY_PS)]
"""From one request to the next: 1 us to 1 h."""
EchoPayload = Annotated[Size, size(0, 65_499)]
"""The payload of an echo request, in bytes."""
EchoTimeout = Annotated[Duration, duration(1, LONGEST_WAY_PS)]
"""The longest wait for an answer."""


@dataclass(frozen=True)
class Ping(SourceSettings):
    """Echo requests from `host` to `to`; an answer later than `timeout` counts as lost.

    Parameters
    ----------
    host, to
        The host that sends the requests; the name or address of the host that answers.
    count
        How many requests; the first leaves at once.
    interval, gap
        Time from one request to the next (default: 1 s), or a distribution of it.
    payload, size
        Payload of each request (default: 56 B), or a distribution of it.
    dscp
        Differentiated services code point of the requests, 0 to 63; hosts answer with the same.
    timeout
        How long to wait for a reply; at most 30,000 intervals.
    count_interval
        The interval in which round trips are counted.
    flow
        The flow's number in reports; default: chosen by the lab.
    """

    app_kind: ClassVar[str] = "ping"

    count: CountOf = field(default=1, kw_only=True)
    interval: EchoInterval | None = field(default=None, kw_only=True)
    gap: Gaps | None = field(default=None, kw_only=True)
    payload: EchoPayload | None = field(default=None, kw_only=True)
    size: Sizes | None = field(default=None, kw_only=True)
    dscp: Dscp | None = field(default=None, kw_only=True)
    timeout: EchoTimeout = field(default="1 s", kw_only=True)
    count_interval: CountingInterval = field(default="1 s", kw_only=True)
    flow: FlowNumber | None = field(default=None, kw_only=True)

    in_words: ClassVar[str] = "ICMP echo requests"
    protocol: ClassVar[str] = "icmp"
    transport: ClassVar[Literal["udp", "tcp", "icmp"]] = "icmp"
    application: ClassVar[str | None] = "ping"
    asked_for: ClassVar[bool] = True
    needed_in_studies: ClassVar[tuple[str, ...]] = ("count",)
    left_out_of_studies: ClassVar[frozenset[str]] = frozenset({"flow", "timeout", "count_interval"})
    counted_by: ClassVar[str | None] = "count_interval"
    only_apps: ClassVar[frozenset[str] | None] = frozenset({"gap", "size", "dscp"})

    def complete(self) -> None:
        """Fill in what goes without saying."""
        if self.gap is None and self.interval is None:
            self._keep("interval", Picoseconds(10**12))
        if self.size is None and self.payload is None:
            self._keep("payload", Bytes(56))
        if self.interval is not None and cast("int", self.timeout) > _MOST_OUTSTANDING * cast("int", self.interval):
            raise BadValue(
                f"the timeout is more than {_MOST_OUTSTANDING} intervals", "give a shorter timeout or a longer interval"
            )

    def check(self) -> None:
        """Refuse both of what excludes each other."""
        if self.gap is not None and self.interval is not None:
            raise BadValue("a ping has an 'interval' or a distribution of gaps, 'gap', not both", "leave one out")
        if self.size is not None and self.payload is not None:
            raise BadValue("a ping has a 'payload' or a distribution of sizes, 'size', not both", "leave one out")
