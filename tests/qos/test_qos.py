"""Queue configurations: their form in the lab protocol, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import twinnet as tn
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
    assert qos.Priority([inner, qos.Tbf("1 Mbit", "1518 B", inner)]).to_spec() == {
        "kind": "priority",
        "bands": [
            {"kind": "fifo", "limit_bytes": 3000},
            {
                "kind": "tbf",
                "rate_bps": 1_000_000,
                "burst_bytes": 1518,
                "queue": {"kind": "fifo", "limit_bytes": 3000},
            },
        ],
    }
    assert qos.Fifo(limit_frames=5, limit="5 kB").to_spec() == {"kind": "fifo", "limit_frames": 5, "limit_bytes": 5000}
    assert qos.Drr([qos.DrrClass("1514 B")]).to_spec() == {
        "kind": "drr",
        "classes": [{"quantum_bytes": 1514, "queue": None}],
    }


def test_active_queue_management_has_the_defaults_of_its_sources() -> None:
    ms = 10**9
    assert qos.Codel().to_spec() == {
        "kind": "codel",
        "limit_frames": 1000,
        "target_ps": 5 * ms,
        "interval_ps": 100 * ms,
        "ecn": False,
    }
    fq_codel = qos.FqCodel().to_spec()
    assert (fq_codel["limit_frames"], fq_codel["limit_bytes"], fq_codel["flows"]) == (10_240, 32 << 20, 1024)
    assert (fq_codel["target_ps"], fq_codel["quantum_bytes"], fq_codel["ecn"]) == (5 * ms, 1514, True)
    pie = qos.Pie(burst="0 s").to_spec()
    assert (pie["target_ps"], pie["update_ps"], pie["burst_ps"]) == (15 * ms, 15 * ms, 0)
    red = qos.Red(min="10 kB").to_spec()
    assert (red["min_bytes"], red["max_bytes"], red["limit_bytes"], red["rate_bps"]) == (10_000, 30_000, 120_000, None)
    sfq = qos.Sfq(perturb="0 s").to_spec()
    assert (sfq["limit_frames"], sfq["buckets"], sfq["perturb_ps"]) == (127, 1024, 0)


def test_cbq_has_its_classes_by_number() -> None:
    spec = qos.Cbq(
        "10 Mbit", {9: qos.CbqClass("6 Mbit"), 1: qos.CbqClass("2 Mbit", parent=9, queue=qos.Sfq())}
    ).to_spec()
    assert list(spec["classes"]) == ["1", "9"]
    assert spec["classes"]["1"]["parent"] == 9
    assert spec["classes"]["1"]["queue"]["kind"] == "sfq"
    assert spec["classes"]["9"]["queue"] is None


@pytest.mark.parametrize(
    "queue",
    [
        qos.Sfq(perturb="0 s"),
        qos.Red("15 kB", rate="1 Mbit", ecn=True),
        qos.Codel(),
        qos.FqCodel(),
        qos.Pie(burst="0 s"),
        qos.Cbq("10 Mbit", {9: qos.CbqClass("6 Mbit"), 1: qos.CbqClass("2 Mbit", parent=9, queue=qos.FqCodel())}),
    ],
)
def test_the_core_takes_what_python_writes(queue: qos.Queue) -> None:
    network = tn.Network()
    network.link(network.host("h1"), network.switch("s1"), rate="10 Mbit", queue_b=queue)
    with network.simulate() as lab:
        counters = next(port["counters"] for port in lab.ports() if port["port"] == "s1-eth1")
        assert counters["marked"] == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: qos.Fifo(limit_frames=0), "limit_frames is 0"),
        (lambda: qos.Fifo(limit="5"), "has no unit"),
        (lambda: qos.Priority([]), "0 bands"),
        (lambda: qos.Drr([qos.DrrClass("0 B")]), "allowed are 1 B to"),
        (lambda: qos.Tbf("1 Mbit", "1517 B"), "would never let one through"),
        (lambda: qos.HtbQueue("2 Mbit", "1 Mbit"), "is above max_rate"),
        (lambda: qos.Htb("1 Mbit", {1: qos.HtbQueue("2 Mbit")}), "above the port's rate"),
        (lambda: qos.Htb("1 Mbit", {-1: qos.HtbQueue()}), "queue number -1"),
        (lambda: qos.Htb("1 Mbit", {1: qos.Fifo()}), "tn.qos.HtbQueue"),  # type: ignore[dict-item]
        (lambda: qos.Htb(1000), "has no unit"),  # type: ignore[arg-type]
        (lambda: qos.Sfq(buckets=126), "from 127 to 65536"),
        (lambda: qos.Sfq(quantum="10 B"), "64 B to"),
        (lambda: qos.Red("0 B"), "1 B to"),
        (lambda: qos.Red("10 kB", max="10 kB"), "not above min"),
        (lambda: qos.Red("10 kB", limit="20 kB"), "below max, 30000 B"),
        (lambda: qos.Red("10 kB", max_probability=0), "above 0"),
        (lambda: qos.Codel(limit_frames=0), "limit_frames is 0"),
        (lambda: qos.Codel(target="5"), "has no unit"),
        (lambda: qos.Codel(interval="2000 s"), "1 us to 1000 s"),
        (lambda: qos.FqCodel(flows=0), "flows is 0"),
        (lambda: qos.Pie(update="10 us"), "1 ms to"),
        (lambda: qos.Pie(ecn=1), "True and False"),  # type: ignore[arg-type]
        (lambda: qos.CbqClass("1 Mbit", priority=8), "from 0 to 7"),
        (lambda: qos.Cbq("1 Mbit", {}), "0 classes"),
        (lambda: qos.Cbq("1 Mbit", {1: qos.CbqClass("2 Mbit")}), "below the link have 2 Mbit"),
        (lambda: qos.Cbq("1 Mbit", {1: qos.CbqClass("1 Mbit", parent=1)}), "circle"),
        (lambda: qos.Cbq("1 Mbit", {1: qos.CbqClass("1 Mbit", parent=3)}), "3, which is not given"),
        (
            lambda: qos.Cbq("1 Mbit", {1: qos.CbqClass("1 kbit", 2), 2: qos.CbqClass("1 kbit", 1)}),
            "circle",
        ),
        (
            lambda: qos.Cbq("1 Mbit", {1: qos.CbqClass("1 Mbit", queue=qos.Fifo()), 2: qos.CbqClass("1 kbit", 1)}),
            "has a queue and classes below",
        ),
    ],
)
def test_contradictions_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(errors.BadValue) as caught:
        make()
    assert message in str(caught.value)


def test_each_discipline_and_class_describes_itself():
    described = [*tn.qos.Queue.disciplines, tn.qos.CbqClass, tn.qos.HtbQueue, tn.qos.DrrClass]
    summaries = [one.__doc__.split("\n\n")[0] for one in described]
    assert len(set(summaries)) == len(summaries)
    assert not [one for one in summaries if one in ("One class.", "One queue.")]
