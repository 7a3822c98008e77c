from typing import Generic, TypeVar

_Element = TypeVar("_Element")

class Space(Generic[_Element]):
    def contains(self, x: object) -> bool: ...
