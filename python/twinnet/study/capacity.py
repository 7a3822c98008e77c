"""The number of frames a second that this machine carries on the wall clock: measured in a small lab, and kept for
later runs.

A frame counts once where the fabric takes it from its sender and once where it hands it to its receiver. Every line of
the lab is full, and each frame has a moment of its own: that is what costs most. Frames that leave a line
together cost less; :mod:`twinnet.study.forecast` weighs them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from twinnet.cache_folder import cache_folder
from twinnet.errors import BadValue, TwinnetError
from twinnet.given_files import read_given_text
from twinnet.network.network import Network
from twinnet.results.fidelity import FidelityRecord
from twinnet.results.fidelity_verdict import Thresholds
from twinnet.study.machine import describe_machine
from twinnet.traffic import apps

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.lab.parts import AppHandle

__all__ = [
    "KEPT_FOR",
    "LASTING",
    "Capacity",
    "capacity_here",
    "greatest",
    "keep",
    "kept_capacity",
    "kept_in",
    "kept_up",
    "measure_capacity",
    "this_machine",
]

KEPT_FOR = timedelta(days=7)
_FORMAT = 1
_MOST_BYTES = 100_000
_SMALL_BYTES, _LARGE_BYTES = 64, 1470
_AROUND_PAYLOAD_BYTES = 66
"""UDP 8, IPv4 20, Ethernet 14, FCS 4, preamble and delimiter 8, gap 12."""
_PAIRS = 32
_LINE_FRAMES = 4800
_OFFERED_FRAMES = 4950
"""Of each pair a second: a little more than its line carries, and below the 5000 from which on the built-in source
sends several datagrams at once."""
_LENGTH_S = 0.15
_LEAD_S = 0.15
"""For as long the senders know beforehand when to begin, all at one moment."""
_DRAIN_S = 0.03
_LEAST_CARRIED = 0.995
"""Of what was offered: a sender that was late gives a few up at its end."""
_MOST_LOST_SHARE = 0.01
"""Of its time that a line may lose. A valid run loses 0.1 %, over seconds; here 1.5 ms at once are all that it is."""
LASTING = 0.45
"""Of what a machine carries for a moment, what it carries for seconds so that a run is valid: others have the
processors now and then. On two processors that carried 292,500 frames a second, all of three runs of 3 s were valid
with 50 lines of 10 Mbit/s at twice their rate, which need 0.43 of that, two with 60 and none with 80
(`bench.load.datagrams`, 2026-11-30, commit 2932a75e)."""
_FINENESS = 6
"""The search ends when what is known is within a part in so many: what a machine carries wavers by more."""
_TRIES = 2


@dataclass(frozen=True)
class Capacity:
    """The capacity of a machine, in frames a second.

    Parameters
    ----------
    small_frames_per_second, large_frames_per_second
        Frames in and out, together, of UDP datagrams of 64 and of 1470 bytes, for a moment.
    machine
        Processor model, cores and kernel that it was measured on.
    measured
        When.
    """

    small_frames_per_second: int
    large_frames_per_second: int
    machine: Mapping[str, Any]
    measured: datetime

    @property
    def frames_per_second(self) -> int:
        """What can be relied on for seconds and for frames of any size: `LASTING` of the lesser of both."""
        return round(LASTING * min(self.small_frames_per_second, self.large_frames_per_second))

    def holds(self, machine: Mapping[str, Any], now: datetime) -> bool:
        """Return True if it still applies to `machine`: the same one, measured within a week before `now`."""
        return self.machine == machine and timedelta(0) <= now - self.measured <= KEPT_FOR

    def to_record(self) -> dict[str, Any]:
        """Return the form in which it is kept."""
        return {
            "format": _FORMAT,
            "small_frames_per_second": self.small_frames_per_second,
            "large_frames_per_second": self.large_frames_per_second,
            "machine": dict(self.machine),
            "measured": self.measured.isoformat(timespec="seconds"),
        }

    @classmethod
    def from_record(cls, record: object) -> Capacity | None:
        """Return what :meth:`to_record` wrote; ``None`` for anything else that a file holds."""
        if not isinstance(record, dict):
            return None
        fields = cast(dict[str, Any], record)
        try:
            measured = datetime.fromisoformat(fields["measured"])
            small, large = int(fields["small_frames_per_second"]), int(fields["large_frames_per_second"])
            known = fields["format"] == _FORMAT and measured.tzinfo is not None and min(small, large) >= 0
            return cls(small, large, dict(fields["machine"]), measured) if known else None
        except (KeyError, TypeError, ValueError):
            return None


def this_machine() -> dict[str, Any]:
    """Return what tells one machine from another here: processor model, cores that may be used, and kernel."""
    described = describe_machine()
    return {name: described[name] for name in ("cpu_model", "cores", "kernel")}


def kept_in() -> Path:
    """Return the file that keeps the figure, in the user's cache folder."""
    return cache_folder() / "capacity.json"


def kept_capacity(path: Path | None = None, now: datetime | None = None) -> Capacity | None:
    """Return the kept figure, ``None`` when there is none that goes for this machine today."""
    try:
        text = read_given_text(path or kept_in(), _MOST_BYTES, "utf-8")
        capacity = Capacity.from_record(json.loads(text))
    except (OSError, ValueError, RuntimeError):
        # RuntimeError: there is no home.
        return None
    return capacity if capacity is not None and capacity.holds(this_machine(), now or datetime.now(UTC)) else None


def keep(capacity: Capacity, path: Path | None = None) -> str:
    """Keep `capacity` for later runs; return why that was not possible, nothing when it was."""
    try:
        target = path or kept_in()
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        partial.write_text(json.dumps(capacity.to_record()) + "\n", encoding="utf-8")
        partial.replace(target)
    except (OSError, RuntimeError) as error:
        return str(error)
    return ""


def capacity_here(tell: Callable[[str], None]) -> Capacity | None:
    """Return what this machine carries: as kept, or else measured now and kept.

    Parameters
    ----------
    tell
        Told that it is being measured, and why the figure could not be kept.

    Returns
    -------
    Capacity
        ``None`` when no lab can start here; a run that is made then says why.
    """
    known = kept_capacity()
    if known is not None:
        return known
    tell("Measuring what this machine carries; that is kept for a week.")
    try:
        measured = measure_capacity()
    except TwinnetError:
        return None
    if trouble := keep(measured):
        tell(f"What this machine carries could not be kept: {trouble}")
    return measured


def measure_capacity() -> Capacity:
    """Measure what this machine carries, in about four seconds, with the hosts' interfaces that a lab takes by itself;
    raises what a lab raises that cannot start."""
    with _network().emulate() as lab:
        _resolve_addresses(lab)
        carried = {
            size: greatest(_PAIRS, lambda pairs, size=size: _is_carried(lab, pairs, size))
            for size in (_SMALL_BYTES, _LARGE_BYTES)
        }
    per_pair = _LINE_FRAMES + _OFFERED_FRAMES
    return Capacity(
        carried[_SMALL_BYTES] * per_pair, carried[_LARGE_BYTES] * per_pair, this_machine(), datetime.now(UTC)
    )


def greatest(most: int, is_carried: Callable[[int], bool]) -> int:
    """Return about the greatest number from 0 to `most` for which `is_carried`, by bisection; too low by less than a
    sixth.

    What fails is tried once more before it counts: another program may have held the processor for a moment.
    """
    low, high = 0, most + 1
    while high - low > max(1, low // _FINENESS):
        middle = (low + high) // 2
        if any(is_carried(middle) for _ in range(_TRIES)):
            low = middle
        else:
            high = middle
    return low


def _network() -> Network:
    """Pairs of hosts at one switch, for each size with lines that are full at the same number of frames."""
    network = Network()
    switch = network.switch("s1")
    for size in (_SMALL_BYTES, _LARGE_BYTES):
        rate = f"{_LINE_FRAMES * (size + _AROUND_PAYLOAD_BYTES) * 8} bit"
        for number in range(_PAIRS):
            network.link(network.host(f"a{number}-{size}"), switch, rate="1 Gbit")
            network.link(switch, network.host(f"b{number}-{size}"), rate=rate)
    return network


def _resolve_addresses(lab: Lab) -> None:
    """Let hosts find each other and the switch learn where they are: flooding is no part of what is measured."""
    numbers = range(_PAIRS)
    lab.wait(
        [lab.start(apps.ping(f"a{n}-{size}", f"b{n}-{size}")) for size in (_SMALL_BYTES, _LARGE_BYTES) for n in numbers]
    )


def _is_carried(lab: Lab, pairs: int, size: int) -> bool:
    lab.fidelity(reset=True)
    begin = f"{lab.now() + _LEAD_S:.6f} s"
    handles: list[AppHandle] = []
    try:
        for number in range(pairs):
            flow = apps.udp(
                f"a{number}-{size}",
                f"b{number}-{size}",
                packets_per_second=_OFFERED_FRAMES,
                payload=f"{size} B",
                duration=f"{_LENGTH_S} s",
            )
            handles.append(lab.start(flow, at=begin))
        in_time = True
    except BadValue:
        # The moment had passed before all knew: a machine that is so slow does not carry it.
        in_time = False
    lab.wait(handles)
    lab.run_until(f"{lab.now() + _DRAIN_S:.6f} s")
    return in_time and kept_up(lab.fidelity(), pairs * _OFFERED_FRAMES * _LENGTH_S)


def kept_up(record: FidelityRecord, offered: float) -> bool:
    """Return whether nearly all of `offered` frames were sent and handed over, none was lost, none was later than a
    valid run allows, and no line lost its time.

    Of the built-in senders less is asked than of a valid run, which allows 1 ms: over a moment so short their lateness
    is that of the machine's other programs.
    """
    limits = Thresholds()
    agent = record.agent
    senders_kept_up = agent is None or (
        agent.overloaded_senders == 0 and agent.lateness_ns.p99 <= limits.agent_lateness_p99_ns.invalid
    )
    return (
        senders_kept_up
        and record.handed_over >= _LEAST_CARRIED * offered
        and record.machine_losses == 0
        and record.lateness_ns.p999 <= limits.lateness_p999_ns.doubtful
        # Not what is missing of it in the end: a line that stands idle again has regained all.
        and record.slipped_ps <= _MOST_LOST_SHARE * _LENGTH_S * 1e12
    )
