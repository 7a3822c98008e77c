"""YAML files whose every value knows its line: read safely, checked by a pydantic model, mistakes shown as
``file:line:column``.

Scalars follow the core schema of YAML 1.2 (``yes`` and ``on`` are text, ``true`` is not). Anchors, aliases and tags
are refused,
so that a small file cannot stand for a large one; size and depth are bounded. Keys are always text, as written.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, cast, get_args, get_origin

import yaml

from twinnet.errors import UsageError, did_you_mean
from twinnet.given_files import open_given

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

__all__ = ["SIZE_LIMIT_BYTES", "Document", "Problem", "SourceError", "load_yaml", "parse_yaml", "validate"]

SIZE_LIMIT_BYTES = 1_000_000
"""The largest file that is read."""
_DEPTH_LIMIT = 64
_PROBLEM_LIMIT = 50

Path_ = tuple[str | int, ...]
Position = tuple[int, int]
ModelT = TypeVar("ModelT", bound="BaseModel")

NAME_PATTERN = r"^[a-z0-9][a-z0-9_.-]{0,63}$"
"""The pattern for names of studies, levels and traffic."""
PARAMETER_PATTERN = r"^[a-z][a-z0-9_]{0,63}$"
"""The pattern for names of parameters, factors and measurements."""
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}\Z|0x[0-9a-fA-F]{1,64}\Z|0o[0-7]{1,64}\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z|[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z")


@dataclass(frozen=True)
class Problem:
    """One mistake in a file.

    Parameters
    ----------
    line, column
        Where, counted from 1.
    key
        The key path, such as ``links[2].rate``; empty for the whole file.
    message
        What was given and what is allowed.
    path
        The key path as it is in the data, for who wants to tell it in another way.
    """

    line: int
    column: int
    key: str
    message: str
    path: Path_ = field(default=(), compare=False)


class SourceError(UsageError):
    """All mistakes found in a file, each as ``file:line:column: key.path: message``."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = problems
        shown = problems[:_PROBLEM_LIMIT]
        lines = [
            f"{file}:{p.line}:{p.column}: {p.key}: {p.message}" if p.key else f"{file}:{p.line}:{p.column}: {p.message}"
            for p in shown
        ]
        if len(problems) > len(shown):
            lines.append(f"{file}: and {len(problems) - len(shown)} more")
        super().__init__("\n".join(lines))


@dataclass(frozen=True)
class Document:
    """A parsed file.

    Parameters
    ----------
    file
        The name that messages give the file.
    data
        Mappings (with text keys), lists, text, numbers, booleans and ``None``.
    """

    file: str
    data: Any
    _values: Mapping[Path_, Position]
    _keys: Mapping[Path_, Position]

    def locate(self, path: Path_, *, key: bool = False) -> Position:
        """Return line and column (from 1) of the value at `path`, or of its key with ``key=True``.

        Elements of `path` that do not exist in the file are passed over, so the nearest enclosing value is found.
        """
        found = self.existing(path)
        if key and found in self._keys:
            return self._keys[found]
        return self._values[found]

    def existing(self, path: Path_) -> Path_:
        """Return `path` without the elements that do not exist in the file."""
        found: Path_ = ()
        for element in path:
            if (*found, element) in self._values:
                found = (*found, element)
        return found

    def problem(self, path: Path_, message: str, *, key: bool = False) -> Problem:
        """Return `message` as a problem of the value (or the key) at `path`."""
        line, column = self.locate(path, key=key)
        return Problem(line, column, key_path(path), message, path)

    def error(self, path: Path_, message: str, *, key: bool = False) -> SourceError:
        """Return an error with one message about the value (or the key) at `path`."""
        return SourceError(self.file, [self.problem(path, message, key=key)])


def key_path(path: Path_) -> str:
    """Return `path` as people write it.

    Examples
    --------
    >>> key_path(("links", 2, "rate"))
    'links[2].rate'
    """
    text = ""
    for element in path:
        if isinstance(element, int):
            text += f"[{element}]"
        else:
            text += f".{element}" if text else element
    return text


def load_yaml(path: str | Path) -> Document:
    """Read the YAML file at `path`.

    Raises
    ------
    SourceError
        When it cannot be read, is over 1 MB, is not YAML, or has anchors, tags or duplicate keys.
    """
    file = str(path)
    try:
        with open_given(path) as stream:
            raw = stream.read(SIZE_LIMIT_BYTES + 1)
    except OSError as error:
        raise SourceError(file, [Problem(1, 1, "", f"cannot be read: {error.strerror}")]) from None
    return parse_yaml(raw, file)


def parse_yaml(raw: bytes | str, file: str = "<text>") -> Document:
    """Read YAML from `raw`; messages call it `file`. Raises as :func:`load_yaml`."""
    encoded = raw.encode() if isinstance(raw, str) else raw
    if len(encoded) > SIZE_LIMIT_BYTES:
        message = f"the file is larger than {SIZE_LIMIT_BYTES // 1_000_000} MB, the most that is read"
        raise SourceError(file, [Problem(1, 1, "", message)])
    try:
        text = encoded.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = encoded.count(b"\n", 0, error.start) + 1
        column = error.start - (encoded.rfind(b"\n", 0, error.start) + 1) + 1
        raise SourceError(file, [Problem(line, column, "", "the file is not text in UTF-8")]) from None
    builder = _Builder(file)
    try:
        for event in _events(text):
            builder.take(event)
    except yaml.YAMLError as error:
        raise SourceError(file, [_syntax_problem(error, text)]) from None
    return builder.finish()


def _events(text: str) -> Iterator[yaml.Event]:
    parse = cast("Callable[..., Iterator[yaml.Event]]", getattr(yaml, "parse"))  # noqa: B009 - its stub has no types
    return parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _syntax_problem(error: yaml.YAMLError, text: str) -> Problem:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        said = error.problem or error.context or "it cannot be parsed"
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        # The mark may stand past the last line.
        here = [*text.split("\n")[line - 1 : line], ""][0]
        if here[column - 1 :].startswith("\t"):
            said = "a tab stands here; indent with spaces"
        elif "expected ',' or" in said:
            said += "; a text with commas, brackets or ': ' in it needs quotes there"
        elif "unexpected ':'" in said:
            said = "a blank is missing after ':' (a text with ':' in it needs quotes there)"
        return Problem(line, column, "", f"not YAML: {said}")
    position = min(getattr(error, "position", 0) or 0, len(text))
    line = text.count("\n", 0, position) + 1
    return Problem(
        line, position - (text.rfind("\n", 0, position) + 1) + 1, "", "not YAML: a character that YAML forbids"
    )


class _Builder:
    """Turns the parser's events into data with positions, one open collection per stack entry, without recursion."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.values: dict[Path_, Position] = {}
        self.keys: dict[Path_, Position] = {}
        self.problems: list[Problem] = []
        self.stack: list[_Open] = []
        self.root: Any = None
        self.documents = 0

    def take(self, event: yaml.Event) -> None:
        position = (event.start_mark.line + 1, event.start_mark.column + 1) if event.start_mark else (1, 1)
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise self._error(position, "a second document begins here; one file holds one document")
        elif isinstance(event, yaml.AliasEvent):
            raise self._error(position, f"the alias *{event.anchor} is not allowed: write the value out")
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._close()
        elif isinstance(event, (yaml.ScalarEvent, yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._node(event, position)

    def finish(self) -> Document:
        if self.documents == 0:
            raise self._error((1, 1), "the file is empty")
        if self.problems:
            raise SourceError(self.file, self.problems)
        return Document(self.file, self.root, self.values, self.keys)

    def _node(
        self, event: yaml.ScalarEvent | yaml.MappingStartEvent | yaml.SequenceStartEvent, position: Position
    ) -> None:
        if event.anchor:
            raise self._error(
                position, f"the anchor &{event.anchor} is not allowed: write the value out where it is used"
            )
        if event.tag not in (None, "!"):
            raise self._error(position, f"the tag {event.tag} is not allowed: plain YAML only")
        top = self.stack[-1] if self.stack else None
        if top is not None and not top.is_list and top.key is None:
            self._key(top, event, position)
            return
        path = top.next_path() if top is not None else ()
        if top is None or not top.ignored:
            self.values[path] = position
        if isinstance(event, yaml.ScalarEvent):
            self._place(_scalar(event))
            return
        if len(self.stack) >= _DEPTH_LIMIT:
            raise self._error(position, f"nested deeper than {_DEPTH_LIMIT} levels")
        ignored = top is not None and (top.ignored or top.duplicate)
        self.stack.append(_Open({} if isinstance(event, yaml.MappingStartEvent) else [], path, ignored))

    def _key(self, top: _Open, event: yaml.Event, position: Position) -> None:
        if not isinstance(event, yaml.ScalarEvent):
            raise self._error(position, "a key is a single word or number, not a list or mapping")
        top.key = event.value
        path = (*top.path, event.value)
        top.duplicate = event.value in top.data
        if top.duplicate:
            first = self.keys.get(path, position)
            message = f"the key is given twice; first in line {first[0]}"
            self.problems.append(Problem(*position, key_path(path), message))
        elif not top.ignored:
            self.keys[path] = position

    def _close(self) -> None:
        closed = self.stack.pop()
        self._place(closed.data)

    def _place(self, value: Any) -> None:
        if not self.stack:
            self.root = value
            return
        top = self.stack[-1]
        if top.is_list:
            top.data.append(value)
        else:
            if not top.duplicate:
                top.data[top.key] = value
            top.key, top.duplicate = None, False

    def _error(self, position: Position, message: str) -> SourceError:
        return SourceError(self.file, [*self.problems, Problem(*position, "", message)])


@dataclass
class _Open:
    """A collection whose end has not come yet."""

    data: Any
    path: Path_
    ignored: bool
    key: str | None = None
    duplicate: bool = False

    @property
    def is_list(self) -> bool:
        """True if it is a list rather than a mapping."""
        return isinstance(self.data, list)

    def next_path(self) -> Path_:
        """Return the path of the value that comes next."""
        return (*self.path, len(self.data) if self.is_list else str(self.key))


def _scalar(event: yaml.ScalarEvent) -> Any:
    """Return the value of a scalar by the core schema of YAML 1.2, section 10.3.2."""
    text: str = event.value
    if not event.implicit[0]:
        return text
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE"):
        return True
    if text in ("false", "False", "FALSE"):
        return False
    if _INTEGER.match(text):
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    if _FLOAT.match(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def validate(document: Document, model: type[ModelT]) -> ModelT:
    """Check `document` against the pydantic `model` and return the model's instance.

    Raises
    ------
    SourceError
        With every mistake that pydantic found, each at its line and key.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        problems = {_problem(document, model, details) for details in error.errors(include_url=False)}
    raise SourceError(document.file, sorted(problems, key=lambda p: (p.line, p.column, p.message))) from None


def _problem(document: Document, model: type[BaseModel], details: ErrorDetails) -> Problem:
    loc, kind = details["loc"], details["type"]
    path = document.existing(loc)
    if kind == "missing" and loc:
        parent = document.existing(loc[:-1])
        line, column = document.locate(parent, key=True)
        return Problem(line, column, key_path((*parent, loc[-1])), "is missing; it must be given")
    if kind in ("extra_forbidden", "unexpected_keyword_argument") and loc:
        remedy = did_you_mean(str(loc[-1]), _known_keys(model, loc[:-1]))
        line, column = document.locate(path, key=True)
        return Problem(line, column, key_path(path), f"unknown key; {remedy}")
    line, column = document.locate(path)
    return Problem(line, column, key_path(path), _message(details), path)


def _message(details: ErrorDetails) -> str:
    message = details["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if details["type"] in ("value_error", "assertion_error"):
        return message
    given: Any = details["input"]
    context = details.get("ctx") or {}
    if details["type"] == "literal_error" and isinstance(given, str):
        return f"{given!r} is not allowed; {_nearest(given, str(context.get('expected', '')))}"
    if details["type"] == "union_tag_invalid":
        tag = str(context.get("tag", ""))
        return f"there is no {str(context.get('discriminator', 'kind')).strip(chr(39))} {tag!r}; " + _nearest(
            tag, str(context.get("expected_tags", ""))
        )
    if details["type"] == "union_tag_not_found":
        return f"needs {context.get('discriminator', 'kind')}, which says what it is"
    if details["type"] == "string_pattern_mismatch":
        return f"{given!r} is no name: {_NAMES.get(str(context.get('pattern', '')), _ANY_NAME)}"
    kinds: dict[Any, str] = {dict: "a mapping", list: "a list", NoneType: "nothing"}
    shown = kinds.get(type(given)) or repr(given)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    if details["type"] in ("list_type", "tuple_type") and isinstance(given, (str, int, float)):
        names = re.split(r"[\s,-]+", str(given)) if details["loc"][-1] in ("between", "link") else [str(given)]
        return f"must be a list: write [{', '.join(names)}]"
    if isinstance(given, list) and details["type"] in _NOT_A_MAPPING:
        names = cast("list[Any]", given)
        if _are_names(names):
            is_link = "links" in details["loc"]
            keys = f"between: [{', '.join(names)}]" if is_link else ", ".join(f"{name}: " for name in names)
            return f"must be a mapping and not a list: write {{{keys}}}"
    return f"{_plain(message)}; given: {shown}"


_NOT_A_MAPPING = ("dict_type", "model_type", "model_attributes_type", "dataclass_type")


def _are_names(given: Sequence[Any]) -> bool:
    """Return True for a short list of words, as a list of hosts is."""
    return 0 < len(given) <= 8 and all(isinstance(one, str) and len(one) <= 16 for one in given)


_PLAIN = (
    (r"Input should be", "must be"),
    (r"Field required", "is missing"),
    (r"a valid dictionary or (an )?(instance|object).*", "a mapping (KEY: VALUE)"),
    (r"a valid dictionary", "a mapping (KEY: VALUE)"),
    (r"a valid (list|tuple)", "a list"),
    (r"a valid integer.*", "a whole number"),
    (r"a valid number.*", "a number"),
    (r"a valid string.*", "text"),
    (r"a valid boolean.*", "true or false"),
    (r"greater than or equal to", "at least"),
    (r"less than or equal to", "at most"),
    (r"greater than", "more than"),
    (r"(List|Tuple|String|Dictionary) should have at least (\d+) (\w+).*", r"must have at least \2 \3"),
    (r"(List|Tuple|String|Dictionary) should have at most (\d+) (\w+).*", r"must have at most \2 \3"),
    (r"a finite number", "a number, not infinite"),
)
"""Messages of pydantic, and their wording without knowledge of Python."""


def _plain(message: str) -> str:
    for pattern, words in _PLAIN:
        message = re.sub(pattern, words, message, count=1)
    return message


_ANY_NAME = "it has a character that is not allowed, or is too long"
_NAMES = {
    NAME_PATTERN: "lower-case letters, digits, '_', '.' and '-', at most 64, a letter or digit first",
    PARAMETER_PATTERN: "lower-case letters, digits and '_', at most 64, a letter first",
}


def _nearest(given: str, expected: str) -> str:
    """The nearest of the values that pydantic lists, or all where none is near."""
    known = re.findall(r"'([^']*)'", expected)
    remedy = did_you_mean(given, known)
    return remedy if remedy.startswith("did") else f"allowed are {', '.join(known)}"


def _known_keys(model: type[BaseModel], loc: Path_) -> list[str]:
    """Return the keys that the models at `loc` under `model` take."""
    types: list[Any] = [model]
    for element in loc:
        inner = [step for one in types for step in _step(one, element)]
        types = inner or types
    return sorted({getattr(field, "alias", None) or name for one in types for name, field in _fields(one).items()})


def _fields(one: Any) -> dict[str, Any]:
    if not isinstance(one, type):
        return {}
    if dataclasses.is_dataclass(one):
        return {field.name: field for field in dataclasses.fields(one)}
    return dict(getattr(cast("Any", one), "model_fields", {}))


def _expand(annotation: Any) -> Iterator[Any]:
    """Yield the plain types in `annotation`: unions and Annotated opened."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _expand(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for member in get_args(annotation):
            yield from _expand(member)
    else:
        yield annotation


def _step(one: Any, element: str | int) -> Iterator[Any]:
    """Yield the types that `element` of a value of type `one` can have."""
    for name, one_field in _fields(one).items():
        if element in (name, getattr(one_field, "alias", None)) and hasattr(one_field, "annotation"):
            yield from _expand(one_field.annotation)
    # Of types that are told apart by a key (queues), pydantic's place has the key's value.
    if isinstance(one, type) and callable(kinds := getattr(cast("Any", one), "kinds", None)):
        known = cast("dict[Any, Any]", kinds())
        if element in known:
            yield known[element]
    origin = get_origin(one)
    if origin in (list, tuple, set) and isinstance(element, int):
        yield from _expand(get_args(one)[0])
    elif origin in (dict, Mapping) or getattr(origin, "__name__", "") == "Mapping":
        yield from _expand(get_args(one)[-1])
