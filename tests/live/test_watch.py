"""What the page is told of links, from their counters at two moments."""

from __future__ import annotations

from typing import Any

import pytest
import twinnet as tn
from fake_lab import FakeLab
from labs_here import needs_a_lab
from twinnet.live.watch import LabWatch, network_told, way_told

DROPS = ["overlimit", "early", "unclassified", "down", "oversize", "unfragmentable"]
COUNTERS = ["link_bytes", "wire_bytes", "backlog_frames", "lost", *(f"dropped_{reason}" for reason in DROPS)]


def way(rate_bps: int | None = 10_000_000, up: bool = True, **counters: int) -> dict[str, Any]:
    return {"config": {"rate_bps": rate_bps}, "up": up, "counters": dict.fromkeys(COUNTERS, 0) | counters}


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
    assert way_told(before, after, 0.25) == [4_000_000, 0.5, 7, 0, True, 10_000_000]


def test_a_line_without_a_rate_has_no_load() -> None:
    assert way_told(way(None), way(None, up=False, link_bytes=125), 1.0) == [1000, None, 0, 0, False, None]


def test_drops_of_every_reason_count_once_and_marks_do_not() -> None:
    after = {name: 1 for name in COUNTERS if name.startswith("dropped") or name == "lost"}
    assert way_told(way(), way(**after, marked=50), 1.0)[3] == 7


def test_the_first_look_has_nothing_to_compare_with_and_so_has_one_after_a_rest() -> None:
    fake = FakeLab(tn.templates.single(2))
    fake.answers["links"] = lambda _: []
    watch = LabWatch(fake.lab)
    assert watch.look() is None
    # The clock of this lab stands still: nothing has happened that a rate could be told of.
    assert watch.look() is None
    watch.rest()
    assert watch.look() is None
    assert [one["do"] for one in fake.requests] == ["now", "links", "now"] * 3


def test_a_look_in_which_the_lab_was_held_up_is_left_out_and_the_next_is_compared_with_the_one_before() -> None:
    fake = FakeLab(tn.templates.single(2))
    fake.answers["links"] = lambda _: []
    moments_ms = iter([1000, 1002, 1250, 1256, 1500, 1504])
    fake.answers["now"] = lambda _: {"now_ps": next(moments_ms) * 10**9}
    fake.answers["fidelity"] = lambda _: {"clock": "virtual"}
    watch = LabWatch(fake.lab)
    assert watch.look() is None
    assert watch.look() is None
    told = watch.look()
    assert told is not None and (told["now_s"], told["elapsed_s"]) == (1.502, 0.501)


@needs_a_lab
def test_a_line_that_is_full_is_told_so() -> None:
    with tn.templates.single(2, rate="10 Mbit").emulate() as lab:
        told = network_told(lab)
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


def test_the_same_network_has_the_same_places_and_a_huge_one_is_refused() -> None:
    fake = with_links(tn.templates.tree(2, 2))
    assert network_told(fake.lab) == network_told(fake.lab)
    with pytest.raises(tn.errors.BadValue, match="cannot be drawn"):
        network_told(with_links(tn.templates.single(500)).lab)
