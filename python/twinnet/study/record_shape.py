"""The parts of a run's record that its readers count on, looked at once when the record is read: somebody may have
altered it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

from twinnet.results.fidelity import FidelityRecord

__all__ = ["check_shape", "without_nan"]

_NUMBER = (int, float)
_EVERY: Mapping[str, Any] = {
    "levels": dict,
    "repetition": int,
    "seed": int,
    "versions": dict,
    "started": str,
    "elapsed_s": _NUMBER,
    "machine": {},
}
_MACHINE: Mapping[str, Any] = {
    "system": object,
    "kernel": object,
    "architecture": object,
    "cpu_model": object,
    "cores": int,
    "governor": object,
    "load_1min": _NUMBER,
    "virtualised": object,
    "sysctls": dict,
}
_OF_STATUS: Mapping[str, Mapping[str, Any]] = {
    "finished": {
        "machine": {"before": _MACHINE, "after": _MACHINE},
        "fidelity": {"verdict": str, "reasons": list, "record": dict},
        "notes": dict,
    },
    "failed": {"error": {"message": str}},
}
_PARTS: Mapping[str, tuple[Any, Any]] = {
    "levels": (dict, str),
    "clock": (str, object),
    "trace_hash": (str, object),
    "machine.name": (str, object),
    "fidelity.reasons": (list, str),
    "forecast": (dict, int | float | bool | None),
    "notes.zero_ps": (int, object),
    "notes.ports": (dict, str),
    "notes.captures": (list, dict),
    "notes.ways": (list, dict),
}
"""Parts by their places: the kind of the whole, and of what is in it."""
_NAMES = {dict: "an object", list: "a list", str: "text", int: "a whole number", _NUMBER: "a number"}


def check_shape(record: Mapping[str, Any]) -> None:
    """Look whether `record` has what its readers count on.

    Raises
    ------
    ValueError
        It lacks something, or has something else in its place; the message names the key.
    """
    status = record.get("status")
    if not isinstance(status, str) or status not in _OF_STATUS:
        raise ValueError(f"its status is {status!r}, neither finished nor failed")
    _check(record, _EVERY, "")
    _check(record, _OF_STATUS[status], "")
    _check_parts(record)
    if status == "finished":
        fidelity = record["fidelity"]["record"]
        late = fidelity.get("lateness_ns", {})
        if not isinstance(late, dict) or not all(
            one is None or isinstance(one, _NUMBER)
            for name, one in cast("dict[str, Any]", late).items()
            if name != "histogram"
        ):
            raise ValueError("its 'fidelity.record.lateness_ns' is no object of numbers")
        try:
            FidelityRecord.from_spec(fidelity).verdict()
        except (ArithmeticError, ValueError, TypeError, AttributeError, LookupError) as error:
            raise ValueError(f"its 'fidelity.record' cannot be read: {error}") from None


def _check_parts(record: Mapping[str, Any]) -> None:
    """Look into those parts that may be missing, or whose keys are not known beforehand."""
    for place, (whole, part) in _PARTS.items():
        value: object = record
        for key in place.split("."):
            value = cast("dict[str, object]", value).get(key) if isinstance(value, dict) else None
        if value is None:
            continue
        inner: Iterable[object] = cast("list[object]", value) if isinstance(value, list) else ()
        if isinstance(value, dict):
            inner = cast("dict[str, object]", value).values()
        wrong: list[object] = [one for one in inner if not isinstance(one, part)]
        if not isinstance(value, whole):
            wrong = [cast("object", value)]
        if wrong:
            raise ValueError(f"its '{place}' has {str(wrong[0])[:40]!r}, which does not belong there")


def _check(given: Mapping[str, Any], wanted: Mapping[str, Any], place: str) -> None:
    for key, kind in wanted.items():
        if key not in given:
            raise ValueError(f"it has no '{place}{key}'")
        value = given[key]
        kinds = dict if isinstance(kind, Mapping) else kind
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not object):
            raise ValueError(f"its '{place}{key}' is {str(value)[:40]!r}, where {_NAMES[kinds]} belongs")
        if isinstance(kind, Mapping):
            _check(cast("Mapping[str, Any]", value), cast("Mapping[str, Any]", kind), f"{place}{key}.")


def without_nan(value: Any) -> Any:
    """Return `value` as JSON has it: null in the place of numbers that are not finite, and texts as keys."""
    if isinstance(value, Mapping):
        return {str(key): without_nan(inner) for key, inner in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [without_nan(inner) for inner in cast(list[Any], value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value
