"""What every lab that answers requests has, whichever way it is reached."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from twinnet.lab_process.pending_reply import Json, JsonObject, PendingReply

__all__ = ["AnsweringLab"]


class AnsweringLab(ABC):
    """A lab that answers requests by their names."""

    @abstractmethod
    def answer(self, do: str, fields: JsonObject, descriptors: Sequence[int] = ()) -> Json:
        """Return the value of the answer to the request `do` with `fields`; `descriptors` go with it."""

    @abstractmethod
    def submit(self, do: str, fields: JsonObject, descriptors: Sequence[int] = ()) -> PendingReply[Json]:
        """Ask as :meth:`answer` does, and return at once."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """True if the lab has ended."""

    @abstractmethod
    def wait_closed(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds; return whether the lab has ended by then."""

    @abstractmethod
    def close(self) -> None:
        """End the connection."""
