"""What a study may ask of its measurements: mistakes that show when the file is read."""

from __future__ import annotations

from twinnet.errors import did_you_mean
from twinnet.settings import settings_of
from twinnet.study.measurement import Measurement
from twinnet.study.predicate import Aggregate
from twinnet.study.specification import StudySpecification
from twinnet.study.traffic import Traffic
from twinnet.study.value_functions import NORMALITY, needs_values
from twinnet.study.window import WARM_UP, Window, is_span

__all__ = ["check_aggregate", "check_measured"]

_PS_PER_SECOND = 1e12
_KEPT_QUANTILES = ("median", "p50", "p90", "p99")
"""Percentiles that flows tell of themselves."""


def check_aggregate(specification: StudySpecification, aggregate: Aggregate) -> None:
    """Raise `ValueError` where `aggregate` asks for what no run of the study can give."""
    measurement = specification.measurements[aggregate.measurement]
    quantity = measurement.quantity
    meant = _selected(specification, aggregate, measurement)
    if not quantity.has_many_values and aggregate.function not in ("mean", "min", "max"):
        raise ValueError(
            f"{aggregate.text}: a run has one value of {measurement.of}; write mean({aggregate.measurement}), or min "
            "or max over runs"
        )
    window = aggregate.during_s or measurement.window
    by_percentile = needs_values(aggregate.function, aggregate.bound)
    if window is not None:
        _check_window(specification, aggregate, measurement, window, meant)
    if not by_percentile and not (window is not None and quantity.window == "packets"):
        return
    if aggregate.function == NORMALITY and quantity.window == "packets" and window is None:
        return  # Where no packets are kept, as by programs, nothing is said of them.
    if quantity.window == "packets":
        _check_records(aggregate, meant, window is not None)
    elif quantity.column is not None:
        known = _KEPT_QUANTILES if quantity.column.has_quantiles and window is None else ()
        if aggregate.function not in known:
            ways = " and ".join(known) if known else "no percentiles"
            where = "in a window, " if window is not None else ""
            raise ValueError(f"{aggregate.text}: {where}flows keep {ways} of {measurement.of}, and no single values")


def _check_window(
    specification: StudySpecification,
    aggregate: Aggregate,
    measurement: Measurement,
    window: Window,
    meant: list[Traffic],
) -> None:
    quantity = measurement.quantity
    name = aggregate.measurement
    if not quantity.window:
        raise ValueError(f"{name} is a {measurement.of}: it belongs to the whole run and takes no window of time")
    if window == WARM_UP and quantity.window not in ("series", "packets", "samples"):
        raise ValueError(f"{name} is a {measurement.of}: no warm-up shows in it; give a time such as 'after: 2 s'")
    ends = [None if one.duration_ps is None else one.last_start_ps + one.duration_ps for one in meant]
    known = [end / _PS_PER_SECOND for end in ends if end is not None]
    # A statement at another size of the study may have a window that is beyond its end: then it has no value.
    own = aggregate.during_s is None
    if own and is_span(window) and meant and len(known) == len(ends) and window[0] >= max(known):
        raise ValueError(f"{name}: the window begins at {window[0]:g} s, and its traffic ends at {max(known):g} s")


def check_measured(specification: StudySpecification, name: str) -> None:
    """Raise `ValueError` where no traffic of the measurement `name` can have a value of it."""
    measurement = specification.measurements[name]
    protocols = measurement.quantity.protocols
    entries = _entries(specification, measurement)
    by_programs = [entry.name for entry in entries if entry.protocol in protocols and entry.using == "programs"]
    if measurement.quantity.table == "tcp" and by_programs:
        raise ValueError(
            f"{measurement.of} is reported by built-in senders: give {by_programs[0]} 'using: apps', or leave it "
            "out by 'only'"
        )
    if measurement.of == "completion_time" and not any(one is not None for entry in entries for one in entry.transfer):
        raise ValueError(f"no traffic of {name} completes: a time ends it; give TCP 'bytes', or HTTP no 'duration'")
    if protocols and not any(entry.protocol in protocols for entry in entries):
        raise ValueError(
            f"no traffic of {name} has a {measurement.of}: it is of {' and '.join(protocols)}, and "
            f"{', '.join(f'{entry.name} is {entry.protocol}' for entry in entries)}"
        )
    if measurement.quantity.table == "tcp" and entries and not any(_is_looked_at(one) for one in entries):
        raise ValueError(f"{measurement.of} is reported by 'app: tcp' alone; no traffic of {name} is such")


def _is_looked_at(entry: Traffic) -> bool:
    """True if the senders of this traffic tell the state of their TCP."""
    return "info_interval" in settings_of(entry.kind)


def _entries(specification: StudySpecification, measurement: Measurement) -> list[Traffic]:
    return [one for one in specification.traffic if measurement.only is None or one.name in measurement.only]


def _selected(specification: StudySpecification, aggregate: Aggregate, measurement: Measurement) -> list[Traffic]:
    """The traffic that `aggregate` selects; raises `ValueError` where that is none, or none that has such values."""
    entries = _entries(specification, measurement)
    for key, value in aggregate.filters:
        if measurement.is_of_ports:
            if key != "port" or value not in (measurement.ports or ()):
                known = [f"port={port}" for port in measurement.ports or ()]
                raise ValueError(f"{aggregate.measurement} has no {key}={value}; {did_you_mean(value, known)}")
            continue
        known = {
            "flow": [one.name for one in entries],
            "protocol": [one.protocol for one in entries],
            "from": [source for one in entries for source in one.sources],
        }.get(key)
        if known is None:
            raise ValueError(f"{aggregate.measurement} is no port's: it has no {key}={value}")
        if value not in known:
            raise ValueError(
                f"{aggregate.measurement} is of no {key}={value}; {did_you_mean(value, dict.fromkeys(known))}"
            )
        entries = [
            one
            for one in entries
            if value == {"flow": one.name, "protocol": one.protocol}.get(key)
            or (key == "from" and value in one.sources)
        ]
    protocols = measurement.quantity.protocols
    able = [one for one in entries if not protocols or one.protocol in protocols]
    if aggregate.filters and not measurement.is_of_ports and not able:
        selected = ", ".join(f"{key}={value}" for key, value in aggregate.filters)
        raise ValueError(f"{aggregate.measurement} with {selected}: {measurement.of} is of {' and '.join(protocols)}")
    return able


def _check_records(aggregate: Aggregate, meant: list[Traffic], in_window: bool) -> None:
    """Every packet is needed for a percentile, a share or a window, and so each flow must keep its packets."""
    needs = f"{aggregate.text}{' in a window' if in_window else ''} needs every packet"
    for entry in meant:
        if "record_packets" not in settings_of(entry.kind):
            if in_window:
                raise ValueError(f"{needs}, and {entry.app} keeps none: leave {entry.name} out by 'only' or [flow=...]")
            continue
        if entry.using == "programs":
            raise ValueError(
                f"{needs}, and programs keep none: give {entry.name} 'using: apps', or "
                "leave it out by 'only' or [flow=...]"
            )
        if entry.record_packets is None:
            raise ValueError(
                f"{needs}: give the traffic {entry.name} 'record_packets', such as 100000, "
                "or leave it out by 'only' or [flow=...]"
            )
