"""The verdict on a statement follows from the confidence interval of the difference of its sides."""

from types import SimpleNamespace

import pytest
from twinnet.stats import t_interval, welch_interval
from twinnet.study.predicate import Names, parse_check
from twinnet.study.quantity import parse_quantity
from twinnet.study.specification import Statement
from twinnet.study.verdict import judge

NAMES = Names({"rate": parse_quantity("10 Mbit")}, {"throughput": "bit/s"}, {"queues": ["shared", "separate"]})


class Run:
    """A run whose throughput of each protocol is given in Mbit/s."""

    def __init__(self, level, machine=None, **throughput):
        record = {"clock": "virtual"} if machine is None else {"clock": "wall", "machine": {"name": machine}}
        self.run = SimpleNamespace(levels={"queues": level}, record=record)
        self.throughput = throughput

    def value(self, aggregate):
        protocol = dict(aggregate.filters)["protocol"]
        if protocol not in self.throughput:
            raise LookupError(f"no flow with protocol={protocol} was received")
        return self.throughput[protocol] * 1e6


def verdict(check, runs):
    statement = Statement(id="x", text="x", check=check)
    return judge(statement, parse_check(check, NAMES), runs, 0.95)


def shared(*values):
    return [Run("shared", tcp=value) for value in values]


ABOVE = "mean(throughput[protocol=tcp], queues=shared) > 0.9 * rate"


def test_an_interval_wholly_above_supports():
    assert verdict(ABOVE, shared(9.4, 9.5, 9.6)).verdict == "supported"


def test_an_interval_wholly_below_refutes():
    assert verdict(ABOVE, shared(5.0, 5.1, 5.2)).verdict == "not supported"


def test_an_interval_across_the_bound_decides_nothing():
    result = verdict(ABOVE, shared(8.0, 9.5, 10.0))
    assert result.verdict == "undecided"
    assert "more repetitions" in result.comparisons[0].why


def test_one_repetition_decides_nothing():
    result = verdict(ABOVE, shared(9.9))
    assert (result.verdict, result.comparisons[0].left.estimate) == ("undecided", 9.9e6)


def test_what_was_not_measured_is_undecided_and_says_why():
    result = verdict(ABOVE, [Run("shared", udp=1), Run("shared", udp=1)])
    assert (result.verdict, result.comparisons[0].why) == ("undecided", "no flow with protocol=tcp was received")


def test_no_run_of_a_level_is_undecided():
    assert verdict(ABOVE, [Run("separate", tcp=9.5)]).comparisons[0].why == "no usable run with queues=shared"


def test_the_numbers_are_the_t_interval():
    found = verdict(ABOVE, shared(9.4, 9.5, 9.6)).comparisons[0].left
    expected = t_interval([9.4e6, 9.5e6, 9.6e6])
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_sides_of_the_same_runs_are_compared_run_by_run():
    # Each run has tcp 0.1 below udp; between runs both vary by several Mbit/s. Unpaired, nothing could be said.
    runs = [Run("shared", tcp=base, udp=base + 0.1 + jitter) for base, jitter in ((2, 0.001), (5, 0.0), (9, -0.001))]
    check = "mean(throughput[protocol=udp], queues=shared) > mean(throughput[protocol=tcp], queues=shared)"
    assert verdict(check, runs).verdict == "supported"


def test_sides_of_different_levels_on_several_machines_are_compared_within_them():
    # Machines that differ by 3 hide a difference of 1 between levels, unless levels are compared within machines.
    values = {"shared": (5.0, 5.1, 2.0, 2.1), "separate": (4.0, 4.1, 1.0, 1.1)}
    machines = ("lab1", "lab1", "lab2", "lab2")
    check = "mean(throughput[protocol=tcp], queues=shared) > mean(throughput[protocol=tcp], queues=separate)"
    for placed, wanted, method in ((machines, "supported", "blocks"), ([None] * 4, "undecided", "Welch")):
        runs = [
            Run(level, machine, tcp=value)
            for level, measured in values.items()
            for machine, value in zip(placed, measured, strict=True)
        ]
        found = verdict(check, runs)
        assert (found.verdict, found.comparisons[0].difference.method) == (wanted, method)


def test_sides_of_different_levels_are_compared_as_welch_did():
    runs = [*shared(5.0, 5.2, 5.4), *(Run("separate", tcp=value) for value in (4.0, 4.5, 4.4, 4.6))]
    check = "mean(throughput[protocol=tcp], queues=shared) > mean(throughput[protocol=tcp], queues=separate)"
    found = verdict(check, runs).comparisons[0].difference
    expected = welch_interval([5.0e6, 5.2e6, 5.4e6], [4.0e6, 4.5e6, 4.4e6, 4.6e6])
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_a_chain_needs_each_of_its_links():
    chain = "0.5 * rate < mean(throughput[protocol=tcp], queues=shared) < 0.8 * rate"
    assert verdict(chain, shared(6.0, 6.1, 6.2)).verdict == "supported"
    assert verdict(chain, shared(9.0, 9.1, 9.2)).verdict == "not supported"
    assert verdict(chain + " and 1 < 2", shared(6.0, 6.1, 6.2)).verdict == "supported"
    assert verdict(chain + " and 2 < 1", shared(6.0, 6.1, 6.2)).verdict == "not supported"


def test_equal_repetitions_are_decided_without_spread():
    assert verdict(ABOVE, shared(9.5, 9.5)).verdict == "supported"
    assert verdict(ABOVE, shared(9.0, 9.0)).verdict == "not supported"
    assert verdict(ABOVE.replace(">", ">="), shared(9.0, 9.0)).verdict == "supported"
