"""What the page is told of links, from their counters at two moments."""

from __future__ import annotations

from typing import Any

import pytest
import twinnet as tn
from fake_lab import FakeLab
from labs_here import needs_a_lab
from twinnet.live.watch import DROPS, LabWatch, is_lossy, network_record, way_record

REASONS = ["overlimit", "early", "unclassified", "down", "oversize", "unfragmentable"]
COUNTERS = [
    "up",
    "lossy",
    "rate_bps",
    "link_bytes",
    "wire_bytes",
    "backlog_frames",
    "lost",
    "marked",
    *(f"dropped_{reason}" for reason in REASONS),
]


NOTHING: dict[str, Any] = {"columns": COUNTERS, "rows": []}


def way(rate_bps: int = 10_000_000, up: bool = True, **counters: int) -> dict[str, int]:
    return dict.fromkeys(COUNTERS, 0) | {"rate_bps": rate_bps, "up": int(up)} | counters


def with_links(network: tn.Network) -> FakeLab:
    """A lab that tells the links of `network` as they were described."""
    fake = FakeLab(network)
    rows = [
        {
            "a": link["a"]["node"],
            "b": link["b"]["node"],
            **{way: {"port": f"{way}{at}", "up": True, "config": link[way]} for way in ("ab", "ba")},
        }
        for at, link in enumerate(fake.spec["links"])
    ]
    fake.answers["links"] = lambda _: rows
    return fake


def test_rate_is_of_frames_and_load_of_the_line() -> None:
    before, after = way(link_bytes=1000, wire_bytes=1100), way(link_bytes=126_000, wire_bytes=157_350, backlog_frames=7)
    assert way_record(before, after, 0.25) == [4_000_000, 0.5, 7, 0, True, 10_000_000]


def test_a_line_without_a_rate_has_no_load() -> None:
    assert way_record(way(0), way(0, up=False, link_bytes=125), 1.0) == [1000, None, 0, 0, False, None]


def test_drops_of_every_reason_count_once_and_marks_stand_beside_them() -> None:
    after = {name: 1 for name in COUNTERS if name.startswith("dropped") or name == "lost"}
    told = way_record(way(), way(**after, marked=50), 1.0)
    assert told[3] == 7 and told[6] == {"drops": dict.fromkeys([*REASONS, "loss"], 1), "marks": 50}
    # What did not grow is left out, and so is all of it where there is nothing.
    assert way_record(way(lost=3), way(lost=5), 1.0)[6] == {"drops": {"loss": 2}}
    assert way_record(way(lost=3), way(lost=3, link_bytes=1), 1.0) == [8, 0, 0, 0, True, 10_000_000]


@pytest.mark.parametrize("clock", ["virtual", pytest.param("wall", marks=needs_a_lab)])
def test_the_lab_tells_in_rows_what_it_tells_of_links(clock: str) -> None:
    net = tn.templates.single(2, rate="10 Mbit", loss="1 %")
    net.links[0].ba["loss"] = None
    with net.simulate() if clock == "virtual" else net.emulate() as lab:
        lab.link("h2", "s1").set(up=False, rate=None)
        lab.run_until(f"{lab.now_ps() + 10**11} ps")
        told, links = lab.connection.links_counters(), lab.links()
    rows = [dict(zip(told["columns"], row, strict=True)) for row in told["rows"]]
    ways = [link[way] for link in links for way in ("ab", "ba")]
    assert [(row["up"], row["rate_bps"] or None) for row in rows] == [
        (int(bool(way["up"])), (way["config"] or {})["rate_bps"]) for way in ways
    ]
    assert [bool(row["lossy"]) for row in rows] == [is_lossy(way["config"] or {}) for way in ways]
    assert {*DROPS.values(), "marked", "link_bytes", "wire_bytes"} < set(told["columns"])


@pytest.mark.parametrize(
    ("settings", "loses"),
    [
        ({"rate_bps": 1}, False),
        ({"loss": None}, False),
        ({"loss": {"model": "bernoulli", "probability": 0.01}}, True),
        ({"loss": {"model": "bernoulli", "probability": 0.0}}, False),
        ({"loss": {"model": "gilbert_elliott", "to_bad": 0.1}}, True),
    ],
)
def test_a_line_with_a_loss_that_is_not_zero_is_lossy(settings: dict[str, Any], loses: bool) -> None:
    assert is_lossy(settings) is loses


def test_the_first_look_has_nothing_to_compare_with_and_so_has_one_after_a_rest() -> None:
    fake = FakeLab(tn.templates.single(2))
    fake.answers["links.counters"] = lambda _: NOTHING
    watch = LabWatch(fake.lab)
    assert watch.look() is None
    # The clock of this lab stands still: nothing has happened that a rate could be told of.
    assert watch.look() is None
    watch.rest()
    assert watch.look() is None
    assert [one["do"] for one in fake.requests] == ["describe"] + ["now", "links.counters", "now"] * 3


def test_a_look_in_which_the_lab_was_held_up_is_left_out_and_the_next_is_compared_with_the_one_before() -> None:
    fake = FakeLab(tn.templates.single(2))
    fake.answers["links.counters"] = lambda _: NOTHING
    moments_ms = iter([1000, 1002, 1250, 1256, 1500, 1504])
    fake.answers["now"] = lambda _: {"now_ps": next(moments_ms) * 10**9}
    fake.answers["fidelity"] = lambda _: {"clock": "virtual"}
    fake.answers["ports"] = lambda _: []
    watch = LabWatch(fake.lab)
    assert watch.look() is None
    assert watch.look() is None
    told = watch.look()
    assert told is not None and (told["now_s"], told["elapsed_s"]) == (1.502, 0.501)


@needs_a_lab
def test_a_line_that_is_full_is_told_so() -> None:
    with tn.templates.single(2, rate="10 Mbit").emulate() as lab:
        told = network_record(lab)
        assert [node["name"] for node in told["nodes"]] == ["s1", "h1", "h2"]
        place = 2 * [link["a_port"] for link in told["links"]].index("h1-eth0")
        flow = lab.start(tn.apps.udp("h1", "h2", rate="20 Mbit", duration="10 s"))
        lab.run_until(f"{lab.now_ps() + 5 * 10**11} ps")
        watch = LabWatch(lab)
        # The first look tells nothing, nor does one in which a busy machine held the lab up.
        seen = None
        watch.look()
        for _ in range(12):
            lab.run_until(f"{lab.now_ps() + 5 * 10**11} ps")
            if (seen := watch.look()) is not None:
                break
        flow.stop()
    assert seen is not None
    rate_bps, load, _, _, up, line_bps = seen["ways"][place]
    # One frame of 1538 bytes in half a second is 0.25 %; the moment is known to about a millisecond, 0.2 %.
    # A busy machine may hold up the sender, and so leave the line idle for a while.
    assert 0.75 < load < 1.02 and (up, line_bps) == (True, 10_000_000)
    assert rate_bps < load * line_bps
    assert seen["verdict"]["state"] in ("valid", "doubtful", "invalid")


def test_a_queue_with_classes_is_told_by_class() -> None:
    net = tn.Network()
    switch = net.switch("s1")
    for name, rate in (("h1", "100 Mbit"), ("h2", "10 Mbit")):
        net.link(net.host(name), switch, rate=rate)
    inside = tn.qos.Priority([tn.qos.Fifo(), tn.qos.Fifo(limit_frames=5)])
    switch.ports[1].queue = tn.qos.Drr([tn.qos.DrrClass("1500 B"), tn.qos.DrrClass("1500 B", inside)])
    switch.fail_mode = "secure"
    switch.flows = [
        "priority=2,udp,tp_dst=5001,actions=set_queue:1,output:2",
        "priority=1,in_port=1,actions=output:2",
        "in_port=2,actions=output:1",
    ]
    with net.simulate() as lab:
        watch = LabWatch(lab)
        for port in (5001, 5002):
            lab.start(tn.apps.udp("h1", "h2", rate="8 Mbit", duration="20 s", port=port))
        looks: list[Any] = []
        for _ in range(3):
            lab.run_until(f"{lab.now_ps() + 10**12} ps")
            looks.append(watch.look())
    # The second link is that of h2, and its way back that of the switch.
    ports = [port for link in net.links for port in (link.a.name, link.b.name)]
    way = looks[-1]["ways"][ports.index("s1-eth2")]
    # The class 0, and of the class 1 its second band, which is short: bands go by the same number.
    # The port counts the frame that it is sending, too.
    waiting = way[6]["classes"]
    assert len(way) == 7 and way[2] - 1 <= sum(waiting) <= way[2] and way[2] > 100
    assert waiting[1] == 0 and 0 < waiting[2] <= 5
    # Ports without classes have none.
    assert [len(one) for one in looks[-1]["ways"]].count(6) == 3


def test_the_same_network_has_the_same_places_and_a_huge_one_is_refused() -> None:
    fake = with_links(tn.templates.tree(2, 2))
    assert network_record(fake.lab) == network_record(fake.lab)
    with pytest.raises(tn.errors.BadValue, match="cannot be drawn"):
        network_record(with_links(tn.templates.single(2_000)).lab)
