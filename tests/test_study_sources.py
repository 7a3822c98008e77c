"""Traffic of study files that is told datagram by datagram or frame by frame."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from twinnet.apps import Flow
from twinnet.study.execute import app_traffic
from twinnet.study.specification import Traffic

UDP: dict[str, Any] = {"name": "t", "app": "udp", "from": ["h1"], "to": "h2", "port": 5003, "duration": "1 s"}
RTP: dict[str, Any] = UDP | {"app": "rtp", "port": 5004}


def sender_of(entry: dict[str, Any]) -> dict[str, Any]:
    flow = app_traffic(Traffic.model_validate(entry), "h1", 10**12)
    assert isinstance(flow, Flow)
    return dict(flow.sender.fields)


def test_a_trace_is_repeated_for_the_duration() -> None:
    fields = sender_of(UDP | {"trace": [["2 ms", "100 B"], ["0 s", "1000 B"]], "exact": True})
    assert (fields["trace"], fields["repeat"]) == ([[2_000_000_000, 100], [0, 1000]], True)
    assert (fields["exact"], fields["duration_ps"]) == (True, 10**12)


def test_frame_sizes_take_the_place_of_the_model() -> None:
    fields = sender_of(RTP | {"frame_sizes": ["5 kB", "800 B"], "frames_per_second": 25})
    assert fields["frame_bytes"] == [5000, 800] and "model" not in fields


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (UDP, "either 'rate', 'gap' or 'trace'"),
        (UDP | {"rate": "1 Mbit", "trace": [["1 ms", "100 B"]]}, "either 'rate', 'gap' or 'trace'"),
        (UDP | {"trace": [["0 s", "100 B"]]}, "one of its gaps must be above zero"),
        (UDP | {"trace": [["1 ms", "5 B"]]}, "16 B to 65507 B"),
        (UDP | {"trace": [["1 ms", "100 B"]], "payload": "100 B"}, "leave 'payload' out"),
        (UDP | {"rate": "1 Mbit", "using": "programs", "exact": True}, "write 'using: apps'"),
        (RTP | {"rate": "1 Mbit", "frame_sizes": ["1 kB"]}, "leave 'rate' out"),
        (RTP | {"trace": [["1 ms", "100 B"]]}, "'trace' has no meaning for rtp traffic"),
    ],
)
def test_contradictions_are_refused(entry: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Traffic.model_validate(entry)
