"""Any figure of a report by its name, with what the reader chooses of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from twinnet.errors import BadValue, did_you_mean
from twinnet.report.design import Choice
from twinnet.report.distribution_figures import distribution_figure
from twinnet.report.distribution_section import value_figures
from twinnet.report.level_figures import level_figure
from twinnet.report.level_words import LABEL
from twinnet.report.over_time import over_time_figure
from twinnet.report.panels import Figure
from twinnet.report.reference_section import reference_figures
from twinnet.study.analysis import Analysis
from twinnet.study.closeness import compare_with_reference

__all__ = ["chosen_figure", "figure_titles"]


def _over_levels(analysis: Analysis, name: str, choice: Choice) -> Figure | None:
    return level_figure(analysis, name, choice, compare_with_reference(analysis))


_KINDS: dict[str, tuple[Callable[[Analysis, str, Choice], Figure | None], tuple[str, ...]]] = {
    "levels-": (_over_levels, ("axis", "colour", "panels", "where", "log", "order", "kind")),
    "distribution-": (distribution_figure, ("colour", "where", "log")),
    "": (over_time_figure, ("colour", "where", "log")),
}
"""By the beginning of a figure's name: what makes it of a measurement, and what may be chosen of it."""


def _fixed(analysis: Analysis) -> Iterator[Figure]:
    """The figures of which only the size can be chosen."""
    yield from value_figures(analysis)
    yield from reference_figures(compare_with_reference(analysis), analysis.specification.factors)


def figure_titles(analysis: Analysis) -> dict[str, str]:
    """Return the title of each figure that can be drawn, by its name: those of the report, and those of measurements
    that are the same at all levels."""
    found = [
        figure
        for make, _ in (_KINDS[""], _KINDS["levels-"], _KINDS["distribution-"])
        for name in analysis.specification.measurements
        if (figure := make(analysis, name, Choice())) is not None
    ]
    return {one.name: one.title for one in (*found, *_fixed(analysis))}


def chosen_figure(analysis: Analysis, name: str, choice: Choice) -> Figure:
    """Return the figure called `name`: ``levels-delay``, ``distribution-delay``, ``throughput`` (over time), or another
    of :func:`figure_titles`.

    Raises
    ------
    BadValue
        There is no such figure, it has no such factor or level, or what is chosen has no meaning for it.
    """
    start = next((one for one in ("levels-", "distribution-") if name.startswith(one)), "")
    made: Figure | None = None
    allowed: tuple[str, ...] = ()
    if name.removeprefix(start) in analysis.specification.measurements:
        make, allowed = _KINDS[start]
        _check_labels(analysis, name.removeprefix(start), choice)
        made = make(analysis, name.removeprefix(start), choice)
    else:
        made = next((one for one in _fixed(analysis) if one.name == name), None)
    if made is None:
        raise BadValue(f"there is no figure {name!r}", did_you_mean(name, figure_titles(analysis)))
    plain = Choice()
    for key in ("axis", "colour", "panels", "where", "log", "order", "kind"):
        if key not in allowed and getattr(choice, key) != getattr(plain, key):
            raise BadValue(
                f"{key} has no meaning for the figure {name}",
                f"it takes {', '.join((*allowed, 'size', 'columns'))}" if allowed else "it takes size and columns",
            )
    return made


def _check_labels(analysis: Analysis, measurement: str, choice: Choice) -> None:
    known = [label for label, _ in analysis.labels(measurement)]
    for label in choice.where.get(LABEL, ()):
        if label not in known:
            raise BadValue(f"{measurement} has no label {label!r}", did_you_mean(label, known))
