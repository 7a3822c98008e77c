"""What can be chosen of the guest in which programs run on the virtual clock: its memory, its date, and how long its
programs may compute."""

from __future__ import annotations

import datetime
import sys
from dataclasses import asdict, dataclass
from typing import Any

from twinnet.errors import BadValue
from twinnet.guest import Kernel
from twinnet.ranges import moment_ps
from twinnet.settings import size
from twinnet.units import Duration, Size

__all__ = ["BEGINS_S", "GUEST_MEMORY", "GuestOptions", "date_s"]

BEGINS_S = 1_767_225_600
"""The time of day at which a lab with programs begins: 2026-01-01, 00:00 UTC. It is the same for all, and so are the
runs."""

GUEST_MEMORY = size(64 << 20, 64 << 30, BadValue)
_MEMORY_BYTES = 512 << 20
_PATIENCE_S = 4.5
_SILENCE_S = 60.0
_CLOCK_READING_NS = 256
_SYSTEM_CALL_NS = 200
"""What they cost in virtual time, so that programs that ask again and again get to the moment that they wait for. The
kernel reads its clock several times a segment: with 5 us for a reading, its one processor is full at 1.3 Gbit/s."""
_LAST_YEAR = 2099


@dataclass(frozen=True)
class GuestOptions:
    """What a guest has, as :meth:`twinnet.Network.simulate` is told.

    Parameters
    ----------
    memory_bytes
        Its memory, of which its kernel and the buffers of its network cards take some 20 MB. Half of it at most is for
        the files that programs write.
    begins_s
        The time of day at which its lab begins, in seconds since 1970-01-01, 00:00 UTC.
    patience_s
        The processor time, in seconds, that programs may take at one moment of virtual time.
    """

    memory_bytes: int = _MEMORY_BYTES
    begins_s: int = BEGINS_S
    patience_s: float = _PATIENCE_S

    @classmethod
    def read(
        cls, memory: Size | None = None, date: str | datetime.date | None = None, patience: Duration | None = None
    ) -> GuestOptions:
        """Return the options that these settings ask for; ``None``: as usual.

        Raises
        ------
        BadValue
            One of them is out of range, or is no date.
        """
        usual = cls()
        return cls(
            usual.memory_bytes if memory is None else GUEST_MEMORY.read(memory, "memory"),
            usual.begins_s if date is None else date_s(date),
            usual.patience_s if patience is None else moment_ps(patience, "patience") / 1e12,
        )

    def to_settings(self, kernel: Kernel) -> dict[str, Any]:
        """Return the settings of a guest with this `kernel`, as the core takes them."""
        from twinnet import _core

        return {
            "kernel": str(kernel.path),
            "python": sys.executable,
            "module": str(_core.__file__),
            **asdict(self),
            "silence_s": _SILENCE_S,
            "clock_reading_ns": _CLOCK_READING_NS,
            "system_call_ns": _SYSTEM_CALL_NS,
        }

    def to_record(self) -> dict[str, Any]:
        """Return what is not as usual."""
        usual = asdict(GuestOptions())
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


def date_s(given: str | datetime.date) -> int:
    """Return the moment `given`, in UTC where it names no zone, in seconds since 1970-01-01, 00:00 UTC."""
    try:
        moment = datetime.datetime.fromisoformat(str(given))
    except ValueError:
        raise BadValue(f"the date {given!r} is none", 'write for example "2026-11-28" or "2026-11-28 16:30"') from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    seconds = moment.timestamp()
    # The guest's clock begins some seconds before, when it boots.
    if not (seconds >= 86_400 and moment.year <= _LAST_YEAR):
        raise BadValue(f"the date {given!r} is out of range; allowed are 1970-01-02 to {_LAST_YEAR}-12-31")
    return int(seconds)
