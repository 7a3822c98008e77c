"""How a figure follows from the design of a study: the factor that the question is about stands on the axis, the next
has colours, the others make panels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from twinnet.errors import BadValue, did_you_mean
from twinnet.report.level_words import LABEL
from twinnet.study.analysis import Analysis
from twinnet.study.answer_text import parse_answer
from twinnet.study.predicate import Aggregate, Side
from twinnet.study.resolution import Study

__all__ = [
    "LABEL",
    "Choice",
    "Design",
    "asked_factors",
    "asked_measurements",
    "designed",
    "is_wide",
    "kept_combinations",
]

MOST_CELLS = 12
"""Of more cells in a panel, figures show a grid of numbers."""
MOST_LINES = 8
"""More lines than colours cannot be told apart."""
MOST_PANELS = 12


@dataclass(frozen=True)
class Choice:
    """What a reader chooses of a figure; all else follows from the design.

    Attributes
    ----------
    axis, colour
        The factor that stands on the axis, and that which has colours: its name, or `label` for what the measurement
        distinguishes. `none` for no colours.
    panels
        The factors that make panels.
    where
        The levels that are shown, by factor.
    log
        Whether the axis of values is logarithmic.
    order
        `file` for the order of the study's file, `value` to sort by what was measured.
    kind
        `dots` or `grid`.
    """

    axis: str | None = None
    colour: str | None = None
    panels: tuple[str, ...] | None = None
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    log: bool | None = None
    order: Literal["file", "value"] = "file"
    kind: Literal["dots", "grid"] | None = None


@dataclass(frozen=True)
class Design:
    """Where each dimension of a figure stands; `colour` is empty if there is none."""

    axis: str
    colour: str
    panels: tuple[str, ...]


def _aggregates(sides: Iterable[Side]) -> list[Aggregate]:
    return [term.aggregate for side in sides for term in side if term.aggregate is not None]


def _asked_about(study: Study) -> tuple[list[Aggregate], list[Aggregate]]:
    """The quantities that the answer names, and those that statements name."""
    parts = parse_answer(study.specification.answer, study.names())
    checks = study.checks().values()
    return (
        _aggregates(part.side for part in parts if part.side is not None),
        _aggregates(side for check in checks for one in check for side in (one.left, one.right)),
    )


def asked_measurements(study: Study) -> list[str]:
    """All measurements, those first that the answer names, then those of statements."""
    answered, stated = _asked_about(study)
    named = [one.measurement for one in (*answered, *stated)]
    return list(dict.fromkeys([*named, *study.specification.measurements]))


def asked_factors(study: Study) -> list[str]:
    """The factors of which several levels are run: those first that the question is about.

    The answer says: it names several levels of that factor. Where it does not, statements do, and then the file.
    """
    answered, stated = _asked_about(study)
    factors = [name for name, levels in study.specification.levels_run().items() if len(levels) > 1]

    def named(of: Sequence[Aggregate], factor: str) -> int:
        return len({level for one in of for name, level in one.levels if name == factor})

    return sorted(factors, key=lambda name: (-named(answered, name), -named(stated, name), factors.index(name)))


def check_factors(names: Iterable[str], known: Sequence[str]) -> None:
    """Raise `BadValue` if one of `names` is neither among the `known` factors nor `label`."""
    for name in names:
        if name not in (*known, LABEL):
            raise BadValue(f"there is no factor {name!r} with several levels", did_you_mean(name, [*known, LABEL]))


def designed(asked: Sequence[str], sizes: Mapping[str, int], choice: Choice) -> Design:
    """Return where each dimension stands.

    Parameters
    ----------
    asked
        The factors, those first that the question is about (:func:`asked_factors`).
    sizes
        The number of levels that are shown of each factor, and of `label`.
    choice
        What the reader chooses.

    Raises
    ------
    BadValue
        There is no such factor, or one is to stand in two places.
    """
    known = [*asked, LABEL]
    chosen_colour = [choice.colour] if choice.colour not in (None, "none") else []
    chosen = [name for name in (choice.axis, *chosen_colour, *(choice.panels or ())) if name]
    check_factors(chosen, known)
    for name in chosen:
        if chosen.count(name) > 1:
            raise BadValue(f"{name} is to stand in two places of the figure", "name it once")
    left = [name for name in known if sizes.get(name, 1) > 1]
    taken = [*(choice.panels or ()), *chosen_colour]
    axis = choice.axis or next((name for name in left if name not in taken), LABEL)
    left = [name for name in left if name != axis]
    rest = [name for name in left if name not in (choice.panels or ())]
    if choice.colour is not None:
        colour = "" if choice.colour == "none" else choice.colour
    else:
        colour = next(iter(rest), "")
        if colour and (choice.kind == "grid" or sizes[axis] * sizes[colour] > MOST_CELLS):
            # Kinds of traffic are of other sizes than each other: each has a grid of its own.
            colour = max((name for name in rest if name != LABEL), key=lambda name: sizes[name], default="")
    return Design(axis, colour, tuple(name for name in left if name != colour))


def kept_combinations(analysis: Analysis, choice: Choice) -> list[dict[str, str]]:
    """The combinations of levels that are shown.

    Raises
    ------
    BadValue
        A factor or a level has no such name, or none is left.
    """
    factors = analysis.specification.levels_run()
    for name, levels in choice.where.items():
        if name == LABEL:
            continue
        if name not in factors:
            raise BadValue(f"there is no factor {name!r}", did_you_mean(name, [*factors, LABEL]))
        for level in levels:
            if level not in factors[name]:
                raise BadValue(f"{name} has no level {level!r}", did_you_mean(level, factors[name]))
    return [
        one
        for one in analysis.combinations
        if all(one[name] in levels for name, levels in choice.where.items() if name != LABEL)
    ]


def is_wide(values: Iterable[float]) -> bool:
    """True if none of `values` is below zero, most are above, and the greatest is more than ten times the least of
    these."""
    found = [value for value in values if math.isfinite(value)]
    above = [value for value in found if value > 0]
    return bool(above) and min(found) >= 0 and 2 * len(above) > len(found) and max(above) > 10 * min(above)
