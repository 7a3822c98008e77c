"""The parts of a network that was divided among threads, and the work of each thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinnet.results.read_fields import Reported

__all__ = ["FabricParts"]


@dataclass(frozen=True)
class FabricParts(Reported):
    """The threads that moved a network on the wall clock.

    Attributes
    ----------
    threads
        How many there were.
    why
        Why there were so many.
    links_cut
        Links between switches of different threads.
    expected_largest_share, largest_share
        The share of the work in the busiest thread: expected when the network was divided, and of the events that were
        handled.
    messages
        Frames, or trains of them, that went from one thread to another.
    messages_late
        Those that came after they were due.
    frames_dropped
        Frames that were lost because a thread stood still for so long that its queue was full.
    each
        What the lab reported of each thread: ``nodes``, ``events``, ``cpu_s``, ``pauses`` and others.
    """

    threads: int = 1
    why: str = ""
    links_cut: int = 0
    expected_largest_share: float = 1.0
    largest_share: float = 1.0
    messages: int = 0
    messages_late: int = 0
    frames_dropped: int = 0
    each: Sequence[Mapping[str, Any]] = ()
