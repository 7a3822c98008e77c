"""The walks of CONTRIBUTING.md lead through files that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from twinnet.study.quantities import QUANTITIES
from twinnet.traffic import apps
from twinnet.traffic.kinds import FLOWS, SOURCES
from twinnet.traffic.traffic_settings import TrafficSettings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:crates|python|tests|docs|tools|examples)/[\w./-]+)`", PAGE)) - {""})


@pytest.mark.parametrize("path", [one for one in NAMED if "NAME" not in one])
def test_files_that_the_page_names_are_there(path: str) -> None:
    assert (ROOT / path).exists()


def test_each_walk_names_its_files() -> None:
    walks = dict(re.findall(r"^## (Add a [\w ]+)\n(.*?)(?=^## )", PAGE, re.M | re.S))
    assert set(walks) == {"Add a queue discipline", "Add a kind of traffic", "Add a measurement"}
    for walk in walks.values():
        assert all(f"{number}. " in walk for number in (1, 2, 3, 4))


def test_each_kind_of_traffic_stands_in_a_file_of_traffic_and_says_what_others_must_know() -> None:
    for kind in (*FLOWS.values(), *SOURCES.values()):
        assert issubclass(kind, TrafficSettings)
        assert kind.__module__.startswith("twinnet.traffic.")
        assert kind.in_words
        assert kind in vars(apps).values() or kind.__module__ == "twinnet.traffic.bandwidth"


def test_each_measurement_is_in_the_reference_and_says_what_it_means() -> None:
    page = (ROOT / "docs/reference/study-files.md").read_text(encoding="utf-8")
    for name, quantity in QUANTITIES.items():
        assert f"`{name}`" in page, name
        assert quantity.meaning.endswith("."), name
        assert quantity.unit, name
