"""The clocks of two machines, and the offset between them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinnet.results.flow_report import FlowReport
from twinnet.sockets.machine import HERE, Machine
from twinnet.traffic.app import App

__all__ = ["CLOCK_PORT", "ClockComparison", "ToldFlow", "clock_server", "compare_clocks", "tell_flows", "this_clock"]

CLOCK_PORT = 5009
"""The port at which ``twinnet recv`` answers requests about its clock."""
_EXCHANGES = 20


@dataclass(frozen=True)
class ClockComparison:
    """The comparison of the clocks of two machines.

    Parameters
    ----------
    offset_ps
        The receiver's clock minus the sender's.
    bound_ps
        The offset is wrong by at most this: half of the shortest round trip, and what the clocks drifted meanwhile.
    same_clock
        Whether both programs read one clock, so that there is nothing to estimate.
    exchanges
        Number of message exchanges behind the result.
    """

    offset_ps: int
    bound_ps: int
    same_clock: bool
    exchanges: int

    @classmethod
    def from_report(cls, flow: FlowReport) -> ClockComparison | None:
        """Return what a report says, ``None`` when no clock answered."""
        found: dict[str, Any] | None = flow.raw.get("clock")
        if found is None:
            return None
        return cls(int(found["offset_ps"]), int(found["bound_ps"]), bool(found["same_clock"]), int(found["exchanges"]))

    def to_spec(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "offset_ps": self.offset_ps,
            "bound_ps": self.bound_ps,
            "same_clock": self.same_clock,
            "exchanges": self.exchanges,
        }


@dataclass(frozen=True)
class ToldFlow:
    """A sender's report to its receiver about a flow of datagrams.

    Parameters
    ----------
    flow
        Its number.
    from_port, port
        The ports that it comes from and goes to.
    packets
        Datagrams sent; ``None`` while it lasts.
    """

    flow: int
    from_port: int
    port: int
    packets: int | None

    @classmethod
    def from_report(cls, source: FlowReport, port: int, ended: bool) -> ToldFlow | None:
        """Return what a source's report says, ``None`` before it has begun."""
        if source.flow is None or source.source is None:
            return None
        return cls(source.flow, int(source.source.rpartition(":")[2]), port, source.packets if ended else None)

    def to_spec(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"flow": self.flow, "from_port": self.from_port, "port": self.port, "packets": self.packets}


def this_clock() -> int:
    """Return a number of 64 bits that programs have in common when they read one monotonic clock: of one boot, and of
    one time namespace."""
    parts = [Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")]
    offsets = Path("/proc/self/timens_offsets")
    if offsets.exists():
        parts.append(offsets.read_text(encoding="ascii"))
    return int.from_bytes(hashlib.sha256("".join(parts).encode()).digest()[:8], "big")


def clock_server(port: int = CLOCK_PORT) -> App:
    """Return the app that answers about this machine's clock."""
    return App(HERE, "clock_server", {"port": port, "machine": this_clock()})


def compare_clocks(machine: Machine, address: str, port: int = CLOCK_PORT) -> ClockComparison | None:
    """Compare this machine's clock with that of ``twinnet recv`` at `address`; ``None`` without an answer."""
    fields = {"to": address, "port": port, "machine": this_clock(), "exchanges": _EXCHANGES}
    number = machine.start(App(HERE, "clock_client", fields))
    machine.wait([number])
    return ClockComparison.from_report(machine.reports([number])[0].flows[0])


def tell_flows(machine: Machine, address: str, flows: Sequence[ToldFlow], port: int = CLOCK_PORT) -> None:
    """Tell ``twinnet recv`` at `address` of flows that are sent by the clock that was compared with its own."""
    fields = {"to": address, "port": port, "machine": this_clock(), "exchanges": 0}
    number = machine.start(App(HERE, "clock_client", {**fields, "flows": [one.to_spec() for one in flows]}))
    machine.wait([number])
