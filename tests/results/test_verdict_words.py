"""What a verdict says: the figure in its unit, whose it is, and the limits that it is held to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fidelity_records import good, put
from fidelity_sources import SOURCES
from twinnet.errors import BadValue
from twinnet.results.fidelity import FidelityRecord
from twinnet.results.fidelity_verdict import Limit, Thresholds

MS_PS, MS_NS = 10**9, 10**6


def reasons(changes: dict[str, Any], limits: Thresholds | None = None) -> tuple[str, ...]:
    record = good()
    for path, value in changes.items():
        put(record, path, value)
    return FidelityRecord.from_spec(record).verdict(limits).reasons


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"lateness_ns.tail": 2 * MS_NS},
            "one frame in 1000 was late by more than 2 ms (doubtful above 1 ms, invalid above 10 ms)",
        ),
        (
            {"lateness_ns.tail": 2 * MS_NS, "lateness_ns.count": 999, "lateness_ns.late": 3},
            "of 999 frames 3 were late by more than 1 ms, all but the latest by up to 2 ms"
            " (doubtful above 1 ms, invalid above 10 ms)",
        ),
        (
            {"lateness_ns.tail": 2 * MS_NS, "lateness_ns.count": 99, "lateness_ns.late": 1},
            "of 99 frames 1 were late by more than 1 ms, the latest by up to 2 ms"
            " (doubtful above 1 ms, invalid above 10 ms)",
        ),
        (
            {"lateness_ns.max": 20 * MS_NS},
            "one frame was late by 20 ms (doubtful above 10 ms, invalid above 100 ms)",
        ),
        (
            {"longest_slip_ps": 12 * MS_PS},
            "the fabric, or a line with frames to carry, stood still for 12 ms"
            " (doubtful above 10 ms, invalid above 100 ms)",
        ),
        (
            {"pauses.worst_second_ps": 50 * MS_PS},
            "the fabric stood still for 5 % of the worst second (doubtful above 1 %, invalid above 5 %)",
        ),
        (
            {"traffic.paused_share": 0.03, "traffic.moving_ps": 1500 * MS_PS},
            "the fabric stood still for 3 % of the 1.5 s in which frames moved (doubtful above 1 %, invalid above 5 %)",
        ),
        (
            {"busiest_line.share": 0.5, "pauses.worst_second_beyond_ps": 15 * MS_PS},
            "pauses had filled the queue of s1-eth1 (busy for 50 % without TCP), so frames left late for up to 3 % of"
            " the worst second (doubtful above 1 %)",
        ),
        (
            {"overload_drops": 10, "ingress_drops": 5, "interface_drops": 5, "handed_over": 1980},
            "1 % of the frames were lost by overload of the machine (10 that hosts' interfaces did not take, 5 that"
            " were not read in time, 5 that were not read in time on links with a rate)"
            " (doubtful above 0 %, invalid above 0.5 %)",
        ),
        (
            {"worst_lines.missing.port": "s9-eth1", "worst_lines.missing.lost_ps": 10 * MS_PS},
            "the line of s9-eth1 slipped by 0.5 % of the time (doubtful above 0.1 %, invalid above 1 %)",
        ),
        (
            {
                "worst_lines.worst_second.port": "s9-eth1",
                "worst_lines.worst_second.missing_in_worst_second_ps": 20 * MS_PS,
            },
            "the line of s9-eth1 slipped by 2 % of its worst second (doubtful above 1 %, invalid above 5 %)",
        ),
        (
            {"agent.lateness_ns.p99": 2 * MS_NS},
            "one timer in 100 of the built-in apps was late by more than 2 ms"
            " (doubtful above 1 ms, invalid above 10 ms)",
        ),
        (
            {"agent.lateness_ns.p99": 2 * MS_NS, "agent.timers": 99},
            "of 99 timers of the built-in apps the latest was late by 2 ms (doubtful above 1 ms, invalid above 10 ms)",
        ),
        (
            {"agent.pauses.longest_ps": 12 * MS_PS},
            "the built-in apps stood still for 12 ms (doubtful above 10 ms, invalid above 100 ms)",
        ),
        (
            {"programs.stops.longest_ps": 30 * MS_PS, "programs.stops.program": "iperf3 in h2"},
            "a signal stopped a host's program (iperf3 in h2) for 30 ms (doubtful above 1 ms, invalid above 100 ms)",
        ),
        (
            {"programs.stops.total_ps": 50 * MS_PS},
            "signals stopped hosts' programs for 2.5 % of the time in which frames moved"
            " (doubtful above 1 %, invalid above 5 %)",
        ),
        (
            {
                "machine.programs_held.longest_s": 0.015,
                "machine.programs_held.program": "iperf3",
                "machine.programs_held.by": "tracer",
            },
            "a debugger or tracer held a program of the lab (iperf3) for up to 15 ms"
            " (doubtful above 1 ms, invalid above 100 ms)",
        ),
        (
            {"machine.programs_held.total_s": 0.09, "machine.programs_held.by": "frozen"},
            "a frozen control group held a program of the lab () for 4.5 % of the time in which frames moved"
            " (doubtful above 1 %, invalid above 5 %)",
        ),
        (
            {
                "machine.programs_waited.late_turns.waited_s": 0.04,
                "machine.programs_waited.late_turns.program": "iperf3",
            },
            "a host's program (iperf3) waited for 2 % of the time for turns at a processor that came late"
            " (doubtful above 1 %, invalid above 5 %)",
        ),
        (
            {"programs.dropped_datagrams.h2": 20},
            "sockets of a host with programs had no room for 0.99 % of the datagrams that came to it (h2 20)"
            " (doubtful above 0 %, invalid above 5 %)",
        ),
        (
            {
                "programs.dropped_datagrams.h2": 20,
                "programs.read_datagrams.h2": 480,
                "programs.dropped_datagrams.h3": 1,
                "programs.read_datagrams.h3": 999,
            },
            "sockets of a host with programs had no room for 4 % of the datagrams that came to it (h2 20, h3 1)"
            " (doubtful above 0 %, invalid above 5 %)",
        ),
        (
            {"controllers.longest_pause_ps": 25 * MS_PS},
            "a controller in the process of the lab's owner stood still for 25 ms"
            " (doubtful above 20 ms, invalid above 100 ms)",
        ),
        (
            {"machine.agent_waited.worst_second_s": 0.2},
            "the agent, which runs the built-in apps, waited for a processor for 20 % of the worst second"
            " (doubtful above 10 %)",
        ),
        (
            {"machine.throttled.worst_second_s": 0.03},
            "a quota stopped the lab's control group for 3 % of the worst second"
            " (doubtful above 0 %, invalid above 5 %)",
        ),
        ({"steal_s": 0.2}, "the hypervisor took 5 % of the CPU (doubtful above 1 %, invalid above 5 %)"),
    ],
)
def test_a_reason_says_the_figure_in_its_unit_whose_it_is_and_the_limits(changes: dict[str, Any], said: str) -> None:
    assert reasons(changes) == (said,)


def test_a_sender_that_could_not_keep_up_is_told_with_how_far_behind_it_was() -> None:
    kept_from = "1 built-in senders could not keep up: the machine, and no model, decided what was sent"
    few, many = (reasons({"agent.overloaded_senders": 1, "agent.unsent_share": share}) for share in (0.02, 0.3))
    assert few == (
        "a built-in sender was behind by 2 % of its time when that was over (doubtful above 0 %, invalid above 5 %)",
        kept_from,
    )
    assert many[0].startswith("a built-in sender was behind by 30 % of its time")


@pytest.mark.parametrize(
    "changes",
    [
        {"agent.overloaded_senders": 1, "agent.unsent_share": 0.06},
        {"programs.dropped_datagrams.h2": 60, "programs.read_datagrams.h2": 940},
        {"machine.programs_waited.late_turns.waited_s": 0.11},
        {"machine.programs_held.longest_s": 0.101},
        {"machine.programs_held.total_s": 0.11},
        {"programs.stops.longest_ps": 101 * MS_PS},
        {"programs.stops.total_ps": 110 * MS_PS},
        {"agent.pauses.longest_ps": 90 * MS_PS, "traffic.moving_ps": 1000 * MS_PS},
        {"pauses.worst_second_ps": 51 * MS_PS},
        {"controllers.longest_pause_ps": 101 * MS_PS},
        {"machine.throttled.worst_second_s": 0.051},
        {"steal_s": 0.21},
    ],
)
def test_what_may_be_more_than_5_percent_or_100_ms_off_is_not_doubtful_but_invalid(changes: dict[str, Any]) -> None:
    record = good()
    for path, value in changes.items():
        put(record, path, value)
    verdict = FidelityRecord.from_spec(record).verdict()
    assert (verdict.state, verdict.promise) == ("invalid", "nothing")


def test_a_doubtful_verdict_says_how_far_off_its_numbers_may_be() -> None:
    record = good()
    put(record, "programs.stops.longest_ps", 30 * MS_PS)
    verdict = FidelityRecord.from_spec(record).verdict()
    assert verdict.promise == "rates, counts and losses within 5 %, and delays within 5 % or 100 ms"
    assert str(verdict).startswith(f"doubtful ({verdict.promise}): a signal stopped")
    assert str(FidelityRecord.from_spec(good()).verdict()) == "valid"


def test_what_was_not_counted_is_said() -> None:
    def of(**changes: Any) -> tuple[str, ...]:
        return FidelityRecord.from_spec(good() | changes).verdict().reasons

    assert of(elapsed_ps=0) == ("the record covers no time",)
    assert of(elapsed_ps=1) == ()
    assert of(sources=None) == ("the record does not say what this machine could count",)
    (said,) = of(sources=SOURCES | {"steal": False, "quota": False})
    assert said == (
        "this machine does not report what a quota of its control group takes (cpu.stat), nor what the hypervisor takes"
        " (the steal in /proc/stat)"
    )


def test_a_fault_of_our_own_is_said_with_the_first_state_on_both_clocks() -> None:
    fault = {"impossible_states": 2, "first_impossible_state": "a frame from nowhere"}
    said = "twinnet met 2 states that cannot be, a fault of its own; report the first: a frame from nowhere"
    for clock in ("wall", "virtual"):
        verdict = FidelityRecord.from_spec(good() | fault | {"clock": clock}).verdict()
        assert verdict.state == "invalid" and verdict.reasons == (said,)


def test_of_many_ports_five_are_named() -> None:
    by_port = {f"s1-eth{number}": number for number in range(1, 8)}
    (said,) = reasons({"interface_drops": 28, "interface_drops_by_port": by_port})
    named = "s1-eth1 1, s1-eth2 2, s1-eth3 3, s1-eth4 4, s1-eth5 5"
    assert f"28 that were not read in time on links with a rate: {named})" in said


def test_of_two_lines_the_one_that_lost_more_is_named() -> None:
    lines = {f"worst_lines.{of}.lost_ps": lost * MS_PS for of, lost in (("missing", 30), ("latest", 10))}
    names = {f"worst_lines.{of}.port": f"{of}-eth1" for of in ("missing", "latest")}
    assert reasons(lines | names)[0].startswith("the line of missing-eth1 slipped by 1.5 % of the time")


def test_thresholds_are_read_from_pairs_and_limits() -> None:
    read = Thresholds.from_mapping({"steal_share": [0.05, 0.2], "longest_slip_ns": Limit(1, 2)})
    assert read == replace(Thresholds(), steal_share=Limit(0.05, 0.2), longest_slip_ns=Limit(1, 2))
    with pytest.raises(BadValue, match="there is no threshold 'stolen'"):
        Thresholds.from_mapping({"stolen": [0, 1]})
    assert reasons({"steal_s": 0.2}, read) == ()
    (said,) = reasons({"steal_s": 0.4}, read)
    assert said == "the hypervisor took 10 % of the CPU (doubtful above 5 %, invalid above 20 %)"
