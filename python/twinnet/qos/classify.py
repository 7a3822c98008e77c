"""Classes chosen by the bytes of the network header, as by the kernel's ``u32`` filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from twinnet.errors import BadQueue
from twinnet.qos.queue import Queue, checked_inner
from twinnet.qos.queue_settings import Number
from twinnet.settings import Described, Whole

__all__ = ["Classify", "ClassifyRule", "HeaderMatch"]

_MOST_RULES, _MOST_MATCHES = 1024, 16


@dataclass(frozen=True)
class HeaderMatch(Described):
    """One word of the network header: what the bits of a mask must be.

    Parameters
    ----------
    at
        Where the word of 32 bits begins, in bytes from the begin of the network header. The addresses of IPv4 are at
        12 and 16; the ports, where there are no options, at 20: source above destination.
    mask
        The bits that count.
    value
        What they are.
    """

    at: Annotated[int, Whole(BadQueue, 0, 252)]
    mask: Number
    value: Number

    def __post_init__(self) -> None:
        self.to_spec()

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        return self.checked_fields()


@dataclass(frozen=True)
class ClassifyRule(Described):
    """What frames get a queue number.

    Parameters
    ----------
    number
        The queue number.
    ether_type
        The EtherType behind VLAN tags: 0x0800 is IPv4. Default: any.
    header
        Words of the header; all of them must match. Default: none, so that every frame matches. At most 16.
    """

    number: Number
    ether_type: Annotated[int, Whole(BadQueue, 1536, 65535)] | None = None
    header: Sequence[HeaderMatch] = ()

    def __post_init__(self) -> None:
        self.to_spec()

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        if len(self.header) > _MOST_MATCHES:
            raise BadQueue(f"a rule has {len(self.header)} words of the header; allowed are at most {_MOST_MATCHES}")
        for one in self.header:
            if not isinstance(one, HeaderMatch):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BadQueue(
                    f"{one!r} is no word of the header", "give tn.qos.HeaderMatch(at=20, mask=0xffff, value=80)"
                )
        return self.checked_fields() | {"header": [one.to_spec() for one in self.header]}


@dataclass(frozen=True)
class Classify(Queue):
    """Rules that choose the class in the discipline inside by the bytes of each frame's network header.

    Parameters
    ----------
    rules
        The first one that matches gives the frame its queue number. At most 1024.
    otherwise
        The number of a frame that no rule matches. Default: the one that a switch has given it.
    queue
        The discipline whose classes are chosen.
    """

    kind: Literal["classify"] = field(default="classify", kw_only=True, repr=False)
    rules: Sequence[ClassifyRule]
    otherwise: Number | None = None
    queue: Queue = field(kw_only=True)

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        if len(self.rules) > _MOST_RULES:
            raise BadQueue(f"there are {len(self.rules)} rules; allowed are at most {_MOST_RULES}")
        for one in self.rules:
            if not isinstance(one, ClassifyRule):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BadQueue(f"{one!r} is no rule", "give tn.qos.ClassifyRule(1, ether_type=0x0800)")
        checked_inner(self.queue, "the queue")
        rules = [one.to_spec() for one in self.rules]
        return super().to_spec() | {"rules": rules, "queue": self.queue.to_spec()}
