"""Queue configurations: their form in the lab protocol, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from twinnet import errors, qos


def test_htb_has_queue_0_and_open_vswitchs_defaults() -> None:
    queue = qos.Htb("1 Gbit", {1: qos.HtbQueue("512 Mbit", "512 Mbit")})
    assert queue.to_spec() == {
        "kind": "htb",
        "rate_bps": 10**9,
        "queues": {
            "0": {"min_rate_bps": 12_000, "max_rate_bps": 10**9, "burst_bytes": None, "priority": 0, "queue": None},
            "1": {
                "min_rate_bps": 512_000_000,
                "max_rate_bps": 512_000_000,
                "burst_bytes": None,
                "priority": 0,
                "queue": None,
            },
        },
    }


def test_disciplines_nest() -> None:
    inner = qos.Fifo(limit="3000 B")
    assert qos.Priority([inner, qos.Tbf("1 Mbit", "1514 B", inner)]).to_spec() == {
        "kind": "priority",
        "bands": [
            {"kind": "fifo", "limit_bytes": 3000},
            {
                "kind": "tbf",
                "rate_bps": 1_000_000,
                "burst_bytes": 1514,
                "queue": {"kind": "fifo", "limit_bytes": 3000},
            },
        ],
    }
    assert qos.Drr([qos.DrrClass("1514 B")]).to_spec() == {
        "kind": "drr",
        "classes": [{"quantum_bytes": 1514, "queue": {"kind": "fifo", "limit_frames": 1000}}],
    }


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: qos.Fifo(limit_frames=0), "limit_frames is 0"),
        (lambda: qos.Fifo(limit_frames=5, limit="5 kB"), "not both"),
        (lambda: qos.Fifo(limit="5"), "has no unit"),
        (lambda: qos.Priority([]), "0 bands"),
        (lambda: qos.Drr([qos.DrrClass("0 B")]), "never send"),
        (lambda: qos.Tbf("1 Mbit", "0 B"), "no frame could ever pass"),
        (lambda: qos.HtbQueue("2 Mbit", "1 Mbit"), "is above max_rate"),
        (lambda: qos.Htb("1 Mbit", {1: qos.HtbQueue("2 Mbit")}), "above the port's rate"),
        (lambda: qos.Htb("1 Mbit", {-1: qos.HtbQueue()}), "queue number -1"),
        (lambda: qos.Htb("1 Mbit", {1: qos.Fifo()}), "tn.qos.HtbQueue"),  # type: ignore[dict-item]
        (lambda: qos.Htb(1000), "has no unit"),  # type: ignore[arg-type]
    ],
)
def test_contradictions_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(errors.BadValue) as caught:
        make()
    assert message in str(caught.value)
