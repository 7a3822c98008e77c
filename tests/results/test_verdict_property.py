"""A run is not trusted more because one of its counters is worse."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from fidelity_records import TIMES, good, put
from fidelity_sources import SOURCES
from hypothesis import example, given, settings
from hypothesis import strategies as st
from twinnet.results.fidelity import FidelityRecord

RANKS = {"valid": 0, "doubtful": 1, "invalid": 2}
LINE = ("lost_ps", "missing_in_worst_second_ps", "latest_ps", "lateness_ns.tail", "lateness_ns.max")
PAUSES = ("longest_ps", "worst_second_ps", "worst_second_beyond_ps")

S_PS, S_NS = 10**12, 10**9
COUNTERS: Mapping[str, float] = {
    **dict.fromkeys(("lateness_ns.tail", "lateness_ns.max", "agent.lateness_ns.p99"), S_NS),
    **dict.fromkeys(("slipped_ps", "missing_in_worst_second_ps", "longest_slip_ps"), S_PS),
    **dict.fromkeys(("overload_drops", "ingress_drops", "interface_drops", "agent.overflowed_datagrams"), 5000),
    **dict.fromkeys(("impossible_states", "agent.overloaded_senders"), 3),
    **{f"pauses.{name}": S_PS for name in PAUSES},
    **{f"agent.pauses.{name}": S_PS for name in PAUSES},
    **{f"agent.pauses.worst_second_over_ps.{place}.1": S_PS for place in range(3)},
    **{
        f"{place}.{name}": S_NS if "lateness" in name else S_PS
        for place in (
            "worst_lines.missing",
            "worst_lines.worst_second",
            "worst_lines.latest",
            "worst_lines.late_frames",
        )
        for name in LINE
    },
    **{f"lines.0.{name}": S_NS if "lateness" in name else S_PS for name in LINE},
    **dict.fromkeys(("traffic.paused_share", "traffic.paused_beyond_share", "busiest_line.share"), 1.0),
    "long_lines": 5,
    **{f"machine.{name}.worst_second_s": 1.0 for name in TIMES},
    "machine.programs_waited.worst_window.share": 1.0,
    "steal_s": 2.0,
    "agent.unsent_share": 1.0,
    "machine.programs_waited.late_turns.waited_s": 1.0,
    "machine.programs_held.longest_s": 1.0,
    "machine.programs_held.total_s": 1.0,
    "programs.stops.longest_ps": S_PS,
    "programs.stops.total_ps": S_PS,
    "programs.dropped_datagrams.h2": 5000,
    "controllers.longest_pause_ps": S_PS,
}
"""What grows when a run is worse, and the most that is drawn of it."""
SHOWN = ("agent.pauses.worst_second_ps", "agent.pauses.worst_second_beyond_ps")
"""For showing only: `worst_second_over_ps` says what these say of the built-in apps, and more."""
FALLING = ("regained_ps", "worst_lines.missing.regained_ps")
"""What falls when a run is worse."""


def rank(record: dict[str, Any]) -> int:
    return RANKS[FidelityRecord.from_spec(record).verdict().state]


def drawn(path: str) -> st.SearchStrategy[float]:
    most = COUNTERS.get(path, S_PS)
    # Most records are near the thresholds: small parts of the most.
    parts = st.one_of(st.just(0.0), st.floats(0, 0.02), st.floats(0, 1))
    return parts.map(lambda part: part * most if isinstance(most, float) else round(part * most))


RECORDS = st.dictionaries(st.sampled_from([*COUNTERS, *FALLING]), st.floats(0, 1), max_size=6).flatmap(
    lambda chosen: st.fixed_dictionaries({path: drawn(path) for path in chosen})
)


@pytest.mark.parametrize("path", [path for path in COUNTERS if path not in SHOWN])
def test_each_counter_alone_can_make_a_run_doubtful(path: str) -> None:
    """No counter is left out of the verdict; those of queues need a busy line."""
    record = good()
    assert rank(record) == 0
    if path.endswith(("share", "long_lines")) or "over_ps" in path or "beyond" in path:
        put(record, "busiest_line.share", 0.5)
        put(record, "traffic.paused_beyond_share", 0.004)
    if "over_ps" in path:
        put(record, "busiest_line.share", {"0": 0.97, "1": 0.8, "2": 0.1}[path.split(".")[-2]])
    put(record, path, COUNTERS[path])
    assert rank(record) > 0, FidelityRecord.from_spec(record).verdict()


@pytest.mark.parametrize("source", SOURCES)
def test_a_counter_that_is_not_offered_makes_a_run_doubtful(source: str) -> None:
    record = good()
    record["sources"][source] = False
    assert rank(record) == 1


@settings(max_examples=1500, deadline=None)
@given(before=RECORDS, path=st.sampled_from([*COUNTERS, *FALLING]), part=st.floats(0, 1), machines=st.booleans())
@example(before={"busiest_line.share": 0.8}, path="agent.pauses.worst_second_ps", part=0.1, machines=False)
def test_a_worse_counter_never_makes_a_verdict_better(
    before: dict[str, float], path: str, part: float, machines: bool
) -> None:
    record = good()
    for name, value in before.items():
        put(record, name, value)
    worse = copy.deepcopy(record)
    if path in FALLING:
        put(worse, path, round(before.get(path, 0) * part))
    else:
        most = COUNTERS[path]
        put(worse, path, part * most if isinstance(most, float) else round(part * most), add=True)
    if machines:
        other = good()
        record, worse = ({"machines": {"one": other, "two": one}} for one in (record, worse))
    assert rank(worse) >= rank(record), path


@settings(max_examples=300, deadline=None)
@given(before=RECORDS, source=st.sampled_from([*SOURCES]))
def test_a_counter_less_never_makes_a_verdict_better(before: dict[str, float], source: str) -> None:
    record = good()
    for name, value in before.items():
        put(record, name, value)
    worse = copy.deepcopy(record)
    worse["sources"][source] = False
    assert rank(worse) >= rank(record)
