"""The published JSON schema of study files: current, and in agreement with what is read."""

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from twinnet.network.topology_file import json_schema
from twinnet.settings import SHARE_SCHEMA
from twinnet.study.resolution import built_in_studies
from twinnet.study.specification import study_json_schema
from twinnet.yaml_source import load_yaml

PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "study.schema.json"
schema_of_studies = functools.cache(study_json_schema)
"""Made once: that takes a second."""


@functools.cache
def validator() -> jsonschema.Draft202012Validator:
    """What passes a study file or refuses it, as `jsonschema.validate` does, which judges the schema each time too."""
    return jsonschema.Draft202012Validator(schema_of_studies())


def test_the_published_schema_is_current():
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == schema_of_studies(), (
        "write it anew: twinnet schema study > docs/reference/study.schema.json"
    )


def test_what_one_field_adds_to_the_schema_of_a_setting_does_not_reach_another():
    study_json_schema(), json_schema()
    assert list(SHARE_SCHEMA) == ["anyOf"]


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(schema_of_studies())


@pytest.mark.parametrize("name", built_in_studies())
def test_built_in_studies_pass_the_schema_as_they_are_written(name):
    validator().validate(load_yaml(built_in_studies()[name]).data)


@pytest.mark.parametrize(
    ("path", "value"),
    [(("repetitions",), 0), (("traffic", 0, "app"), "tpc"), (("traffic", 0, "port"), 99999), (("x",), 1)],
)
def test_the_schema_refuses_mistakes(path, value):
    data = load_yaml(built_in_studies()["tcp-udp-queues"]).data
    target = data
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        validator().validate(data)


def undescribed(schema: Any, place: str = "") -> Iterator[str]:
    """The places of properties that an editor could say nothing about."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            yield from (f"{place}/{name}" for name, one in properties.items() if not one.get("description"))
        for key, value in schema.items():
            yield from undescribed(value, f"{place}/{key}")
    elif isinstance(schema, list):
        for one in schema:
            yield from undescribed(one, place)


@pytest.mark.parametrize("schema", [schema_of_studies, json_schema])
def test_the_schema_says_of_every_key_what_it_is(schema: Callable[[], Any]) -> None:
    assert list(undescribed(schema())) == []


def test_a_key_says_what_the_docstring_of_its_class_says() -> None:
    found = schema_of_studies()["$defs"]
    assert found["Codel"]["properties"]["target"]["description"] == "The standing delay that is accepted, with unit."
    assert found["DirectionModel"]["properties"]["delay"]["description"].startswith("Propagation delay")
    assert found["VxlanModel"]["properties"]["mtu"]["description"].startswith("The underlay's MTU in bytes")
    assert found["TwinSettings"]["description"].endswith("`5 % or 1 Mbit`.")
