"""The published JSON schema of study files: current, and in agreement with what is read."""

import json
from pathlib import Path

import jsonschema
import pytest
from twinnet.study.resolution import built_in_studies
from twinnet.study.specification import study_json_schema
from twinnet.yaml_source import load_yaml

PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "study.schema.json"


def test_the_published_schema_is_current():
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == study_json_schema(), (
        "write it anew: twinnet schema study > docs/reference/study.schema.json"
    )


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(study_json_schema())


@pytest.mark.parametrize("name", built_in_studies())
def test_built_in_studies_pass_the_schema_as_they_are_written(name):
    jsonschema.validate(load_yaml(built_in_studies()[name]).data, study_json_schema())


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
        jsonschema.validate(data, study_json_schema())
