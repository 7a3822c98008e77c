"""One part of a plan, for a study that several machines make: ``--shard 3/16``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from twinnet.errors import BadProbability, BadValue
from twinnet.study.plan import MOST_RUNS, PlannedRun, plan_study
from twinnet.study.resolution import Study
from twinnet.units import probability

__all__ = ["Deal", "PartOfPlan", "Shard", "parse_shard", "part_of", "usual_deal"]

Deal = Literal["run", "repetition"]
"""The unit that is dealt out in turn: single runs, or whole repetitions with all their levels."""

_WRITTEN = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`, counted from 1.

    Every run of a plan is in exactly one of the `count` shards, whichever machine works it out.
    """

    number: int
    count: int

    def __str__(self) -> str:
        """As it is written on the command line."""
        return f"{self.number}/{self.count}"

    def of(self, plan: Sequence[PlannedRun], deal: Deal) -> list[PlannedRun]:
        """The runs of `plan` in this shard, in the order of the plan.

        Parameters
        ----------
        plan
            All runs of the study.
        deal
            ``run``: every `count`-th run of the plan. ``repetition``: all runs of every `count`-th repetition, so that
            the levels that are compared with each other meet the same machine.
        """
        if deal == "repetition":
            return [run for run in plan if (run.repetition - 1) % self.count == self.number - 1]
        return list(plan[self.number - 1 :: self.count])

    def twice(self, plan: Sequence[PlannedRun], deal: Deal, share: float) -> list[PlannedRun]:
        """Runs of the next shard that this one makes too, so that two machines can be held against each other.

        They are spread evenly over the next shard's runs; shard 1 follows the last.

        Parameters
        ----------
        plan, deal
            As in `of`.
        share
            How many of the next shard's runs, above 0 and up to 1; rounded up, so at least one where it has any.
        """
        theirs = Shard(self.number % self.count + 1, self.count).of(plan, deal)
        count = math.ceil(share * len(theirs))
        return [theirs[place * len(theirs) // count] for place in range(count)]


def parse_shard(text: str) -> Shard:
    """Read ``3/16``.

    Raises
    ------
    BadValue
        It is not ``NUMBER/COUNT``, the number is not between 1 and the count, or the count is above `MOST_RUNS`.
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise BadValue(f"{text[:40]!r} is no shard", "write NUMBER/COUNT, for example --shard 3/16")
    number, count = int(found[1]), int(found[2])
    if not 1 <= count <= MOST_RUNS:
        raise BadValue(f"a study has 1 to {MOST_RUNS} shards, not {count}", "write for example --shard 1/4")
    if not 1 <= number <= count:
        raise BadValue(
            f"there is no shard {number} of {count}: they count from 1 to {count}",
            f"write --shard 1/{count} to {count}/{count}; in a SLURM array say --array=1-{count}",
        )
    return Shard(number, count)


def usual_deal(clock: str) -> Deal:
    """Return the default way to deal out runs on `clock`.

    On the wall clock a machine has an effect on what is measured, so the levels of a repetition stay together. On the
    virtual clock it has none, and single runs spread more evenly.
    """
    return "repetition" if clock == "wall" else "run"


@dataclass(frozen=True)
class PartOfPlan:
    """The runs of one shard of a study.

    Parameters
    ----------
    shard, deal
        Which part, and what is dealt out.
    own
        The shard's runs.
    again
        Runs of the next shard that are made too, to compare machines.
    whole, repetitions
        The number of runs of the study, and of its repetitions.
    """

    shard: Shard
    deal: Deal
    own: list[PlannedRun]
    again: list[PlannedRun]
    whole: int
    repetitions: int

    @property
    def plan(self) -> list[PlannedRun]:
        """All runs that are made."""
        return [*self.own, *self.again]

    def sentence(self) -> str:
        """The shard in a sentence, with a warning where it has nothing to do."""
        dealt = "single runs" if self.deal == "run" else "whole repetitions, each with all its levels"
        said = f"Shard {self.shard}: {len(self.plan)} of {self.whole} runs; dealt out are {dealt}."
        if self.again:
            said += f" {len(self.again)} of them are the next shard's too, to compare machines."
        if self.plan:
            return said
        most = self.whole if self.deal == "run" else self.repetitions
        return f"{said} There is nothing to do: with {most} or fewer shards each has runs."


def part_of(study: Study, shard: str, deal: Deal | None = None, twice: str | None = None) -> PartOfPlan:
    """Return the part `shard` of the runs of `study`, such as ``3/16``.

    Parameters
    ----------
    study, shard
        The study, and which part of it.
    deal
        What is dealt out; default: :func:`usual_deal`.
    twice
        The share of the next shard's runs that are made too, such as ``2 %``; virtual clock only.

    Raises
    ------
    BadValue
        The shard or the share cannot be read, or there is nothing to make twice.
    """
    part = parse_shard(shard)
    clock = study.specification.clock
    share = 0.0 if twice is None else _share_made_twice(twice, part, clock)
    deal = deal or usual_deal(clock)
    whole = plan_study(study)
    again = part.twice(whole, deal, share)
    return PartOfPlan(part, deal, part.of(whole, deal), again, len(whole), study.specification.repetitions)


def _share_made_twice(twice: str, part: Shard, clock: str) -> float:
    share = probability(twice, "share of runs made twice")
    if share == 0:
        raise BadProbability("the share of runs made twice is 0; allowed is more than 0 up to 100 %", "leave it out")
    if clock == "wall":
        raise BadValue(
            "--twice is given on the wall clock, where a run is never the same again",
            "leave it out, or say --clock virtual",
        )
    if part.count == 1:
        raise BadValue("--twice is given with one shard", "one machine has no other to be compared with")
    return share
