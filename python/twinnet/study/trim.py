"""What measurements leave out at the beginning and at the end of each run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from twinnet.errors import did_you_mean
from twinnet.study.field_types import STRICT, MomentPs
from twinnet.study.measurement import Measurement
from twinnet.study.traffic import Traffic

__all__ = ["Trim", "trimmed"]

_PS_PER_SECOND = 10**12
_OF_TIME = ("series", "packets", "intervals", "samples")
"""What the values of a quantity lie in, where a window takes some of them; flows begin once, most of them at 0 s."""


class Trim(BaseModel):
    """What measurements leave out of each run, at its beginning and at its end.

    Attributes
    ----------
    beginning
        From the start of the traffic on.
    end
        Up to the end of the last traffic that has a duration.
    only
        Names of measurements; default: all that take a window of time, and have none of their own.
    """

    model_config: ClassVar[ConfigDict] = STRICT

    beginning_ps: MomentPs = Field(default=0, alias="beginning")
    end_ps: MomentPs = Field(default=0, alias="end")
    only: Annotated[list[str], Field(min_length=1)] | None = None


def trimmed(trim: Trim, measurements: Mapping[str, Measurement], traffic: Iterable[Traffic]) -> dict[str, Measurement]:
    """Return those of `measurements` that `trim` changes, with the window that it leaves them.

    Raises
    ------
    ValueError
        It leaves nothing, it names a measurement that there is not, or no traffic says when it ends.
    """
    for name in trim.only or ():
        if name not in measurements:
            raise ValueError(f"'trim' names the measurement {name!r}; {did_you_mean(name, measurements)}")
    if not trim.beginning_ps and not trim.end_ps:
        return {}
    ends = [one.last_start_ps + one.duration_ps for one in traffic if one.duration_ps is not None]
    if not ends:
        raise ValueError("'trim' takes traffic whose end is known: give an entry of 'traffic' a 'duration'")
    begin_ps, end_ps = trim.beginning_ps, max(ends) - trim.end_ps
    whole = f"of the {max(ends) / _PS_PER_SECOND:g} s of traffic"
    if end_ps <= begin_ps:
        raise ValueError(f"'trim' leaves nothing {whole}; leave out less, or let traffic last longer")
    found: dict[str, Measurement] = {}
    for name, one in measurements.items():
        meant = one.is_own or one.quantity.window in _OF_TIME if trim.only is None else name in trim.only
        if not meant or one.window is not None:
            continue
        if one.interval_ps is not None and one.interval_ps > end_ps - begin_ps:
            left = (end_ps - begin_ps) / _PS_PER_SECOND
            raise ValueError(f"'trim' leaves {left:g} s {whole}, and {name} is counted in longer intervals")
        found[name] = one.model_copy(update={"during": f"{begin_ps} ps to {end_ps} ps"})
    return found
