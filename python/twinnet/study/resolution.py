"""From a study file to specifications: references put in, everything checked before anything starts."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from twinnet.deliveries import named_traces
from twinnet.errors import BadValue, did_you_mean, reason
from twinnet.given_files import read_given_text
from twinnet.study.answer_text import parse_answer
from twinnet.study.beside import FILES_OF_TRAFFIC, Beside
from twinnet.study.further_mistakes import further_mistakes, torn_checks
from twinnet.study.network_of import check_networks
from twinnet.study.own_metric import OWN_NAME, OwnMetric, find_metric
from twinnet.study.own_source import bring_own
from twinnet.study.predicate import Check, Names, Side, aggregate_of, parse_check, parse_side, unit_of_side
from twinnet.study.published_figures import read_figures
from twinnet.study.published_rows import each_published
from twinnet.study.quantity import Quantity, parse_quantity
from twinnet.study.sound_aggregates import check_aggregate, check_measured
from twinnet.study.specification import Parameter, Published, StudySpecification
from twinnet.study.tolerance import Tolerances
from twinnet.yaml_source import SIZE_LIMIT_BYTES, Document, Problem, SourceError, load_yaml, parse_yaml, validate

__all__ = ["Study", "built_in_studies", "load_study", "read_study", "reader_in", "with_changes"]

STUDIES_FOLDER = Path(__file__).resolve().parent.parent / "studies"
_REFERENCE = re.compile(r"\$\{([^}]*)\}|\$")
_UNRESOLVED = ("parameters", "presets")
_PROSE = ("title", "question", "answer", "text")
"""Keys whose text people read."""
LONGEST_TEXT = 20_000
LARGEST_BESIDE_BYTES = 4_000_000

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class Study:
    """A study whose file was read and checked.

    Attributes
    ----------
    document
        The file, with the requested changes.
    parameters
        The value of every parameter; a level may override some (see :meth:`at`).
    specification
        The study with these values.
    changes
        The requested changes: preset and settings, as written.
    text
        The file as it was.
    beside
        The files beside it that it names, by their names.
    """

    document: Document
    parameters: Mapping[str, Quantity]
    specification: StudySpecification
    changes: Mapping[str, str]
    text: str
    beside: Beside

    @property
    def name(self) -> str:
        """The study's name."""
        return self.specification.study

    def at(self, levels: Mapping[str, str]) -> StudySpecification:
        """The specification with the parameters that the `levels` of the factors set."""
        return _resolve(self.document, self.parameters_at(levels), self.beside)

    def parameters_at(self, levels: Mapping[str, str]) -> dict[str, Quantity]:
        """The parameters with what the `levels` of the factors set."""
        parameters = dict(self.parameters)
        for factor, level in levels.items():
            chosen = self.specification.factors[factor].levels[level]
            parameters.update({name: parse_quantity(value) for name, value in chosen.set.items()})
        return parameters

    @property
    def named_controls(self) -> tuple[str, ...]:
        """The congestion controls that the study's traffic names itself."""
        written = _substitute(self.document, ("traffic",), self.document.data.get("traffic"), self.parameters, {}, [])
        entries = cast(list[dict[str, Any]], written)
        return tuple(str(one["congestion_control"]) for one in entries if one.get("congestion_control") is not None)

    def names(self) -> Names:
        """The names that a check of this study may use."""
        factors = {name: tuple(factor.levels) for name, factor in self.specification.factors.items()}
        units = {name: one.unit for name, one in self.specification.measurements.items()}
        return Names(self.parameters, units, factors)

    def checks(self) -> dict[str, Check]:
        """The check of each statement, by the statement's id."""
        return {one.id: parse_check(one.check, self.names()) for one in self.specification.statements}

    def own_metrics(self) -> dict[str, OwnMetric]:
        """The study's own metrics, by the names of the measurements that are of them."""
        measured = self.specification.measurements.items()
        return {name: find_metric(one.of, self.beside) for name, one in measured if one.is_own}

    def published(self) -> list[Published]:
        """Every published figure: of an entry for the rows of a table, one for each row."""
        return [one for _, one in each_published(self.specification.published, self.beside)]

    def published_sides(self) -> list[tuple[Side, Side, Side]]:
        """Of each published figure, what is measured here, the published value and its deviation; that is empty where
        none was published."""
        names = self.names()
        return [
            (
                parse_side(one.measured, names),
                parse_side(one.value, names),
                parse_side(one.deviation, names) if one.deviation else (),
            )
            for one in self.published()
        ]


def built_in_studies() -> dict[str, Path]:
    """The studies that come with the package: name to `study.yaml`."""
    return {path.parent.name: path for path in sorted(STUDIES_FOLDER.glob("*/study.yaml"))}


def load_study(name_or_path: str | Path, settings: Mapping[str, str] | None = None, preset: str | None = None) -> Study:
    """Read a study by its built-in name or by the path of its file (or of the folder that holds `study.yaml`).

    Parameters
    ----------
    name_or_path
        A name that :func:`built_in_studies` knows, or a path.
    settings
        New values of parameters, or of paths such as `repetitions` or `traffic.udp.payload`.
    preset
        A preset of the file; `settings` override it.

    Raises
    ------
    BadValue
        There is no such study, preset or setting.
    SourceError
        The file has mistakes; each is listed with file, line and key.
    """
    known = built_in_studies()
    path = known.get(str(name_or_path), Path(name_or_path))
    if path.is_dir():
        path = path / "study.yaml"
    if not path.exists():
        otherwise = "list them with `twinnet studies`, or give the path of a study.yaml"
        raise BadValue(
            f"{str(name_or_path)!r} is neither a built-in study nor a study file",
            did_you_mean(str(name_or_path), known, otherwise),
        )
    document = load_yaml(path)
    text = read_given_text(path, SIZE_LIMIT_BYTES)
    return read_study(document, settings, preset, text, reader_in(path.parent))


def reader_in(folder: Path) -> Callable[[str], str]:
    """Return a function that reads a file of `folder` by its name; it raises `ValueError` if it cannot."""

    def read(name: str) -> str:
        path = folder / name
        try:
            return read_given_text(path, LARGEST_BESIDE_BYTES)
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} cannot be read: {reason(error)}; put it beside the study file") from None

    return read


def read_study(
    document: Document,
    settings: Mapping[str, str] | None = None,
    preset: str | None = None,
    text: str = "",
    read_beside: Callable[[str], str] | None = None,
) -> Study:
    """Check `document`, which was read from `text`, as a study with changes; raises as :func:`load_study`.

    `read_beside` reads a file beside the study's by its name.
    """
    given: Any = document.data
    if not isinstance(given, dict):
        raise document.error((), "a study file is a mapping of keys such as 'study', 'network' and 'traffic'")
    if "study" not in given and {"hosts", "switches", "template", "links"} & given.keys():
        raise document.error((), f"this is a network, not a study; start it with: twinnet lab {document.file}")
    data: dict[str, Any] = copy.deepcopy(cast(dict[str, Any], given))
    document = dataclasses.replace(document, data=data)
    declared, unreadable = _declared(document)
    values = {name: quantity for name, (quantity, _) in declared.items()}
    changes: dict[str, str] = {}
    beside = Beside(read_beside)
    if unreadable:
        # It ends with these and all other mistakes of the file; what was asked for over them does not matter.
        _resolve(document, values, beside, unreadable)
    if preset is not None:
        presets = data.get("presets")
        known = cast(dict[str, Any], presets) if isinstance(presets, dict) else {}
        if preset not in known:
            raise BadValue(f"the study {document.file} has no preset {preset!r}", did_you_mean(preset, known))
        chosen = known[preset].get("set") if isinstance(known[preset], dict) else None
        for key, value in cast(dict[str, Any], chosen if isinstance(chosen, dict) else {}).items():
            _change(document, declared, values, key, value, f"preset {preset}")
            changes[key] = str(value)
    for key, value in (settings or {}).items():
        _change(document, declared, values, key, value, "--set")
        changes[key] = value
    specification = _resolve(document, values, beside)
    study = Study(document, values, specification, changes, text, beside)
    problems = [*_wrong_levels(study, declared), *_wrong_statements(study), *_unused_parameters(study)]
    checks: list[Callable[[], None]] = [lambda: _check_twin(study), lambda: _check_reference(study)]
    # Under levels that are wrong themselves there is no network to speak of.
    if not any(problem.path[:1] == ("factors",) for problem in problems):
        checks.append(lambda: check_networks(study.document, specification, study.at))
    for check in checks:
        try:
            check()
        except SourceError as error:
            problems += error.problems
    if problems:
        raise SourceError(document.file, sorted(problems, key=lambda one: (one.line, one.column)))
    return study


def with_changes(study: Study, changes: Mapping[str, str]) -> Study:
    """`study` with `changes` over those that were asked for before."""
    return read_study(
        parse_yaml(study.text, study.document.file),
        {**study.changes, **changes},
        text=study.text,
        read_beside=study.beside.__getitem__,
    )


def _declared(document: Document) -> tuple[dict[str, tuple[Quantity, list[str] | None]], dict[str, Problem]]:
    """The parameters of the file, with the words that each allows; and what is wrong with the others."""
    section = document.data.get("parameters", {})
    if not isinstance(section, dict):
        raise document.error(("parameters",), "is a mapping of names to defaults, such as 'link_rate: 1 Gbit'")
    declared: dict[str, tuple[Quantity, list[str] | None]] = {}
    unreadable: dict[str, Problem] = {}
    for name, given in cast(dict[str, Any], section).items():
        try:
            declared[name] = _declaration(document, name, given)
        except SourceError as error:
            (unreadable[name],) = error.problems
    return declared, unreadable


def _declaration(document: Document, name: str, given: object) -> tuple[Quantity, list[str] | None]:
    value, one_of = given, None
    path: Location = ("parameters", name)
    if isinstance(given, dict):
        entry = cast(dict[str, Any], given)
        value, one_of = entry.get("default"), entry.get("one_of")
        if value is None:
            raise document.error(path, "needs 'default', such as 'default: 1 Gbit'", key=True)
        path = (*path, "default")
    try:
        quantity = parse_quantity(value)
    except ValueError as error:
        raise document.error(path, str(error)) from None
    allowed = cast(list[str], one_of) if isinstance(one_of, list) else None
    if allowed is not None and quantity.text not in allowed:
        raise document.error(path, f"{quantity.text!r} is not one of {', '.join(map(str, allowed))}")
    return quantity, allowed


def _typed(declared: Mapping[str, tuple[Quantity, list[str] | None]], name: str, value: object) -> Quantity:
    """`value` as the parameter `name`, of the same kind as its default."""
    quantity = parse_quantity(value)
    default, one_of = declared[name]
    if quantity.kind != default.kind:
        raise ValueError(f"{name} is a {default.kind} such as {default.text!r}; {quantity.text!r} is a {quantity.kind}")
    if one_of is not None and quantity.text not in one_of:
        raise ValueError(f"{name} is one of {', '.join(one_of)}; {quantity.text!r} is not")
    return quantity


def _change(
    document: Document,
    declared: Mapping[str, tuple[Quantity, list[str] | None]],
    values: dict[str, Quantity],
    key: str,
    value: object,
    by: str,
) -> None:
    if key in declared:
        try:
            values[key] = _typed(declared, key, value)
        except ValueError as error:
            raise BadValue(f"{by} {key}={value}: {error}") from None
        return
    parts = key.split(".")
    known = {field.alias or name for name, field in StudySpecification.model_fields.items()}
    if parts[0] not in known or parts[0] in ("parameters", "presets"):
        raise BadValue(
            f"{by} {key}={value}: there is no parameter and no setting {key!r}",
            did_you_mean(key, [*declared, "repetitions", "seed", "order", "time_limit", "settle", "drain"]),
        )
    if parts[0] == "levels":
        document.data.setdefault("levels", {})
    target: Any = document.data
    for part in parts[:-1]:
        target = _child(target, part)
        if target is None:
            raise BadValue(f"{by} {key}={value}: the study has nothing at {part!r}")
    scalar = _scalar(value)
    last = parts[-1]
    if isinstance(target, dict):
        cast(dict[str, Any], target)[last] = scalar
    elif isinstance(target, list) and last.isdigit() and int(last) < len(cast(list[Any], target)):
        cast(list[Any], target)[int(last)] = scalar
    else:
        raise BadValue(f"{by} {key}={value}: the study has nothing at {last!r}")


def _child(target: Any, part: str) -> Any:
    """Return the child that `part` names: a key, an index, or the `name` of a list's entry."""
    if isinstance(target, dict):
        return cast(dict[str, Any], target).get(part)
    if isinstance(target, list):
        entries = cast(list[Any], target)
        if part.isdigit() and int(part) < len(entries):
            return entries[int(part)]
        for entry in entries:
            if isinstance(entry, dict):
                fields = cast(dict[str, Any], entry)
                if part in (fields.get("name"), fields.get("id")):
                    return fields
    return None


def _scalar(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,18}", value):
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,18}\.\d{1,18}", value):
        return float(value)
    return value


def _resolve(
    document: Document,
    values: Mapping[str, Quantity],
    beside: Beside,
    unreadable: Mapping[str, Problem] = MappingProxyType({}),
) -> StudySpecification:
    """Return the specification with `values` put in; `unreadable` are parameters whose default is a mistake."""
    torn = torn_checks(document, document.data)
    unknown: list[Problem] = [*unreadable.values(), *torn]
    data = {
        key: value if key in _UNRESOLVED else _substitute(document, (key,), value, values, unreadable, unknown)
        for key, value in document.data.items()
    }
    _put_files_in(document, data, beside)
    try:
        specification = validate(dataclasses.replace(document, data=data), StudySpecification)
        if unknown:
            raise SourceError(document.file, [])
        return specification
    except SourceError as error:
        further = further_mistakes(document, data, values, unreadable)
        # A check of the whole study knows no place; the same mistake found further on has one.
        placed = {one.message for one in further}
        found = [*(one for one in error.problems if one.path or one.message not in placed), *further]
        # Where a reference leads to nothing, what is said of the value that it leaves is no mistake of its own.
        found = [one for one in found if not any(_touch(one, other) for other in unknown)]
        # The same of what follows the comma: YAML takes it for keys.
        statements = tuple(one.key.removesuffix("check") for one in torn)
        found = [one for one in found if not one.key.startswith(statements)]
        told = dict.fromkeys([*unknown, *(_at_the_parameter(document, one) for one in found)])
        raise SourceError(error.file, sorted(told, key=lambda one: (one.line, one.column))) from None


def _touch(one: Problem, other: Problem) -> bool:
    """Return True if one problem is about the other's place or a part of it, in the file's lines or in its data."""
    shorter = min(len(one.path), len(other.path))
    return (one.line, one.column) == (other.line, other.column) or (
        bool(one.path) and one.path[:shorter] == other.path[:shorter]
    )


def _put_files_in(document: Document, data: Mapping[str, Any], beside: Beside) -> None:
    """Put what a file holds in the place of its name."""
    traffic: Any = data.get("traffic")
    for index, entry in enumerate(cast(list[Any], traffic) if isinstance(traffic, list) else []):
        for key in FILES_OF_TRAFFIC if isinstance(entry, dict) else ():
            fields = cast(dict[str, Any], entry)
            if isinstance(fields.get(key), str):
                try:
                    fields[key] = beside.entries(key, fields[key])
                except ValueError as error:
                    raise document.error(("traffic", index, key), str(error)) from None
        for key, what in (("congestion_control", "congestion control"), ("of", "application")):
            own: Any = cast(dict[str, Any], entry).get(key) if isinstance(entry, dict) else None
            if isinstance(own, str) and OWN_NAME.fullmatch(own):
                try:
                    entry[key] = bring_own(own, beside, what)
                except ValueError as error:
                    raise document.error(("traffic", index, key), str(error)) from None
    for section in ("network", "factors"):
        for fields, place in named_traces(data.get(section), (section,)):
            key = str(place[-1])
            # A reference to nothing is told of later.
            if not _REFERENCE.search(fields[key]):
                try:
                    fields[key] = beside.entries(key, fields[key])
                except ValueError as error:
                    raise document.error(place, str(error)) from None


def _at_the_parameter(document: Document, problem: Problem) -> Problem:
    """`problem`, or, where the file says `${parameter}`, the same about the default, which is the mistake."""
    value: Any = document.data
    for element in problem.path:
        if isinstance(value, str):
            # An entry of a file: the file's name is what stands here.
            break
        value = value[element]
    reference = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if reference is None or reference.group(1) is None:
        return problem
    return document.problem(document.existing(("parameters", reference.group(1), "default")), problem.message)


def _in_prose(quantity: Quantity) -> str:
    """`quantity` as a sentence has it: a rate may be written as 50 Mbit, and is 50 Mbit/s."""
    return f"{quantity.text}/s" if quantity.kind == "rate" and quantity.text.endswith("bit") else quantity.text


def _substitute(
    document: Document,
    path: Location,
    value: Any,
    values: Mapping[str, Quantity],
    unreadable: Mapping[str, Problem],
    unknown: list[Problem],
) -> Any:
    """`value` with every reference replaced; the shape stays, so that positions in the file stay true. References to
    nothing are added to `unknown`; one to a parameter whose default is a mistake as that mistake."""
    if isinstance(value, dict):
        entries = cast(dict[str, Any], value)
        return {
            key: _substitute(document, (*path, key), inner, values, unreadable, unknown)
            for key, inner in entries.items()
        }
    if isinstance(value, list):
        items = cast(list[Any], value)
        return [
            _substitute(document, (*path, index), inner, values, unreadable, unknown)
            for index, inner in enumerate(items)
        ]
    if not isinstance(value, str) or "$" not in value:
        return value

    def one(found: re.Match[str]) -> str:
        name = found.group(1)
        if name is None:
            said = f"{value[:60]!r}: a dollar sign begins a reference such as ${{link_rate}}"
        elif name in unreadable:
            unknown.append(dataclasses.replace(unreadable[name], path=path))
            return ""
        elif name not in values:
            said = f"unknown parameter ${{{name[:40]}}}; {did_you_mean(name, values)}"
        else:
            return _in_prose(values[name]) if path[-1] in _PROSE else values[name].text
        unknown.append(document.problem(path, said))
        return ""

    whole = _REFERENCE.fullmatch(value)
    before = len(unknown)
    text = _REFERENCE.sub(one, value)
    if len(unknown) > before:
        return text
    if len(text) > LONGEST_TEXT:
        raise document.error(path, f"is longer than {LONGEST_TEXT} characters with its parameters put in")
    if whole is not None and values[whole.group(1)].kind == "number":
        return values[whole.group(1)].base
    return text


def _wrong_levels(study: Study, declared: Mapping[str, tuple[Quantity, list[str] | None]]) -> list[Problem]:
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
                    _typed(declared, name, value)
                except ValueError as error:
                    problems.append(document.problem(path, str(error)))
    for name in study.changes:
        if name in set_by:
            raise BadValue(
                f"{name} cannot be set: the levels of the factor {set_by[name]} set this parameter",
                "change the levels in the study file",
            )
    for preset_name, preset in specification.presets.items():
        for name, value in preset.set.items():
            if name in declared:
                try:
                    _typed(declared, name, value)
                except ValueError as error:
                    problems.append(document.problem(("presets", preset_name, "set", name), str(error)))
    return problems


def _unused_parameters(study: Study) -> list[Problem]:
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
            referred.update(found.group(1) for found in _REFERENCE.finditer(value) if found.group(1))

    look({key: value for key, value in document.data.items() if key != "parameters"})
    # Checks, answers, published values and tolerances name parameters without a sign.
    named = " ".join(
        [
            specification.answer,
            *(one.check for one in specification.statements),
            *(text for one in specification.published for text in (one.value, one.deviation, one.measured)),
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


def _wrong_statements(study: Study) -> list[Problem]:
    """The answer, statements and published figures that cannot be read, or that compare what cannot be compared."""
    names = study.names()
    problems: list[Problem] = []

    def attempt(path: Location, check: Callable[[], None]) -> None:
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
        unit = None if key == "measured" else unit_of_side(published.measured, names)
        if getattr(published, key):
            _check_side(study, parse_side(getattr(published, key), names, unit))

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
        for key, row in itertools.product(("measured", "value", "deviation"), rows):
            if len(problems) == before:
                attempt((*path, key), lambda row=row, key=key: check_published(row, key))
    return problems


def _check_twin(study: Study) -> None:
    try:
        Tolerances(study.specification, study.names())
    except ValueError as error:
        key, why = error.args
        path = ("twin", *str(key).split(".", 1))
        raise study.document.error(study.document.existing(path), str(why)) from None


def _check_reference(study: Study) -> None:
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


def declared_texts(specification: StudySpecification) -> Iterable[tuple[str, str]]:
    """The names of the parameters with the text that explains each."""
    for name, parameter in specification.parameters.items():
        yield name, parameter.text if isinstance(parameter, Parameter) else ""
