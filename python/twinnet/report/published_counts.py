"""How many published values a study's results are compared with, in which unit and sense, and how that went."""

from __future__ import annotations

import re
from collections import Counter

from twinnet.report.published_section import NOT_MEASURED, count_words
from twinnet.study.analysis import Analysis
from twinnet.study.closeness import compare_with_reference
from twinnet.study.predicate import SHARE_UNIT, unit_of_side
from twinnet.study.published_figures import read_figures
from twinnet.study.published_results import WORDS
from twinnet.study.published_rows import each_published
from twinnet.study.resolution import Study

__all__ = ["SENSES", "compared_values", "numbers_held", "outcomes"]

SENSES = ("exact", "about", "below", "above", "range")
"""How a published value is meant."""


def compared_values(study: Study) -> list[tuple[str, str]]:
    """The unit and the sense (one of `SENSES`) of each published value that stands beside one of the study's own: the
    entries of `published`, and the figures of the reference's truth that were printed."""
    names, specification = study.names(), study.specification
    found = [
        (SHARE_UNIT if one.over else unit_of_side(one.measured, names), "range" if one.to else one.sense)
        for one in study.published()
    ]
    reference = specification.reference
    if reference is not None:
        for figure in read_figures(reference, study.beside[reference.file], specification):
            if figure.truth.ends is None:
                continue
            unit = specification.measurements[reference.metrics[figure.metric].measurement].unit
            sense = "exact" if figure.truth.value is not None else "below"
            found.append((f"({unit})²" if figure.statistic == "variance" else unit, sense))
    return found


def numbers_held(study: Study) -> int:
    """How many published numbers the study's file and the tables beside it hold, each once: values, ends of ranges,
    deviations, and the figures of the reference's truth and of its rival."""
    specification, reference = study.specification, study.specification.reference
    count = 0
    if reference is not None:
        for figure in read_figures(reference, study.beside[reference.file], specification):
            count += bool(figure.truth.text) + bool(figure.rival.text)
    cells: set[tuple[object, ...]] = set()
    for number, one in each_published(specification.published, study.beside):
        entry = specification.published[number]
        if reference is not None and entry.rows == reference.file:
            continue
        for key in ("value", "to", "deviation"):
            given: str = getattr(entry, key)
            columns = re.findall(r"\{([^{}]*)\}", given)
            cells |= {(entry.rows, *sorted(entry.where.items()), column, one.text) for column in columns}
            cells |= {(number, key)} if given and not columns else set()
    return count + len(cells)


def outcomes(analysis: Analysis) -> dict[str, int]:
    """Of how many of :func:`compared_values` each of `WORDS` is said, on the study's own clock, and how many were not
    measured; without those that are none."""
    found = Counter(count_words(analysis.published))
    reference = compare_with_reference(analysis)
    for row in reference.rows if reference is not None else ():
        if row.figure.truth.ends is not None:
            found[row.word(analysis.specification.clock) or NOT_MEASURED] += 1
    return {word: found[word] for word in (*WORDS, NOT_MEASURED) if found[word]}
