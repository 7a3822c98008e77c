"""A keyword that traffic or a queue does not take is answered with the nearest that it does."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, cast

import pytest
import twinnet as tn
from twinnet.errors import BadValue


@pytest.mark.parametrize(
    ("make", "settings", "meant"),
    [
        (tn.apps.udp, {"rat": "1 Mbit"}, "rate"),
        (tn.apps.udp, {"bandwidth": "1 Mbit"}, "rate"),
        (tn.apps.tcp, {"cc": "bbr"}, "congestion_control"),
    ],
)
def test_a_wrong_keyword_of_traffic_is_answered(make: Any, settings: dict[str, str], meant: str) -> None:
    with pytest.raises(BadValue, match=f"did you mean '{meant}'"):
        cast("Callable[..., object]", make)("h1", "h2", **settings)


def test_a_wrong_keyword_of_a_queue_is_answered() -> None:
    with pytest.raises(BadValue, match="did you mean 'target'"):
        cast("Callable[..., object]", tn.qos.Codel)(taget="5 ms")


def test_traffic_can_be_copied_and_pickled() -> None:
    flow = tn.apps.udp("h1", "h2", rate="1 Mbit", duration="1 s")
    assert copy.deepcopy(flow) == flow == pickle.loads(pickle.dumps(flow))
