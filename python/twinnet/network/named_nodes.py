"""Nodes of one kind, of a description or of a running lab, by place and by name."""

from __future__ import annotations

from typing import Protocol, SupportsIndex, TypeVar, overload

from twinnet.errors import UnknownNode, did_you_mean

__all__ = ["Named", "NamedNodes"]


class Named(Protocol):
    """What has a name."""

    name: str


SomeNode = TypeVar("SomeNode", bound=Named)
_MOST_NAMED = 8


class NamedNodes(list[SomeNode]):
    """A list of nodes that also takes a name: ``net.hosts["h1"]``.

    Raises
    ------
    UnknownNode
        No node in the list has that name; the message has the nearest name, or the names that there are.

    Examples
    --------
    >>> import twinnet as tn
    >>> tn.templates.single(2).hosts["h2"].ip
    '10.0.0.2'
    """

    @overload
    def __getitem__(self, place: SupportsIndex, /) -> SomeNode: ...

    @overload
    def __getitem__(self, place: slice, /) -> list[SomeNode]: ...

    @overload
    def __getitem__(self, place: str, /) -> SomeNode: ...

    def __getitem__(self, place: SupportsIndex | slice | str, /) -> SomeNode | list[SomeNode]:
        if not isinstance(place, str):
            return super().__getitem__(place)
        for node in self:
            if node.name == place:
                return node
        names = [node.name for node in self]
        known = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
        raise UnknownNode(f"there is no {place!r} among {known or 'no nodes'}", did_you_mean(place, names))
