"""Sets the clocks of machines to one another, and tells how far they may be apart.

The first machine's clock counts. Every other machine compares its own with it through the network of the study, as
`twinnet send` does with `twinnet recv` (twinnet.sockets.clocks). Its agent then runs on a clock that shows the same.
Where no answer comes through that network, the comparison goes through the SSH connections, with a wider bound.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from twinnet.machines.session import AgentSession
from twinnet.results.flow_report import AppReport
from twinnet.sockets.clocks import CLOCK_PORT, ClockComparison

__all__ = ["MachineClock", "StudyClock"]

_EXCHANGES = 20
_SSH_EXCHANGES = 8
_TURN_PS = 200_000_000_000
_PATIENCE_PS = 3_000_000_000_000
_PS_PER_NS = 1000


@dataclass(frozen=True)
class MachineClock:
    """How the clock of one machine stands to that of the first.

    Parameters
    ----------
    offset_ps
        The first machine's monotonic clock minus this one's, before it was set.
    bound_ps
        The clock that was set is wrong by at most this, from the start until the last comparison.
    drift_ps
        How far it had gone from the first machine's at the last comparison.
    same_clock
        Whether both read one clock, so that nothing is estimated.
    way
        `network` or `ssh`: what the comparison went through; empty with one clock.
    """

    offset_ps: int = 0
    bound_ps: int = 0
    drift_ps: int = 0
    same_clock: bool = True
    way: str = ""

    def to_spec(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "offset_ps": self.offset_ps,
            "bound_ps": self.bound_ps,
            "drift_ps": self.drift_ps,
            "same_clock": self.same_clock,
            "way": self.way,
        }


class StudyClock:
    """One clock for all machines; it shows zero when it is made.

    Parameters
    ----------
    sessions
        The machines.
    addresses
        Their addresses in the network of the study.

    Attributes
    ----------
    clocks
        How each machine's clock stands, by name; bounds grow with :meth:`compare_again`.
    """

    def __init__(self, sessions: Sequence[AgentSession], addresses: Mapping[str, str]) -> None:
        self._first, *self._others = sessions
        self._addresses = addresses
        here, there, self._bound_ns = _monotonic_of(self._first)
        self._zero_ns = here
        self._first_zero_ns = there
        self._zeros: dict[str, int] = {self._first.machine.name: there}
        self._first.request("begin", zero_ns=there)
        self.clocks: dict[str, MachineClock] = {self._first.machine.name: MachineClock()}
        apart = [one for one in self._others if one.hello["clock"] != self._first.hello["clock"]]
        for one in self._others:
            if one not in apart:
                one.request("begin", zero_ns=there)
                self.clocks[one.machine.name] = MachineClock()
        self._apart = apart
        with self._serving():
            for one, found in zip(apart, _together(self._set_clock, apart), strict=True):
                self.clocks[one.machine.name] = found
        self.compared_s: float = time.monotonic()

    def now_ps(self) -> int:
        """What the clock shows, as well as this machine knows it: to within half a round trip of SSH."""
        return max(0, (time.monotonic_ns() - self._zero_ns) * _PS_PER_NS)

    def bound_ps(self, sender: str, receiver: str) -> int:
        """By how much a time between `sender` and `receiver` may be wrong."""
        return 0 if sender == receiver else self.clocks[sender].bound_ps + self.clocks[receiver].bound_ps

    def compare_again(self) -> None:
        """Widen the bounds by what the clocks drifted."""
        with self._serving():
            for one, found in zip(self._apart, _together(self._compare, self._apart), strict=True):
                known = self.clocks[one.machine.name]
                drift_ps = found.offset_ps
                bound_ps = max(known.bound_ps, abs(drift_ps) + found.bound_ps)
                self.clocks[one.machine.name] = replace(known, drift_ps=drift_ps, bound_ps=bound_ps)
        self.compared_s = time.monotonic()

    def _serving(self) -> _ClockServer:
        return _ClockServer(self._first if self._apart else None)

    def _set_clock(self, session: AgentSession) -> MachineClock:
        here, there, _ = _monotonic_of(session)
        # Roughly by SSH, so that both clocks begin near zero; what is left is then found through the network.
        rough_ns = there - (here - self._zero_ns)
        session.request("begin", zero_ns=max(0, rough_ns))
        self._zeros[session.machine.name] = max(0, rough_ns)
        found = self._compare(session)
        zero_ns = max(0, self._zeros[session.machine.name] - found.offset_ps // _PS_PER_NS)
        session.request("begin", zero_ns=zero_ns)
        self._zeros[session.machine.name] = zero_ns
        way = "network" if found.exchanges else "ssh"
        return MachineClock((self._first_zero_ns - zero_ns) * _PS_PER_NS, found.bound_ps + _PS_PER_NS, 0, False, way)

    def _compare(self, session: AgentSession) -> ClockComparison:
        """The first machine's clock minus this one's, as it is set now; with no exchanges where only SSH gave it."""
        fields = {"to": self._addresses[self._first.machine.name], "port": CLOCK_PORT, "exchanges": _EXCHANGES}
        machine = int(session.hello["clock"])
        wanted = {"kind": "clock_client", **fields, "machine": machine}
        number = int(session.request("app.start", app=wanted)["app"])
        deadline_ps = self.now_ps() + _PATIENCE_PS
        while self.now_ps() < deadline_ps:
            until_ps = self.now_ps() + _TURN_PS
            if session.request("app.wait", apps=[number], until_ps=until_ps)["finished"]:
                break
        report = AppReport.from_spec(session.request("app.report", apps=[number])[0])
        found = ClockComparison.from_report(report.flows[0])
        return found if found is not None else self._compare_by_ssh(session)

    def _compare_by_ssh(self, session: AgentSession) -> ClockComparison:
        here, there, bound_ns = _monotonic_of(session)
        first_here, first_there, first_bound_ns = _monotonic_of(self._first)
        shows_ns = there - self._zeros[session.machine.name] - (here - self._zero_ns)
        first_shows_ns = first_there - self._first_zero_ns - (first_here - self._zero_ns)
        bound_ps = (bound_ns + first_bound_ns) * _PS_PER_NS
        return ClockComparison((first_shows_ns - shows_ns) * _PS_PER_NS, bound_ps, False, 0)


class _ClockServer:
    """The first machine answers about its clock while this is entered; no machine: nothing to do."""

    def __init__(self, session: AgentSession | None) -> None:
        self._session = session
        self._number = 0

    def __enter__(self) -> None:
        if self._session is not None:
            wanted = {"kind": "clock_server", "port": CLOCK_PORT, "machine": int(self._session.hello["clock"])}
            self._number = int(self._session.request("app.start", app=wanted)["app"])

    def __exit__(self, *_: object) -> None:
        if self._session is not None and not self._session.ended:
            self._session.request("app.stop", app=self._number)


def _monotonic_of(session: AgentSession) -> tuple[int, int, int]:
    """Return a moment of this machine's monotonic clock, that of the other's, and by how much they may be apart, in
    nanoseconds: the shortest of several exchanges over SSH."""
    best: tuple[int, int, int] | None = None
    for _ in range(_SSH_EXCHANGES):
        before = time.monotonic_ns()
        there = int(session.request("monotonic")["monotonic_ns"])
        after = time.monotonic_ns()
        bound = (after - before) // 2 + 1
        if best is None or bound < best[2]:
            best = ((before + after) // 2, there, bound)
    assert best is not None
    return best


def _together(call: Any, sessions: Sequence[AgentSession]) -> list[Any]:
    """The results of `call` on each of `sessions`, made side by side."""
    if not sessions:
        return []
    with ThreadPoolExecutor(max_workers=min(64, len(sessions)), thread_name_prefix="clock") as pool:
        return list(pool.map(call, sessions))
