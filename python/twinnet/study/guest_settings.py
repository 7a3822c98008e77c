"""What a study says of the guest in which its programs run on the virtual clock."""

from __future__ import annotations

import datetime
from typing import Annotated, ClassVar, TypedDict

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from twinnet.errors import BadValue
from twinnet.lab.guest_options import GUEST_MEMORY, GuestOptions, date_s
from twinnet.study.field_types import STRICT, MomentPs
from twinnet.study.quantity import reader
from twinnet.units import Bytes, Picoseconds

__all__ = ["Asked", "GuestSettings"]

_USUAL = GuestOptions()


def _date(given: object) -> int:
    try:
        return date_s(given if isinstance(given, datetime.date) else str(given))
    except BadValue as error:
        raise ValueError(str(error)) from None


_Memory = Annotated[
    int,
    BeforeValidator(reader(GUEST_MEMORY.read, "memory")),
    WithJsonSchema({"type": "string", "description": "a size with its unit, such as '1 GiB', or '${parameter}'"}),
]
_Date = Annotated[
    int,
    BeforeValidator(_date),
    WithJsonSchema({"type": "string", "description": "a date, such as '2026-11-28 16:30'"}),
]


class Asked(TypedDict, total=False):
    """Arguments of :meth:`twinnet.Network.simulate`."""

    memory: Bytes
    date: datetime.datetime
    patience: Picoseconds


class GuestSettings(BaseModel):
    """What programs have on the virtual clock.

    Attributes
    ----------
    memory
        Of all of them and of the files that they write; 512 MiB when left out.
    date
        The date, or date and time, at which each run begins, in UTC where it names no zone; 2026-01-01 when left out.
    patience
        The processor time that they may take at one moment; 4.5 s when left out.
    """

    model_config: ClassVar[ConfigDict] = STRICT

    memory_bytes: _Memory = Field(default=_USUAL.memory_bytes, alias="memory")
    begins_s: _Date = Field(default=_USUAL.begins_s, alias="date")
    patience_ps: MomentPs = Field(default=int(_USUAL.patience_s * 1e12), alias="patience")

    def asked(self) -> Asked:
        """Return the arguments of :meth:`twinnet.Network.simulate` that ask for the same."""
        date = datetime.datetime.fromtimestamp(self.begins_s, datetime.UTC)
        return {"memory": Bytes(self.memory_bytes), "date": date, "patience": Picoseconds(self.patience_ps)}
