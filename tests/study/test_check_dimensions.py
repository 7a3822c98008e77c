"""A check compares like with like: a rate with a rate, a time with a time."""

from __future__ import annotations

import pytest
from twinnet.study.predicate import Names, parse_check, parse_side, unit_of_side
from twinnet.study.quantity import parse_quantity

NAMES = Names(
    {"link_rate": parse_quantity("100 Mbit"), "length": parse_quantity("4 s"), "half": parse_quantity("0.5")},
    {"throughput": "bit/s", "delay": "s", "lost": "1", "psnr": "dB", "packets": "1/s"},
)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("mean(throughput) > 3 ms", "column 20 of 'mean(throughput) > 3 ms': 3 ms is a time, and"),
        ("mean(throughput) < 2 kB", "2 kB is a size, and mean(throughput) is a rate; add and compare only"),
        ("throughput > 1 Mbit", "column 1 of 'throughput > 1 Mbit': throughput is a measurement with many values"),
        ("mean(throughput) > 3", "column 20 of 'mean(throughput) > 3': 3 has no unit, and mean(throughput) is a rate"),
        ("3 < mean(delay)", "column 1 of '3 < mean(delay)': 3 has no unit, and mean(delay) is a time; write"),
        ("mean(delay) > mean(throughput)", "mean(throughput) is a rate, and mean(delay) is a time"),
        ("mean(delay) + 1 Mbit > 3 ms", "column 15 of 'mean(delay) + 1 Mbit > 3 ms': 1 Mbit is a rate"),
        ("mean(lost) < 3 ms", "3 ms is a time, and mean(lost) is a share"),
        ("mean(psnr) > mean(lost)", "mean(lost) is a share, and mean(psnr) is a level in dB"),
        ("mean(throughput) > length", "length is a time, and mean(throughput) is a rate"),
        ("mean(throughput) > length * link_rate", "one factor of a product has a unit"),
        ("mean(throughput, during=[1, 2 s]) > 1 Mbit", "column 26 of"),
        ("mean(throughput, during=[1 s, link_rate]) > 1 Mbit", "link_rate is a rate, and a window's bound is a time"),
    ],
)  # fmt: skip
def test_sides_that_measure_different_things_are_refused_at_their_column(check: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_check(check, NAMES)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "check",
    [
        "mean(throughput) > 0.95 * link_rate",
        "mean(throughput) > half * link_rate",
        "-0.05 * link_rate < mean(throughput) - mean(throughput) < 2 * 0.05 * link_rate",
        "mean(delay) > 0",
        "0 < mean(delay) < 0.5 * length + 3 ms",
        "mean(lost) < 0.01 and mean(packets) > 500 and mean(psnr) > 30",
        "mean(throughput, during=[0, 0.5 * length]) > 1 Mbit",
    ],
)
def test_sides_that_measure_the_same_are_compared(check: str) -> None:
    assert parse_check(check, NAMES)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("mean(delay) > 3 parsec", "column 15 of 'mean(delay) > 3 parsec': '3 parsec' has an unknown unit"),
        ("1 Mbit < throughput", "column 10 of '1 Mbit < throughput': throughput is a measurement"),
        ("mean(delay) >", "column 14 of 'mean(delay) >': expected a number, a parameter or a measured quantity, found"),
        ("mean(throughput, during=[0, mean(delay)]) > 1 Mbit", "a window's bounds are not measured"),
        ("mean(throughput, during=[0, mean(delay)]) > 1 Mbit", "column 29 of"),
        (
            "mean(delay) > lenght",
            "column 15 of 'mean(delay) > lenght': unknown parameter 'lenght'; did you mean 'length'",
        ),
        ("mean(delay", "column 11 of 'mean(delay': expected ')', found the end"),
        ("mean(3) > 1", "column 6 of 'mean(3) > 1': expected a measurement, found '3'"),
        ("mean(delay) ms > 3", "column 13 of 'mean(delay) ms > 3': expected a comparison"),
    ],
)
def test_what_is_no_check_is_refused_at_its_column(check: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_check(check, NAMES)
    assert message in str(caught.value)


def test_a_published_value_measures_what_stands_beside_it() -> None:
    assert unit_of_side("mean(throughput) - 3 kbit", NAMES) == "bit/s"
    with pytest.raises(ValueError, match="5 ms is a time, and what is wanted here is a rate"):
        parse_side("5 ms", NAMES, "bit/s")
