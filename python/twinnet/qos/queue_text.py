"""Queues as text: one word of a command (``fifo,limit_frames=100``), Python, and back from the lab protocol."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from twinnet.errors import BadValue, did_you_mean
from twinnet.qos.queue import Queue
from twinnet.units import format_duration, format_rate, format_size

__all__ = ["as_python", "queue_from_spec", "queue_from_text", "queue_text", "with_units"]

_UNITS = {"_bps": format_rate, "_bytes": format_size, "_ps": format_duration}


def queue_from_text(text: str, what: str = "--queue ") -> Queue:
    """Return the queue that `text`, such as ``fifo,limit_frames=100``, stands for.

    Parameters
    ----------
    text
        A kind and its settings.
    what
        Stands before `text` in messages and examples.

    Raises
    ------
    BadValue
        There is no such queue or setting, or its value is out of range.

    Examples
    --------
    >>> queue_from_text("fifo,limit_frames=100").limit_frames
    100
    """
    from pydantic import TypeAdapter, ValidationError

    usage = f"write for example: {what}fifo,limit_frames=100, {what}codel, or {what}fq_codel,target=5ms"
    kinds = Queue.kinds()
    kind, *words = [part.strip() for part in text.split(",")]
    if kind not in kinds:
        raise BadValue(f"there is no queue {kind!r}", did_you_mean(kind, kinds, usage if " " in kind else ""))
    given: dict[str, Any] = {"kind": kind}
    known = [one.name for one in dataclasses.fields(kinds[kind]) if one.name != "kind"]
    for word in words:
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals or not value:
            raise BadValue(f"the queue's setting {word!r} is not NAME=VALUE", usage)
        if name not in known:
            raise BadValue(f"{kind} has no setting {name!r}", did_you_mean(name, known))
        given[name] = (
            int(value) if re.fullmatch(r"\d{1,18}", value) else {"true": True, "false": False}.get(value, value)
        )
    try:
        return TypeAdapter(Queue).validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][-1]) if first["loc"] else kind
        if first["type"] == "missing":
            raise BadValue(f"{what}{text}: {kind} needs {name}", f"write for example: {kind},{name}=...") from None
        said = first["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
        raise BadValue(f"{what}{text}: {name}: {said}", usage) from None


def queue_from_spec(spec: Mapping[str, Any]) -> Queue:
    """Return the queue that `spec`, in the form of the lab protocol, stands for.

    Examples
    --------
    >>> queue_from_spec({"kind": "codel", "target_ps": 10**10}).target
    '10 ms'
    """
    from pydantic import TypeAdapter

    return TypeAdapter(Queue).validate_python(with_units(spec))


def queue_text(queue: Queue) -> str | None:
    """Return `queue` as :func:`queue_from_text` reads it; ``None`` where queues are in it, for which it has no form.

    Examples
    --------
    >>> queue_text(queue_from_text("codel,target=10 ms"))
    'codel,target=10ms'
    """
    words = [queue.discipline]
    for name, value in _chosen(queue).items():
        if not isinstance(value, (bool, int, float, str)):
            return None
        text = str(value).lower() if isinstance(value, bool) else str(value).replace(" ", "")
        words.append(f"{name}={text}")
    return ",".join(words)


def as_python(value: object) -> str:
    """Return `value`, a queue or a setting, as Python that makes it, where twinnet is imported as ``tn``.

    Examples
    --------
    >>> as_python(queue_from_text("codel,target=10ms"))
    'tn.qos.Codel(target="10ms")'
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        chosen = ", ".join(f"{name}={as_python(one)}" for name, one in _chosen(value).items())
        return f"tn.qos.{type(value).__name__}({chosen})"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return "{" + ", ".join(f"{as_python(key)}: {as_python(one)}" for key, one in pairs) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(as_python(one) for one in cast('Sequence[object]', value))}]"
    return repr(value)


def with_units(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return `spec`, settings in the form of the lab protocol, as files have them: quantities are text with a unit, and
    what is null is left out.

    Examples
    --------
    >>> with_units({"kind": "tbf", "rate_bps": 10**6, "queue": None})
    {'kind': 'tbf', 'rate': '1 Mbit/s'}
    """
    said: dict[str, Any] = {}
    for key, value in spec.items():
        unit = next((one for one in _UNITS if key.endswith(one)), None)
        if value is None:
            continue
        if unit is not None:
            said[key.removesuffix(unit)] = _UNITS[unit](value)
        else:
            said[key] = _with_units_inside(value)
    return said


def _with_units_inside(value: Any) -> Any:
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        return {int(key) if key.isdecimal() else key: one for key, one in with_units(given).items()}
    if isinstance(value, list):
        return [_with_units_inside(one) for one in cast("list[Any]", value)]
    return value


def _chosen(value: Any) -> dict[str, object]:
    """The fields of a dataclass that are not as by default."""
    given = {one.name: (getattr(value, one.name), one) for one in dataclasses.fields(value) if one.name != "kind"}
    return {name: one for name, (one, field) in given.items() if one != field.default}
