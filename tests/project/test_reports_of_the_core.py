"""Each report is one thing in the core and in Python: what the core writes is read, field by field."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from twinnet import _core
from twinnet.results.bandwidth_report import Bandwidth, HopBandwidth, TrainRates
from twinnet.results.distributions import Lengths, ReorderDensity, Spread, Summary
from twinnet.results.flow_report import AppReport, FlowReport, Pacing
from twinnet.results.flow_series import Intervals, Samples, TcpInfo
from twinnet.results.media_report import Rtp, Viewing

Fields = dict[str, dict[str, Any]]
REPORTS: dict[str, Fields] = json.loads(_core.vocabulary())["report"]


class Asked(dict[str, Any]):
    """A report as the core writes it, which remembers the fields that it was asked for."""

    def __init__(self, kind: str, all_of_them: dict[str, list[Asked]]) -> None:
        super().__init__({name: value_of(field, all_of_them) for name, field in REPORTS[kind].items()})
        self.asked: set[str] = set()
        all_of_them.setdefault(kind, []).append(self)

    def __getitem__(self, name: str) -> Any:
        self.asked.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return super().get(name, default)


def value_of(field: dict[str, Any], all_of_them: dict[str, list[Asked]]) -> Any:
    """A value as the core tells that the field may have it."""
    if "of" in field:
        group, kind = field["of"].split(".")
        assert group == "report"
        return Asked(kind, all_of_them)
    match field["type"]:
        case "integer":
            return 1
        case "number":
            return 1.5
        case "boolean":
            return True
        case "string":
            return field.get("values", ["text"])[0]
        case "object":
            return {"50": value_of(field["items"], all_of_them)}
        case "array":
            items = field.get("items", {})
            # A length or displacement and its number.
            return [[1, 1]] if items.get("type") == "array" else [value_of(items, all_of_them)]
    raise AssertionError(field)


READERS: dict[str, Callable[[Any], object]] = {
    "flow": FlowReport.from_spec,
    "summary": Summary.from_spec,
    "spread": Spread.from_spec,
    "lengths": Lengths.from_spec,
    "reordering_density": ReorderDensity.from_spec,
    "samples": Samples.from_spec,
    "pacing": Pacing.from_spec,
    "intervals": Intervals.from_spec,
    "tcp_info": TcpInfo.from_spec,
    "rtp": Rtp.from_spec,
    "video": Viewing.from_spec,
    "bandwidth": Bandwidth.from_spec,
}
READ_ELSEWHERE = {"flow": {"clock"}}
"""By those that compare clocks, who take the report as it came."""
INSIDE = {"interval_times", "carried", "interval_orders", "interval_round_trips", "frames", "played_at"}
"""Reports that are read with the one that they stand in."""
PLAIN: dict[str, type] = {"train_rates": TrainRates, "hop": HopBandwidth}
"""Reports of which each field is one of the class."""


@pytest.mark.parametrize("kind", READERS)
def test_python_reads_every_field_that_the_core_reports_and_no_other(kind: str) -> None:
    every: dict[str, list[Asked]] = {}
    READERS[kind](Asked(kind, every))
    for name in {kind, *(INSIDE & every.keys())}:
        for report in every[name]:
            assert report.asked == REPORTS[name].keys() - READ_ELSEWHERE.get(name, set()), name


@pytest.mark.parametrize("kind", PLAIN)
def test_a_plain_report_has_the_fields_of_its_class(kind: str) -> None:
    assert {field.name for field in dataclasses.fields(PLAIN[kind])} == REPORTS[kind].keys()


def test_every_report_of_the_core_has_its_reader() -> None:
    elsewhere = {"app", "clock", "train", "plan", "planned"}
    assert READERS.keys() | INSIDE | PLAIN.keys() | elsewhere == REPORTS.keys()
    assert REPORTS["app"].keys() == {"flows"}
    told = AppReport.from_spec({"app": 1, "host": "h1", "kind": "ping", "report": {"flows": [Asked("flow", {})]}})
    assert len(told.flows) == 1


def test_a_field_with_a_unit_ends_in_it() -> None:
    for kind, fields in REPORTS.items():
        for name, field in fields.items():
            if (unit := field.get("unit")) in ("ps", "ns", "bit/s"):
                assert name.endswith({"ps": "_ps", "ns": "_ns", "bit/s": "_bps"}[unit]), f"{kind}.{name}"
