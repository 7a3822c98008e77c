"""Files with every kind of mistake: one precise message each, at the right place."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, field_validator
from twinnet.yaml_source import Document, SourceError, load_yaml, parse_yaml, validate


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")
    rate: str
    delay: str = "0 s"

    @field_validator("delay")
    @classmethod
    def not_negative(cls, value: str) -> str:
        if value.startswith("-"):
            raise ValueError(f"{value!r} is negative")
        return value


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    parts: list[Part] = []
    by_name: dict[str, Part] = {}
    maybe: Part | None = None


def message_of(text: str | bytes) -> str:
    with pytest.raises(SourceError) as caught:
        validate(parse_yaml(text, "lab.yaml"), Whole)
    return str(caught.value)


def test_a_good_file_becomes_the_model() -> None:
    whole = validate(parse_yaml("name: a\nparts:\n  - rate: 1 Gbit\n  - {rate: 2 Gbit, delay: 5 ms}\n"), Whole)
    assert [part.rate for part in whole.parts] == ["1 Gbit", "2 Gbit"]


def test_values_and_keys_are_located() -> None:
    document = parse_yaml("name: a\nparts:\n  - rate: 1\n")
    assert document.locate(("parts", 0, "rate")) == (3, 11)
    assert document.locate(("parts", 0, "rate"), key=True) == (3, 5)
    assert document.locate(("parts", 0, "absent")) == (3, 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "name: a\nparts:\n- rate: 1 G\n  dely: 5 ms\n",
            "lab.yaml:4:3: parts[0].dely: unknown key; did you mean 'delay'?",
        ),
        (
            "name: a\nby_name:\n  x: {rate: a, rat: 5}\n",
            "lab.yaml:3:16: by_name.x.rat: unknown key; did you mean 'rate'?",
        ),
        ("name: a\nmaybe: {rate: a, rat: 5}\n", "lab.yaml:2:18: maybe.rat: unknown key; did you mean 'rate'?"),
        ("parts: []\n", "lab.yaml:1:1: name: is missing; it must be given"),
        ("name: a\nparts:\n- rate: 10\n", "lab.yaml:3:9: parts[0].rate: must be text; given: 10"),
        ("name: a\nparts:\n- {rate: x, delay: -5ms}\n", "lab.yaml:3:20: parts[0].delay: '-5ms' is negative"),
        ("name: a\nname: b\n", "lab.yaml:2:1: name: the key is given twice; first in line 1"),
        ("name: &x a\n", "lab.yaml:1:7: the anchor &x is not allowed: write the value out where it is used"),
        ("name: *x\n", "lab.yaml:1:7: the alias *x is not allowed: write the value out"),
        (
            "name: !!python/object:os.system a\n",
            "lab.yaml:1:7: the tag tag:yaml.org,2002:python/object:os.system is not allowed: plain YAML only",
        ),
        ("name: a\n---\nname: b\n", "lab.yaml:2:1: a second document begins here; one file holds one document"),
        ("", "lab.yaml:1:1: the file is empty"),
        ("? [a]\n: b\n", "lab.yaml:1:3: a key is a single word or number, not a list or mapping"),
        (b"name: \xff\n", "lab.yaml:1:7: the file is not text in UTF-8"),
        (b"x" * 1_000_001, "lab.yaml:1:1: the file is larger than 1 MB, the most that is read"),
        ("[" * 100, "lab.yaml:1:65: nested deeper than 64 levels"),
    ],
)
def test_each_mistake_has_its_message(text: str | bytes, message: str) -> None:
    assert message_of(text) == message


def test_syntax_errors_name_the_place() -> None:
    assert message_of("name: a\nparts: [1, 2\nmore: x").startswith("lab.yaml:3:")


def test_all_mistakes_are_told_at_once() -> None:
    assert len(message_of("nam: a\nparts:\n- {rat: 5}\n").splitlines()) == 4


def test_scalars_follow_yaml_1_2() -> None:
    data = parse_yaml("[yes, on, 1:30, 2020-01-01, true, 0x10, 1e3, ~, '1', 010]").data
    assert data == ["yes", "on", "1:30", "2020-01-01", True, 16, 1000.0, None, "1", 10]


def test_a_missing_file_is_named() -> None:
    with pytest.raises(SourceError, match=r"absent\.yaml:1:1: cannot be read: No such file"):
        load_yaml("absent.yaml")


@given(st.text(max_size=60) | st.binary(max_size=60))
@settings(max_examples=300, deadline=None)
def test_no_text_raises_anything_else(text: str | bytes) -> None:
    with contextlib.suppress(SourceError):
        assert isinstance(parse_yaml(text), Document)
