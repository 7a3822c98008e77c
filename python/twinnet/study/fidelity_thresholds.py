"""Beyond which figures a study takes a run for doubtful or invalid, as its file says it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from twinnet.study.field_types import STRICT, DurationPs

__all__ = ["DurationLimit", "FidelityThresholds", "ShareLimit"]


class _Strict(BaseModel):
    model_config: ClassVar[ConfigDict] = STRICT


class _InOrder(_Strict):
    @model_validator(mode="after")
    def _in_order(self) -> Self:
        doubtful, invalid = (getattr(self, name) for name in type(self).model_fields)
        if doubtful > invalid:
            raise ValueError("'doubtful' is above 'invalid'; doubtful comes first")
        return self


class DurationLimit(_InOrder):
    """A time beyond which a run is not valid.

    Attributes
    ----------
    doubtful
        Above it a run is doubtful.
    invalid
        Above it a run is invalid.
    """

    doubtful_ps: DurationPs = Field(alias="doubtful")
    invalid_ps: DurationPs = Field(alias="invalid")


class ShareLimit(_InOrder):
    """A share, 0 to 1, beyond which a run is not valid.

    Attributes
    ----------
    doubtful
        Above it a run is doubtful.
    invalid
        Above it a run is invalid.
    """

    doubtful: Annotated[float, Field(ge=0, le=1)]
    invalid: Annotated[float, Field(ge=0, le=1)]


class FidelityThresholds(_Strict):
    """Beyond which figures a run is doubtful or invalid; those left out keep their defaults.

    Attributes
    ----------
    lateness_p999
        Lateness that one frame in 1000 exceeds.
    longest_slip
        The longest time for which a line or a timer was not looked at.
    agent_lateness_p99
        Lateness that one timer in 100 of the built-in apps exceeds.
    program_stopped
        The longest time for which a signal, a debugger or a frozen control group stopped a program.
    controller_paused
        The longest time for which a controller in the lab's process did not go on.
    slipped_share
        Share of the time that the worst line lost and did not regain, over the run.
    worst_second_share
        The same in its worst second.
    paused_share
        Share of the worst second that the fabric stood still, or of the traffic's time that apps or programs did.
    queued_share
        Share of the worst second in which frames left late because a pause had filled a queue.
    overload_drop_share
        Share of the frames that the machine lost.
    waiting_share
        Share of the worst second for which the fabric, the agent or a program had no processor.
    late_turns_share
        Share of the run for which a program waited for turns at a processor that came late.
    unsent_share
        Share of its time that a built-in sender was behind when that was over.
    socket_drop_share
        Share of the datagrams that came to a host and that a UDP socket had no room for.
    throttled_share
        Share of the worst second for which a quota stopped the lab.
    memory_pressure_share
        Share of the worst second for which some program waited for memory.
    steal_share
        Share of the time of all processors that the hypervisor took.
    """

    lateness_p999: DurationLimit | None = None
    longest_slip: DurationLimit | None = None
    agent_lateness_p99: DurationLimit | None = None
    program_stopped: DurationLimit | None = None
    controller_paused: DurationLimit | None = None
    slipped_share: ShareLimit | None = None
    worst_second_share: ShareLimit | None = None
    paused_share: ShareLimit | None = None
    queued_share: ShareLimit | None = None
    overload_drop_share: ShareLimit | None = None
    waiting_share: ShareLimit | None = None
    late_turns_share: ShareLimit | None = None
    unsent_share: ShareLimit | None = None
    socket_drop_share: ShareLimit | None = None
    throttled_share: ShareLimit | None = None
    memory_pressure_share: ShareLimit | None = None
    steal_share: ShareLimit | None = None
