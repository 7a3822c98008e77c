"""The verdict on a statement follows from the confidence interval of the difference of its sides."""

from types import SimpleNamespace
from typing import ClassVar

import pytest
from twinnet.stats import t_interval, welch_interval
from twinnet.study.contrast import sum_of_means
from twinnet.study.measurement import Measurement
from twinnet.study.predicate import Names, parse_check
from twinnet.study.quantity import parse_quantity
from twinnet.study.specification import Statement
from twinnet.study.verdict import judge

FACTORS = {"queues": ["shared", "separate"], "row": ["a", "b", "c", "d", "e", "f"]}
NAMES = Names({"rate": parse_quantity("10 Mbit")}, {"throughput": "bit/s"}, FACTORS)


class Run:
    """A run whose throughput of each protocol is given in Mbit/s."""

    measurements: ClassVar = {"throughput": Measurement(of="throughput", interval="1 s")}

    def __init__(self, level, machine=None, repetition=1, seed=None, trace=None, row=None, step=None, **throughput):
        record = {"clock": "virtual"} if machine is None else {"clock": "wall", "machine": {"name": machine}}
        record |= {"seed": seed}
        levels = {"queues": level} | ({"row": row} if row is not None else {})
        self.run = SimpleNamespace(levels=levels, record=record, repetition=repetition)
        self.throughput = throughput
        self.fingerprint = (trace,) if trace is not None else (id(self),)
        self.is_drawn = trace != "nothing is drawn"
        self.step = step

    def flow_of(self, aggregate):
        return ""

    def grain(self, aggregate):
        return self.step

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


def test_a_group_of_levels_is_the_mean_of_those_that_it_names():
    means = {"a": 1.0, "b": 3.0, "c": 8.0, "d": 100.0}
    runs = [Run("shared", row=row, tcp=mean + 0.01 * place) for row, mean in means.items() for place in range(3)]
    check = "mean(throughput[protocol=tcp], row=a|b) < 0.51 * mean(throughput[protocol=tcp], row=c|a)"
    found = verdict(check, runs)
    # (1 + 3) / 2 and (8 + 1) / 2, each 0.01 more: d is in neither, and a in both.
    assert found.comparisons[0].left.estimate == pytest.approx(2.01e6)
    assert found.comparisons[0].right.estimate == pytest.approx(0.51 * 4.51e6)
    assert found.verdict == "supported"
    assert verdict("max(throughput[protocol=tcp], row=a|c) < rate", runs).verdict == "supported"
    assert verdict("max(throughput[protocol=tcp], row=a|d) < rate", runs).verdict == "not supported"


@pytest.mark.parametrize(
    ("group", "message"), [("a|g", "unknown level of row 'g'"), ("a|", r"unknown level of row '\)'")]
)
def test_a_group_names_levels(group, message):
    with pytest.raises(ValueError, match=message):
        parse_check(f"mean(throughput, row={group}) < rate", NAMES)


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
        assert (found.verdict, found.comparisons[0].difference.method.partition(",")[0]) == (wanted, method)


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


def of_rows(**rows):
    """Runs of rows, each with the values of its repetitions; values that are all alike have one trace."""
    return [
        Run("shared", row=row, repetition=n, trace="one" if len(set(values)) == 1 else f"{row}{n}", tcp=value)
        for row, values in rows.items()
        for n, value in enumerate(values, 1)
    ]


EVERY_BELOW = "max(throughput[protocol=tcp]) < 0.9 * rate"


def test_every_is_judged_by_the_worst_row_which_no_mean_of_rows_hides():
    for repeated in (1, 2, 4, 10):
        rows = of_rows(a=[1.0] * repeated, b=[2.0] * repeated, c=[9.4] * repeated, d=[1.5] * repeated)
        found = verdict(EVERY_BELOW, rows)
        assert found.verdict == "not supported", repeated
        assert found.comparisons[0].left.estimate == 9.4e6
        assert "row=c" in found.comparisons[0].how


def test_every_is_supported_where_each_row_is():
    assert verdict(EVERY_BELOW, of_rows(a=[1.0, 1.1, 1.2], b=[8.0, 8.1, 8.2])).verdict == "supported"
    # The mean of rows is far below, and row b cannot be told from the bound.
    assert verdict(EVERY_BELOW, of_rows(a=[1.0, 1.1, 1.2], b=[8.0, 8.9, 8.4])).verdict == "undecided"


def test_one_run_of_many_contradicts_every():
    rows = of_rows(a=[1.0, 1.1, 1.2, 1.1, 1.0, 1.1, 1.0, 9.5, 1.1, 1.0])
    found = verdict(EVERY_BELOW, rows)
    assert (found.verdict, "repetition 8" in found.comparisons[0].how) == ("not supported", True)


def test_the_least_of_rows_names_its_row_and_is_no_mean_of_least_ones():
    found = verdict("min(throughput[protocol=tcp]) > 0.5 * rate", of_rows(a=[6.0, 6.1], b=[1.0, 1.2], c=[7.0, 7.1]))
    assert (found.verdict, found.comparisons[0].left.estimate) == ("not supported", 1.0e6)
    assert "row=b, repetition 1" in found.comparisons[0].how


def test_repeating_what_does_not_differ_changes_no_verdict():
    check = "mean(throughput[protocol=tcp]) > 0.5 * rate"
    methods = {verdict(check, of_rows(a=[4.9] * n, b=[5.5] * n)).comparisons[0].difference.method for n in (2, 4, 16)}
    assert methods == {"exact"}
    found = verdict(check, of_rows(a=[4.9] * 4, b=[5.5] * 4)).comparisons[0]
    assert (found.verdict, found.how) == ("supported", "exact: repetitions do not differ")


def test_levels_that_are_left_out_are_blocks_and_no_sample():
    # Rows differ by tens, the queues by 1 in each row: as one sample, nothing could be told.
    rows = {"a": 10.0, "b": 40.0, "c": 90.0}
    runs = [
        Run(level, row=row, repetition=n, tcp=base + above + noise)
        for row, base in rows.items()
        for level, above in (("shared", 1.0), ("separate", 0.0))
        for n, noise in enumerate((-0.1, 0.0, 0.1), 1)
    ]
    check = "mean(throughput[protocol=tcp], queues=shared) > mean(throughput[protocol=tcp], queues=separate)"
    found = verdict(check, runs).comparisons[0]
    assert (found.verdict, found.how) == ("supported", "over 6 combinations of levels")
    assert found.difference.estimate == pytest.approx(1e6)
    assert found.difference.high - found.difference.low < 0.4e6
    # The side by itself has the spread of repetitions, not that of the rows.
    assert found.left.high - found.left.low < 0.5e6


def test_a_repetition_of_what_nothing_is_drawn_in_needs_one_more_and_no_sample():
    runs = [Run("shared", trace="nothing is drawn", tcp=9.5)]
    assert "a second of the same makes it exact" in verdict(ABOVE, runs).comparisons[0].why
    assert "repeat at least twice" in verdict(ABOVE, shared(9.5)).comparisons[0].why


def test_single_repetitions_in_pairs_reach_further_where_a_side_is_skewed():
    far = (0.2, 0.3, 3.5, 0.1, 0.25, 0.2)
    runs = [
        Run(level, row=row, tcp=value)
        for level, values in (("shared", far), ("separate", (2.3, 2.4, 2.2, 2.3, 2.35, 2.25)))
        for row, value in zip("abcdef", values, strict=True)
    ]
    check = "mean(throughput[protocol=tcp], queues=shared) < mean(throughput[protocol=tcp], queues=separate)"
    found = verdict(check, runs).comparisons[0]
    assert t_interval([1e6 * (one - 2.3) for one in far]).high < 0
    assert (found.verdict, "skewed" in found.why) == ("undecided", True)


def test_single_repetitions_are_paired_by_the_other_levels():
    runs = [
        Run(level, row=row, tcp=base + above)
        for row, base, more in (("a", 1.0, 1.0), ("b", 40.0, 1.1), ("c", 90.0, 0.9))
        for level, above in (("shared", more), ("separate", 0.0))
    ]
    check = "mean(throughput[protocol=tcp], queues=shared) > mean(throughput[protocol=tcp], queues=separate)"
    found = verdict(check, runs).comparisons[0]
    assert (found.verdict, found.difference.method, "paired over 3" in found.how) == ("supported", "paired", True)


def test_common_random_numbers_are_compared_repetition_by_repetition():
    runs = [
        Run(level, repetition=n, seed=n, tcp=base + above + noise)
        for n, (base, noise) in enumerate(((2, 0.01), (5, -0.01), (9, 0.0)), 1)
        for level, above in (("shared", 0.2), ("separate", 0.0))
        for noise in ((noise,) if level == "shared" else (0.0,))
    ]
    check = "mean(throughput[protocol=tcp], queues=shared) > mean(throughput[protocol=tcp], queues=separate)"
    assert verdict(check, runs).verdict == "supported"


SAME = "mean(throughput[protocol=tcp], queues=shared) = mean(throughput[protocol=tcp], queues=separate) within "


def test_that_nothing_changes_is_a_test_of_equivalence_with_its_bound():
    runs = [
        *(Run("shared", tcp=value) for value in (5.00, 5.02, 5.04, 5.02)),
        *(Run("separate", tcp=value) for value in (5.10, 5.12, 5.14, 5.12)),
    ]
    # 0.1 of 5.12 is 2 %: no difference within 5 % and within 0.2 Mbit, a difference within 1 %.
    assert verdict(SAME + "5 %", runs).verdict == "supported"
    assert verdict(SAME + "0.2 Mbit", runs).verdict == "supported"
    assert verdict(SAME + "1 %", runs).verdict == "not supported"
    assert verdict(SAME + "2 %", runs).verdict == "undecided"
    assert verdict(SAME + "5 %", runs).comparisons[0].difference.level == pytest.approx(0.90)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("mean(throughput) = rate", "'within' and how far"),
        ("mean(throughput) = rate within 0", "nothing is allowed"),
        ("mean(throughput) = rate within 5 ms", "a time"),
        ("mean(throughput) = rate within 200 %", "above 0 % and below 100 %"),
        ("mean(throughput) = rate within rate %", "a share is a number"),
    ],
)
def test_an_equivalence_without_a_bound_is_refused(wrong, told):
    with pytest.raises(ValueError, match=told):
        parse_check(wrong, NAMES)


def equal(value, count, step=None):
    return [Run("shared", trace=f"t{n}", step=step, tcp=value) for n in range(count)]


def test_equal_values_bound_no_mean_where_their_step_is_not_known():
    """A metric of 0 or 20 ms is 0 in five runs of five in 44 % of studies, and its mean is 3 ms."""
    for count in (2, 5, 50):
        found = verdict(ABOVE, equal(9.5, count))
        assert found.verdict == "undecided", count
    assert "at most 45 % of runs give another" in verdict(ABOVE, equal(9.5, 5)).comparisons[0].why
    assert "more repetitions" not in verdict(ABOVE, equal(9.5, 5)).comparisons[0].why


def test_equal_values_have_the_spread_of_a_step():
    # Student's interval of five values with a deviation of one step reaches 1.24 steps to both sides.
    assert verdict(ABOVE, equal(9.5, 5, step=0.4e6)).verdict == "supported"
    assert verdict(ABOVE, equal(9.5, 5, step=0.41e6)).verdict == "undecided"
    assert verdict(ABOVE, equal(9.0, 5, step=0.1e6)).verdict == "undecided"
    assert verdict(ABOVE, equal(8.0, 5, step=0.1e6)).verdict == "not supported"
    assert "to a step of what is counted" in verdict(ABOVE, equal(9.5, 5, step=0.1e6)).comparisons[0].how


def test_the_greatest_of_equal_values_has_the_spread_of_a_step_too():
    for step, wanted in ((None, "undecided"), (0.4e6, "supported"), (0.41e6, "undecided")):
        assert verdict("max(throughput[protocol=tcp]) < 1.05 * rate - 1 Mbit", equal(9.0, 5, step)).verdict == wanted


def test_where_nothing_is_drawn_by_chance_equal_values_are_exact():
    runs = [Run("shared", trace="nothing is drawn", tcp=9.5) for _ in range(2)]
    found = verdict(ABOVE, runs)
    assert (found.verdict, found.comparisons[0].how) == ("supported", "exact: repetitions do not differ")
    assert verdict(ABOVE, runs[:1]).verdict == "undecided"


def test_skewed_values_reach_further_up():
    skewed = shared(0.1, 0.2, 0.3, 0.2, 3.0, 0.1, 0.5, 0.2)
    found = verdict("mean(throughput[protocol=tcp]) < 0.2 * rate", skewed)
    assert t_interval([1e6 * run.throughput["tcp"] for run in skewed]).high < 2e6
    assert found.verdict == "undecided"
    assert "skewed" in found.comparisons[0].why


REVERSED = {
    ("shared", "a"): 1.0, ("shared", "b"): 5.0, ("shared", "c"): 6.0,
    ("separate", "a"): 9.0, ("separate", "b"): 4.0, ("separate", "c"): 5.0,
}  # fmt: skip


def test_a_claim_in_every_level_needs_each_of_them():
    runs = [Run(level, row=row, tcp=mean + more) for (level, row), mean in REVERSED.items() for more in (0, 0.1, 0.2)]
    less = "mean(throughput[protocol=tcp], queues=shared) < mean(throughput[protocol=tcp], queues=separate)"
    names = Names({}, {"throughput": "bit/s"}, {**FACTORS, "row": ["a", "b", "c"]})
    statement = Statement(id="x", text="x", check=less)
    assert judge(statement, parse_check(less, names), runs, 0.95).verdict == "supported"
    every = judge(statement, parse_check(less + " in every row", names), runs, 0.95)
    assert every.verdict == "not supported"
    assert [(one.comparison.under, one.verdict) for one in every.comparisons] == [
        ("row=a", "supported"),
        ("row=b", "not supported"),
        ("row=c", "not supported"),
    ]
    run = Names({}, {"throughput": "bit/s"}, {**FACTORS, "row": ["a", "b", "c"]}, {"row": ["a"]})
    assert judge(statement, parse_check(less + " in every row", run), runs, 0.95).verdict == "supported"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("mean(throughput) < rate in row", "expected 'every' and a factor"),
        ("mean(throughput) < rate in every", "expected a factor"),
        ("mean(throughput) < rate in every column", "unknown factor 'column'"),
        ("mean(throughput, row=a) < rate in every row", "it speaks of row=a and of every row"),
        ("mean(throughput) = rate within mean(throughput, row=a) in every row", "it speaks of row=a and of every row"),
        ("mean(throughput) < rate in every row, row", "row is named twice"),
        ("0 < rate in every row", "nothing in it is measured"),
    ],
)
def test_a_claim_in_every_level_names_a_factor_that_it_leaves_open(wrong, told):
    with pytest.raises(ValueError, match=told):
        parse_check(wrong, NAMES)


@pytest.mark.parametrize("rows", [3, 6])
@pytest.mark.parametrize("value", [0.1, 0.2, 0.3, 0.7])
def test_levels_with_equal_exact_values_are_neither_less_nor_more(rows, value):
    """What rounding leaves of a mean over levels is no difference."""
    named = dict.fromkeys("abcdef"[:rows], [value] * 2)
    runs = [
        Run(queues, row=row, repetition=n, trace="one", tcp=own)
        for queues in FACTORS["queues"]
        for row, values in named.items()
        for n, own in enumerate(values, 1)
    ]
    sides = "mean(throughput[protocol=tcp], queues=shared) {} mean(throughput[protocol=tcp], queues=separate)"
    beside = f"mean(throughput[protocol=tcp]) {{}} {value} Mbit"
    for form in (sides, beside):
        for operator, wanted in (
            ("<", "not supported"),
            (">", "not supported"),
            ("<=", "supported"),
            (">=", "supported"),
        ):
            assert verdict(form.format(operator), runs).verdict == wanted, (form, operator)


def test_a_run_that_is_missing_makes_no_independent_samples_of_common_seeds():
    values = (9.0, 9.3, 10.4, 9.4, 9.2)
    runs = [
        Run("shared", row=row, repetition=n, seed=n, tcp=value)
        for row in FACTORS["row"]
        for n, value in enumerate(values, 1)
    ]
    check = "mean(throughput[protocol=tcp]) < rate"
    assert verdict(check, runs).verdict == "undecided"
    found = verdict(check, runs[:-1])
    assert found.verdict == "undecided"
    assert "5 runs of repetitions that not all levels have are left out" in (
        found.comparisons[0].how + sum_of_means(parse_check(check, NAMES)[0].left, runs[:-1], 0.95).how
    )


def test_skew_is_seen_in_differences_of_one_run():
    far = (0.1, 0.2, 0.3, 0.2, 3.0, 0.1, 0.5, 0.2)
    runs = [Run("shared", seed=n, tcp=value, udp=1.9 + 0.01 * (n % 3)) for n, value in enumerate(far)]
    check = "mean(throughput[protocol=tcp]) < mean(throughput[protocol=udp])"
    assert verdict(check, runs).verdict == "undecided"
    near = [Run("shared", tcp=1.0 + 0.01 * n, udp=1.9 + 0.01 * (n % 3)) for n in range(8)]
    assert verdict(check, near).verdict == "supported"


def test_what_is_left_within_machines_by_chance_is_no_certainty():
    runs = [
        Run(level, machine, tcp=value)
        for level, values in (("shared", (1.0, 3.0)), ("separate", (2.0, 4.0)))
        for machine, value in zip(("m", "n"), values, strict=True)
    ]
    check = "mean(throughput[protocol=tcp], queues=shared) < mean(throughput[protocol=tcp], queues=separate)"
    assert verdict(check, runs).verdict == "undecided"


def test_values_below_zero_are_the_same_within_a_share_of_their_size():
    def runs(*shift):
        ten = (-10.0, -10.01, -9.99, -10.02, -9.98)
        return [Run(level, tcp=value + by) for level, by in zip(FACTORS["queues"], shift, strict=True) for value in ten]

    assert verdict(SAME + "5 %", runs(0, 0)).verdict == "supported"
    assert verdict(SAME + "5 %", runs(0, 2)).verdict == "not supported"
    assert len(parse_check("mean(throughput) = -3 Mbit within 5 %", NAMES)) == 1


def test_a_step_widens_equal_values_alone():
    values = [Run("shared", step=5e6, tcp=value) for value in (9.4, 9.5, 9.6, 9.5, 9.4)]
    assert verdict(ABOVE, values).verdict == "supported"


@pytest.mark.parametrize("size", [0.0, 1e-310, 1e-200, 1e200])
def test_terms_of_any_size_are_judged_without_an_exception(size):
    runs = [Run("shared", step=1.0, tcp=size * value / 1e6) for value in (1.0, 2.0, 3.0)]
    assert verdict("mean(throughput[protocol=tcp]) < rate", runs).verdict in ("supported", "undecided", "not supported")
    assert verdict("0 * mean(throughput[protocol=tcp]) < rate", runs).verdict in ("supported", "undecided")
