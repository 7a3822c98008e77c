"""The core tells what a description can hold, and what it tells is what it takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from twinnet import _core, qos

VOCABULARY: dict[str, dict[str, dict[str, dict[str, Any]]]] = json.loads(_core.vocabulary())


def test_every_discipline_of_python_is_told_with_its_fields() -> None:
    told = VOCABULARY["queue"]
    assert told.keys() == {vars(one)["kind"] for one in qos.Queue.disciplines}
    assert told["codel"].keys() == json.loads(_core.check_queue('{"kind": "codel"}')).keys() - {"kind"}


@pytest.mark.parametrize("kind", ["codel", "fq_codel", "pie", "sfq"])
def test_the_defaults_that_are_told_are_those_of_a_description_without_settings(kind: str) -> None:
    written = json.loads(_core.check_queue(json.dumps({"kind": kind})))
    assert {name: field["default"] for name, field in VOCABULARY["queue"][kind].items()} | {"kind": kind} == written


def test_the_core_knows_every_kind_of_traffic_that_it_tells() -> None:
    with pytest.raises(ValueError) as refused:
        _core.check_app('{"kind": "none of them"}')
    assert all(f"`{kind}`" in str(refused.value) for kind in VOCABULARY["traffic"])
    assert str(refused.value).count("`") == 2 * (len(VOCABULARY["traffic"]) + 1)


def test_a_range_that_is_told_is_the_range_that_is_checked() -> None:
    payload = VOCABULARY["traffic"]["udp_source"]["payload_bytes"]
    source = {"kind": "udp_source", "to": "10.0.0.2", "port": 5003, "flow": 1, "rate_bps": 1000, "packets": 1}
    for allowed in (payload["minimum"], payload["maximum"]):
        _core.check_app(json.dumps(source | {"payload_bytes": allowed}))
    for refused in (payload["minimum"] - 1, payload["maximum"] + 1):
        with pytest.raises(ValueError, match="payload_bytes"):
            _core.check_app(json.dumps(source | {"payload_bytes": refused}))
