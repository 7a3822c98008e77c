"""From a study file to specifications: references put in, everything checked before anything starts."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from twinnet.errors import BadValue, did_you_mean, reason
from twinnet.given_files import read_given_text
from twinnet.network.other_formats import refuse_other_format
from twinnet.study.beside import Beside
from twinnet.study.declared_parameters import REFERENCE, Declared, declared_parameters, typed_value
from twinnet.study.files_put_in import put_files_in
from twinnet.study.further_mistakes import further_mistakes, torn_checks
from twinnet.study.named_studies import built_in_studies, named_studies
from twinnet.study.network_of import check_networks
from twinnet.study.own_clip import described_clip, is_clip
from twinnet.study.own_metric import OwnMetric, find_metric
from twinnet.study.predicate import Check, Names, parse_check
from twinnet.study.published_rows import PublishedSides, each_published, sides_of
from twinnet.study.quantity import Quantity, parse_quantity
from twinnet.study.sound_study import check_reference, check_twin, unused_parameters, wrong_levels, wrong_statements
from twinnet.study.specification import Published, StudySpecification
from twinnet.yaml_source import SIZE_LIMIT_BYTES, Document, Problem, SourceError, load_yaml, parse_yaml, validate

__all__ = ["Study", "built_in_studies", "load_study", "read_study", "reader_in", "with_changes"]

_MAPPINGS = ("fidelity", "guest", "levels", "trim", "twin")
"""Settings of which parts can be set where the study has none of them."""

_UNRESOLVED = ("parameters", "presets")
_LONG = ("factors", "statements", "published")
"""Sections that take long to check. Where levels change none of the parameters that one names, it stays as it was
checked."""
_PROSE = ("title", "question", "answer", "text", "why")
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
        values = self.parameters_at(levels)
        changed = {name for name, value in values.items() if value != self.parameters.get(name)}
        stays = [section for section, named in self._named_by_sections.items() if not named & changed]
        try:
            checked = {section: getattr(self.specification, section) for section in stays}
            return _resolve(self.document, values, self.beside, checked=checked)
        except SourceError:
            # The mistakes are looked for in the file's own words.
            return _resolve(self.document, values, self.beside)

    @cached_property
    def _named_by_sections(self) -> dict[str, set[str]]:
        """The parameters that each long section names."""
        sections = [section for section in _LONG if section in self.document.data]
        return {section: set(_names_in(self.document.data[section])) for section in sections}

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
        return Names(self.parameters, units, factors, self.specification.levels_run())

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

    def published_sides(self) -> list[PublishedSides]:
        """Of each published figure, what is measured here, the published value, its deviation and what it is over."""
        names = self.names()
        return [sides_of(one, names) for one in self.published()]


def load_study(name_or_path: str | Path, settings: Mapping[str, str] | None = None, preset: str | None = None) -> Study:
    """Read a study by its name or by the path of its file (or of the folder that holds `study.yaml`).

    Parameters
    ----------
    name_or_path
        A name that :func:`~twinnet.study.named_studies.named_studies` knows, or a path.
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
    known = named_studies()
    path = known.get(str(name_or_path), Path(name_or_path))
    if path.is_dir():
        path = path / "study.yaml"
    if not path.exists():
        otherwise = "list them with `twinnet studies`, or give the path of a study.yaml"
        raise BadValue(
            f"{str(name_or_path)!r} is neither a built-in study nor a study file",
            did_you_mean(str(name_or_path), known, otherwise),
        )
    refuse_other_format(path)
    document = load_yaml(path)
    text = read_given_text(path, SIZE_LIMIT_BYTES)
    return read_study(document, settings, preset, text, reader_in(path.parent))


def reader_in(folder: Path) -> Callable[[str], str]:
    """Return a function that reads a file of `folder` by its name; it raises `ValueError` if it cannot."""

    def read(name: str) -> str:
        path = folder / name
        try:
            if is_clip(name):
                return described_clip(path)
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
    declared, unreadable = declared_parameters(document)
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
    problems = [*wrong_levels(study, declared), *wrong_statements(study), *unused_parameters(study)]
    checks: list[Callable[[], None]] = [lambda: check_twin(study), lambda: check_reference(study)]
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


def _change(
    document: Document,
    declared: Declared,
    values: dict[str, Quantity],
    key: str,
    value: object,
    by: str,
) -> None:
    if key in declared:
        try:
            values[key] = typed_value(declared, key, value)
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
    if parts[0] in _MAPPINGS:
        document.data.setdefault(parts[0], {})
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
    checked: Mapping[str, Any] = MappingProxyType({}),
) -> StudySpecification:
    """Return the specification with `values` put in; `unreadable` are parameters whose default is a mistake, `checked`
    sections that were checked with the same values."""
    torn = torn_checks(document, document.data)
    unknown: list[Problem] = [*unreadable.values(), *torn]
    data = {
        key: value if key in _UNRESOLVED else _substitute(document, (key,), value, values, unreadable, unknown)
        for key, value in document.data.items()
        if key not in checked
    }
    data |= checked
    put_files_in(document, data, beside)
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
        problems = dict.fromkeys([*unknown, *(_at_the_parameter(document, one) for one in found)])
        raise SourceError(error.file, sorted(problems, key=lambda one: (one.line, one.column))) from None


def _names_in(value: object) -> Iterator[str]:
    """The parameters that `value`, a part of a file, names."""
    if isinstance(value, str):
        yield from (one.group(1) for one in REFERENCE.finditer(value) if one.group(1) is not None)
    elif isinstance(value, Mapping):
        for key, inner in cast(Mapping[str, object], value).items():
            yield from _names_in(key)
            yield from _names_in(inner)
    elif isinstance(value, list):
        for inner in cast(list[object], value):
            yield from _names_in(inner)


def _touch(one: Problem, other: Problem) -> bool:
    """Return True if one problem is about the other's place or a part of it, in the file's lines or in its data."""
    shorter = min(len(one.path), len(other.path))
    return (one.line, one.column) == (other.line, other.column) or (
        bool(one.path) and one.path[:shorter] == other.path[:shorter]
    )


def _at_the_parameter(document: Document, problem: Problem) -> Problem:
    """`problem`, or, where the file says `${parameter}`, the same about the default, which is the mistake."""
    value: Any = document.data
    for element in problem.path:
        if isinstance(value, str):
            # An entry of a file: the file's name is what stands here.
            break
        value = value[element]
    reference = REFERENCE.fullmatch(value) if isinstance(value, str) else None
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

    whole = REFERENCE.fullmatch(value)
    before = len(unknown)
    text = REFERENCE.sub(one, value)
    if len(unknown) > before:
        return text
    if len(text) > LONGEST_TEXT:
        raise document.error(path, f"is longer than {LONGEST_TEXT} characters with its parameters put in")
    if whole is not None and values[whole.group(1)].kind == "number":
        return values[whole.group(1)].base
    return text
