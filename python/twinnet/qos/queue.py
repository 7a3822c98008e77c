"""What all queue configurations have in common."""

from __future__ import annotations

from typing import Any

from twinnet.errors import BadQueue

__all__ = ["Queue", "checked_inner", "optional_spec"]


class Queue:
    """A queue configuration; immutable, checked when it is made."""

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        raise NotImplementedError


def optional_spec(queue: Queue | None) -> dict[str, Any] | None:
    """Return the form of the lab protocol of `queue`, ``None`` for none."""
    return None if queue is None else queue.to_spec()


def checked_inner(queue: object, what: str) -> None:
    """Raise `BadQueue` unless `queue` is a queue configuration or ``None``."""
    if queue is not None and not isinstance(queue, Queue):
        raise BadQueue(f"{what} is {queue!r}", "give a queue such as tn.qos.Fifo(limit_frames=100)")
