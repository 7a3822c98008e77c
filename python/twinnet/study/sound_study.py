"""What must be right between the parts of a study: levels, statements, published figures, parameters that are used."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from twinnet.errors import BadValue, did_you_mean
from twinnet.study.answer_text import parse_answer
from twinnet.study.declared_parameters import REFERENCE, Declared, typed_value
from twinnet.study.own_metric import find_metric
from twinnet.study.predicate import Side, aggregate_of, parse_check, parse_side
from twinnet.study.published_figures import read_figures
from twinnet.study.published_rows import each_published, unit_wanted
from twinnet.study.sound_aggregates import check_aggregate, check_measured
from twinnet.study.specification import Published
from twinnet.study.tolerance import Tolerances
from twinnet.yaml_source import Problem

if TYPE_CHECKING:
    from twinnet.study.resolution import Study

__all__ = ["check_reference", "check_twin", "unused_parameters", "wrong_levels", "wrong_statements"]


def wrong_levels(study: Study, declared: Declared) -> list[Problem]:
    """Levels and presets that set parameters which do not exist, or to values of another kind."""
    document, specification = study.document, study.specification
    problems: list[Problem] = []
    set_by: dict[str, str] = {}
    for factor_name, factor in specification.factors.items():
        for level_name, level in factor.levels.items():
            for name, value in level.set.items():
                path = ("factors", factor_name, "levels", level_name, "set", name)
                if name not in declared:
                    problems.append(
                        document.problem(path, f"unknown parameter; {did_you_mean(name, declared)}", key=True)
                    )
                    continue
                if set_by.setdefault(name, factor_name) != factor_name:
                    said = f"the factor {set_by[name]} sets this parameter too"
                    problems.append(document.problem(path, said, key=True))
                try:
                    typed_value(declared, name, value)
                except ValueError as error:
                    problems.append(document.problem(path, str(error)))
    for name in study.changes:
        if name in set_by and all(name in one.set for one in specification.factors[set_by[name]].levels.values()):
            raise BadValue(
                f"{name} cannot be set: the levels of the factor {set_by[name]} set this parameter",
                "change the levels in the study file",
            )
    for preset_name, preset in specification.presets.items():
        for name, value in preset.set.items():
            if name in declared:
                try:
                    typed_value(declared, name, value)
                except ValueError as error:
                    problems.append(document.problem(("presets", preset_name, "set", name), str(error)))
    return problems


def unused_parameters(study: Study) -> list[Problem]:
    """Parameters that nothing names: to set one would change nothing."""
    document, specification = study.document, study.specification
    referred: set[str] = set()

    def look(value: Any) -> None:
        if isinstance(value, Mapping):
            for inner in cast(Mapping[str, Any], value).values():
                look(inner)
        elif isinstance(value, list):
            for inner in cast(list[Any], value):
                look(inner)
        elif isinstance(value, str):
            referred.update(found.group(1) for found in REFERENCE.finditer(value) if found.group(1))

    look({key: value for key, value in document.data.items() if key != "parameters"})
    # Checks, answers, published values and tolerances name parameters without a sign.
    named = " ".join(
        [
            specification.answer,
            *(one.check for one in specification.statements),
            *(text for one in specification.published for text in (one.value, one.to, one.deviation, one.measured)),
            *map(str, specification.twin.tolerance.values()),
        ]
    )
    referred.update(re.findall(r"[a-z][a-z0-9_]*", named))
    return [
        document.problem(
            ("parameters", name),
            f"nothing uses the parameter {name}; write ${{{name}}} where its value is meant, or remove it",
            key=True,
        )
        for name in study.parameters
        if name not in referred
    ]


def wrong_statements(study: Study) -> list[Problem]:
    """The answer, statements and published figures that cannot be read, or that compare what cannot be compared."""
    names = study.names()
    problems: list[Problem] = []

    def attempt(path: tuple[str | int, ...], check: Callable[[], None]) -> None:
        try:
            check()
        except ValueError as error:
            problems.append(study.document.problem(path, str(error)))

    def check_answer() -> None:
        for part in parse_answer(study.specification.answer, names):
            _check_side(study, part.side or ())

    def check_statement(text: str) -> None:
        for comparison in parse_check(text, names):
            _check_side(study, (*comparison.left, *comparison.right, *comparison.margin))

    def check_published(published: Published, key: str) -> None:
        if getattr(published, key):
            _check_side(study, parse_side(getattr(published, key), names, unit_wanted(published, key, names)))

    def check_measurement(name: str) -> None:
        if study.specification.measurements[name].is_own:
            find_metric(study.specification.measurements[name].of, study.beside)
        check_measured(study.specification, name)
        function = study.specification.measurements[name].function
        check_aggregate(study.specification, aggregate_of(name, function=function))

    for name in study.specification.measurements:
        attempt(("measurements", name), lambda name=name: check_measurement(name))
    attempt(("answer",), check_answer)
    for index, statement in enumerate(study.specification.statements):
        attempt(("statements", index, "check"), lambda text=statement.check: check_statement(text))
    for index, published in enumerate(study.specification.published):
        before = len(problems)
        rows: list[Published] = []
        path = ("published", index)
        attempt(
            path, lambda one=published, rows=rows: rows.extend(row for _, row in each_published([one], study.beside))
        )
        for key, row in itertools.product(("measured", "over", "value", "to", "deviation"), rows):
            if len(problems) == before:
                attempt((*path, key), lambda row=row, key=key: check_published(row, key))
    return problems


def check_twin(study: Study) -> None:
    try:
        Tolerances(study.specification, study.names())
    except ValueError as error:
        key, why = error.args
        path = ("twin", *str(key).split(".", 1))
        raise study.document.error(study.document.existing(path), str(why)) from None


def check_reference(study: Study) -> None:
    reference = study.specification.reference
    if reference is None:
        return
    try:
        text = study.beside[reference.file]
    except ValueError as error:
        raise study.document.error(("reference", "file"), str(error)) from None
    try:
        read_figures(reference, text, study.specification)
    except ValueError as error:
        raise study.document.error(("reference",), str(error), key=True) from None


def _check_side(study: Study, side: Side) -> None:
    for term in side:
        if term.aggregate is not None:
            check_aggregate(study.specification, term.aggregate)
