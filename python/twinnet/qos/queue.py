"""Base of all queue disciplines: one class each, for Python, files and the protocol alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from twinnet.errors import BadQueue
from twinnet.ranges import is_whole
from twinnet.settings import Described

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

__all__ = ["ClassWithQueue", "Queue", "checked_count", "checked_inner", "checked_numbers", "optional_spec"]


@dataclass(frozen=True)
class Queue(Described):
    """A queue configuration; immutable, checked when it is made.

    A discipline is a frozen dataclass with a field ``kind`` of one literal, by which files name it. What it says of its
    fields is all that is said of them: see ``twinnet.settings``.
    """

    disciplines: ClassVar[list[type[Queue]]] = []
    """All disciplines, in the order of their definition."""

    def __init_subclass__(cls) -> None:
        Queue.disciplines.append(cls)

    @staticmethod
    def kinds() -> dict[str, type[Queue]]:
        """Return the disciplines by their names in files."""
        return {one.__dataclass_fields__["kind"].default: one for one in Queue.disciplines}

    @property
    def discipline(self) -> str:
        """The discipline's name in files and in the protocol: its ``kind``."""
        return vars(self)["kind"]

    def __post_init__(self) -> None:
        self.to_spec()

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        return {"kind": self.discipline} | self.checked_fields()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Accept any discipline, told apart by its ``kind``, where a file may have any queue."""
        if source is not Queue:
            return handler(source)
        from typing import Annotated, Union

        from pydantic import Field

        # Union[...] of a list that is known at run time.
        any_kind: Any = Union[tuple(Queue.disciplines)]  # noqa: UP007
        return handler.generate_schema(Annotated[any_kind, Field(discriminator="kind")])


class ClassWithQueue(Described):
    """A class of a discipline, whose frames wait in a `queue` of their own."""

    queue: Queue | None

    def __post_init__(self) -> None:
        self.to_spec()

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        checked_inner(self.queue, "the class's queue")
        return self.checked_fields() | {"queue": optional_spec(self.queue)}


def optional_spec(queue: Queue | None) -> dict[str, Any] | None:
    """Return the form of the lab protocol of `queue`, ``None`` for none."""
    return None if queue is None else queue.to_spec()


def checked_inner(queue: object, what: str) -> None:
    """Raise `BadQueue` unless `queue` is a queue configuration or ``None``."""
    if queue is not None and not isinstance(queue, Queue):
        raise BadQueue(f"{what} is {queue!r}", "give a queue such as tn.qos.Fifo(limit_frames=100)")


def checked_count(count: int, what: str, most: int) -> None:
    """Raise `BadQueue` unless there are 1 to `most`."""
    if not 1 <= count <= most:
        raise BadQueue(f"{what}; allowed are 1 to {most}")


def checked_numbers(numbered: Mapping[int, object], kind: type, what: str, example: str) -> None:
    """Raise `BadQueue` unless the keys are numbers of queues or classes and the values of `kind`."""
    for number, one in numbered.items():
        if not is_whole(number, 0, (1 << 32) - 1):
            raise BadQueue(f"the {what} number {number!r} is not a whole number from 0 to 2^32 - 1")
        if not isinstance(one, kind):
            raise BadQueue(f"{what} {number} is {one!r}", f"give {example}")
